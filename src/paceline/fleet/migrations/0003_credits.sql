-- What a credit with a key was of: the same key with another amount is a mistake. Of earlier credits nobody knows.

ALTER TABLE credit ADD COLUMN document TEXT;

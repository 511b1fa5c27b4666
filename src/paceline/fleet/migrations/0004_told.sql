-- A decision of which a part of the outcome is known cannot be cancelled any more.

ALTER TABLE estate ADD COLUMN told BIGINT NOT NULL DEFAULT 0;

UPDATE estate SET told = 1 WHERE document <> replace(document, 'null', '');

-- What is old goes fleet by fleet: two fleets that clear up the rows of all would wait for each other.

DROP INDEX unclaimed_by_time;

CREATE INDEX unclaimed_by_time ON unclaimed (fleet, time);

-- News of a worker that has no row: it may have begun while the store was away, and say hello later.

CREATE TABLE unclaimed (
    fleet TEXT NOT NULL,
    number BIGINT NOT NULL,
    owner TEXT NOT NULL,
    document TEXT NOT NULL,
    time BIGINT NOT NULL,
    PRIMARY KEY (fleet, number)
);

CREATE INDEX unclaimed_by_owner ON unclaimed (fleet, owner, number);

CREATE INDEX unclaimed_by_time ON unclaimed (time);

-- Amounts are whole units, which may be larger than 64 bits hold: they stand in JSON documents, as text.

CREATE TABLE fleet (
    name TEXT PRIMARY KEY,
    settings TEXT NOT NULL,
    document TEXT NOT NULL,
    version BIGINT NOT NULL,
    account TEXT NOT NULL,
    news BIGINT NOT NULL,
    acts BIGINT NOT NULL
);

CREATE TABLE change (
    fleet TEXT NOT NULL,
    version BIGINT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (fleet, version)
);

CREATE TABLE worker (
    fleet TEXT NOT NULL,
    life TEXT NOT NULL,
    name TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (fleet, life)
);

CREATE TABLE inbox (
    fleet TEXT NOT NULL,
    number BIGINT NOT NULL,
    owner TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (fleet, number)
);

CREATE INDEX inbox_by_owner ON inbox (fleet, owner, number);

CREATE TABLE credit (
    fleet TEXT NOT NULL,
    code TEXT NOT NULL,
    PRIMARY KEY (fleet, code)
);

CREATE TABLE kept (
    fleet TEXT NOT NULL,
    code TEXT NOT NULL,
    document TEXT NOT NULL,
    time BIGINT NOT NULL,
    PRIMARY KEY (fleet, code)
);

CREATE INDEX kept_by_time ON kept (time);

CREATE TABLE act (
    fleet TEXT NOT NULL,
    number BIGINT NOT NULL,
    time BIGINT NOT NULL,
    author TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (fleet, number)
);

CREATE TABLE token (
    label TEXT PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    time BIGINT NOT NULL
);

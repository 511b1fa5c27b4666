-- Decisions that a worker left open when it closed: what is reserved for each.

CREATE TABLE estate (
    fleet TEXT NOT NULL,
    life TEXT NOT NULL,
    number BIGINT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (fleet, life, number)
);

-- The tables of the PostgreSQL store, schema 1. `{schema}` stands for the name of the schema, quoted.
--
-- Moments are milliseconds since 1970; those beyond 2^63 stand here as 2^63 - 1, and exactly in the record. Texts that come
-- from callers are bytes (UTF-8), so that they may hold anything, sort byte by byte and need no encoding of the database.
-- A person reads them with convert_from(record, 'UTF8').

-- Of all writes of all orders, the number of each. None ever comes back, not even after a purge.
CREATE SEQUENCE {schema}.versions AS bigint MINVALUE 1 CACHE 1 NO CYCLE;

-- One row for each order. Its primary key alone decides who made an order, and so who pays.
CREATE TABLE {schema}.orders (
    key       bytea PRIMARY KEY, -- 32 bytes
    version   bigint NOT NULL,   -- the write that made this row what it is
    alarm     bigint,            -- when it must be woken, or when its claim lapses
    target    bytea,             -- the shelf on which its answer stands
    spoils    bigint,            -- and when it spoils
    forget_at bigint,            -- when the row may be forgotten
    standing  smallint NOT NULL, -- 0 open, 1 waits for a person, 2 at rest
    awaited   boolean NOT NULL,  -- whether whoever waits for it has nothing to be told yet
    digest    bytea,             -- SHA-256 of the terms if they are large: they are not sent again at every step
    record    bytea NOT NULL,    -- JSON: see quittance-record
    terms     bytea NOT NULL     -- JSON
) WITH (
    -- Rows are written over and over: there is room for the next one beside each, and the dead ones are soon swept out.
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 1,
    autovacuum_analyze_scale_factor = 0.1,
    toast.autovacuum_vacuum_scale_factor = 0.05,
    toast.autovacuum_vacuum_threshold = 1000
);

-- The record is written at every step and stays in its row; large terms stand elsewhere and are left where they are.
ALTER TABLE {schema}.orders ALTER COLUMN record SET STORAGE MAIN;

CREATE INDEX orders_due ON {schema}.orders (alarm, key) WHERE alarm IS NOT NULL;
CREATE INDEX orders_shelf ON {schema}.orders (target, spoils, key) WHERE target IS NOT NULL;
CREATE INDEX orders_forgettable ON {schema}.orders (forget_at, key) WHERE forget_at IS NOT NULL;
CREATE INDEX orders_listed ON {schema}.orders (standing, key) WHERE standing <> 2;

-- The books: one row for each day, tenant, kind and line, in as many parts as writers have added to it, so that they need not
-- wait for each other. The sum of the parts counts. A line that a later version adds needs no new schema.
CREATE TABLE {schema}.tallies (
    day    bigint NOT NULL, -- since 1970
    tenant bytea NOT NULL,
    kind   bytea NOT NULL,
    line   text COLLATE "C" NOT NULL,
    shard  smallint NOT NULL,
    amount bigint NOT NULL, -- it stops at 2^63 - 1
    PRIMARY KEY (day, tenant, kind, line, shard)
) WITH (
    fillfactor = 40,
    autovacuum_vacuum_scale_factor = 0.1,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 1
);

-- Who works here.
CREATE TABLE {schema}.nodes (
    node bigint PRIMARY KEY, -- bit by bit
    card bytea NOT NULL,     -- JSON
    seen bigint NOT NULL     -- by the clock of this server
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- One row once the orders have moved elsewhere: nobody writes any more.
CREATE TABLE {schema}.seal (
    is_sealed boolean PRIMARY KEY DEFAULT true CHECK (is_sealed),
    note      bytea NOT NULL
);

-- What all nodes must have in common, drawn by the first of them.
CREATE TABLE {schema}.secrets (
    name   text COLLATE "C" PRIMARY KEY,
    secret bytea NOT NULL
);

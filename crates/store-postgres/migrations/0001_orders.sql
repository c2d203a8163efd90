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

-- One row while orders are being moved here: no node begins to work on them.
CREATE TABLE {schema}.filling (
    is_filling boolean PRIMARY KEY DEFAULT true CHECK (is_filling),
    note       bytea NOT NULL
);

-- What all nodes must have in common, drawn by the first of them.
CREATE TABLE {schema}.secrets (
    name   text COLLATE "C" PRIMARY KEY,
    secret bytea NOT NULL
);

-- The one way in which orders are written: many commits and additions to the books at once; no key twice. It is a function
-- because a server makes its plans once for each session, whereas a statement that a pooler may give to any session is
-- planned anew each time, which takes longer than all that it does.
--
-- - Rows that are to be updated come first, in the order of their keys, and rows that are to be made after them, in the order
--   of theirs: two nodes never wait for each other.
-- - Whoever places what is there already is told without waiting for anybody, and without writing.
-- - An update without its large terms is good only if those that are there have the same digest.
-- - One notice names all orders that are no longer awaited.
-- - The seal is read before anything else: the lock that this takes holds up whoever seals until all is written.
--
-- It answers with one row for each commit, or with one row for none of them. Its plans must not depend on how many rows there
-- were when they were made: a table that was empty then is large soon.
CREATE FUNCTION {schema}.commit_orders(
    numbers int4[], keys bytea[], expectations int8[], alarms int8[], targets bytea[], spoilings int8[], forgettings int8[],
    standings int2[], awaitings bool[], digests bytea[], records bytea[], all_terms bytea[],
    book_numbers int4[], days int8[], tenants bytea[], kinds bytea[], lines text[], amounts int8[], part int2,
    channel text, heading text, versions regclass
) RETURNS TABLE (
    sealed bytea, number int4, done int8, wants_terms bool,
    there_key bytea, there_version int8, there_record bytea, there_terms bytea
) LANGUAGE plpgsql VOLATILE ROWS 10
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
AS $commit$
DECLARE
    i record;
    won bool[];
    news text := '';
BEGIN
    SELECT s.note INTO sealed FROM {schema}.seal AS s;
    IF FOUND OR cardinality(numbers) = 0 THEN
        RETURN NEXT;
    END IF;
    IF sealed IS NOT NULL THEN
        RETURN;
    END IF;
    FOR i IN
        SELECT wanted.*, o.version AS there_version, o.record AS there_record, o.terms AS there_terms
        FROM unnest(numbers, keys, expectations, alarms, targets, spoilings, forgettings, standings, awaitings, digests,
                    records, all_terms)
                AS wanted(n, key, expected, alarm, target, spoils, forget_at, standing, awaited, digest, record, terms)
            LEFT JOIN LATERAL (
                SELECT t.version, t.record, t.terms FROM {schema}.orders AS t
                WHERE t.key = wanted.key AND wanted.expected = 0 OFFSET 0
            ) AS o ON true
        ORDER BY wanted.expected = 0, wanted.key
    LOOP
        number := i.n;
        done := NULL;
        wants_terms := NULL;
        there_key := i.key;
        there_version := i.there_version;
        there_record := i.there_record;
        there_terms := i.there_terms;
        IF i.expected <> 0 THEN
            UPDATE {schema}.orders AS o
            SET version = nextval(versions), alarm = i.alarm, target = i.target, spoils = i.spoils,
                forget_at = i.forget_at, standing = i.standing, awaited = i.awaited, digest = i.digest,
                record = i.record, terms = coalesce(i.terms, o.terms)
            WHERE o.key = i.key AND o.version = i.expected AND (i.terms IS NOT NULL OR o.digest = i.digest)
            RETURNING o.version INTO done;
            IF done IS NULL THEN
                SELECT o.version, o.record, o.terms,
                       o.version = i.expected AND i.terms IS NULL AND o.digest IS DISTINCT FROM i.digest
                INTO there_version, there_record, there_terms, wants_terms
                FROM {schema}.orders AS o WHERE o.key = i.key;
            END IF;
        ELSIF there_version IS NULL THEN
            INSERT INTO {schema}.orders AS o
                (key, version, alarm, target, spoils, forget_at, standing, awaited, digest, record, terms)
            VALUES (i.key, nextval(versions), i.alarm, i.target, i.spoils, i.forget_at, i.standing, i.awaited,
                    i.digest, i.record, i.terms)
            ON CONFLICT (key) DO NOTHING
            RETURNING o.version INTO done;
            IF done IS NULL THEN
                SELECT o.version, o.record, o.terms INTO there_version, there_record, there_terms
                FROM {schema}.orders AS o WHERE o.key = i.key;
            END IF;
        END IF;
        IF done IS NOT NULL THEN
            won[i.n] := true;
            IF NOT i.awaited THEN
                news := news || encode(i.key, 'hex');
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;
    IF cardinality(lines) > 0 THEN
        INSERT INTO {schema}.tallies AS t (day, tenant, kind, line, shard, amount)
        SELECT b.day, b.tenant, b.kind, b.line, part, least(sum(b.amount), 9223372036854775807)::int8
        FROM unnest(book_numbers, days, tenants, kinds, lines, amounts) AS b(n, day, tenant, kind, line, amount)
        WHERE b.n IS NULL OR won[b.n]
        GROUP BY b.day, b.tenant, b.kind, b.line ORDER BY b.day, b.tenant, b.kind, b.line
        ON CONFLICT (day, tenant, kind, line, shard) DO UPDATE SET amount =
            CASE WHEN t.amount > 9223372036854775807 - excluded.amount THEN 9223372036854775807
                 ELSE t.amount + excluded.amount END;
    END IF;
    IF news <> '' THEN
        PERFORM pg_notify(channel, heading || news);
    END IF;
END
$commit$;

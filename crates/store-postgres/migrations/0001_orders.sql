-- The tables of the PostgreSQL store, schema 1. `{schema}` stands for the quoted name of the schema.
--
-- Moments are milliseconds since 1970. A moment beyond 2^63 is stored here as 2^63 - 1, and exactly in the record. Texts from
-- callers are stored as bytes (UTF-8): so they may hold anything, sort byte by byte, and do not depend on the encoding of the
-- database. To read one, use convert_from(record, 'UTF8').

-- The versions: each write of an order gets the next number. No number is used twice, not even after a purge.
CREATE SEQUENCE {schema}.versions AS bigint MINVALUE 1 CACHE 1 NO CYCLE;

-- One row for each order. The primary key alone decides which node created an order, and so which node pays.
CREATE TABLE {schema}.orders (
    key         bytea PRIMARY KEY, -- 32 bytes
    version     bigint NOT NULL,   -- the number of the last write of this row
    timer       bigint,            -- when the order must be woken, or when its claim ends
    target      bytea,             -- the target in whose stock the answer is, or from whose stock it was taken
    expires      bigint,            -- when that answer expires
    taker       bytea,             -- the order that has taken the answer from the stock
    taken_at    bigint,            -- when it was taken, while the record does not say so: a reader must add both to the record
    once_timer  bigint,            -- for an answer in the stock: the timer that holds once it is taken. For a taken answer:
                                   -- the timer that holds if it is put back
    once_forget bigint,            -- the same for `forget_at`
    tenant      bytea,             -- for an answer in the stock: the usage row to which it belongs
    kind        bytea,
    site        bytea,
    provider    bytea,
    forget_at   bigint,            -- when the row may be removed
    standing    smallint NOT NULL, -- 0 open, 1 needs a person, 2 at rest
    awaited     boolean NOT NULL,  -- whether waiting callers have no outcome yet
    digest      bytea,             -- SHA-256 of the terms if they are large, so that they are sent only once
    record      bytea NOT NULL,    -- JSON: see quittance-record
    terms       bytea NOT NULL     -- JSON
) WITH (
    -- Rows are updated often: each page has room for new versions of its rows, and vacuum removes the old ones soon.
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 1,
    autovacuum_analyze_scale_factor = 0.1,
    toast.autovacuum_vacuum_scale_factor = 0.05,
    toast.autovacuum_vacuum_threshold = 1000
);

-- The record is written at every step and stays in its row. Large terms are stored apart, and are not written again.
ALTER TABLE {schema}.orders ALTER COLUMN record SET STORAGE MAIN;

CREATE INDEX orders_due ON {schema}.orders (timer, key) WHERE timer IS NOT NULL;
CREATE INDEX orders_stock ON {schema}.orders (target, expires, key) WHERE target IS NOT NULL AND taker IS NULL;
CREATE INDEX orders_taken ON {schema}.orders (taker, target) WHERE taker IS NOT NULL;
CREATE INDEX orders_forgettable ON {schema}.orders (forget_at, key) WHERE forget_at IS NOT NULL;
CREATE INDEX orders_listed ON {schema}.orders (standing, key) WHERE standing <> 2;

-- The usage: one row for each day, tenant, kind, site, provider and counter (`line`). Each writer adds to a part (`shard`) of its
-- own, so that writers do not wait for each other. The sum of the parts counts. A new counter of a later version needs no new schema.
CREATE TABLE {schema}.counters (
    day      bigint NOT NULL, -- since 1970
    tenant   bytea NOT NULL,
    kind     bytea NOT NULL,
    site     bytea NOT NULL,  -- `*` for all sites, once the day's usage is compacted
    provider bytea NOT NULL,
    line     text COLLATE "C" NOT NULL,
    shard    smallint NOT NULL,
    amount   bigint NOT NULL, -- at most 2^63 - 1
    PRIMARY KEY (day, tenant, kind, site, provider, line, shard)
) WITH (
    fillfactor = 40,
    autovacuum_vacuum_scale_factor = 0.1,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 1
);

-- Finds the days that are still kept in detail, so that compacting does not read the sums of a whole year.
CREATE INDEX counters_in_detail ON {schema}.counters (day) WHERE site <> '\x2a';

-- The nodes that work on this store.
CREATE TABLE {schema}.nodes (
    node bigint PRIMARY KEY, -- the 64 bits of the node's number
    card bytea NOT NULL,     -- the status of the node, as JSON
    seen bigint NOT NULL     -- when the status was last renewed, by the clock of this server
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- One row if the store is sealed, because its orders have moved: no node writes any more.
CREATE TABLE {schema}.seal (
    is_sealed boolean PRIMARY KEY DEFAULT true CHECK (is_sealed),
    note      bytea NOT NULL
);

-- One row while orders are being moved here: no node begins to work on this store.
CREATE TABLE {schema}.filling (
    is_filling boolean PRIMARY KEY DEFAULT true CHECK (is_filling),
    note       bytea NOT NULL
);

-- The shared documents of the nodes.
CREATE TABLE {schema}.documents (
    name    bytea PRIMARY KEY,
    version bigint NOT NULL,
    document   bytea NOT NULL -- JSON
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- The secrets that all nodes share. The first node draws them.
CREATE TABLE {schema}.secrets (
    name   text COLLATE "C" PRIMARY KEY,
    secret bytea NOT NULL
);

-- The only way to write orders: many commits and additions to the usage in one call, each key at most once. It is a function,
-- because the server plans a function once for each session. A statement that a pooler may give to any session is planned
-- each time, which takes longer than its execution.
--
-- - Updates come first, sorted by key. Inserts come after them, sorted by key. So two nodes never deadlock.
-- - A placement of an order that exists gets its record without a wait and without a write.
-- - An update without its large terms is valid only if the stored terms have the same digest.
-- - One notice names all orders that are no longer awaited.
-- - The seal is read first. This takes a lock, so a process that seals the store waits until everything is written.
--
-- It returns one row for each commit. If there are no commits, or the store is sealed, it returns one row with only the seal.
-- The plans must not depend on the number of rows at planning time: a table that was empty then may be large soon.
CREATE FUNCTION {schema}.commit_orders(
    numbers int4[], keys bytea[], expectations int8[], timers int8[], targets bytea[], spoilings int8[], forgettings int8[],
    standings int2[], awaitings bool[], digests bytea[], records bytea[], all_terms bytea[],
    takers bytea[], once_timers int8[], once_forgettings int8[],
    stock_tenants bytea[], stock_kinds bytea[], stock_sites bytea[], stock_providers bytea[],
    book_numbers int4[], days int8[], tenants bytea[], kinds bytea[], sites bytea[], providers bytea[], lines text[],
    amounts int8[], part int2,
    channel text, heading text, versions regclass
) RETURNS TABLE (
    sealed bytea, number int4, done int8, wants_terms bool,
    there_key bytea, there_version int8, there_record bytea, there_terms bytea, there_taker bytea, there_taken_at int8
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
        SELECT wanted.*, o.version AS there_version, o.record AS there_record, o.terms AS there_terms,
               o.taker AS there_taker, o.taken_at AS there_taken_at
        FROM unnest(numbers, keys, expectations, timers, targets, spoilings, forgettings, standings, awaitings, digests,
                    records, all_terms, takers, once_timers, once_forgettings, stock_tenants, stock_kinds, stock_sites,
                    stock_providers)
                AS wanted(n, key, expected, timer, target, expires, forget_at, standing, awaited, digest, record, terms,
                          taker, once_timer, once_forget, tenant, kind, site, provider)
            LEFT JOIN LATERAL (
                SELECT t.version, t.record, t.terms, t.taker, t.taken_at FROM {schema}.orders AS t
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
        there_taker := i.there_taker;
        there_taken_at := i.there_taken_at;
        IF i.expected <> 0 THEN
            UPDATE {schema}.orders AS o
            SET version = nextval(versions), timer = i.timer, target = i.target, expires = i.expires,
                forget_at = i.forget_at, standing = i.standing, awaited = i.awaited, digest = i.digest,
                record = i.record, terms = coalesce(i.terms, o.terms), taker = i.taker, taken_at = NULL,
                once_timer = i.once_timer, once_forget = i.once_forget, tenant = i.tenant, kind = i.kind, site = i.site,
                provider = i.provider
            WHERE o.key = i.key AND o.version = i.expected AND (i.terms IS NOT NULL OR o.digest = i.digest)
            RETURNING o.version INTO done;
            IF done IS NULL THEN
                SELECT o.version, o.record, o.terms, o.taker, o.taken_at,
                       o.version = i.expected AND i.terms IS NULL AND o.digest IS DISTINCT FROM i.digest
                INTO there_version, there_record, there_terms, there_taker, there_taken_at, wants_terms
                FROM {schema}.orders AS o WHERE o.key = i.key;
            END IF;
        ELSIF there_version IS NULL THEN
            INSERT INTO {schema}.orders AS o
                (key, version, timer, target, expires, forget_at, standing, awaited, digest, record, terms,
                 taker, once_timer, once_forget, tenant, kind, site, provider)
            VALUES (i.key, nextval(versions), i.timer, i.target, i.expires, i.forget_at, i.standing, i.awaited,
                    i.digest, i.record, i.terms, i.taker, i.once_timer, i.once_forget, i.tenant, i.kind, i.site,
                    i.provider)
            ON CONFLICT (key) DO NOTHING
            RETURNING o.version INTO done;
            IF done IS NULL THEN
                SELECT o.version, o.record, o.terms, o.taker, o.taken_at
                INTO there_version, there_record, there_terms, there_taker, there_taken_at
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
        INSERT INTO {schema}.counters AS t (day, tenant, kind, site, provider, line, shard, amount)
        SELECT b.day, b.tenant, b.kind, b.site, b.provider, b.line, part,
               least(sum(b.amount), 9223372036854775807)::int8
        FROM unnest(book_numbers, days, tenants, kinds, sites, providers, lines, amounts)
                AS b(n, day, tenant, kind, site, provider, line, amount)
        WHERE b.n IS NULL OR won[b.n]
        GROUP BY b.day, b.tenant, b.kind, b.site, b.provider, b.line
        ORDER BY b.day, b.tenant, b.kind, b.site, b.provider, b.line COLLATE "C"
        ON CONFLICT (day, tenant, kind, site, provider, line, shard) DO UPDATE SET amount =
            CASE WHEN t.amount > 9223372036854775807 - excluded.amount THEN 9223372036854775807
                 ELSE t.amount + excluded.amount END;
    END IF;
    IF news <> '' THEN
        PERFORM pg_notify(channel, heading || news);
    END IF;
END
$commit$;

-- The only way to take answers from the stock: many takers in one call, in the order of their locks. The records stay
-- unchanged; columns beside the record say which order has taken the answer.
--
-- - Of two calls for the same taker and stock, the second waits at the lock until it can see the answer of the first.
-- - Rows that other calls have locked are skipped, so that takers do not wait for each other. If only locked rows are left, the
--   call waits for them, unless it has taken a row already: waiting with a row in hand could be a deadlock. Then `again` is true,
--   and the caller should ask again.
-- - The usage row of an answer is in columns of its row.
-- - `broken` lists the versions that the caller could not read. They are skipped; no two records have the same version.
CREATE FUNCTION {schema}.take_orders(
    numbers int4[], targets bytea[], good_untils int8[], takers bytea[], locks int8[], moments int8[], days int8[],
    book_numbers int4[], lines text[], amounts int8[], part int2,
    broken int8[], versions regclass
) RETURNS TABLE (
    sealed bytea, number int4, is_new bool, again bool,
    there_key bytea, there_version int8, there_record bytea, there_terms bytea, there_taker bytea, there_taken_at int8
) LANGUAGE plpgsql VOLATILE ROWS 10
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
AS $commit$
DECLARE
    i record;
    id int8;
    taken record;
    won int4[];
    won_days int8[];
    won_tenants bytea[];
    won_kinds bytea[];
    won_sites bytea[];
    won_providers bytea[];
BEGIN
    SELECT s.note INTO sealed FROM {schema}.seal AS s;
    IF FOUND THEN
        RETURN NEXT;
        RETURN;
    END IF;
    FOREACH id IN ARRAY locks LOOP
        PERFORM pg_advisory_xact_lock(id);
    END LOOP;
    FOR i IN
        SELECT * FROM unnest(numbers, targets, good_untils, takers, moments, days)
            AS wanted(n, target, good_until, taker, at, day)
    LOOP
        number := i.n;
        is_new := false;
        again := false;
        SELECT o.key, o.version, o.record, o.terms, o.taker, o.taken_at
        INTO there_key, there_version, there_record, there_terms, there_taker, there_taken_at
        FROM {schema}.orders AS o
        WHERE o.taker = i.taker AND o.target = i.target AND o.version <> ALL (broken)
        ORDER BY o.version DESC LIMIT 1;
        IF there_key IS NULL THEN
            SELECT o.key INTO there_key FROM {schema}.orders AS o
            WHERE o.target = i.target AND o.expires >= i.good_until AND o.taker IS NULL AND o.version <> ALL (broken)
            ORDER BY o.expires, o.key LIMIT 1 FOR UPDATE OF o SKIP LOCKED;
            IF there_key IS NULL AND won IS NULL THEN
                SELECT o.key INTO there_key FROM {schema}.orders AS o
                WHERE o.target = i.target AND o.expires >= i.good_until AND o.taker IS NULL AND o.version <> ALL (broken)
                ORDER BY o.expires, o.key LIMIT 1 FOR UPDATE OF o;
            ELSIF there_key IS NULL THEN
                again := EXISTS (
                    SELECT FROM {schema}.orders AS o
                    WHERE o.target = i.target AND o.expires >= i.good_until AND o.taker IS NULL AND o.version <> ALL (broken));
            END IF;
            is_new := there_key IS NOT NULL;
        END IF;
        IF is_new THEN
            UPDATE {schema}.orders AS o
            SET version = nextval(versions), taker = i.taker, taken_at = i.at, timer = o.once_timer, once_timer = o.timer,
                forget_at = o.once_forget, once_forget = o.forget_at
            WHERE o.key = there_key
            RETURNING o.version, o.record, o.terms, o.taker, o.taken_at, o.tenant, o.kind, o.site, o.provider
            INTO taken;
            there_version := taken.version;
            there_record := taken.record;
            there_terms := taken.terms;
            there_taker := taken.taker;
            there_taken_at := taken.taken_at;
            won := array_append(won, i.n);
            won_days := array_append(won_days, i.day);
            won_tenants := array_append(won_tenants, taken.tenant);
            won_kinds := array_append(won_kinds, taken.kind);
            won_sites := array_append(won_sites, taken.site);
            won_providers := array_append(won_providers, taken.provider);
        END IF;
        RETURN NEXT;
    END LOOP;
    IF won IS NOT NULL AND cardinality(lines) > 0 THEN
        INSERT INTO {schema}.counters AS t (day, tenant, kind, site, provider, line, shard, amount)
        SELECT w.day, w.tenant, w.kind, w.site, w.provider, b.line, part,
               least(sum(b.amount), 9223372036854775807)::int8
        FROM unnest(won, won_days, won_tenants, won_kinds, won_sites, won_providers)
                AS w(n, day, tenant, kind, site, provider)
            JOIN unnest(book_numbers, lines, amounts) AS b(n, line, amount) ON b.n = w.n
        GROUP BY w.day, w.tenant, w.kind, w.site, w.provider, b.line
        ORDER BY w.day, w.tenant, w.kind, w.site, w.provider, b.line COLLATE "C"
        ON CONFLICT (day, tenant, kind, site, provider, line, shard) DO UPDATE SET amount =
            CASE WHEN t.amount > 9223372036854775807 - excluded.amount THEN 9223372036854775807
                 ELSE t.amount + excluded.amount END;
    END IF;
END
$commit$;

-- Removes some rows of the first day before `sums`. If there are none, adds up the sites in some rows of the first day before
-- `detail` that is still kept in detail. Call it again until `is_done` is true.
--
-- - Rows are locked in the order in which writers lock them, so that there is no deadlock.
-- - The deleted amounts include what another writer has added meanwhile. A writer that wants to add to a deleted row creates it
--   again, and the next call adds it up.
CREATE FUNCTION {schema}.compact_usage(detail int8, sums int8, rows_max int8)
RETURNS TABLE (sealed bytea, is_done bool) LANGUAGE plpgsql VOLATILE ROWS 1
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
AS $commit$
DECLARE
    the_day int8;
BEGIN
    SELECT s.note INTO sealed FROM {schema}.seal AS s;
    is_done := false;
    IF FOUND THEN
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT t.day INTO the_day FROM {schema}.counters AS t WHERE t.day < sums ORDER BY t.day LIMIT 1;
    IF FOUND THEN
        WITH old AS MATERIALIZED (
            SELECT t.tenant, t.kind, t.site, t.provider, t.line, t.shard FROM {schema}.counters AS t WHERE t.day = the_day
            ORDER BY t.tenant, t.kind, t.site, t.provider, t.line, t.shard LIMIT rows_max FOR UPDATE
        )
        DELETE FROM {schema}.counters AS t USING old
        WHERE t.day = the_day AND t.tenant = old.tenant AND t.kind = old.kind AND t.site = old.site
            AND t.provider = old.provider AND t.line = old.line AND t.shard = old.shard;
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT t.day INTO the_day FROM {schema}.counters AS t
    WHERE t.day < detail AND t.site <> '\x2a' ORDER BY t.day LIMIT 1;
    IF FOUND THEN
        WITH old AS MATERIALIZED (
            SELECT t.tenant, t.kind, t.site, t.provider, t.line, t.shard FROM {schema}.counters AS t
            WHERE t.day = the_day AND t.site <> '\x2a'
            ORDER BY t.tenant, t.kind, t.site, t.provider, t.line, t.shard LIMIT rows_max FOR UPDATE
        ), gone AS (
            DELETE FROM {schema}.counters AS t USING old
            WHERE t.day = the_day AND t.tenant = old.tenant AND t.kind = old.kind AND t.site = old.site
                AND t.provider = old.provider AND t.line = old.line AND t.shard = old.shard
            RETURNING t.tenant, t.kind, t.provider, t.line, t.amount
        )
        INSERT INTO {schema}.counters AS t (day, tenant, kind, site, provider, line, shard, amount)
        SELECT the_day, gone.tenant, gone.kind, '\x2a', gone.provider, gone.line, 0,
               least(sum(gone.amount), 9223372036854775807)::int8
        FROM gone GROUP BY gone.tenant, gone.kind, gone.provider, gone.line
        ORDER BY gone.tenant, gone.kind, gone.provider, gone.line
        -- An answer that was put back into the stock has a negative amount in the usage.
        ON CONFLICT (day, tenant, kind, site, provider, line, shard)
            DO UPDATE SET amount = least(t.amount::numeric + excluded.amount, 9223372036854775807)::int8;
        RETURN NEXT;
        RETURN;
    END IF;
    is_done := true;
    RETURN NEXT;
END
$commit$;

-- How many orders are open, and how many need a person. They are counted in the index, whatever the planner would choose.
CREATE FUNCTION {schema}.order_counts() RETURNS TABLE (open int8, dead int8) LANGUAGE sql STABLE ROWS 1
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $commit$
    SELECT (SELECT count(*) FROM {schema}.orders AS o WHERE o.standing = 0 AND o.standing <> 2),
           (SELECT count(*) FROM {schema}.orders AS o WHERE o.standing = 1 AND o.standing <> 2)
$commit$;

-- Writes or removes one shared document, if it still has the expected version. Only a call that adds a document locks out other
-- writers: the number of documents is limited, and two calls must not both take the last place.
CREATE FUNCTION {schema}.write_document(
    called bytea, expected int8, written bytea, documents_max int8, versions regclass
) RETURNS TABLE (sealed bytea, done int8, is_full bool) LANGUAGE plpgsql VOLATILE ROWS 1
AS $commit$
BEGIN
    SELECT s.note INTO sealed FROM {schema}.seal AS s;
    is_full := false;
    IF FOUND THEN
        NULL;
    ELSIF written IS NULL AND expected = 0 THEN
        IF NOT EXISTS (SELECT FROM {schema}.documents AS s WHERE s.name = called) THEN
            done := nextval(versions);
        END IF;
    ELSIF written IS NULL THEN
        DELETE FROM {schema}.documents AS s WHERE s.name = called AND s.version = expected
        RETURNING nextval(versions) INTO done;
    ELSIF expected <> 0 THEN
        UPDATE {schema}.documents AS s SET version = nextval(versions), document = written
        WHERE s.name = called AND s.version = expected RETURNING s.version INTO done;
    ELSE
        LOCK TABLE {schema}.documents IN SHARE ROW EXCLUSIVE MODE;
        IF NOT EXISTS (SELECT FROM {schema}.documents AS s WHERE s.name = called) THEN
            is_full := (SELECT count(*) >= documents_max FROM {schema}.documents);
            IF NOT is_full THEN
                INSERT INTO {schema}.documents AS s (name, version, document) VALUES (called, nextval(versions), written)
                RETURNING s.version INTO done;
            END IF;
        END IF;
    END IF;
    RETURN NEXT;
END
$commit$;

-- The tables of the embedded store, schema 3. People read the views; only Quittance writes the tables.
--
-- Numbers that count from zero to 2^64 (moments, versions, sums) are kept in SQLite's signed integers bit by bit, so
-- that nothing is lost: a negative moment lies after the year 292,000,000. Moments are milliseconds since 1970.

-- One row for each order. Rows are only ever appended, changed in place and deleted. There is no index in SQL: all of
-- them are derived from the narrow columns in front, and kept in memory.
CREATE TABLE order_records (
    id         INTEGER PRIMARY KEY,
    key        BLOB NOT NULL,    -- 32 bytes
    version    INTEGER NOT NULL, -- of the whole store's writes, this was the one with this number
    life       INTEGER NOT NULL,
    due        INTEGER,          -- when it must be woken
    expires     INTEGER,          -- when its answer expires, while it stands on a stock
    target     BLOB,             -- the stock on which it stands, or from which it was taken
    forget_at  INTEGER,          -- when its record may be forgotten
    phase      TEXT NOT NULL,
    kind       TEXT NOT NULL,
    tenant     TEXT NOT NULL,
    record_sum INTEGER NOT NULL, -- of `record`
    terms_sum  INTEGER NOT NULL, -- of the terms, wherever they are
    sum        INTEGER NOT NULL, -- of everything above
    record     TEXT NOT NULL,    -- JSON: see quittance-record
    terms      TEXT,             -- JSON; nothing if they are in `large_terms`
    taker      BLOB              -- the key of the order that took its answer from the stock
);

-- The terms of orders that hold a picture or the like: written once, and not again at every step of the order.
CREATE TABLE large_terms (
    id    INTEGER PRIMARY KEY,   -- of the order
    terms TEXT NOT NULL
);

-- One row: the number of the last write, of which none ever comes back, and the sum of the views that people see.
CREATE TABLE counter (last_version INTEGER NOT NULL, views_sum INTEGER NOT NULL);
INSERT INTO counter VALUES (0, 0);

-- One row for each day, tenant, kind, site and provider, with one column for each line of the usage; those are added by name
-- when the store is opened by a version that knows them.
CREATE TABLE counters (
    day      INTEGER NOT NULL,   -- since 1970
    tenant   TEXT NOT NULL,
    kind     TEXT NOT NULL,
    site     TEXT NOT NULL,      -- the host of the page, or nothing; `*` for all of them, once the day's usage is compacted
    provider TEXT NOT NULL,
    PRIMARY KEY (day, tenant, kind, site, provider)
) WITHOUT ROWID;

-- The days that are still kept in detail: a close of the usage need not look through the sums of a year.
CREATE INDEX counters_in_detail ON counters (day) WHERE site <> '*';

-- What nodes agree on besides orders: pools, and what reports have taught. Versions are numbers of writes, as above.
CREATE TABLE documents (
    name    TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    sum     INTEGER NOT NULL,    -- of the other three
    document   TEXT NOT NULL        -- JSON: see quittance-record
) WITHOUT ROWID;

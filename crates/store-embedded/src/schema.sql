-- The tables of the embedded store, schema 3. To look at the data, read the views. Only Quittance writes the tables.
--
-- Unsigned numbers of 64 bits (moments, versions, checksums) are stored as SQLite's signed integers with the same bits. So a
-- negative moment is after the year 292,000,000. Moments are milliseconds since 1970.

-- One row for each order. Rows are appended, changed in place and deleted. There is no index in SQL: all indices are derived
-- from the columns before `record`, and are kept in memory.
CREATE TABLE order_records (
    id         INTEGER PRIMARY KEY,
    key        BLOB NOT NULL,    -- 32 bytes
    version    INTEGER NOT NULL, -- the number of the last write of this row, counted over the whole store
    life       INTEGER NOT NULL,
    due        INTEGER,          -- when the order must be woken
    expires     INTEGER,          -- when its answer expires, while the answer is in the stock
    target     BLOB,             -- the target in whose stock the answer is, or from whose stock it was taken
    forget_at  INTEGER,          -- when the row may be removed
    phase      TEXT NOT NULL,
    kind       TEXT NOT NULL,
    tenant     TEXT NOT NULL,
    record_sum INTEGER NOT NULL, -- the checksum of `record`
    terms_sum  INTEGER NOT NULL, -- the checksum of the terms, in either place
    sum        INTEGER NOT NULL, -- the checksum of all columns above
    record     TEXT NOT NULL,    -- JSON: see quittance-record
    terms      TEXT,             -- JSON; NULL if they are in `large_terms`
    taker      BLOB              -- the key of the order that took its answer from the stock
);

-- Large terms, for example of an order with a picture. They are written once, and not again at every step of the order.
CREATE TABLE large_terms (
    id    INTEGER PRIMARY KEY,   -- the id of the order's row
    terms TEXT NOT NULL
);

-- One row: the number of the last write, which is never used again, and the checksum of the views.
CREATE TABLE counter (last_version INTEGER NOT NULL, views_sum INTEGER NOT NULL);
INSERT INTO counter VALUES (0, 0);

-- The usage: one row for each day, tenant, kind, site and provider, with one column for each counter. A version that opens the
-- store adds the columns of its new counters.
CREATE TABLE counters (
    day      INTEGER NOT NULL,   -- since 1970
    tenant   TEXT NOT NULL,
    kind     TEXT NOT NULL,
    site     TEXT NOT NULL,      -- the host of the page, or empty; `*` for all sites, once the day's usage is compacted
    provider TEXT NOT NULL,
    PRIMARY KEY (day, tenant, kind, site, provider)
) WITHOUT ROWID;

-- Finds the days that are still kept in detail, so that compacting does not read the sums of a whole year.
CREATE INDEX counters_in_detail ON counters (day) WHERE site <> '*';

-- The shared documents: pools, and the lifetimes learned from reports. Versions are numbers of writes, as above.
CREATE TABLE documents (
    name    TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    sum     INTEGER NOT NULL,    -- the checksum of the other three columns
    document   TEXT NOT NULL        -- JSON: see quittance-record
) WITHOUT ROWID;

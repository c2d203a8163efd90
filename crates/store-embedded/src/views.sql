-- The views for people. A version with other views creates them again when it opens the store, so they can change without a new
-- schema. If a record is not JSON, the columns that are read from it are NULL, and the query continues.

-- Every order. `due`, `placed`, `deadline` and `forget_at` are in UTC. `attempts` counts the attempts of all
-- lives. `doubles` counts the attempts that were made while an earlier one may have been paid for.
DROP VIEW IF EXISTS orders;
CREATE VIEW orders AS
SELECT lower(hex(key)) AS key, tenant, kind, phase,
       strftime('%Y-%m-%d %H:%M:%f', due / 1000.0, 'unixepoch') AS due,
       strftime('%Y-%m-%d %H:%M:%f', (json ->> 'placed') / 1000.0, 'unixepoch') AS placed,
       strftime('%Y-%m-%d %H:%M:%f', (json ->> 'deadline') / 1000.0, 'unixepoch') AS deadline,
       life,
       json ->> 'last_attempt' AS attempts,
       coalesce(json ->> 'possible_doubles', iif(json IS NULL, NULL, 0)) AS doubles,
       json ->> 'wanted' AS wanted,
       strftime('%Y-%m-%d %H:%M:%f', forget_at / 1000.0, 'unixepoch') AS forget_at,
       version
FROM (SELECT *, iif(json_valid(record), record, NULL) AS json FROM order_records);

-- The dead letters, with their causes. The cause `delivery` means: the order has ended, and a webhook was never delivered.
DROP VIEW IF EXISTS dead_letters;
CREATE VIEW dead_letters AS
SELECT lower(hex(key)) AS key, tenant, kind,
       strftime('%Y-%m-%d %H:%M:%f', iif(phase = 'dead', json ->> '$.phase.at', undelivered) / 1000.0, 'unixepoch') AS dead_since,
       iif(phase = 'dead', json ->> '$.phase.cause.is', 'delivery') AS cause,
       json ->> '$.phase.cause.fault.class' AS fault,
       json ->> '$.phase.cause.fault.code' AS code,
       json ->> 'last_attempt' AS attempts,
       coalesce(json ->> 'possible_doubles', iif(json IS NULL, NULL, 0)) AS doubles
FROM (SELECT *, (SELECT min(l.value ->> 'at') FROM json_each(o.json, '$.webhooks') AS l WHERE l.value ->> 'is' = 'dead') AS undelivered
      FROM (SELECT *, iif(json_valid(record), record, NULL) AS json FROM order_records) AS o)
WHERE phase = 'dead' OR (undelivered IS NOT NULL AND phase NOT IN ('queued', 'submitting', 'solving', 'in_doubt'));

-- What happened to each order, in order. `what` is the name of the entry; `entry` is the whole entry, as JSON.
DROP VIEW IF EXISTS timeline;
CREATE VIEW timeline AS
SELECT lower(hex(o.key)) AS key, e.key + 1 AS number,
       strftime('%Y-%m-%d %H:%M:%f', (e.value ->> 'at') / 1000.0, 'unixepoch') AS at,
       e.value ->> 'is' AS what,
       e.value ->> 'attempt' AS attempt,
       e.value AS entry
FROM order_records AS o, json_each(iif(json_valid(o.record), o.record, '{}'), '$.timeline') AS e;

-- Each attempt that an order remembers: when it was sent, whether the provider is known to have taken it, and its state.
DROP VIEW IF EXISTS attempts;
CREATE VIEW attempts AS
SELECT lower(hex(o.key)) AS key, a.value ->> 'number' AS number,
       strftime('%Y-%m-%d %H:%M:%f', (a.value ->> 'sent') / 1000.0, 'unixepoch') AS sent,
       a.value ->> 'accepted' AS accepted,
       a.value ->> 'is' AS progress,
       a.value ->> 'task' AS task
FROM order_records AS o, json_each(iif(json_valid(o.record), o.record, '{}'), '$.attempts') AS a;

-- The usage, by day (UTC), tenant, kind, site and provider (with the currency of its account: `main USD`), with every counter
-- by its name. The site `*` stands for all sites, on days that are no longer kept in detail.
DROP VIEW IF EXISTS usage;
CREATE VIEW usage AS SELECT date(day * 86400, 'unixepoch') AS date, * FROM counters;

-- The pools. `document` is the whole document of a pool, as JSON.
DROP VIEW IF EXISTS pools;
CREATE VIEW pools AS
SELECT json ->> '$.pool.name' AS name, json ->> '$.pool.tenant' AS tenant, json ->> '$.pool.kind' AS kind,
       version, document
FROM (SELECT *, iif(json_valid(document), document, NULL) AS json FROM documents) WHERE json ->> 'is' = 'pool';

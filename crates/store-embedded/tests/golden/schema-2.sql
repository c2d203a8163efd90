-- A store as a version with schema 2 wrote it, read out as SQL: never changed, so that every later version can be held to it.
PRAGMA application_id = 1364543828;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE order_records (
    id         INTEGER PRIMARY KEY,
    key        BLOB NOT NULL,    -- 32 bytes
    version    INTEGER NOT NULL, -- of the whole store's writes, this was the one with this number
    life       INTEGER NOT NULL,
    due        INTEGER,          -- when it must be woken
    spoils     INTEGER,          -- when its answer spoils, while it stands on a shelf
    target     BLOB,             -- the shelf on which it stands, or from which it was taken
    forget_at  INTEGER,          -- when its record may be forgotten
    phase      TEXT NOT NULL,
    kind       TEXT NOT NULL,
    tenant     TEXT NOT NULL,
    record_sum INTEGER NOT NULL, -- of `record`
    terms_sum  INTEGER NOT NULL, -- of the terms, wherever they are
    sum        INTEGER NOT NULL, -- of everything above
    record     TEXT NOT NULL,    -- JSON: see quittance-record
    terms      TEXT,             -- JSON; nothing if they are in `large_terms`
    taker      BLOB              -- the key of the order that took its answer from the shelf
);
INSERT INTO order_records VALUES(1,X'acc4d1ad5aa223f17ab111d1b0dfb2e819c4f5eefda871dc2928389c65522390',1,1,4102444800000,NULL,NULL,NULL,'queued','riddle','O''Hara & Søn',-600510850208181033,3284736908842157812,-2419776025960181247,'{"v":1,"key":"acc4d1ad5aa223f17ab111d1b0dfb2e819c4f5eefda871dc2928389c65522390","born":4102444800000,"life":1,"placed":4102444800000,"deadline":4102445100000,"wanted":true,"phase":{"is":"queued","until":4102444800000,"held":false},"attempts":[],"last_attempt":0,"story":[{"at":4102444800000,"is":"placed","life":1}]}','{"v":1,"tenant":"O''Hara & Søn","kind":"riddle","params":{"nothing":{"text":""},"page":{"text":"https://example.com/door"},"raw":{"base64":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+P0BBQkNERUZHSElKS0xNTk9QUVJTVFVWV1hZWltcXV5fYGFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6e3x9fn+AgYKDhIWGh4iJiouMjY6PkJGSk5SVlpeYmZqbnJ2en6ChoqOkpaanqKmqq6ytrq+wsbKztLW2t7i5uru8vb6/wMHCw8TFxsfIycrLzM3Oz9DR0tPU1dbX2Nna29zd3t/g4eLj5OXm5+jp6uvs7e7v8PHy8/T19vf4+fr7/P3+/w=="},"words":{"text":"a \"quoted\" \\ line\r\n\u0000 你好"}},"target":"9ef342de2f5d095181386ee96ed9c01fcb9bb768d3b9c863f77ed4604827503d","fingerprint":"6e2662cad2a62ae1414899b7bb8566fbec7f8f6bcedcfef6dad135a0b48d01d7","keyed":true,"reuse":"shared","single_use":true,"life_ms":120000,"min_life_ms":40000,"patience_ms":300000,"keep_ms":3600000,"provider":"somebody"}',NULL);
INSERT INTO order_records VALUES(2,X'8c7895355fdfb0e43593fb0b6062ac59d79f13c55753e2cb908a1d2fd0a493ae',2,1,NULL,NULL,NULL,NULL,'dead','riddle','O''Hara & Søn',6916229786738463574,-4137361710895178107,2615234810903263421,'{"v":1,"key":"8c7895355fdfb0e43593fb0b6062ac59d79f13c55753e2cb908a1d2fd0a493ae","born":4102444800000,"life":1,"placed":4102444800000,"deadline":4102445100000,"wanted":true,"phase":{"is":"dead","at":4102445100000,"cause":{"is":"deadline"}},"attempts":[],"last_attempt":0,"story":[{"at":4102444800000,"is":"placed","life":1},{"at":4102445100000,"is":"buried","cause":{"is":"deadline"}}]}','{"v":1,"tenant":"O''Hara & Søn","kind":"riddle","params":{"nothing":{"text":""},"page":{"text":"https://example.com/door"},"raw":{"base64":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+P0BBQkNERUZHSElKS0xNTk9QUVJTVFVWV1hZWltcXV5fYGFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6e3x9fn+AgYKDhIWGh4iJiouMjY6PkJGSk5SVlpeYmZqbnJ2en6ChoqOkpaanqKmqq6ytrq+wsbKztLW2t7i5uru8vb6/wMHCw8TFxsfIycrLzM3Oz9DR0tPU1dbX2Nna29zd3t/g4eLj5OXm5+jp6uvs7e7v8PHy8/T19vf4+fr7/P3+/w=="},"words":{"text":"a \"quoted\" \\ line\r\n\u0000 你好"}},"target":"9ef342de2f5d095181386ee96ed9c01fcb9bb768d3b9c863f77ed4604827503d","fingerprint":"6e2662cad2a62ae1414899b7bb8566fbec7f8f6bcedcfef6dad135a0b48d01d7","keyed":true,"reuse":"shared","single_use":true,"life_ms":120000,"min_life_ms":40000,"patience_ms":300000,"keep_ms":3600000,"provider":"somebody"}',NULL);
INSERT INTO order_records VALUES(3,X'97bd91162f4be8b624435fbd8132e636b4cbbd389699488aae78463166f00809',4,1,NULL,NULL,X'493cad0869f86390724cadd6a83beda80e799c8ff92990442689f21fd03df922',4102448520000,'taken','riddle','O''Hara & Søn',-8692394500851721941,-8896861482739122108,-393317561191597363,'{"v":1,"key":"97bd91162f4be8b624435fbd8132e636b4cbbd389699488aae78463166f00809","born":4102444800000,"life":1,"placed":4102444800000,"deadline":4102445100000,"wanted":false,"phase":{"is":"taken","at":4102444800000,"by":"0707070707070707070707070707070707070707070707070707070707070707","answer":{"goods":{"text":"{\"token\": \"\\u0000 ''x'' \u0000 🔑\"}","is_json":true,"extras":{"agent":"curl/8","é\n":""}},"attempt":1,"earliest":4102444800000,"expires":4102444920000,"cost_micros":2990}},"attempts":[{"number":1,"sent":4102444800000,"unsolved_at":4102444800000,"accepted":true,"is":"answered","cost_micros":2990}],"last_attempt":1,"story":[{"at":4102444800000,"is":"placed","life":1},{"at":4102444800000,"is":"submitted","attempt":1},{"at":4102444800000,"is":"cancelled"},{"at":4102444800000,"is":"solved","attempt":1,"via":"submit"},{"at":4102444800000,"is":"taken"}]}','{"v":1,"tenant":"O''Hara & Søn","kind":"riddle","params":{"nothing":{"text":""},"page":{"text":"https://example.com/here"},"raw":{"base64":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+P0BBQkNERUZHSElKS0xNTk9QUVJTVFVWV1hZWltcXV5fYGFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6e3x9fn+AgYKDhIWGh4iJiouMjY6PkJGSk5SVlpeYmZqbnJ2en6ChoqOkpaanqKmqq6ytrq+wsbKztLW2t7i5uru8vb6/wMHCw8TFxsfIycrLzM3Oz9DR0tPU1dbX2Nna29zd3t/g4eLj5OXm5+jp6uvs7e7v8PHy8/T19vf4+fr7/P3+/w=="},"words":{"text":"a \"quoted\" \\ line\r\n\u0000 你好"}},"target":"493cad0869f86390724cadd6a83beda80e799c8ff92990442689f21fd03df922","fingerprint":"d8d589edc9c4305948f3162f557b5fb12cca1fc739bb62009eb3cc893d9ab73a","keyed":true,"reuse":"shared","single_use":true,"life_ms":120000,"min_life_ms":40000,"patience_ms":300000,"keep_ms":3600000,"provider":"somebody"}',X'0707070707070707070707070707070707070707070707070707070707070707');
CREATE TABLE large_terms (
    id    INTEGER PRIMARY KEY,   -- of the order
    terms TEXT NOT NULL
);
CREATE TABLE counter (last_version INTEGER NOT NULL, views_sum INTEGER NOT NULL);
INSERT INTO counter VALUES(4,3906293684509629799);
CREATE TABLE tallies (
    day    INTEGER NOT NULL,     -- since 1970
    tenant TEXT NOT NULL,
    kind   TEXT NOT NULL,
    site   TEXT NOT NULL, asked INTEGER NOT NULL DEFAULT 0, joined INTEGER NOT NULL DEFAULT 0, cached INTEGER NOT NULL DEFAULT 0, from_stock INTEGER NOT NULL DEFAULT 0, stocked INTEGER NOT NULL DEFAULT 0, stock_age_ms INTEGER NOT NULL DEFAULT 0, saved_ms INTEGER NOT NULL DEFAULT 0, reported_bad INTEGER NOT NULL DEFAULT 0, refused INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0, paid INTEGER NOT NULL DEFAULT 0, retried INTEGER NOT NULL DEFAULT 0, doubts INTEGER NOT NULL DEFAULT 0, recovered_from_doubt INTEGER NOT NULL DEFAULT 0, recovered_by_poll INTEGER NOT NULL DEFAULT 0, possible_doubles INTEGER NOT NULL DEFAULT 0, solved INTEGER NOT NULL DEFAULT 0, late INTEGER NOT NULL DEFAULT 0, wasted INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0, dead INTEGER NOT NULL DEFAULT 0, revived INTEGER NOT NULL DEFAULT 0, cancelled INTEGER NOT NULL DEFAULT 0, untold INTEGER NOT NULL DEFAULT 0, cost_micros INTEGER NOT NULL DEFAULT 0, wasted_micros INTEGER NOT NULL DEFAULT 0,        -- the host of the page, or nothing
    PRIMARY KEY (day, tenant, kind, site)
) WITHOUT ROWID;
INSERT INTO tallies VALUES(47482,'O''Hara','riddle','',3,0,0,2,0,0,0,0,0,0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0);
INSERT INTO tallies VALUES(47482,'O''Hara','riddle','example.com',3,0,0,2,0,0,0,0,0,0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0);
INSERT INTO tallies VALUES(47482,'O''Hara & Søn','riddle','',9,0,0,6,0,0,0,0,0,0,3,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0);
INSERT INTO tallies VALUES(47483,'O''Hara','riddle','example.com',3,0,0,2,0,0,0,0,0,0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0);
CREATE TABLE sheets (
    name    TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    sum     INTEGER NOT NULL,    -- of the other three
    sheet   TEXT NOT NULL        -- JSON: see quittance-record
) WITHOUT ROWID;
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
CREATE VIEW dead_letters AS
SELECT lower(hex(key)) AS key, tenant, kind,
       strftime('%Y-%m-%d %H:%M:%f', (json ->> '$.phase.at') / 1000.0, 'unixepoch') AS buried,
       json ->> '$.phase.cause.is' AS cause,
       json ->> '$.phase.cause.fault.class' AS fault,
       json ->> '$.phase.cause.fault.code' AS code,
       json ->> 'last_attempt' AS attempts,
       coalesce(json ->> 'possible_doubles', iif(json IS NULL, NULL, 0)) AS doubles
FROM (SELECT *, iif(json_valid(record), record, NULL) AS json FROM order_records) WHERE phase = 'dead';
CREATE VIEW story AS
SELECT lower(hex(o.key)) AS key, e.key + 1 AS number,
       strftime('%Y-%m-%d %H:%M:%f', (e.value ->> 'at') / 1000.0, 'unixepoch') AS at,
       e.value ->> 'is' AS what,
       e.value ->> 'attempt' AS attempt,
       e.value AS entry
FROM order_records AS o, json_each(iif(json_valid(o.record), o.record, '{}'), '$.story') AS e;
CREATE VIEW attempts AS
SELECT lower(hex(o.key)) AS key, a.value ->> 'number' AS number,
       strftime('%Y-%m-%d %H:%M:%f', (a.value ->> 'sent') / 1000.0, 'unixepoch') AS sent,
       a.value ->> 'accepted' AS accepted,
       a.value ->> 'is' AS progress,
       a.value ->> 'task' AS task
FROM order_records AS o, json_each(iif(json_valid(o.record), o.record, '{}'), '$.attempts') AS a;
CREATE VIEW books AS SELECT date(day * 86400, 'unixepoch') AS date, * FROM tallies;
CREATE VIEW pools AS
SELECT json ->> '$.pool.name' AS name, json ->> '$.pool.tenant' AS tenant, json ->> '$.pool.kind' AS kind,
       version, sheet
FROM (SELECT *, iif(json_valid(sheet), sheet, NULL) AS json FROM sheets) WHERE json ->> 'is' = 'pool';
COMMIT;

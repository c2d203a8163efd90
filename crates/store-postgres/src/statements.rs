//! Every statement, with the name of the schema. No statement relies on the state of a session, so a pooler can use
//! any session. Each is a transaction of its own, so a node that freezes holds no lock.

use crate::notices::hex;
use sha2::{Digest, Sha256};

pub(crate) struct Statements {
    pub(crate) commit: String,
    pub(crate) load: String,
    pub(crate) claim: String,
    pub(crate) take: String,
    pub(crate) put_back: String,
    pub(crate) stock: String,
    pub(crate) list_all: String,
    pub(crate) list_class: String,
    pub(crate) list_tenant: String,
    pub(crate) set_aside: String,
    pub(crate) purge: String,
    pub(crate) discard: String,
    pub(crate) usage: String,
    pub(crate) compact_usage: String,
    pub(crate) order_counts: String,
    pub(crate) recheck: String,
    pub(crate) heartbeat: String,
    pub(crate) leave: String,
    pub(crate) members: String,
    pub(crate) seal: String,
    pub(crate) unseal: String,
    pub(crate) sealed: String,
    pub(crate) set_filling: String,
    pub(crate) filled: String,
    pub(crate) filling: String,
    pub(crate) documents: String,
    pub(crate) write_document: String,
    pub(crate) leased: String,
    pub(crate) lease: String,
    pub(crate) give_back: String,
    pub(crate) secret: String,
    pub(crate) share_secret: String,
    pub(crate) replace_secret: String,
    pub(crate) first_secret: String,
    pub(crate) older_secret: String,
    pub(crate) mark: String,
    pub(crate) listed_version: String,
    pub(crate) epoch: String,
    pub(crate) renew: String,
    pub(crate) note_mark: String,
    pub(crate) begin_recovery: String,
    /// The channel of this schema's notices; ASCII letters and digits only.
    pub(crate) channel: String,
}

impl Statements {
    pub(crate) fn of(schema: &str) -> Self {
        let quoted = quote(schema);
        let say = |sql: &str| sql.replace("{schema}", &quoted);
        let digest = Sha256::digest(schema);
        let channel = format!("quittance_{}", hex(&digest[..8]));
        // The name of the sequence is a text that holds an identifier.
        let sequence = format!("{quoted}.versions").replace('\'', "''");
        let orders = format!("{quoted}.orders").replace('\'', "''");
        let number = |sql: &str| say(sql).replace("{sequence}", &sequence).replace("{orders}", &orders);
        Self {
            commit: number(COMMIT),
            load: say(LOAD),
            claim: say(CLAIM),
            take: number(TAKE),
            put_back: number(PUT_BACK),
            stock: say(STOCK),
            list_all: say(LIST_ALL),
            list_class: say(LIST_CLASS),
            list_tenant: say(LIST_TENANT),
            set_aside: say(SET_ASIDE),
            purge: say(PURGE),
            discard: say(DISCARD),
            usage: say(USAGE),
            compact_usage: say("SELECT * FROM {schema}.compact_usage($1, $2, $3)"),
            order_counts: say("SELECT * FROM {schema}.order_counts()"),
            recheck: say(RECHECK),
            heartbeat: say(SIGN_IN),
            leave: say("DELETE FROM {schema}.nodes WHERE node = $1"),
            members: say(ROLL),
            seal: say(SEAL),
            unseal: say("DELETE FROM {schema}.seal"),
            sealed: say("SELECT note FROM {schema}.seal"),
            set_filling: say(SET_FILLING),
            filled: say("DELETE FROM {schema}.filling"),
            filling: say("SELECT note FROM {schema}.filling"),
            documents: say("SELECT name, version, document FROM {schema}.documents ORDER BY name"),
            write_document: number(WRITE_DOCUMENT),
            leased: say("SELECT * FROM {schema}.leased($1, $2)"),
            lease: number("SELECT * FROM {schema}.lease($1, $2, $3, $4, $5, $6, '{sequence}')"),
            give_back: say(GIVE_BACK),
            secret: say("SELECT secret FROM {schema}.secrets WHERE name = $1::text"),
            share_secret: say(SHARE_SECRET),
            replace_secret: say(REPLACE_SECRET),
            first_secret: say(FIRST_SECRET),
            older_secret: say(OLDER_SECRET),
            mark: number(MARK),
            listed_version: say("SELECT coalesce(max(version), 0) FROM {schema}.schema_versions"),
            epoch: say(EPOCH),
            renew: say(
                "UPDATE {schema}.secrets SET secret = $2::bytea WHERE name = 'identity' AND secret = $1::bytea",
            ),
            note_mark: say(NOTE_MARK),
            begin_recovery: say(BEGIN_RECOVERY),
            channel,
        }
    }
}

/// Quotes an identifier for SQL. Any name is safe.
pub(crate) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The statement that writes many commits and additions to the usage at once: see `migrations/`. It calls a
/// function, so that the server plans the work once for each session, and the text that is sent and parsed
/// each time is short.
///
/// The function writes nothing and returns nothing in three cases: the store is not the one that the node
/// knows, the store went back, or its orders are in another file. The last case finds truncated tables, which
/// look like tables that were never written.
const COMMIT: &str = "
WITH fence AS MATERIALIZED (
    SELECT '{sequence}'::regclass AS versions
    WHERE $31::bytea IS NULL OR (
        EXISTS (SELECT FROM {schema}.secrets WHERE name = 'identity' AND secret = $31::bytea)
        AND EXISTS (SELECT FROM {schema}.secrets WHERE name = 'epoch' AND secret >= int8send($32::int8))
        AND pg_relation_filenode('{orders}') = $33::oid)
)
SELECT c.* FROM fence CROSS JOIN LATERAL {schema}.commit_orders(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
    $24, $25, $26, $27, $28, $29, $30, fence.versions) AS c";

const LOAD: &str = "
SELECT key, version, record, terms, taker, taken_at FROM {schema}.orders WHERE key = ANY($1::bytea[])";

/// Claims due orders. A claim puts the timer off and writes nothing else. Orders that other claimers have
/// locked are passed over. The next timer is the earliest one of the orders that were not claimed here.
const CLAIM: &str = "
WITH due AS MATERIALIZED (
    SELECT key, timer FROM {schema}.orders
    WHERE timer <= $1::int8 AND NOT EXISTS (SELECT FROM {schema}.seal)
    ORDER BY timer, key LIMIT $3::int8 FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE {schema}.orders AS o SET timer = greatest(due.timer, $2::int8) FROM due WHERE o.key = due.key
    RETURNING due.timer, o.key, o.version, o.record, o.terms, o.taker, o.taken_at
)
SELECT (SELECT note FROM {schema}.seal), next.timer, c.key, c.version, c.record, c.terms, c.taker, c.taken_at
FROM (SELECT (SELECT o.timer FROM {schema}.orders AS o
              WHERE o.timer IS NOT NULL AND NOT EXISTS (SELECT FROM due WHERE due.key = o.key)
              ORDER BY o.timer LIMIT 1) AS timer) AS next
    LEFT JOIN claimed AS c ON true
ORDER BY c.timer, c.key";

/// Serves many takers at once: see `migrations/`.
const TAKE: &str = "
SELECT * FROM {schema}.take_orders($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, '{sequence}')";

/// Undoes the take of an answer that the taking node cannot parse, also in the usage: the answer is back for nodes
/// that can, and is listed for operators. It is a new write, because another node may have read the taken record.
const PUT_BACK: &str = "
WITH taken AS MATERIALIZED (
    SELECT key, taken_at / 86400000 AS day FROM {schema}.orders
    WHERE key = $1::bytea AND version = $2::int8 AND taken_at IS NOT NULL AND NOT EXISTS (SELECT FROM {schema}.seal)
    FOR UPDATE
), back AS (
    UPDATE {schema}.orders AS o
    SET version = nextval('{sequence}'), taker = NULL, taken_at = NULL, timer = o.once_timer, once_timer = o.timer,
        forget_at = o.once_forget, once_forget = o.forget_at, standing = 1
    FROM taken WHERE o.key = taken.key
    RETURNING o.version, taken.day, o.tenant, o.kind, o.site, o.provider
), usage AS (
    INSERT INTO {schema}.counters AS t (day, tenant, kind, site, provider, line, shard, amount)
    SELECT back.day, back.tenant, back.kind, back.site, back.provider, b.line, $5::int2, -b.amount
    FROM back CROSS JOIN unnest($3::text[], $4::int8[]) AS b(line, amount)
    ON CONFLICT (day, tenant, kind, site, provider, line, shard) DO UPDATE SET amount = t.amount + excluded.amount
)
SELECT version FROM back";

const STOCK: &str = "
SELECT key FROM {schema}.orders
WHERE target = $1::bytea AND expires > $2::int8 AND taker IS NULL ORDER BY expires, key LIMIT $3::int8";

const LIST_ALL: &str = "
SELECT key, version, record, terms, taker, taken_at FROM {schema}.orders
WHERE key > $1::bytea ORDER BY key LIMIT $2::int8";

const LIST_CLASS: &str = "
SELECT key, version, record, terms, taker, taken_at FROM {schema}.orders
WHERE standing = $3::int2 AND standing <> 2 AND key > $1::bytea ORDER BY key LIMIT $2::int8";

/// Lists orders, with one scan of the index for each requested class.
const LIST_TENANT: &str = "
SELECT o.key, o.version, o.record, o.terms, o.taker, o.taken_at
FROM unnest($4::int2[]) AS s(standing) CROSS JOIN LATERAL (
    SELECT key, version, record, terms, taker, taken_at FROM {schema}.orders AS t
    WHERE t.tenant = $3::bytea AND t.standing = s.standing AND t.key > $1::bytea ORDER BY t.key LIMIT $2::int8
) AS o ORDER BY o.key LIMIT $2::int8";

/// Lists a record that cannot be parsed with the dead letters, for an operator. Its timer stays: a newer version may
/// have written it, and can continue with it.
const SET_ASIDE: &str = "
UPDATE {schema}.orders AS o SET standing = 1, forget_at = NULL
FROM unnest($1::bytea[], $2::int8[]) AS b(key, version)
WHERE o.key = b.key AND o.version = b.version AND (o.standing <> 1 OR o.forget_at IS NOT NULL)
    AND NOT EXISTS (SELECT FROM {schema}.seal)";

const PURGE: &str = "
WITH old AS MATERIALIZED (
    SELECT key FROM {schema}.orders
    WHERE forget_at <= $1::int8 AND NOT EXISTS (SELECT FROM {schema}.seal)
    ORDER BY forget_at, key LIMIT $2::int8 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM {schema}.orders AS o USING old WHERE o.key = old.key RETURNING o.key
)
SELECT (SELECT note FROM {schema}.seal), (SELECT count(*) FROM gone)";

/// Removes an unreadable record, if it has not changed since it was found unreadable. The sequence continues, so the
/// next write of this key gets a higher version.
const DISCARD: &str = "
WITH gone AS (
    DELETE FROM {schema}.orders AS o
    WHERE o.key = $1::bytea AND o.version = $2::int8 AND o.record = $3::bytea AND o.terms = $4::bytea
        AND NOT EXISTS (SELECT FROM {schema}.seal)
    RETURNING o.key
)
SELECT (SELECT note FROM {schema}.seal), EXISTS (SELECT FROM gone)";

const USAGE: &str = "
SELECT day, tenant, kind, site, provider, line, greatest(least(sum(amount), 9223372036854775807), 0)::int8
FROM {schema}.counters WHERE day BETWEEN $1::int8 AND $2::int8
GROUP BY day, tenant, kind, site, provider, line HAVING sum(amount) <> 0 ORDER BY day, tenant, kind, site, provider";

/// Selects those of these orders that have news for a waiting caller.
const RECHECK: &str = "SELECT key FROM {schema}.orders WHERE key = ANY($1::bytea[]) AND NOT awaited";

/// Writes a node's heartbeat and removes members without a recent heartbeat. The time is the server's current time in
/// milliseconds, not the start of the statement.
const SIGN_IN: &str = "
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8 AS now),
gone AS (DELETE FROM {schema}.nodes USING clock WHERE seen < now - $3::int8 AND node <> $1::int8),
signed AS (
    INSERT INTO {schema}.nodes AS n (node, card, seen) SELECT $1::int8, $2::bytea, now FROM clock
    ON CONFLICT (node) DO UPDATE SET card = excluded.card, seen = greatest(n.seen, excluded.seen)
    RETURNING seen
)
SELECT seen FROM signed";

const ROLL: &str = "
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8, n.card, n.seen
FROM (SELECT) AS once LEFT JOIN {schema}.nodes AS n ON true";

/// Seals the store. Every statement that writes reads the seal, so this lock waits for all of them, and later
/// statements find the seal: nothing is written after it. It is sent as one message, so it is one transaction, and
/// nothing stays open if it fails. `{note}` is hexadecimal.
const SEAL: &str = "
SET LOCAL lock_timeout = '{wait}ms'; LOCK TABLE {schema}.seal IN ACCESS EXCLUSIVE MODE;
INSERT INTO {schema}.seal (note) VALUES (decode('{note}', 'hex'))
ON CONFLICT (is_sealed) DO UPDATE SET note = excluded.note";

const SET_FILLING: &str = "
INSERT INTO {schema}.filling (note) VALUES ($1::bytea) ON CONFLICT (is_filling) DO UPDATE SET note = excluded.note";

const WRITE_DOCUMENT: &str = "SELECT * FROM {schema}.write_document($1, $2, $3, $4, '{sequence}')";

const GIVE_BACK: &str = "
UPDATE {schema}.leases SET amount = $4::int8
WHERE name = $1::bytea AND node = $2::int8 AND version = $3::int8 AND amount > $4::int8";

/// Adds 1 to the epoch of the store. It is in the table of the secrets, because both must be lost together.
const EPOCH: &str = "
INSERT INTO {schema}.secrets AS s (name, secret) VALUES ('epoch', int8send(1))
ON CONFLICT (name) DO UPDATE SET secret = int8send(('x' || encode(s.secret, 'hex'))::bit(64)::int8 + 1)";

/// Reads the marks of the store, its clock, the file of its orders, and whether there are any orders.
const MARK: &str = "
SELECT s.name, s.secret, (extract(epoch FROM clock_timestamp()) * 1000)::int8, pg_relation_filenode('{orders}'),
       EXISTS (SELECT FROM {schema}.orders)
FROM {schema}.secrets AS s ORDER BY s.name";

const NOTE_MARK: &str = "
INSERT INTO {schema}.secrets (name, secret) VALUES ($1::text, $2::bytea)
ON CONFLICT (name) DO UPDATE SET secret = excluded.secret";

/// Sets the end of a recovery, until which nodes put back their orders in hand, unless a later end is set.
const BEGIN_RECOVERY: &str = "
INSERT INTO {schema}.secrets AS s (name, secret)
VALUES ('recovery', int8send((extract(epoch FROM clock_timestamp()) * 1000)::int8 + $1::int8))
ON CONFLICT (name) DO UPDATE SET secret = greatest(s.secret, excluded.secret)";

const SHARE_SECRET: &str = "
WITH drawn AS (
    INSERT INTO {schema}.secrets (name, secret) VALUES ($1::text, $2::bytea) ON CONFLICT (name) DO NOTHING RETURNING secret
)
SELECT secret FROM drawn UNION ALL SELECT secret FROM {schema}.secrets WHERE name = $1::text LIMIT 1";

/// Marks the secret as the oldest, so that no node replaces it.
const REPLACE_SECRET: &str = "
INSERT INTO {schema}.secrets (name, secret)
VALUES ($1::text, $2::bytea), ('drawn', int8send(0) || substring($2::bytea FROM 1 FOR 8))
ON CONFLICT (name) DO UPDATE SET secret = excluded.secret";

/// Writes a secret and the time at which it was drawn, if the store has no secret yet.
const FIRST_SECRET: &str = "
WITH first AS (
    INSERT INTO {schema}.secrets AS s (name, secret) VALUES ('callbacks', $1::bytea)
    ON CONFLICT (name) DO UPDATE SET secret = excluded.secret WHERE length(s.secret) <> 32 RETURNING 1
)
INSERT INTO {schema}.secrets (name, secret) SELECT 'drawn', $2::bytea FROM first
ON CONFLICT (name) DO UPDATE SET secret = excluded.secret";

/// Replaces the secret by an older one with its time, unless another node has changed it.
const OLDER_SECRET: &str = "
WITH older AS (
    UPDATE {schema}.secrets SET secret = $2::bytea WHERE name = 'callbacks' AND secret = $1::bytea RETURNING 1
)
INSERT INTO {schema}.secrets (name, secret) SELECT 'drawn', $3::bytea FROM older
ON CONFLICT (name) DO UPDATE SET secret = excluded.secret";

#[cfg(test)]
mod tests {
    use super::{Statements, quote};

    #[test]
    fn a_schema_may_be_called_anything() {
        let statements = Statements::of("o'clock \"; DROP TABLE x; --");
        assert_eq!(quote("a\"b"), "\"a\"\"b\"");
        assert!(statements.commit.contains(r#"'"o''clock ""; DROP TABLE x; --".versions'::regclass"#));
        assert!(statements.channel.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
        assert_ne!(statements.channel, Statements::of("quittance").channel);
    }
}

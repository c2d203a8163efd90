-- Schema 3: the parts of shared limits that nodes have leased.

-- A limit of which a node leased a part lately. The version changes each time a node leases more.
CREATE TABLE {schema}.limits (
    name      bytea PRIMARY KEY,
    version   int8 NOT NULL,
    forget_at int8 NOT NULL -- in milliseconds, by the clock of the server
);

CREATE INDEX limits_to_forget ON {schema}.limits (forget_at);

-- The part of one limit that one node has leased.
CREATE TABLE {schema}.leases (
    name    bytea NOT NULL,
    node    int8 NOT NULL,
    amount  int8 NOT NULL,
    ends_at int8 NOT NULL, -- in milliseconds, by the clock of the server
    version int8 NOT NULL, -- the version of the limit when the part was leased
    PRIMARY KEY (name, node)
);

-- The version of a limit, and the sum that all nodes other than `asking` have leased of it now.
CREATE FUNCTION {schema}.leased(called bytea, asking int8)
RETURNS TABLE (version int8, by_others int8) LANGUAGE sql STABLE ROWS 1
AS $leased$
    SELECT coalesce((SELECT l.version FROM {schema}.limits AS l WHERE l.name = called), 0),
           coalesce((SELECT sum(e.amount) FROM {schema}.leases AS e WHERE e.name = called AND e.node <> asking
               AND e.ends_at > (extract(epoch FROM clock_timestamp()) * 1000)::int8), 0)::int8
$leased$;

-- Leases a part of a limit to a node, if no node has leased more since the expected version. It also removes leases that have
-- ended: all leases of this limit, and at most 16 limits that may be forgotten and that no other call has locked.
CREATE FUNCTION {schema}.lease(
    called bytea, expected int8, leasing int8, wanted int8, life int8, forgotten_after int8, versions regclass
) RETURNS TABLE (done int8, version int8, by_others int8) LANGUAGE plpgsql VOLATILE ROWS 1
AS $lease$
DECLARE
    moment int8 := (extract(epoch FROM clock_timestamp()) * 1000)::int8;
    gone bytea[];
BEGIN
    IF expected = 0 THEN
        INSERT INTO {schema}.limits AS l (name, version, forget_at)
        VALUES (called, nextval(versions), moment + forgotten_after)
        ON CONFLICT (name) DO NOTHING RETURNING l.version INTO done;
    ELSE
        UPDATE {schema}.limits AS l SET version = nextval(versions), forget_at = moment + forgotten_after
        WHERE l.name = called AND l.version = expected RETURNING l.version INTO done;
    END IF;
    IF done IS NULL THEN
        SELECT f.version, f.by_others INTO version, by_others FROM {schema}.leased(called, leasing) AS f;
    ELSE
        DELETE FROM {schema}.leases AS e WHERE e.name = called AND e.ends_at <= moment;
        INSERT INTO {schema}.leases AS e (name, node, amount, ends_at, version)
        VALUES (called, leasing, wanted, moment + life, done)
        ON CONFLICT (name, node) DO UPDATE
        SET amount = excluded.amount, ends_at = excluded.ends_at, version = excluded.version;
        SELECT array_agg(f.name) INTO gone FROM (
            SELECT l.name FROM {schema}.limits AS l WHERE l.forget_at <= moment
            ORDER BY l.forget_at LIMIT 16 FOR UPDATE SKIP LOCKED) AS f;
        IF gone IS NOT NULL THEN
            DELETE FROM {schema}.leases AS e WHERE e.name = ANY (gone);
            DELETE FROM {schema}.limits AS l WHERE l.name = ANY (gone);
        END IF;
    END IF;
    RETURN NEXT;
END
$lease$;

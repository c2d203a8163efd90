-- Schema 2: an index finds the orders of one tenant without reading the orders of others.

-- In schema 1, only answers in the stock had a `tenant`. From now on every record has one. A record that cannot be read gets
-- none: it is in no tenant's list, and needs a person as before.
DO $migrate$
DECLARE
    o record;
BEGIN
    FOR o IN SELECT key, terms FROM {schema}.orders WHERE tenant IS NULL LOOP
        BEGIN
            -- The server rejects JSON with a zero byte, which other fields may contain.
            UPDATE {schema}.orders
            SET tenant = convert_to(
                replace(convert_from(o.terms, 'UTF8'), '\u0000', '\u0020')::json ->> 'tenant', 'UTF8')
            WHERE key = o.key;
        EXCEPTION WHEN data_exception OR feature_not_supported THEN
            NULL;
        END;
    END LOOP;
END
$migrate$;

CREATE INDEX orders_of_tenant ON {schema}.orders (tenant, standing, key);

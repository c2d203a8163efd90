-- Schema 2: the orders of one tenant are found without looking at those of others.

-- Until now `tenant` was written beside answers on the stock only; from now on beside every record. What cannot be read stays
-- without one: it is in no tenant's list, and waits for a person as before.
DO $migrate$
DECLARE
    o record;
BEGIN
    FOR o IN SELECT key, terms FROM {schema}.orders WHERE tenant IS NULL LOOP
        BEGIN
            -- The server reads no JSON that holds a zero byte, and other fields may.
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

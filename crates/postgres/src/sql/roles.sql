-- The roles of Tickwheel. The statements run after `schema.sql`, again after each migration, and as often as wanted: the second time
-- changes nothing. They need CREATEROLE
-- and the right to create schemas in the database, or a superuser.
--
-- - `tickwheel_owner` has the schema and what is in it. Nothing logs in as this role. A migration runs as a member of the role.
-- - `tickwheel` is the role of the nodes: it reads and changes rows, and changes no table. It needs a password or a certificate, which
--   the administrator gives it: ALTER ROLE tickwheel PASSWORD '...'.
-- - `tickwheel_put` is for programs of users: it may call tickwheel.put and tickwheel.cancel. Give it to the role of the program:
--   GRANT tickwheel_put TO shop.
--
-- A node ends the sessions of a node that is gone, by pg_terminate_backend. The role may do that to its own sessions without a grant, so
-- all nodes log in as the same role.

SET LOCAL search_path = pg_catalog, pg_temp;

DO $do$
DECLARE
    wanted record;
BEGIN
    FOR wanted IN
        SELECT * FROM (VALUES ('tickwheel_owner', 'NOLOGIN'), ('tickwheel', 'LOGIN'), ('tickwheel_put', 'NOLOGIN')) AS r(name, login)
    LOOP
        IF to_regrole(wanted.name) IS NULL THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I %s', wanted.name, wanted.login);
            EXCEPTION
                -- Roles are common to all databases of the server, and the same statements may run in another one now.
                WHEN duplicate_object OR unique_violation THEN NULL;
            END;
        END IF;
    END LOOP;
    -- Only a member can give objects to the role. A superuser has the rights of every role. From PostgreSQL 16 on, the maker of a role is a
    -- member without its rights, so the membership alone does not tell.
    IF NOT pg_has_role('tickwheel_owner', 'USAGE') THEN
        GRANT tickwheel_owner TO CURRENT_USER;
    END IF;
END
$do$;

DO $do$
DECLARE
    changed record;
BEGIN
    FOR changed IN
        -- The schema comes first: the owner of a table needs the right to create in its schema.
        SELECT 0 AS place, 'SCHEMA tickwheel' AS what FROM pg_namespace
            WHERE nspname = 'tickwheel' AND nspowner <> to_regrole('tickwheel_owner')
        UNION ALL
        -- An index and the sequence of an identity column follow their table.
        SELECT 1, format('%s tickwheel.%I', CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, relname) FROM pg_class
            WHERE relnamespace = to_regnamespace('tickwheel') AND relkind IN ('r', 'v') AND relowner <> to_regrole('tickwheel_owner')
        UNION ALL
        SELECT 2, format('FUNCTION %s', oid::regprocedure) FROM pg_proc
            WHERE pronamespace = to_regnamespace('tickwheel') AND proowner <> to_regrole('tickwheel_owner')
        ORDER BY 1
    LOOP
        EXECUTE format('ALTER %s OWNER TO tickwheel_owner', changed.what);
    END LOOP;
END
$do$;

-- For what a later migration makes as `tickwheel_owner`. Only the form without a schema can take a right from PUBLIC.
ALTER DEFAULT PRIVILEGES FOR ROLE tickwheel_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE tickwheel_owner IN SCHEMA tickwheel GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO tickwheel;

REVOKE ALL ON SCHEMA tickwheel FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA tickwheel FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA tickwheel FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA tickwheel FROM PUBLIC;

GRANT USAGE ON SCHEMA tickwheel TO tickwheel, tickwheel_put;

GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tickwheel TO tickwheel;
GRANT EXECUTE ON FUNCTION tickwheel.queue_hash(text), tickwheel.shard_of(text) TO tickwheel;

GRANT EXECUTE ON FUNCTION
    tickwheel.put(text, text, timestamptz, jsonb),
    tickwheel.put(text, text, timestamptz, text, text),
    tickwheel.put(text, text, timestamptz, bytea, text),
    tickwheel.cancel(text, text)
TO tickwheel, tickwheel_put;

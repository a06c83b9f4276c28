-- The schema of Tickwheel, format 1: tables, a view, and the functions for transactions of users.
--
-- The statements run in one transaction, on PostgreSQL 14 and later. They need no role of `roles.sql`: the role that runs them owns
-- everything until `roles.sql` gives it to `tickwheel_owner`. No function is open to PUBLIC at any moment.
--
-- Instants are milliseconds since 1970-01-01T00:00:00Z, as int8. Numbers that the program has without a sign fit into int8, because they
-- count from 1.

-- The names below mean what PostgreSQL means by them, even if the search path of the session has other objects of these names.
SET LOCAL search_path = pg_catalog, pg_temp;

DO $do$
BEGIN
    -- Names of queues and keys are UTF-8, and their lengths are checked in bytes. Another encoding cannot keep all of them.
    IF getdatabaseencoding() <> 'UTF8' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'feature_not_supported',
            MESSAGE = format('the database %I has the encoding %s; Tickwheel needs UTF8', current_database(), getdatabaseencoding()),
            HINT = 'Create the database with: CREATE DATABASE tickwheel ENCODING ''UTF8'' TEMPLATE template0';
    END IF;
    -- In PostgreSQL 13 and earlier, `extract` gives a float, which cannot round an instant exactly.
    IF current_setting('server_version_num')::int4 < 140000 THEN
        RAISE EXCEPTION USING
            ERRCODE = 'feature_not_supported',
            MESSAGE = format('this is PostgreSQL %s; Tickwheel needs 14 or later', current_setting('server_version')),
            HINT = 'Upgrade the database server.';
    END IF;
    -- `CREATE SCHEMA IF NOT EXISTS` needs the right to create schemas even if the schema exists. An administrator may have made the
    -- schema for a role without that right.
    IF to_regnamespace('tickwheel') IS NULL THEN
        CREATE SCHEMA tickwheel;
    END IF;
END
$do$;

COMMENT ON SCHEMA tickwheel IS 'Tasks of Tickwheel. Change them by the API, or by tickwheel.put and tickwheel.cancel.';

-- ---------------------------------------------------------------------------------------------------------------------------------------
-- Tables

-- The properties of the data set: one row, made by the first node.
CREATE TABLE tickwheel.cluster (
    -- ONLY is a word of SQL, so the name stands in quotes.
    "only"      bool PRIMARY KEY DEFAULT true CHECK ("only"),
    -- 16 hex digits that never change.
    identity    text COLLATE "C" NOT NULL CHECK (identity ~ '^[0-9a-f]{16}$'),
    -- The number of shards is a part of the ids and of the place of each queue, so it never changes.
    shards      int4 NOT NULL CHECK (shards BETWEEN 1 AND 1024),
    lease_ms    int4 NOT NULL CHECK (lease_ms >= 500),
    -- The format of the tables. A migration raises it.
    format      int4 NOT NULL CHECK (format >= 1),
    -- The newest kind of record that a node may write.
    feature     int4 NOT NULL CHECK (feature >= 1),
    clock       text COLLATE "C" NOT NULL CHECK (clock IN ('real', 'virtual')),
    -- The `system_identifier` of the database server that these rows were made or adopted on. A dump that was restored to another server
    -- has another one. Then no node serves the rows before they are adopted: their numbers may have been given out twice.
    system      int8 NOT NULL DEFAULT (pg_control_system()).system_identifier,
    made_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- How often the rows were adopted, and when last, for people. An adoption also ends all nodes and raises all epochs.
    adoptions   int4 NOT NULL DEFAULT 0 CHECK (adoptions >= 0),
    adopted_at  timestamptz NULL
);

-- One row for each incarnation of a node. A row is never used again after its end.
CREATE TABLE tickwheel.node (
    node        text COLLATE "C" PRIMARY KEY,
    name        text COLLATE "C" NOT NULL,
    address     text COLLATE "C" NOT NULL,
    version     text COLLATE "C" NOT NULL,
    -- The newest kind of record that the node reads.
    reads       int4 NOT NULL,
    beat        int8 NOT NULL DEFAULT 0,
    ended       bool NOT NULL DEFAULT false,
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp()
)
-- A heartbeat changes no column of an index. With free space in the page it makes no entry in an index, and the next read of the page removes
-- the row before it, without VACUUM.
WITH (fillfactor = 50);

-- One row for each shard. `owner` has no foreign key: each commit locks its row here, and must not lock a row of `node` as well, which a
-- heartbeat changes.
CREATE TABLE tickwheel.shard (
    shard       int4 PRIMARY KEY CHECK (shard BETWEEN 0 AND 1023),
    epoch       int8 NOT NULL CHECK (epoch >= 0),
    owner       text COLLATE "C" NULL,
    timeline    int8 NOT NULL,
    -- The key by which the shard signs the tokens of its leases.
    secret      bytea NOT NULL CHECK (octet_length(secret) = 16)
)
WITH (fillfactor = 50);

-- Settings of queues, schedules and the like. `name` is empty for a rule of which a queue has one.
CREATE TABLE tickwheel.rule (
    shard       int4 NOT NULL,
    kind        int2 NOT NULL,
    queue       text COLLATE "C" NOT NULL,
    name        text COLLATE "C" NOT NULL,
    record      bytea NOT NULL,
    PRIMARY KEY (shard, kind, queue, name)
);

-- The tasks that have not ended.
--
-- After VACUUM has seen few tasks in many pages, PostgreSQL expects few tasks in all pages, also when a million have come since. Then it
-- reads the whole table for each of 1,000 ids, which took 9.7 s in the place of 2 ms. So the sessions of nodes switch off `enable_seqscan`,
-- `enable_bitmapscan`, `enable_hashjoin` and `enable_mergejoin`: each of their statements goes through an index.
--
-- For the same reason no two indexes may fit one statement. If PostgreSQL expects one task in the table, an index by which it finds all tasks of
-- the shard is as good as the one by which it finds the task. With the dead rows of 80,000 tasks, which a snapshot held open, it chose
-- wrongly: 20 ms for each task in the place of 1 ms. So the primary key and the unique key have no shard. They need none: an id names its
-- shard, and all tasks of a queue are in one shard. Statements that look for an id or a key compare `shard + 0`, which fits no index.
CREATE TABLE tickwheel.task (
    shard       int4 NOT NULL,
    id          int8 NOT NULL,
    queue       text COLLATE "C" NOT NULL,
    -- NULL: another task has the key now, or had it since.
    key         text COLLATE "C" NULL,
    due_at      int8 NOT NULL,
    put_seq     int8 NOT NULL,
    seq         int8 NOT NULL,
    dead        bool NOT NULL,
    leased      bool NOT NULL,
    -- The members of the task without its body.
    record      bytea NOT NULL,
    -- Payload, content type, tags and timeline. An UPDATE that does not name the column neither sends it nor stores a long one again.
    body        bytea NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (queue, key)
)
WITH (
    -- A lease and its ack change a row near the row itself. A tenth of each page is free for such changes, which then stay in the page and
    -- make no entry in an index.
    fillfactor = 90,
    -- Each task is inserted and deleted, so a queue of constant length is wholly dead again and again. The default, a fifth of the table,
    -- leaves a fifth of each index dead, and the scans by due time walk through the dead entries of the tasks that were done last.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 2000,
    -- Marks new pages as visible to all, so that a forecast counts in the index alone.
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05,
    -- The default limit lets VACUUM write about 40 MB/s, less than the tasks write at their full rate.
    autovacuum_vacuum_cost_limit = 2000,
    -- A queue that empties leaves empty pages at the end. To give them back, VACUUM locks the table against everything, here and again on
    -- each standby; and the next tasks need the pages.
    vacuum_truncate = false,
    toast.autovacuum_vacuum_scale_factor = 0.02,
    toast.autovacuum_vacuum_threshold = 2000,
    toast.autovacuum_vacuum_cost_limit = 2000,
    toast.vacuum_truncate = false
);

-- Tasks in the order of time.
CREATE INDEX task_due ON tickwheel.task (shard, due_at, put_seq);
-- The dead tasks of a queue in the order of time: few, and a person waits for them while a queue has millions of others.
CREATE INDEX task_dead ON tickwheel.task (shard, queue, due_at, put_seq) WHERE dead;
-- The leases that a graceful stop wrote down, which a new owner reads.
CREATE INDEX task_leased ON tickwheel.task (shard, id) WHERE leased;

-- A record has a few hundred bytes and is read with each row. It moves out of the row last, when a row would not fit into a page.
ALTER TABLE tickwheel.task ALTER COLUMN record SET STORAGE MAIN;
-- Bodies above 2 kB are mostly JSON. Compressed, they make less log of the database, and a commit waits for that log on two machines.
-- `default_toast_compression = lz4` of the administrator holds for them.
ALTER TABLE tickwheel.task ALTER COLUMN body SET STORAGE EXTENDED;
-- No statement compares records or bodies. ANALYZE need not read them, and payloads of users do not appear in pg_statistic.
ALTER TABLE tickwheel.task ALTER COLUMN record SET STATISTICS 0;
ALTER TABLE tickwheel.task ALTER COLUMN body SET STATISTICS 0;

-- One row for each commit of a shard. A row is never changed: a row that each commit updates gets slow while a snapshot is held open.
CREATE TABLE tickwheel.batch (
    shard       int4 NOT NULL,
    no          int8 NOT NULL,
    epoch       int8 NOT NULL,
    seq         int8 NOT NULL,
    wall        int8 NOT NULL,
    counters    bytea NULL,
    counts      bytea NULL,
    ended       bytea NULL,
    -- In the row of an acquisition: how many fail-overs there were since the shard was acquired before. Each may have lost numbers that were seen.
    failovers_passed int8 NOT NULL DEFAULT 0,
    PRIMARY KEY (shard, no)
)
WITH (
    -- Rows come and go at the rate of the commits, and at most a few thousand stay.
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_limit = 2000,
    vacuum_truncate = false,
    toast.vacuum_truncate = false
);

-- The sum of the rows of `batch` up to this number.
CREATE TABLE tickwheel.rollup (
    shard       int4 NOT NULL,
    no          int8 NOT NULL,
    epoch       int8 NOT NULL,
    seq         int8 NOT NULL,
    wall        int8 NOT NULL,
    counters    bytea NOT NULL,
    counts      bytea NULL,
    ended       bytea NOT NULL,
    PRIMARY KEY (shard, no)
)
WITH (vacuum_truncate = false, toast.vacuum_truncate = false);

-- Ends of tasks are numbers and hashes; compressing them costs time and gains nothing.
ALTER TABLE tickwheel.batch ALTER COLUMN ended SET STORAGE EXTERNAL, ALTER COLUMN ended SET STATISTICS 0;
ALTER TABLE tickwheel.rollup ALTER COLUMN ended SET STORAGE EXTERNAL, ALTER COLUMN ended SET STATISTICS 0;

-- Puts and cancels that transactions of users made. The owner of the shard deletes a row in the transaction that carries its effect.
CREATE TABLE tickwheel.inbox (
    -- The sequence gives one number at a time, so that the calls of one transaction keep their order.
    id           int8 GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY,
    shard        int4 NOT NULL,
    -- 1: put, 2: cancel.
    op           int2 NOT NULL CHECK (op IN (1, 2)),
    queue        text COLLATE "C" NOT NULL,
    key          text COLLATE "C" NOT NULL,
    due_at       int8 NULL,
    payload      bytea NULL,
    content_type text COLLATE "C" NULL,
    -- The clock of the database at the call.
    put_at       int8 NOT NULL,
    CHECK (op = 2 OR num_nulls(due_at, payload, content_type) = 0)
)
WITH (
    -- The table is empty most of the time, so each poll reads what VACUUM has not removed.
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_limit = 2000,
    vacuum_truncate = false,
    toast.vacuum_truncate = false
);

-- The oldest rows of each shard. An index by id alone would lead each poll through the rows of the shards of other nodes.
CREATE INDEX inbox_shard ON tickwheel.inbox (shard, id);
ALTER TABLE tickwheel.inbox ALTER COLUMN payload SET STATISTICS 0;

-- Rows of the inbox that no task can be made of, with the reason. A person decides about them.
CREATE TABLE tickwheel.inbox_refused (
    id           int8 PRIMARY KEY,
    shard        int4 NOT NULL,
    op           int2 NOT NULL,
    queue        text COLLATE "C" NOT NULL,
    key          text COLLATE "C" NOT NULL,
    due_at       int8 NULL,
    payload      bytea NULL,
    content_type text COLLATE "C" NULL,
    put_at       int8 NOT NULL,
    reason       text NOT NULL,
    refused_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- ---------------------------------------------------------------------------------------------------------------------------------------
-- View

-- Tasks for people. The tasks of one queue are found quickly with the shard: WHERE shard = tickwheel.shard_of('mail') AND queue = 'mail'.
CREATE VIEW tickwheel.tasks AS
SELECT
    queue,
    key,
    id,
    -- Whole seconds and milliseconds apart: a float of both would not be exact in far years. No API writes an instant after this one,
    -- but a program that embeds the engine may have one, and timestamptz ends in the year 294276.
    CASE WHEN due_at <= 253402207200999
        THEN to_timestamp(due_at / 1000) + (due_at % 1000) * interval '1 ms'
        ELSE 'infinity'::timestamptz
    END AS due_at,
    dead,
    leased,
    shard
FROM tickwheel.task;

COMMENT ON VIEW tickwheel.tasks IS 'Tasks that have not ended. The key is NULL once another task has it. A dead task is forgotten at its due_at.';

-- ---------------------------------------------------------------------------------------------------------------------------------------
-- Functions

-- Returns the first 4 bytes of the SHA-256 of the name in UTF-8, as a big-endian number. The rule never changes: otherwise the tasks of
-- earlier versions would not be found.
--
-- A function of the language sql would be planned anew in each statement, because `SET` keeps it from being inlined: 14 us instead of 3.
CREATE FUNCTION tickwheel.queue_hash(queue text) RETURNS int8
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN ('x' || encode(substr(sha256(convert_to(queue, 'UTF8')), 1, 4), 'hex'))::bit(32)::int8;
END
$$;

-- Returns the shard that has this queue; NULL if no node has set up the database yet. The number of shards never changes, but the function
-- reads it from a table, so it is not IMMUTABLE.
CREATE FUNCTION tickwheel.shard_of(queue text) RETURNS int4
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN (SELECT tickwheel.queue_hash(queue) % c.shards FROM tickwheel.cluster AS c);
END
$$;

-- Checks a name as the API checks it. `good` is a regular expression for the longest beginning of a name that is right. `call` names the
-- function that the user called.
--
-- The functions below have their literals with a backslash in the form E'': the setting standard_conforming_strings of the caller would
-- change the meaning of the plain form.
CREATE FUNCTION tickwheel.check_name(call text, argument text, what text, name text, bytes_max int4, good text, alphabet text, hint text)
RETURNS void
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    wrong text;
    right_part text;
    found text;
BEGIN
    IF name IS NULL THEN
        wrong := format('the %s is NULL; it takes 1 to %s bytes', what, bytes_max);
    ELSIF name = '' THEN
        wrong := format('the %s is empty; it takes 1 to %s bytes', what, bytes_max);
    ELSIF octet_length(name) > bytes_max THEN
        wrong := format('the %s has %s bytes; it takes 1 to %s', what, octet_length(name), bytes_max);
    ELSE
        right_part := coalesce(substring(name COLLATE "C" FROM good), '');
        IF right_part = name THEN
            RETURN;
        END IF;
        found := substr(name, char_length(right_part) + 1, 1);
        -- Control characters are shown by their number, because a terminal would obey them.
        IF found ~ E'[\\u0001-\\u001F\\u007F-\\u009F]' THEN
            found := 'U+' || lpad(upper(to_hex(ascii(found))), 4, '0');
        ELSE
            found := quote_literal(found);
        END IF;
        wrong := format('the %s has %s at byte %s; it takes %s', what, found, octet_length(right_part), alphabet);
    END IF;
    RAISE EXCEPTION USING
        ERRCODE = 'invalid_parameter_value',
        MESSAGE = wrong,
        DETAIL = format('The argument %s of %s was refused. The call has written nothing.', argument, call),
        HINT = hint;
END
$$;

-- Checks the names of a call, and returns the shard of the queue.
CREATE FUNCTION tickwheel.check_names(call text, queue text, key text) RETURNS int4
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    shard int4;
BEGIN
    PERFORM tickwheel.check_name(
        call, 'queue', 'queue name', queue, 200, '^[A-Za-z0-9+/;.$_()][A-Za-z0-9+/;.$_()-]*',
        'A-Z a-z 0-9 and - + / ; . $ _ ( ), and does not start with -',
        'Give the name of the queue, such as shop/close.'
    );
    PERFORM tickwheel.check_name(
        call, 'key', 'key', key, 256, E'^[^\\u0001-\\u001F\\u007F-\\u009F]*',
        'any UTF-8 without control characters',
        'Give the task a name that is unique in its queue, such as order:1.'
    );
    IF queue = '$jobs' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'invalid_parameter_value',
            MESSAGE = 'the queue $jobs belongs to the server',
            DETAIL = format('The argument queue of %s was refused. The call has written nothing.', call),
            HINT = 'Choose another queue.';
    END IF;
    shard := tickwheel.shard_of(queue);
    IF shard IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = 'no node of Tickwheel has set up this database yet',
            DETAIL = 'The table tickwheel.cluster has no row, so that the shard of the queue is not known.',
            HINT = 'Start a node once with tickwheel serve --postgres and the URL of this database.';
    END IF;
    RETURN shard;
END
$$;

-- Refuses JSON that some readers cannot read, as the API does: numbers beyond the range of a 64-bit float or with more than 1,000 digits,
-- half surrogate pairs, and members given twice. The error names the first such place that a walk by levels finds.
--
-- The walk costs 0.1 ms and more. So `put_row` calls this function only if a quick look finds that there may be such a place.
CREATE FUNCTION tickwheel.check_json(payload text) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    -- From this number on, the nearest 64-bit float is infinite: 2^1024 - 2^970.
    beyond CONSTANT numeric := (
        '1797693134862315807937289714053034150799341327100378269361737789804449682927647509466490179775872070'
        || '9633028641669288791094655554785194040263065748867150582068190890200070838367627385484581771153176447'
        || '5730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904'
        || '174497792'
    )::numeric;
    digits_max CONSTANT int4 := 1000;
    -- Requests of the API nest no deeper than this, and deeper JSON is answered in base64.
    depth_max CONSTANT int4 := 64;
    half CONSTANT text := E'\uFDD1';
    plain text;
    whole text;
    found record;
BEGIN
    PERFORM payload::json;
    -- Afterwards each backslash begins an escape that is no escaped backslash. The noncharacters U+FDD0 to U+FDD2 take the places of what
    -- the functions of PostgreSQL refuse, or would hide.
    plain := replace(replace(payload, E'\\\\', E'\uFDD2'), E'\\u0000', E'\uFDD0');
    whole := regexp_replace(plain, E'\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2}', '', 'g');
    IF whole ~ E'\\\\u[dD][89a-fA-F]' THEN
        plain := regexp_replace(whole, E'\\\\u[dD][89a-fA-F][0-9a-fA-F]{2}', half, 'g');
    END IF;
    WITH RECURSIVE walk(depth, path, value, name, fault) AS (
        SELECT 1, 'payload', plain::json, NULL::text, NULL::text
        UNION ALL
        SELECT w.depth + 1,
            left(w.path || CASE
                WHEN e.name IS NULL THEN format('[%s]', e.at - 1)
                WHEN e.name ~ '^[A-Za-z0-9_-]{1,40}$' THEN '.' || e.name
                ELSE format('[%s]', to_json(left(e.name, 40)))
            END, 256),
            e.value, e.name, CASE WHEN e.twice THEN 'is a member given twice' END
        FROM walk AS w
        CROSS JOIN LATERAL (
            SELECT m.key AS name, 0::int8 AS at, m.value, row_number() OVER (PARTITION BY m.key) = 2 AS twice
            FROM json_each(CASE json_typeof(w.value) WHEN 'object' THEN w.value ELSE '{}' END) AS m
            UNION ALL
            SELECT NULL, m.at, m.value, false
            FROM json_array_elements(CASE json_typeof(w.value) WHEN 'array' THEN w.value ELSE '[]' END)
                WITH ORDINALITY AS m(value, at)
        ) AS e
        WHERE w.depth < depth_max
    ), numbers AS MATERIALIZED (
        SELECT w.path, w.value::text AS number,
            length(translate(w.value::text, '-+.eE', '')) AS digits,
            coalesce(substring(w.value::text FROM '[eE][+-]?0*([0-9]+)$'), '0') AS exponent
        FROM walk AS w WHERE json_typeof(w.value) = 'number'
    )
    SELECT f.path, f.fault INTO found FROM (
        SELECT w.path, w.fault FROM walk AS w WHERE w.fault IS NOT NULL
        UNION ALL
        SELECT w.path, 'has half of a surrogate pair, which is no character' FROM walk AS w
        WHERE whole ~ E'\\\\u[dD][89a-fA-F]'
            AND (strpos(w.name, half) > 0 OR json_typeof(w.value) = 'string' AND strpos(w.value::text, half) > 0)
        UNION ALL
        SELECT n.path, CASE WHEN n.digits > digits_max
            THEN format('is a number of %s digits; it takes at most %s', n.digits, digits_max)
            ELSE format('is %s, which is beyond what a 64-bit float holds', left(n.number, 40))
        END
        FROM numbers AS n
        -- Each branch is reached only by numbers that the next one can read: a numeric has at most 131,072 digits before the point.
        WHERE CASE
            WHEN n.digits > digits_max THEN true
            WHEN n.number !~ '[1-9].*[eE]' AND n.number ~ '[eE]' THEN false
            WHEN length(n.exponent) > 4 OR n.exponent::int4 > 2000 THEN n.number !~ '[eE]-'
            ELSE abs(n.number::numeric) >= beyond
        END
    ) AS f LIMIT 1;
    IF found.path IS NOT NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'invalid_text_representation',
            MESSAGE = format('%s %s',
                replace(replace(replace(found.path, half, E'\uFFFD'), E'\uFDD0', E'\\u0000'), E'\uFDD2', E'\\\\'), found.fault),
            DETAIL = 'The argument payload of tickwheel.put was refused. The call has written nothing.',
            HINT = 'Send numbers beyond 64-bit floats as strings, whole characters, and each member once; or give another content type, such as text/plain.';
    END IF;
END
$$;

-- Checks a put and writes its row.
CREATE FUNCTION tickwheel.put_row(queue text, key text, due timestamptz, payload bytea, content_type text) RETURNS int8
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    -- The same limit as for the body of a request of the API, 1 MiB.
    payload_max CONSTANT int4 := 1048576;
    -- The last instant that the API can write.
    due_max CONSTANT int8 := 253402207200999;
    at_shard int4 := tickwheel.check_names('tickwheel.put', queue, key);
    due_ms int8;
    argument text;
    wrong text;
    advice text;
    json text;
    stored text;
    new_id int8;
BEGIN
    IF due IS NULL OR NOT isfinite(due) THEN
        argument := 'due';
        wrong := format('the due time is %s, which is no instant', coalesce(due::text, 'NULL'));
        advice := 'Give an instant, such as now() + interval ''30 min''.';
    ELSE
        -- Rounded up: no task is due early. `extract` is exact, with 6 digits behind the point.
        due_ms := ceil(extract(epoch FROM due) * 1000)::int8;
        IF due_ms < 0 OR due_ms > due_max THEN
            argument := 'due';
            wrong := format('the due time %s is outside the range from 1970-01-01 to 9999-12-30, in UTC', due);
            advice := 'Give an instant in this range; one in the past makes the task due now.';
        ELSIF payload IS NULL THEN
            argument := 'payload';
            wrong := 'the payload is NULL, and a content type is given';
            advice := 'Give an empty payload, or leave out the payload and the content type.';
        ELSIF octet_length(payload) > payload_max THEN
            argument := 'payload';
            wrong := format('the payload has %s bytes; it takes at most %s', octet_length(payload), payload_max);
            advice := 'Put a reference to the data into the payload, and keep the data in a table.';
        ELSIF content_type IS NULL OR content_type !~ '^[ -~]*/[ -~]*$' COLLATE "C" OR octet_length(content_type) > 255 THEN
            argument := 'content_type';
            wrong := format('%s is not a content type of 1 to 255 visible ASCII characters', quote_nullable(left(content_type, 40)));
            advice := 'Write type and subtype, for example image/png.';
        END IF;
    END IF;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'invalid_parameter_value',
            MESSAGE = wrong,
            DETAIL = format('The argument %s of tickwheel.put was refused. The call has written nothing.', argument),
            HINT = advice;
    END IF;
    IF content_type = 'application/json' THEN
        json := convert_from(payload, 'UTF8');
        -- The quick look: a long number or one with a large exponent; an escape of a surrogate, of U+0000, which jsonb refuses, or of a
        -- colon. Without these, a member given twice shows by a colon that jsonb has no more.
        IF json ~ E'[0-9]{200}|[0-9][eE][+-]?[0-9]{3}|\\\\u(0000|003[aA]|[dD][89a-fA-F])' THEN
            PERFORM tickwheel.check_json(json);
        ELSE
            stored := json::jsonb::text;
            IF length(json) - length(replace(json, ':', '')) <> length(stored) - length(replace(stored, ':', '')) THEN
                PERFORM tickwheel.check_json(json);
            END IF;
        END IF;
    END IF;
    INSERT INTO tickwheel.inbox (shard, op, queue, key, due_at, payload, content_type, put_at)
    VALUES (
        at_shard, 1, queue, key, due_ms, payload, content_type,
        floor(extract(epoch FROM clock_timestamp()) * 1000)::int8
    )
    RETURNING inbox.id INTO new_id;
    RETURN new_id;
END
$$;

-- Puts a task when the transaction commits: JSON, or the JSON null without a payload. Returns the number of the row in the inbox. A task
-- with this key in the queue is replaced. A due time in the past makes the task due now.
--
-- This and the following functions have the rights of their owner, so that a user needs no right to a table. They notify no channel:
-- NOTIFY lets only one transaction of the database commit at a time.
CREATE FUNCTION tickwheel.put(queue text, key text, due timestamptz, payload jsonb DEFAULT 'null') RETURNS int8
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN tickwheel.put_row(queue, key, due, convert_to(coalesce(payload::text, 'null'), 'UTF8'), 'application/json');
END
$$;

-- The same with a text of a content type. The content type has no default: a literal such as '{"order":1}' would be taken for a text
-- instead of JSON, because PostgreSQL prefers text for a literal without a type.
CREATE FUNCTION tickwheel.put(queue text, key text, due timestamptz, payload text, content_type text) RETURNS int8
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN tickwheel.put_row(queue, key, due, convert_to(payload, 'UTF8'), content_type);
END
$$;

-- The same with bytes of a content type.
CREATE FUNCTION tickwheel.put(queue text, key text, due timestamptz, payload bytea, content_type text) RETURNS int8
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN tickwheel.put_row(queue, key, due, payload, content_type);
END
$$;

-- Cancels the task with this key when the transaction commits, if there is one and no worker has it. Returns the number of the row in the
-- inbox.
CREATE FUNCTION tickwheel.cancel(queue text, key text) RETURNS int8
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    at_shard int4 := tickwheel.check_names('tickwheel.cancel', queue, key);
    new_id int8;
BEGIN
    INSERT INTO tickwheel.inbox (shard, op, queue, key, put_at)
    VALUES (at_shard, 2, queue, key, floor(extract(epoch FROM clock_timestamp()) * 1000)::int8)
    RETURNING inbox.id INTO new_id;
    RETURN new_id;
END
$$;

-- Each new function is open to PUBLIC.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA tickwheel FROM PUBLIC;

//! The schema, its functions and its roles, on a real PostgreSQL.

use tickwheel_postgres::{ClusterClock, Plan, Postgres, SetupError};

use crate::kit::{Database, shared};

const SCHEMA: &str = include_str!("../../src/sql/schema.sql");
const ROLES: &str = include_str!("../../src/sql/roles.sql");

/// The names of the router's test with the numbers of their shards among 1, 3, 64 and 1,024 shards.
const VECTORS: [(&str, [u32; 4]); 6] = [
    ("mail", [0, 2, 49, 1_009]),
    ("close", [0, 0, 0, 512]),
    ("shop/close", [0, 0, 45, 1_005]),
    ("$jobs", [0, 1, 26, 90]),
    ("q", [0, 0, 13, 717]),
    ("orders.eu-west-1", [0, 2, 8, 712]),
];

/// Makes a database with the schema, the roles and 64 shards.
fn database() -> Option<Database<'static>> {
    let database = shared()?.database();
    apply(&database, &[SCHEMA, ROLES]);
    set_up(&database, 64);
    Some(database)
}

/// Runs the scripts in one transaction.
fn apply(database: &Database<'_>, scripts: &[&str]) {
    database.psql(&format!("BEGIN;\n{}\nCOMMIT;", scripts.join("\n")));
}

fn set_up(database: &Database<'_>, shards: u32) {
    database.psql(&format!(
        "INSERT INTO tickwheel.cluster (identity, shards, lease_ms, format, feature, clock)
         VALUES ('00112233445566ff', {shards}, 5000, 1, 1, 'real')"
    ));
}

/// Makes a role that may log in and has the right of `tickwheel_put` only. Roles are common to all databases, so the name has the
/// database's in it.
fn shop(database: &Database<'_>) -> String {
    let role = format!("shop_of_{}", database.name());
    database.psql(&format!("CREATE ROLE {role} LOGIN IN ROLE tickwheel_put"));
    role
}

/// Asserts that the statement fails with this SQLSTATE and these texts.
#[track_caller]
fn fails(result: Result<String, String>, state: &str, texts: &[&str]) {
    let error = result.expect_err("the statement was taken");
    assert!(error.contains(&format!("ERROR:  {state}:")), "not {state}: {error}");
    for text in texts {
        assert!(error.contains(text), "no {text:?} in: {error}");
    }
}

#[test]
fn the_scripts_run_in_one_transaction_and_the_roles_again() {
    let Some(server) = shared() else { return };
    let database = server.database();
    let objects = "SELECT relname, relkind, relacl, pg_get_userbyid(relowner) FROM pg_class \
                   WHERE relnamespace = 'tickwheel'::regnamespace ORDER BY 1;
                   SELECT oid::regprocedure, proacl, pg_get_userbyid(proowner) FROM pg_proc \
                   WHERE pronamespace = 'tickwheel'::regnamespace ORDER BY oid;
                   SELECT nspacl, pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'tickwheel';
                   SELECT defaclobjtype, defaclacl FROM pg_default_acl ORDER BY 1";
    apply(&database, &[SCHEMA, ROLES]);
    let first = database.psql(objects);
    apply(&database, &[ROLES]);
    let second = database.psql(objects);
    let changed: Vec<_> =
        first.lines().zip(second.lines()).filter(|(first, second)| first != second).collect();
    assert!(changed.is_empty() && first.len() == second.len(), "the second run changed {changed:#?}");
    let others =
        first.lines().filter(|line| !line.contains("|tickwheel_owner") && line.matches('|').count() > 1);
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&str>::new(), "the owner has everything");
    // An entry that begins with `=` is one for PUBLIC.
    assert!(!first.contains("{=") && !first.contains(",="), "PUBLIC has a right: {first}");
}

/// Servers that start together on an empty database: one makes the tables, and the others find them.
#[test]
fn processes_that_start_together_make_the_tables_once() {
    let Some(server) = crate::kit::shared() else { return };
    for _ in 0..5 {
        let database = server.database();
        std::thread::scope(|scope| {
            let starts = ["one", "two", "three", "four"].map(|name| {
                let url = database.url();
                scope.spawn(move || crate::kit::node(&url, name).close())
            });
            starts.into_iter().for_each(|start| start.join().expect("it opens"));
        });
    }
}

#[test]
fn a_script_that_is_rolled_back_leaves_nothing() {
    let Some(server) = shared() else { return };
    let database = server.database();
    database.psql(&format!("BEGIN;\n{SCHEMA}\nROLLBACK;"));
    assert_eq!(database.psql("SELECT to_regnamespace('tickwheel') IS NULL"), "t");
    apply(&database, &[SCHEMA]);
}

#[test]
fn the_schema_needs_no_superuser_and_nothing_is_public_without_the_roles() {
    let Some(server) = shared() else { return };
    let database = server.database();
    let (maker, other) = (format!("maker_of_{}", database.name()), format!("other_of_{}", database.name()));
    database.psql(&format!(
        "CREATE ROLE {maker} LOGIN; CREATE ROLE {other} LOGIN;
         CREATE SCHEMA tickwheel AUTHORIZATION {maker}"
    ));
    let both = |scripts: &[&str]| format!("BEGIN;\n{}\nCOMMIT;", scripts.join("\n"));
    database.psql_as(&maker, &both(&[SCHEMA]));
    fails(database.try_psql_as(&other, "SELECT tickwheel.cancel('q', 'k')"), "42501", &[]);
    // The right on the schema alone opens no function and no table.
    database.psql(&format!("GRANT USAGE ON SCHEMA tickwheel TO {other}"));
    for call in ["tickwheel.cancel('q', 'k')", "tickwheel.put('q', 'k', now())", "tickwheel.queue_hash('q')"]
    {
        fails(
            database.try_psql_as(&other, &format!("SELECT {call}")),
            "42501",
            &["permission denied for function"],
        );
    }
    // With the right to make roles, the same role runs the other script, twice.
    database.psql(&format!(
        "ALTER ROLE {maker} CREATEROLE; GRANT CREATE ON DATABASE {} TO {maker}",
        database.name()
    ));
    database.psql_as(&maker, &both(&[ROLES]));
    database.psql_as(&maker, &both(&[ROLES]));
    let owner = database
        .psql("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'tickwheel.task'::regclass");
    assert_eq!(owner, "tickwheel_owner");
}

#[test]
fn a_database_of_another_encoding_is_refused() {
    let Some(server) = shared() else { return };
    let database = server.database();
    let name = format!("{}_latin", database.name());
    let made = format!("CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    server.psql(&made);
    let result = server.database_named(&name).try_psql(&format!("BEGIN;\n{SCHEMA}\nCOMMIT;"));
    fails(result, "0A000", &["has the encoding LATIN1; Tickwheel needs UTF8", "HINT:", "TEMPLATE template0"]);
}

#[test]
fn sql_and_the_router_agree_on_the_shard_of_a_queue() {
    let Some(server) = shared() else { return };
    for (place, shards) in [1, 3, 64, 1_024].into_iter().enumerate() {
        let database = server.database();
        apply(&database, &[SCHEMA]);
        assert_eq!(
            database.psql("SELECT tickwheel.shard_of('mail') IS NULL"),
            "t",
            "there is no number of shards yet"
        );
        set_up(&database, shards);
        for (name, numbers) in VECTORS {
            let found = database.psql(&format!("SELECT tickwheel.shard_of('{name}')"));
            assert_eq!(found, numbers[place].to_string(), "{name} of {shards}");
        }
    }
    let database = server.database();
    apply(&database, &[SCHEMA]);
    set_up(&database, 64);
    assert_eq!(database.psql("SELECT tickwheel.shard_of(repeat('a', 200))"), "25");
    // SHA-256 of `mail` begins with these 4 bytes.
    let bytes = "SELECT encode(substr(sha256('mail'), 1, 4), 'hex'), to_hex(tickwheel.queue_hash('mail'))";
    let answer = database.psql(bytes);
    let (hash, number) = answer.split_once('|').expect("two columns");
    assert_eq!(hash, format!("{number:0>8}"));
    // No hash is negative: some of these have the highest bit.
    let range = "SELECT min(h) >= 0, max(h) > 2147483648 FROM (SELECT tickwheel.queue_hash('q' || i) h FROM generate_series(1, 100) i) t";
    assert_eq!(database.psql(range), "t|t");
}

#[test]
fn a_put_and_a_cancel_are_rows_of_the_inbox() {
    let Some(database) = database() else { return };
    let role = shop(&database);
    let ids = database.psql_as(
        &role,
        r#"SELECT tickwheel.put('mail', 'order:1', '2030-01-01 00:00:00.1234+00', '{"order":1}');
           SELECT tickwheel.put('mail', 'Ü 😀', '1970-01-01 00:00:00+00');
           SELECT tickwheel.put(queue => 'mail', key => 'n', due => '2030-01-01 00:00+00', payload => NULL);
           SELECT tickwheel.put('mail', 't', '2030-01-01 00:00+00', 'Grüße', 'text/plain');
           SELECT tickwheel.put('mail', 'b', '2030-01-01 00:00+00', '\x00ff'::bytea, 'application/octet-stream');
           SELECT tickwheel.put('mail', 'last', '9999-12-30 22:00:00.999+00', '1');
           SELECT tickwheel.cancel('mail', 'order:1');"#,
    );
    assert_eq!(ids, "1\n2\n3\n4\n5\n6\n7");
    let rows = database.psql(
        "SELECT id, shard, op, queue, key, due_at, encode(payload, 'escape'), content_type FROM tickwheel.inbox ORDER BY id",
    );
    let expected = [
        r#"1|49|1|mail|order:1|1893456000124|{"order": 1}|application/json"#,
        "2|49|1|mail|Ü 😀|0|null|application/json",
        "3|49|1|mail|n|1893456000000|null|application/json",
        r"4|49|1|mail|t|1893456000000|Gr\303\274\303\237e|text/plain",
        r"5|49|1|mail|b|1893456000000|\000\377|application/octet-stream",
        "6|49|1|mail|last|253402207200999|1|application/json",
        "7|49|2|mail|order:1|||",
    ];
    assert_eq!(rows.lines().collect::<Vec<_>>(), expected);
    let recent =
        "SELECT bool_and(abs(put_at - extract(epoch FROM now()) * 1000) < 600000) FROM tickwheel.inbox";
    assert_eq!(database.psql(recent), "t");
}

#[test]
fn due_times_round_up_to_the_millisecond_and_never_down() {
    let Some(database) = database() else { return };
    for (due, ms) in [
        ("00:00:00", 0),
        ("00:00:00.000001", 1),
        ("00:00:00.001", 1),
        ("00:00:00.001001", 2),
        ("00:00:00.999999", 1_000),
    ] {
        let put = format!("SELECT tickwheel.put('q', 'k', '1970-01-01 {due}+00')");
        let id = database.psql(&put);
        assert_eq!(
            database.psql(&format!("SELECT due_at FROM tickwheel.inbox WHERE id = {id}")),
            ms.to_string(),
            "{due}"
        );
    }
    // A float would have no room for the microseconds of this year.
    let id = database.psql("SELECT tickwheel.put('q', 'k', '9999-01-01 00:00:00.000001+00')");
    let due = database.psql(&format!("SELECT due_at FROM tickwheel.inbox WHERE id = {id}"));
    assert_eq!(due, "253370764800001");
}

#[test]
fn a_bad_name_fails_the_transaction_with_the_words_of_the_engine() {
    let Some(database) = database() else { return };
    let role = shop(&database);
    let alphabet = "; it takes A-Z a-z 0-9 and - + / ; . $ _ ( ), and does not start with -";
    let text = "; it takes any UTF-8 without control characters";
    let queues = [
        ("NULL", "the queue name is NULL; it takes 1 to 200 bytes".to_owned()),
        ("''", "the queue name is empty; it takes 1 to 200 bytes".to_owned()),
        ("repeat('q', 201)", "the queue name has 201 bytes; it takes 1 to 200".to_owned()),
        ("repeat('ü', 101)", "the queue name has 202 bytes; it takes 1 to 200".to_owned()),
        ("'no spaces'", format!("the queue name has ' ' at byte 2{alphabet}")),
        ("'-a'", format!("the queue name has '-' at byte 0{alphabet}")),
        ("'aü'", format!("the queue name has 'ü' at byte 1{alphabet}")),
        ("E'a\\n'", format!("the queue name has U+000A at byte 1{alphabet}")),
        ("'$jobs'", "the queue $jobs belongs to the server".to_owned()),
    ];
    for (queue, message) in queues {
        for (call, name) in [
            (format!("tickwheel.put({queue}, 'k', now())"), "tickwheel.put"),
            (format!("tickwheel.cancel({queue}, 'k')"), "tickwheel.cancel"),
        ] {
            let detail = format!("The argument queue of {name} was refused.");
            fails(
                database.try_psql_as(&role, &format!("SELECT {call}")),
                "22023",
                &[&message, &detail, "HINT:"],
            );
        }
    }
    let keys = [
        ("NULL", "the key is NULL; it takes 1 to 256 bytes".to_owned()),
        ("''", "the key is empty; it takes 1 to 256 bytes".to_owned()),
        ("repeat('k', 257)", "the key has 257 bytes; it takes 1 to 256".to_owned()),
        ("E'\\n'", format!("the key has U+000A at byte 0{text}")),
        ("E'Ü\\u0085'", format!("the key has U+0085 at byte 2{text}")),
        ("E'ab\\u007f'", format!("the key has U+007F at byte 2{text}")),
        ("E'ab\\u009f'", format!("the key has U+009F at byte 2{text}")),
    ];
    for (key, message) in keys {
        for call in [format!("tickwheel.put('q', {key}, now())"), format!("tickwheel.cancel('q', {key})")] {
            let texts = [&message[..], "The argument key of tickwheel.", "HINT:"];
            fails(database.try_psql_as(&role, &format!("SELECT {call}")), "22023", &texts);
        }
    }
    for queue in ["a", "close", "shop/close", "A+b/c;d.e$f_g(h)-9", "$", "(-)"] {
        database.psql_as(&role, &format!("SELECT tickwheel.cancel('{queue}', 'k')"));
    }
    for key in ["order:1", "Ü/%?#", " ", "\u{a0}\u{2028}\u{10ffff}"] {
        database.psql_as(&role, &format!("SELECT tickwheel.cancel('q', '{key}')"));
    }
    database.psql_as(&role, "SELECT tickwheel.cancel(repeat('q', 200), repeat('k', 256))");
    assert_eq!(database.psql("SELECT count(*) FROM tickwheel.inbox"), "11");
}

#[test]
fn every_character_is_taken_or_refused_as_by_the_engine() {
    let Some(database) = database() else { return };
    // The answer names the code points that are taken, as ranges.
    let taken = |check: &str| {
        database.psql(&format!(
            "CREATE OR REPLACE FUNCTION public.taken(c text) RETURNS bool LANGUAGE plpgsql AS $$
             BEGIN PERFORM {check}; RETURN true; EXCEPTION WHEN invalid_parameter_value THEN RETURN false; END $$;
             SELECT string_agg(n::text, ' ' ORDER BY n) FROM generate_series(1, 1023) n WHERE public.taken(chr(n))"
        ))
    };
    let expected = |is_good: &dyn Fn(&str) -> bool| {
        let characters = (1..=1_023_u32).filter_map(char::from_u32);
        let good = characters.filter(|&character| is_good(character.encode_utf8(&mut [0; 4])));
        good.map(|character| u32::from(character).to_string()).collect::<Vec<_>>().join(" ")
    };
    let queue = |text: &str| tickwheel_engine::QueueName::new(text).is_ok();
    let key = |text: &str| tickwheel_engine::Key::new(text).is_ok();
    assert_eq!(taken("tickwheel.check_names('f', c, 'k')"), expected(&queue));
    assert_eq!(
        taken("tickwheel.check_names('f', 'a' || c, 'k')"),
        expected(&|text| queue(&format!("a{text}")))
    );
    assert_eq!(taken("tickwheel.check_names('f', 'q', c)"), expected(&key));
}

#[test]
fn a_bad_due_time_payload_or_content_type_fails_the_transaction() {
    let Some(database) = database() else { return };
    let role = shop(&database);
    let range = "is outside the range from 1970-01-01 to 9999-12-30, in UTC";
    let cases = [
        ("NULL", "the due time is NULL, which is no instant", "due"),
        ("'infinity'", "the due time is infinity, which is no instant", "due"),
        ("'-infinity'", "the due time is -infinity, which is no instant", "due"),
        ("'1969-12-31 23:59:59.999+00'", range, "due"),
        ("'9999-12-30 22:00:00.999001+00'", range, "due"),
        ("'294276-12-31 00:00+00'", range, "due"),
        ("'4713-01-01 00:00+00 BC'", range, "due"),
        (
            "now(), to_jsonb(repeat('x', 1048575))",
            "the payload has 1048577 bytes; it takes at most 1048576",
            "payload",
        ),
        ("now(), repeat('x', 1048577), 'text/plain'", "the payload has 1048577 bytes", "payload"),
        ("now(), NULL::bytea, 'text/plain'", "the payload is NULL, and a content type is given", "payload"),
        (
            "now(), 'x', NULL",
            "NULL is not a content type of 1 to 255 visible ASCII characters",
            "content_type",
        ),
        ("now(), 'x', 'text'", "'text' is not a content type", "content_type"),
        ("now(), 'x', 'text/plä'", "'text/plä' is not a content type", "content_type"),
        ("now(), 'x', E'text/plain\\n'", "is not a content type", "content_type"),
        ("now(), 'x', '/' || repeat('x', 255)", "is not a content type", "content_type"),
    ];
    for (arguments, message, argument) in cases {
        let detail =
            format!("The argument {argument} of tickwheel.put was refused. The call has written nothing.");
        let put = format!("SELECT tickwheel.put('q', 'k', {arguments})");
        fails(database.try_psql_as(&role, &put), "22023", &[message, &detail, "HINT:"]);
    }
    // No argument can be NaN: PostgreSQL refuses it before the call.
    fails(
        database.try_psql_as(&role, "SELECT tickwheel.put('q', 'k', to_timestamp('NaN'))"),
        "22008",
        &["NaN"],
    );
    fails(database.try_psql_as(&role, "SELECT tickwheel.put('q', 'k', now(), '{')"), "22P02", &["json"]);
    assert_eq!(database.psql("SELECT count(*) FROM tickwheel.inbox"), "0");
    for arguments in ["to_jsonb(repeat('x', 1048574))", "repeat('x', 1048576), 'text/plain'", "'', '/'"] {
        database.psql_as(&role, &format!("SELECT tickwheel.put('q', 'k', now(), {arguments})"));
    }
}

#[test]
fn a_call_before_the_first_node_says_what_to_do() {
    let Some(server) = shared() else { return };
    let database = server.database();
    apply(&database, &[SCHEMA, ROLES]);
    let result = database.try_psql("SELECT tickwheel.cancel('q', 'k')");
    fails(
        result,
        "55000",
        &["no node of Tickwheel has set up this database yet", "HINT:", "tickwheel serve --postgres"],
    );
}

/// The story: a program puts JSON that its database takes and that the workers cannot read. One such task made every lease of its queue
/// unreadable. The transaction is refused, with the place in the payload, and JSON that all readers can read passes.
#[test]
fn json_that_some_readers_cannot_read_fails_the_transaction() {
    let Some(database) = database() else { return };
    let role = shop(&database);
    let half = "half of a surrogate pair";
    let cases = [
        ("'1e400'::jsonb", "payload is 1000", "beyond what a 64-bit float holds"),
        (r#"'{"a":[1,{"b c":-1e400}]}'::jsonb"#, r#"payload.a[1]["b c"] is -1000"#, "beyond"),
        ("('[' || repeat('7', 5000) || ']')::jsonb", "payload[0] is a number of 5000 digits", "at most 1000"),
        ("'[1e400]', 'application/json'", "payload[0] is 1e400", "beyond"),
        ("'1e99999999', 'application/json'", "payload is 1e99999999", "beyond"),
        ("repeat('9', 309), 'application/json'", "payload is 999", "beyond"),
        (
            "'0.' || repeat('1', 1000), 'application/json'",
            "payload is a number of 1001 digits",
            "at most 1000",
        ),
        (r#"'{"a":["x\ud800"]}', 'application/json'"#, "payload.a[0]", half),
        (r#"'{"a":{"\udc00":1}}', 'application/json'"#, "payload.a", half),
        (r#"'{"a":{"b":1,"b":2}}', 'application/json'"#, "payload.a.b", "is a member given twice"),
        (r#"'{"a:":1,"\u0061\u003a":2}', 'application/json'"#, r#"payload["a:"]"#, "is a member given twice"),
        (
            r#"convert_to('{"b":1,"b":2}', 'UTF8'), 'application/json'"#,
            "payload.b",
            "is a member given twice",
        ),
    ];
    let detail = "The argument payload of tickwheel.put was refused. The call has written nothing.";
    for (arguments, place, words) in cases {
        let put = format!("SELECT tickwheel.put('q', 'k', now(), {arguments})");
        fails(database.try_psql_as(&role, &put), "22P02", &[place, words, detail, "HINT:"]);
    }
    let put = "SELECT tickwheel.put('q', 'k', now(), '{', 'application/json')";
    fails(database.try_psql_as(&role, put), "22P02", &["json"]);
    let put = r"SELECT tickwheel.put('q', 'k', now(), '\xff'::bytea, 'application/json')";
    fails(database.try_psql_as(&role, put), "22021", &["UTF8"]);
    assert_eq!(database.psql("SELECT count(*) FROM tickwheel.inbox"), "0");
    for good in [
        "'1e308'",
        "'-1.7976931348623157e308'",
        "'1e-400'",
        "'1e-99999999'",
        "'0e99999999'",
        "'[1e+0100]'",
        "'0.' || repeat('1', 999)",
        "repeat('1', 308)",
        r#"'"\ud83d\ude00 \u00e9 \\ud800 \" \n \u0000"'"#,
        r#"'{"a":{"a":[{"a":1},{"a":2}]},"b":{"a":3},"":0,"\\":1,"\"":2}'"#,
        r#"'{"\ud83d\ude00":1,"\ud83d\ude01":2,"a":"b:c","b":"\u003a"}'"#,
    ] {
        database
            .psql_as(&role, &format!("SELECT tickwheel.put('q', 'k', now(), {good}, 'application/json')"));
    }
    database.psql_as(&role, "SELECT tickwheel.put('q', 'k', now(), '1e400', 'text/plain')");
}

#[test]
fn a_program_with_the_right_to_put_can_do_nothing_else() {
    let Some(database) = database() else { return };
    let role = shop(&database);
    database.psql_as(&role, "SELECT tickwheel.put('q', 'k', now(), '1'); SELECT tickwheel.cancel('q', 'k')");
    let relations = database.psql(
        "SELECT relname FROM pg_class WHERE relnamespace = 'tickwheel'::regnamespace AND relkind IN ('r', 'v', 'S')",
    );
    assert_eq!(relations.lines().count(), 11, "{relations}");
    for relation in relations.lines() {
        let read = format!("SELECT * FROM tickwheel.{relation}");
        fails(database.try_psql_as(&role, &read), "42501", &["permission denied"]);
    }
    fails(database.try_psql_as(&role, "DELETE FROM tickwheel.inbox"), "42501", &[]);
    let functions = database.psql(&format!(
        "SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'tickwheel'::regnamespace
         AND has_function_privilege('{role}', oid, 'EXECUTE') ORDER BY 1"
    ));
    let expected = [
        "tickwheel.cancel(text,text)",
        "tickwheel.put(text,text,timestamp with time zone,bytea,text)",
        "tickwheel.put(text,text,timestamp with time zone,jsonb)",
        "tickwheel.put(text,text,timestamp with time zone,text,text)",
    ];
    let mut functions: Vec<&str> = functions.lines().collect();
    functions.sort_unstable();
    assert_eq!(functions, expected);
    fails(database.try_psql_as(&role, "CREATE TABLE tickwheel.mine ()"), "42501", &[]);
}

#[test]
fn a_node_changes_rows_and_no_table() {
    let Some(database) = database() else { return };
    let node = "tickwheel";
    for statement in [
        "INSERT INTO tickwheel.task VALUES (49, 113, 'mail', 'k', 1, 1, 1, false, false, '', '')",
        "UPDATE tickwheel.task SET leased = true; SELECT FROM tickwheel.task FOR NO KEY UPDATE; DELETE FROM tickwheel.task",
        "SELECT tickwheel.shard_of('mail'), tickwheel.queue_hash('mail'), tickwheel.put('mail', 'k', now()) FROM tickwheel.tasks",
        "UPDATE tickwheel.cluster SET feature = 2, adoptions = adoptions + 1, adopted_at = now()",
        "SELECT system = (SELECT system_identifier FROM pg_control_system()) FROM tickwheel.cluster",
        "SELECT pg_is_in_recovery(), pg_walfile_name(pg_current_wal_insert_lsn()), current_setting('synchronous_standby_names')",
    ] {
        database.psql_as(node, statement);
    }
    for statement in [
        "CREATE TABLE tickwheel.mine ()",
        "ALTER TABLE tickwheel.task ADD COLUMN more int",
        "CREATE INDEX ON tickwheel.task (seq)",
        "DROP TABLE tickwheel.node",
        "TRUNCATE tickwheel.task",
        "CREATE OR REPLACE FUNCTION tickwheel.queue_hash(queue text) RETURNS int8 LANGUAGE sql AS 'SELECT 1::int8'",
        "DROP SCHEMA tickwheel CASCADE",
        "SET ROLE tickwheel_owner",
        "GRANT SELECT ON tickwheel.task TO PUBLIC",
    ] {
        // A GRANT of what one cannot give is a warning only, so the right itself is looked at below.
        let result = database.try_psql_as(node, statement);
        if !statement.starts_with("GRANT") {
            fails(result, "42501", &[]);
        }
    }
    assert_eq!(database.psql("SELECT has_table_privilege('tickwheel_put', 'tickwheel.task', 'SELECT')"), "f");
    // A later migration, as the owner, gives the rights by itself.
    database.psql(
        "SET ROLE tickwheel_owner; CREATE TABLE tickwheel.later (a int);
         CREATE FUNCTION tickwheel.later_too() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    );
    database.psql_as(node, "INSERT INTO tickwheel.later VALUES (1)");
    fails(database.try_psql_as(node, "SELECT tickwheel.later_too()"), "42501", &[]);
}

#[test]
fn a_node_ends_the_session_of_another_node() {
    let Some(database) = database() else { return };
    let mut silent = database.session("tickwheel");
    silent.run("SET application_name = 'tickwheel/gone'; BEGIN; LOCK TABLE tickwheel.node IN SHARE MODE");
    let ended = database.psql_as(
        "tickwheel",
        "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity
         WHERE usename = current_user AND application_name = 'tickwheel/gone'",
    );
    assert_eq!(ended, "t");
    database.psql_as(
        "tickwheel",
        "BEGIN; SET LOCAL lock_timeout = '1s'; LOCK TABLE tickwheel.node IN ROW EXCLUSIVE MODE; COMMIT",
    );
}

#[test]
fn a_transaction_that_is_rolled_back_leaves_nothing() {
    let Some(database) = database() else { return };
    let role = shop(&database);
    database.psql_as(&role, "BEGIN; SELECT tickwheel.put('q', 'k', now()); ROLLBACK");
    // The bad call takes the good call before it along.
    let both = "BEGIN; SELECT tickwheel.put('q', 'k', now()); SELECT tickwheel.put('q', '', now()); COMMIT";
    fails(database.try_psql_as(&role, both), "22023", &["the key is empty"]);
    assert_eq!(database.psql("SELECT count(*) FROM tickwheel.inbox"), "0");
}

#[test]
fn the_poll_sees_rows_that_commit_out_of_the_order_of_their_ids() {
    let Some(database) = database() else { return };
    let role = shop(&database);
    let poll = || {
        database.psql_as(
            "tickwheel",
            "SELECT key FROM tickwheel.inbox WHERE shard = ANY('{13,49}') ORDER BY id LIMIT 1000",
        )
    };
    let (mut early, mut late) = (database.session(&role), database.session(&role));
    let first = early.run("BEGIN; SELECT tickwheel.put('mail', 'early', now())");
    let second = late.run("BEGIN; SELECT tickwheel.put('mail', 'late', now())");
    assert!(first.parse::<i64>().expect("an id") < second.parse().expect("an id"));
    assert_eq!(poll(), "");
    late.run("COMMIT");
    assert_eq!(poll(), "late", "the row with the higher id is there first");
    database.psql_as("tickwheel", &format!("DELETE FROM tickwheel.inbox WHERE id = {second}"));
    early.run("COMMIT");
    assert_eq!(poll(), "early", "a cursor behind the higher id would not see this row");
}

#[test]
fn two_transactions_that_put_do_not_wait_for_each_other() {
    let Some(database) = database() else { return };
    let role = shop(&database);
    let mut open = database.session(&role);
    open.run("BEGIN; SELECT tickwheel.put('q', 'k', now())");
    // The same queue and the same key: the inbox has no unique key but its id, and nothing is notified.
    database.psql_as(&role, "SET lock_timeout = '5s'; BEGIN; SELECT tickwheel.put('q', 'k', now()); COMMIT");
    open.run("COMMIT");
    assert_eq!(database.psql("SELECT count(*) FROM tickwheel.inbox"), "2");
}

/// Objects of the caller with the names that the functions use. Each writes down that it was called, or changes the meaning of a statement.
const TRAPS: &str = r"
    CREATE SCHEMA trap;
    CREATE TABLE trap.caught (who name);
    GRANT USAGE ON SCHEMA trap TO PUBLIC;
    GRANT ALL ON trap.caught TO PUBLIC;
    CREATE FUNCTION trap.catch() RETURNS void LANGUAGE sql AS 'INSERT INTO trap.caught VALUES (current_user)';
    CREATE FUNCTION trap.octet_length(text) RETURNS int LANGUAGE plpgsql AS 'BEGIN PERFORM trap.catch(); RETURN 1; END';
    CREATE FUNCTION trap.octet_length(bytea) RETURNS int LANGUAGE plpgsql AS 'BEGIN PERFORM trap.catch(); RETURN 1; END';
    CREATE FUNCTION trap.isfinite(timestamptz) RETURNS bool LANGUAGE plpgsql AS 'BEGIN PERFORM trap.catch(); RETURN true; END';
    CREATE FUNCTION trap.convert_to(text, name) RETURNS bytea LANGUAGE plpgsql AS 'BEGIN PERFORM trap.catch(); RETURN ''''; END';
    CREATE FUNCTION trap.sha256(bytea) RETURNS bytea LANGUAGE plpgsql AS 'BEGIN PERFORM trap.catch(); RETURN ''\x01020304''; END';
    CREATE FUNCTION trap.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS 'BEGIN PERFORM trap.catch(); RETURN ''2000-01-01''; END';
    CREATE FUNCTION trap.same(text, text) RETURNS bool LANGUAGE plpgsql AS 'BEGIN PERFORM trap.catch(); RETURN true; END';
    CREATE OPERATOR trap.= (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.same);
    CREATE FUNCTION trap.larger(int, int) RETURNS bool LANGUAGE plpgsql AS 'BEGIN PERFORM trap.catch(); RETURN false; END';
    CREATE OPERATOR trap.> (LEFTARG = int, RIGHTARG = int, FUNCTION = trap.larger);
    CREATE FUNCTION trap.rest(int8, int) RETURNS int8 LANGUAGE plpgsql AS 'BEGIN PERFORM trap.catch(); RETURN 7; END';
    CREATE OPERATOR trap.% (LEFTARG = int8, RIGHTARG = int, FUNCTION = trap.rest);
    CREATE DOMAIN trap.int8 AS pg_catalog.int8 CHECK (false);
    CREATE TABLE trap.inbox (id int); CREATE TABLE trap.cluster (shards int);
";

#[test]
fn the_objects_of_a_caller_do_not_capture_the_functions() {
    let Some(database) = database() else { return };
    let role = shop(&database);
    database.psql(TRAPS);
    database.psql("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA trap TO PUBLIC");
    // The path of the caller has the traps before the objects of PostgreSQL. The traps are caught by a call of the caller itself.
    let path = "SET search_path = trap, pg_catalog, tickwheel;";
    database.psql_as(&role, &format!("{path} SELECT octet_length('abc'::text)"));
    assert_eq!(database.psql("SELECT count(*) FROM trap.caught"), "1", "the traps work");
    let calls = "SELECT tickwheel.put('mail', 'k', '2030-01-01 00:00+00', '{}');
                 SELECT tickwheel.put('mail', 'k', '2030-01-01 00:00+00', 'x', 'text/plain');
                 SELECT tickwheel.cancel('mail', 'k');";
    database.psql_as(&role, &format!("{path} {calls}"));
    // Objects in pg_temp are found first, unless a path names pg_temp last.
    let temporary = "CREATE TEMP TABLE inbox (id int); CREATE TEMP TABLE cluster (one bool, shards int4);
                     INSERT INTO pg_temp.cluster VALUES (true, 1);
                     CREATE DOMAIN pg_temp.int4 AS pg_catalog.int4 CHECK (false);
                     CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (false);";
    database.psql_as(&role, &format!("{temporary} {calls}"));
    // These settings change how literals and comparisons are read.
    let settings = "SET standard_conforming_strings = off; SET escape_string_warning = off; SET transform_null_equals = on;
                    SET DateStyle = 'SQL, DMY'; SET IntervalStyle = 'iso_8601'; SET TimeZone = 'Asia/Kathmandu'; SET bytea_output = 'escape';";
    database.psql_as(&role, &format!("{settings} {calls}"));
    fails(
        database.try_psql_as(&role, &format!("{settings} SELECT tickwheel.put('mail', E'a\\u0085', now())")),
        "22023",
        &["the key has U+0085 at byte 1"],
    );
    fails(
        database.try_psql_as(&role, &format!("{path} SELECT tickwheel.put('mail', repeat('k', 257), now())")),
        "22023",
        &["the key has 257 bytes"],
    );
    assert_eq!(
        database.psql("SELECT count(*) FROM trap.caught"),
        "1",
        "a trap was called with the rights of the owner"
    );
    let rows =
        database.psql("SELECT shard, op, due_at, count(*) FROM tickwheel.inbox GROUP BY 1, 2, 3 ORDER BY 2");
    assert_eq!(rows, "49|1|1893456000000|6\n49|2||3");
}

#[test]
fn the_view_shows_instants_as_a_person_reads_them() {
    let Some(database) = database() else { return };
    database.psql(
        "INSERT INTO tickwheel.task VALUES
         (49, 49, 'mail', 'now', 1893456000124, 1, 1, false, true, '', ''),
         (49, 113, 'mail', NULL, 9223372036854775807, 2, 2, true, false, '', ''),
         (49, 177, 'mail', 'far', 253402207200999, 3, 3, false, false, '', ''),
         (49, 241, 'mail', 'old', 0, 4, 4, false, false, '', '')",
    );
    let rows = database.psql("SET TimeZone = 'UTC'; SELECT queue, key, id, due_at, dead, leased, shard FROM tickwheel.tasks ORDER BY id");
    let expected = [
        "mail|now|49|2030-01-01 00:00:00.124+00|f|t|49",
        "mail||113|infinity|t|f|49",
        "mail|far|177|9999-12-30 22:00:00.999+00|f|f|49",
        "mail|old|241|1970-01-01 00:00:00+00|f|f|49",
    ];
    assert_eq!(rows.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_key_that_changes_hands_and_a_second_row_of_the_cluster() {
    let Some(database) = database() else { return };
    let task = |id: u32, key: &str| {
        format!("INSERT INTO tickwheel.task VALUES (1, {id}, 'q', {key}, 0, 1, 1, false, false, '', '')")
    };
    for statement in [task(1, "'k'"), task(65, "NULL"), task(129, "NULL")] {
        database.psql(&statement);
    }
    fails(database.try_psql(&task(193, "'k'")), "23505", &["task_queue_key_key"]);
    database.psql(&format!(
        "UPDATE tickwheel.task SET key = NULL WHERE shard = 1 AND id = 1; {}",
        task(193, "'k'")
    ));
    let second = "INSERT INTO tickwheel.cluster (identity, shards, lease_ms, format, feature, clock)
                  VALUES ('00112233445566ff', 64, 5000, 1, 1, 'real')";
    fails(database.try_psql(second), "23505", &["cluster_pkey"]);
    for (column, value) in [
        ("shards", "1025"),
        ("identity", "'0011223344556677 '"),
        ("clock", "'fast'"),
        ("lease_ms", "499"),
        ("only", "false"),
    ] {
        fails(
            database.try_psql(&format!("UPDATE tickwheel.cluster SET \"{column}\" = {value}")),
            "23514",
            &[column],
        );
    }
}

/// Any role may take the lock. A start that waits for it says who has it.
#[test]
fn a_session_that_has_the_lock_of_those_that_make_the_tables_is_named() {
    let Some(server) = shared() else { return };
    let database = server.database();
    let role = format!("blocker_of_{}", database.name());
    database.psql(&format!("CREATE ROLE {role} LOGIN"));
    let mut blocker = database.session(&role);
    let pid: i32 = blocker.run("SELECT pg_backend_pid()").parse().expect("a number");
    blocker.run("DO $$ BEGIN PERFORM pg_advisory_lock(x'7469636b77686565'::bit(64)::int8); END $$");
    let postgres = Postgres::at(&database.url()).expect("a URL");
    let plan = Plan { shards: Some(3), clock: ClusterClock::Real, lease_ms: 60_000, migrates: true };
    let refused = postgres.prepare(&plan).expect_err("the lock is held");
    let SetupError::Locked { holder } = &refused else { panic!("{refused}") };
    let begin = format!("the session {pid} of the role {role} (");
    let end = format!("has it; SELECT pg_terminate_backend({pid}) ends that session");
    assert!(holder.starts_with(&begin) && holder.ends_with(&end), "{refused}");
    blocker.run("DO $$ BEGIN PERFORM pg_advisory_unlock_all(); END $$");
    postgres.prepare(&plan).expect("the lock is free");
}

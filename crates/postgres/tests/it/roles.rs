//! Settings of a role change nothing, and a database that cannot be used is refused with what, where and what to do.

use std::time::Duration;

use crate::kit::{LEASE_MS, Server, Settings, key, name, node, options, put, report, texts, until};
use tickwheel_postgres::{ClusterClock, Plan, Postgres, PostgresOptions};
use tickwheel_queue::{Cancel, Queue};

const DAY: Duration = Duration::from_secs(86_400);

/// Returns why the database is refused.
#[track_caller]
fn refusal(options: PostgresOptions) -> String {
    let why = options.connect().expect_err("it is refused").to_string();
    report(&why);
    why
}

#[track_caller]
fn says(why: &str, texts: &[&str]) {
    for text in texts {
        assert!(why.contains(text), "`{text}` is missing in: {why}");
    }
}

#[test]
fn settings_of_the_role_change_nothing() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    database.psql(
        "CREATE ROLE hostile LOGIN SUPERUSER;
         ALTER ROLE hostile SET default_transaction_isolation = serializable;
         ALTER ROLE hostile SET default_transaction_read_only = on;
         ALTER ROLE hostile SET synchronous_commit = off;
         ALTER ROLE hostile SET statement_timeout = 1;
         ALTER ROLE hostile SET lock_timeout = 1;
         ALTER ROLE hostile SET idle_session_timeout = 1;
         ALTER ROLE hostile SET idle_in_transaction_session_timeout = 1;
         ALTER ROLE hostile SET bytea_output = escape;
         ALTER ROLE hostile SET datestyle = 'SQL, DMY';
         ALTER ROLE hostile SET client_encoding = latin1;
         ALTER ROLE hostile SET search_path = evil, pg_catalog;
         CREATE SCHEMA evil;
         CREATE FUNCTION evil.current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT '{}'::text $$;
         CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT '2001-01-01Z'::timestamptz $$;",
    );
    let url = database.url_as("hostile");
    let queue = node(&url, "first");
    for n in 0..20 {
        queue.put(put(&format!("k{n}-ü"), DAY)).wait().expect("stored");
        queue.cancel(Cancel::new(&name(), key(&format!("k{n}-ü")))).wait().expect("cancelled");
    }
    queue.put(put("left", DAY)).wait().expect("stored");
    let year = queue.now().as_ms() / 31_556_952_000 + 1970;
    assert!(year > 2020, "the clock is that of the database: {year}");
    queue.close();
    let queue = node(&url, "second");
    assert_eq!(texts(&queue).into_iter().collect::<Vec<_>>(), ["left"]);
    queue.close();
    assert!(!server.log().contains("idle-session timeout"), "a session was ended");
}

/// A plain role reads and writes the tables that an administrator made.
#[test]
fn a_role_without_the_right_to_make_tables_works_with_those_that_are_there() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    database.psql("CREATE ROLE plain LOGIN");
    let why = refusal(options(&database.url_as("plain"), "first"));
    says(&why, &["no tables", "42501", "permission denied", "tickwheel cluster sql"]);
    let mut without = options(&database.url_as("plain"), "first");
    without.plan.migrates = false;
    says(&refusal(without), &["no tables", "may not make them", "tickwheel cluster sql"]);

    database.psql(&tickwheel_postgres::statements());
    database.psql("GRANT tickwheel TO plain");
    let queue = node(&database.url_as("plain"), "first");
    queue.put(put("one", DAY)).wait().expect("stored");
    queue.close();
}

#[test]
fn a_server_that_loses_commits_and_a_standby_are_refused() {
    let settings = Settings { fsync: false, ..Settings::default() };
    let Some(server) = Server::start_with(&settings) else { return };
    let at = format!("127.0.0.1:{}", server.port());
    says(&refusal(options(&server.url(), "first")), &[&at, "fsync = off", "switch fsync on"]);
    let standby = server.standby("b");
    let at = format!("127.0.0.1:{}", standby.port());
    says(&refusal(options(&standby.url(), "first")), &[&at, "standby"]);
    standby.configure(&[("fsync", "on".to_owned())]);
    until("fsync is on", || standby.psql("SHOW fsync") == "on");
    let any = format!("{}?target_session_attrs=any", standby.url());
    says(&refusal(options(&any, "first")), &[&at, "standby"]);
}

#[test]
fn a_data_set_that_is_not_as_planned_is_refused() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    node(&database.url(), "first").close();
    let plan = Plan { shards: Some(2), ..options(&database.url(), "second").plan };
    let why = refusal(PostgresOptions { plan, ..options(&database.url(), "second") });
    says(&why, &["1 shards", "2 are refused", "leave the number away"]);
    let plan = Plan { clock: ClusterClock::Virtual, ..options(&database.url(), "second").plan };
    let why = refusal(PostgresOptions { plan, ..options(&database.url(), "second") });
    says(&why, &["real clock", "start without --virtual-clock"]);
    // A dump has the number of the server that it was taken from.
    database.psql("UPDATE tickwheel.cluster SET system = system + 1");
    let why = refusal(options(&database.url(), "second"));
    says(&why, &[&format!("127.0.0.1:{}", server.port()), "dump", "tickwheel cluster adopt"]);
    database.psql("UPDATE tickwheel.cluster SET system = system - 1, format = 99");
    says(&refusal(options(&database.url(), "second")), &["format 99", "start a later release"]);
    // None of the refusals left a node behind, and nothing was changed.
    database.psql("UPDATE tickwheel.cluster SET format = 1");
    assert_eq!(database.psql("SELECT count(*) FROM tickwheel.node WHERE NOT ended"), "0");
    node(&database.url(), "second").close();
}

/// A bug that was found: the shards were taken from a process that worked, which told another reason.
#[test]
fn a_process_that_works_is_seen_before_an_adoption_and_tells_of_one() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let queue = node(&database.url(), "first");
    let postgres = Postgres::at(&database.url()).expect("a URL");
    let works = || {
        let seen = postgres.watch_beats(LEASE_MS).expect("the database answers");
        seen.map(|(name, _)| name)
    };
    // A beat may be late on a machine that does much else.
    until("it is seen", || works().as_deref() == Some("first"));
    assert_eq!(queue.health().adopted, 0);
    postgres.adopt().expect("adopted");
    until("it tells", || queue.health().adopted == 1);
    until("it has the shard again", || queue.health().ready);
    queue.put(put("one", DAY)).wait().expect("stored");
    // A beat may be late on a machine that does much else.
    until("it is seen", || works().as_deref() == Some("first"));
    // An end by another process is no adoption, also after one.
    database.psql("UPDATE tickwheel.node SET ended = true WHERE NOT ended");
    let is_back = "SELECT count(*) FROM tickwheel.node WHERE NOT ended AND beat > 0";
    until("it begins anew", || database.psql(is_back) == "1");
    assert_eq!(queue.health().adopted, 1);
    queue.close();
    assert_eq!(works(), None, "no process is known");
    database.psql(
        "INSERT INTO tickwheel.node (node, name, address, version, reads, beat) VALUES ('x', 'killed', '', '1', 1, 7)",
    );
    assert_eq!(works(), None, "the beat of a process that was killed stands still");
}

fn until_waits_for(queue: &Queue, text: &str) {
    until(text, || queue.health().waits_for.is_some_and(|why| why.contains(text)));
}

/// Another database has the name of before. The process notices, and goes on once the old one is back.
#[test]
fn another_data_set_under_the_same_url_is_refused() {
    let Some(server) = crate::kit::shared() else { return };
    let (database, other) = (server.database(), server.database());
    let (here, there) = (database.name(), other.name());
    node(&other.url(), "other").close();
    let queue = node(&database.url(), "first");
    queue.put(put("one", DAY)).wait().expect("stored");
    let swap = |moves: &[(&str, &str)]| {
        for (from, to) in moves {
            server.psql(&format!("ALTER DATABASE {from} ALLOW_CONNECTIONS false"));
            let sessions = format!("FROM pg_stat_activity WHERE datname = '{from}'");
            server.psql(&format!("SELECT count(pg_terminate_backend(pid)) {sessions}"));
            until("the sessions end", || server.psql(&format!("SELECT count(*) {sessions}")) == "0");
            server.psql(&format!(
                "ALTER DATABASE {from} RENAME TO {to}; ALTER DATABASE {to} ALLOW_CONNECTIONS true"
            ));
        }
    };
    let aside = format!("{here}_aside");
    swap(&[(here, &aside), (there, here)]);
    until_waits_for(&queue, "and this process serves");
    assert!(!queue.health().ready);
    swap(&[(here, there), (&aside, here)]);
    until("it goes on", || queue.health().ready);
    assert_eq!(texts(&queue).len(), 1);
    queue.put(put("two", DAY)).wait().expect("stored");
    queue.close();
    assert_eq!(other.psql("SELECT count(*) FROM tickwheel.task"), "0");
}

/// The database refuses the role for a while, as with a password that was changed too early.
#[test]
fn a_running_process_goes_on_after_a_refusal() {
    let Some(server) = Server::start() else { return };
    let queue = node(&server.url(), "first");
    queue.put(put("one", DAY)).wait().expect("stored");
    let rules = server.directory().join("data/pg_hba.conf");
    let before = std::fs::read_to_string(&rules).expect("the rules");
    server.psql("CREATE ROLE admin LOGIN SUPERUSER");
    std::fs::write(&rules, "host all admin all trust\nhost all all all reject\n").expect("written");
    let admin = server.database_named("postgres");
    admin.psql("SELECT pg_reload_conf()");
    until("the rule holds", || admin.try_psql("SELECT 1").is_err());
    admin.psql_as(
        "admin",
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'postgres'",
    );
    until_waits_for(&queue, "28000");
    let waiting = queue.put(put("two", DAY));
    until("no answer is given", || !queue.health().ready);
    std::fs::write(&rules, before).expect("written");
    admin.psql_as("admin", "SELECT pg_reload_conf()");
    until("it goes on", || queue.health().ready);
    if waiting.wait().is_err() {
        queue.put(put("two", DAY)).wait().expect("stored");
    }
    assert_eq!(texts(&queue).len(), 2);
    until("no trouble is left", || queue.health().waits_for.is_none());
    queue.close();
}

/// An error at the COMMIT itself is definite, and the batch is sent again.
#[test]
fn a_commit_that_fails_at_its_end_is_sent_again() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let queue = node(&database.url(), "first");
    queue.put(put("before", DAY)).wait().expect("stored");
    database.psql(
        "CREATE TABLE public.fails (times int); INSERT INTO public.fails VALUES (1);
         CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF EXISTS (SELECT FROM public.fails) THEN
                 RAISE EXCEPTION USING ERRCODE = 'disk_full', MESSAGE = 'no space';
             END IF;
             RETURN NULL;
         END $$;
         CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON tickwheel.task DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW EXECUTE FUNCTION public.fail()",
    );
    let waiting = queue.put(put("one", DAY));
    until_waits_for(&queue, "53100");
    assert!(queue.health().ready);
    database.psql("DELETE FROM public.fails");
    waiting.wait().expect("stored");
    until("no trouble is left", || queue.health().waits_for.is_none());
    queue.close();
}

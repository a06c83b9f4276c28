//! Pipelines: values, sizes, errors in the middle, lost connections.

use std::time::Duration;

use super::super::answer::Transaction;
use super::super::connection::Connection;
use super::super::error::{DbError, RunError};
use super::super::param::{Param, oid};
use super::super::pipeline::{Pipeline, StepResult};
use super::super::transport::now;
use super::server::{Server, limit};

fn tags(results: &[StepResult]) -> Vec<&str> {
    results.iter().map(|result| result.tag.as_str()).collect()
}

fn one<'a>(connection: &mut Connection, pipeline: &Pipeline<'a>) -> StepResult {
    connection.run(pipeline, limit()).unwrap().remove(0)
}

/// Runs a pipeline that fails by the database.
fn database(connection: &mut Connection, pipeline: &Pipeline<'_>) -> (usize, DbError) {
    match connection.run(pipeline, limit()) {
        Err(RunError::Database { step, error }) => (step, *error),
        other => panic!("{other:?}"),
    }
}

/// The connection still answers.
fn check(connection: &mut Connection) {
    assert!(!connection.is_lost());
    assert_eq!(connection.transaction(), Transaction::Idle);
    let mut pipeline = Pipeline::new();
    pipeline.kept("SELECT $1::int4 + 1", vec![41.into()]);
    assert_eq!(one(connection, &pipeline).rows[0].get::<i32>(0), Ok(42));
}

#[test]
fn values_come_back_as_they_went() {
    let Some(server) = Server::shared() else { return };
    let mut connection = server.connection();
    let bytes: Vec<u8> = (0..=255).collect();
    let texts = ["", "a", "käse \"{}, NULL"];
    let mut pipeline = Pipeline::new();
    pipeline.kept(
        "SELECT $1::int2, $2::int4, $3::int8, $4::bool, $5::text, $6::bytea, $7::int8, $8::text",
        vec![
            i16::MIN.into(),
            i32::MAX.into(),
            i64::MIN.into(),
            true.into(),
            "käse".into(),
            bytes.as_slice().into(),
            Param::Null(oid::INT8),
            Param::Null(oid::TEXT),
        ],
    );
    pipeline.kept(
        "SELECT $1::bool[], $2::int2[], $3::int4[], $4::int8[], $5::int4[], $6::int8[], $7::text[], $8::text[], \
         $9::bytea[], $10::bytea[]",
        vec![
            vec![true, false].into(),
            vec![1_i16, -1].into(),
            vec![i32::MIN, 0, i32::MAX].into(),
            Vec::<i64>::new().into(),
            vec![Some(1_i32), None].into(),
            vec![None, Some(i64::MAX)].into(),
            texts.as_slice().into(),
            vec![None, Some("NULL"), None].into(),
            vec![&bytes[..], b""].into(),
            vec![Some(&bytes[..3]), None].into(),
        ],
    );
    let results = connection.run(&pipeline, limit()).unwrap();
    assert_eq!(tags(&results), ["SELECT 1", "SELECT 1"]);
    assert_eq!(results[0].affected(), Some(1));
    let row = &results[0].rows[0];
    assert_eq!(row.len(), 8);
    assert_eq!(row.get::<i16>(0), Ok(i16::MIN));
    assert_eq!(row.get::<i32>(1), Ok(i32::MAX));
    assert_eq!(row.get::<i64>(2), Ok(i64::MIN));
    assert_eq!(row.get::<bool>(3), Ok(true));
    assert_eq!(row.get::<&str>(4), Ok("käse"));
    assert_eq!(row.get::<&[u8]>(5), Ok(&bytes[..]));
    assert_eq!(row.get::<Option<i64>>(6), Ok(None));
    assert_eq!(row.get::<Option<&str>>(7), Ok(None));
    assert_eq!(row.get::<Option<bool>>(3), Ok(Some(true)));
    // A wrong type, a null, and a column that is not there are errors.
    assert!(row.get::<i64>(1).unwrap_err().to_string().contains("column 1 (int4)"));
    assert!(row.get::<i64>(6).unwrap_err().to_string().contains("null"));
    assert!(row.get::<i64>(8).unwrap_err().to_string().contains("no column 8"));
    assert_eq!(row.columns()[4].oid, oid::TEXT);

    let row = &results[1].rows[0];
    assert_eq!(row.get::<Vec<bool>>(0), Ok(vec![true, false]));
    assert_eq!(row.get::<Vec<i16>>(1), Ok(vec![1, -1]));
    assert_eq!(row.get::<Vec<i32>>(2), Ok(vec![i32::MIN, 0, i32::MAX]));
    assert_eq!(row.get::<Vec<i64>>(3), Ok(vec![]));
    assert_eq!(row.get::<Vec<Option<i32>>>(4), Ok(vec![Some(1), None]));
    assert_eq!(row.get::<Vec<Option<i64>>>(5), Ok(vec![None, Some(i64::MAX)]));
    assert_eq!(row.get::<Vec<&str>>(6), Ok(texts.to_vec()));
    assert_eq!(row.get::<Vec<Option<&str>>>(7), Ok(vec![None, Some("NULL"), None]));
    assert_eq!(row.get::<Vec<&[u8]>>(8), Ok(vec![&bytes[..], b""]));
    assert_eq!(row.get::<Vec<Option<&[u8]>>>(9), Ok(vec![Some(&bytes[..3]), None]));
    assert!(row.get::<Vec<i32>>(4).unwrap_err().to_string().contains("null"));
    row.get::<Vec<i64>>(2).unwrap_err();

    let mut pipeline = Pipeline::new();
    pipeline.text("SELECT ARRAY[[1, 2], [3, 4]]").text("");
    let results = connection.run(&pipeline, limit()).unwrap();
    results[0].rows[0].get::<Vec<i32>>(0).unwrap_err();
    assert_eq!(tags(&results), ["SELECT 1", ""]);
    assert!(connection.run(&Pipeline::new(), limit()).unwrap().is_empty());
}

#[test]
fn a_statement_is_parsed_once() {
    let Some(server) = Server::shared() else { return };
    let mut connection = server.connection();
    const ADD: &str = "SELECT $1 + 1";
    let mut pipeline = Pipeline::new();
    // The same text with another type is another statement.
    pipeline.kept(ADD, vec![1.into()]).kept(ADD, vec![2.into()]).kept(ADD, vec![3_i64.into()]);
    pipeline.once("SELECT count(*) FROM pg_prepared_statements", Vec::new());
    for _ in 0..3 {
        let results = connection.run(&pipeline, limit()).unwrap();
        assert_eq!(results[1].rows[0].get::<i32>(0), Ok(3));
        assert_eq!(results[2].rows[0].get::<i64>(0), Ok(4));
        assert_eq!(results[3].rows[0].get::<i64>(0), Ok(2));
    }
    // A statement whose turn never came is parsed later; one that did is not parsed again.
    let mut failing = Pipeline::new();
    failing.kept("SELECT 'first'", Vec::new()).text("SELECT 1/0").kept("SELECT 'later'", Vec::new());
    assert_eq!(database(&mut connection, &failing).0, 1);
    let mut after = Pipeline::new();
    after.kept("SELECT 'first'", Vec::new()).kept("SELECT 'later'", Vec::new());
    after.once("SELECT count(*) FROM pg_prepared_statements", Vec::new());
    let results = connection.run(&after, limit()).unwrap();
    assert_eq!(results[1].rows[0].get::<&str>(0), Ok("later"));
    assert_eq!(results[2].rows[0].get::<i64>(0), Ok(4));
}

#[test]
fn a_statement_outlives_a_change_of_its_table() {
    let Some(server) = Server::shared() else { return };
    let mut connection = server.connection();
    connection.simple("CREATE TEMP TABLE changed (a int4); INSERT INTO changed VALUES (1)", limit()).unwrap();
    let mut pipeline = Pipeline::new();
    pipeline.kept("SELECT * FROM changed", Vec::new());
    assert_eq!(one(&mut connection, &pipeline).rows[0].len(), 1);
    connection.simple("ALTER TABLE changed ADD b int4 DEFAULT 2", limit()).unwrap();
    assert_eq!(database(&mut connection, &pipeline).1.code, "0A000");
    assert_eq!(one(&mut connection, &pipeline).rows[0].get::<i32>(1), Ok(2));
    connection.simple("DEALLOCATE ALL", limit()).unwrap();
    assert_eq!(database(&mut connection, &pipeline).1.code, "26000");
    assert_eq!(one(&mut connection, &pipeline).rows[0].get::<i32>(1), Ok(2));
}

#[test]
fn large_parameters_and_large_results_pass_at_the_same_time() {
    let Some(server) = Server::shared() else { return };
    let root = format!("sslmode=verify-full&sslrootcert={}", server.path("ca.crt").display());
    let urls = [
        server.url("trusted", "127.0.0.1", ""),
        server.url("trusted", "localhost", &root),
        server.socket_url("admin", "postgres"),
    ];
    for url in urls {
        let mut connection = server.open(&url).unwrap();
        // Each step sends 1 MiB and gets 1 MiB back while the steps after it are still on their way.
        let value: Vec<u8> = (0..1 << 20).map(|byte| (byte % 251) as u8).collect();
        let mut pipeline = Pipeline::new();
        for _ in 0..10 {
            pipeline.kept("SELECT $1::bytea", vec![value.as_slice().into()]);
        }
        pipeline.text("SELECT n, repeat('x', 100) FROM generate_series(1, 50000) n");
        let results = connection.run(&pipeline, limit()).unwrap();
        assert!(results[..10].iter().all(|result| result.rows[0].get::<&[u8]>(0) == Ok(&value[..])));
        assert_eq!(results[10].rows.len(), 50_000);
        assert_eq!(results[10].rows[49_999].get::<i32>(0), Ok(50_000));
        // One parameter of 10 MiB.
        let value = vec![7_u8; 10 << 20];
        let mut pipeline = Pipeline::new();
        pipeline.once("SELECT length($1), $1", vec![value.into()]);
        let result = one(&mut connection, &pipeline);
        assert_eq!(result.rows[0].get::<i32>(0), Ok(10 << 20));
        check(&mut connection);
    }
}

#[test]
fn an_error_skips_what_follows_and_the_connection_stays() {
    let Some(server) = Server::shared() else { return };
    let mut connection = server.connection();
    connection.simple("CREATE TEMP TABLE kept (a int4 CONSTRAINT positive CHECK (a > 0))", limit()).unwrap();
    let mut pipeline = Pipeline::new();
    pipeline.text("BEGIN").text("INSERT INTO kept VALUES (1)");
    pipeline.kept("INSERT INTO kept VALUES ($1)", vec![(-1).into()]);
    pipeline.text("INSERT INTO kept VALUES (2)").text("COMMIT");
    let (step, error) = database(&mut connection, &pipeline);
    assert_eq!((step, &*error.code, &*error.severity), (2, "23514", "ERROR"));
    assert_eq!(error.constraint.as_deref(), Some("positive"));
    assert_eq!(error.table.as_deref(), Some("kept"));
    assert!(error.detail.as_deref().is_some_and(|detail| detail.contains("-1")), "{error}");
    check(&mut connection);
    let mut count = Pipeline::new();
    count.text("SELECT count(*) FROM kept");
    assert_eq!(one(&mut connection, &count).rows[0].get::<i64>(0), Ok(0));

    // Without BEGIN the flight is one transaction as well.
    let mut pipeline = Pipeline::new();
    pipeline.text("INSERT INTO kept VALUES (1)").text("INSERT INTO kept VALUES (0)");
    assert_eq!(database(&mut connection, &pipeline).0, 1);
    assert_eq!(one(&mut connection, &count).rows[0].get::<i64>(0), Ok(0));

    // A text that cannot be parsed, and a constraint that is checked at the end.
    let mut pipeline = Pipeline::new();
    pipeline.text("SELEC 1");
    assert_eq!(database(&mut connection, &pipeline).1.code, "42601");
    let deferred = "CREATE TEMP TABLE late (a int4 UNIQUE DEFERRABLE INITIALLY DEFERRED)";
    connection.simple(deferred, limit()).unwrap();
    let mut pipeline = Pipeline::new();
    pipeline.text("INSERT INTO late VALUES (1)").text("INSERT INTO late VALUES (1)");
    let (step, error) = database(&mut connection, &pipeline);
    assert_eq!((step, &*error.code), (2, "23505"));
    // A text that no message can carry is not sent.
    let mut pipeline = Pipeline::new();
    pipeline.text("SELECT 1").text("SELECT '\0'");
    let error = connection.run(&pipeline, limit()).unwrap_err();
    assert!(matches!(error, RunError::Invalid(_)), "{error}");
    check(&mut connection);
}

#[test]
fn a_commit_of_a_failed_transaction_says_rollback() {
    let Some(server) = Server::shared() else { return };
    let mut connection = server.connection();
    let mut commit = Pipeline::new();
    commit.text("COMMIT");
    connection.simple("BEGIN; SELECT 1", limit()).unwrap();
    assert_eq!(connection.transaction(), Transaction::Open);
    assert_eq!(tags(&connection.run(&commit, limit()).unwrap()), ["COMMIT"]);

    let mut failing = Pipeline::new();
    failing.text("BEGIN").text("SELECT 1/0");
    // `run` would roll back.
    connection.fly(&failing, limit()).unwrap_err();
    assert_eq!(connection.transaction(), Transaction::Failed);
    assert_eq!(tags(&connection.run(&commit, limit()).unwrap()), ["ROLLBACK"]);
    check(&mut connection);
}

#[test]
fn a_notice_belongs_to_its_step() {
    let Some(server) = Server::shared() else { return };
    let mut connection = server.connection();
    let mut pipeline = Pipeline::new();
    pipeline
        .text("SELECT 1")
        .text("DO $$ BEGIN RAISE WARNING 'look'; END $$")
        .text("SELECT 2")
        .text("COMMIT");
    let results = connection.run(&pipeline, limit()).unwrap();
    let counts: Vec<_> = results.iter().map(|result| result.notices.len()).collect();
    // COMMIT without a transaction is a warning.
    assert_eq!(counts, [0, 1, 0, 1]);
    let notice = &results[1].notices[0];
    assert_eq!((&*notice.severity, &*notice.code, &*notice.message), ("WARNING", "01000", "look"));
    assert_eq!(results[3].notices[0].code, "25P01");
    let notices =
        connection.simple("SELECT 1; DO $$ BEGIN RAISE NOTICE 'here'; END $$; SELECT 2", limit()).unwrap();
    assert_eq!((notices.len(), &*notices[0].message), (1, "here"));
    match connection.simple("SELECT 1; SELECT 1/0; SELECT 2", limit()) {
        Err(RunError::Database { step: 1, error }) => assert_eq!(error.code, "22012"),
        other => panic!("{other:?}"),
    }
    connection.simple("BEGIN; SELECT 1/0", limit()).unwrap_err();
    check(&mut connection);
}

#[test]
fn a_backend_that_is_ended_is_a_lost_connection() {
    let Some(server) = Server::shared() else { return };
    // In the middle of a run: the session ends itself.
    let mut connection = server.connection();
    let mut pipeline = Pipeline::new();
    pipeline
        .text("BEGIN")
        .text("SELECT pg_terminate_backend(pg_backend_pid())")
        .text("SELECT pg_sleep(60)")
        .text("COMMIT");
    match connection.run(&pipeline, limit()) {
        Err(RunError::Lost { error: Some(error), is_sent: true, .. }) => assert_eq!(error.code, "57P01"),
        other => panic!("{other:?}"),
    }
    assert!(connection.is_lost());
    let again = connection.run(&pipeline, limit());
    assert!(matches!(again, Err(RunError::Lost { is_sent: false, .. })), "{again:?}");

    // Between two runs: nothing of the second one is sent.
    let (mut connection, mut other) = (server.connection(), server.connection());
    let mut pipeline = Pipeline::new();
    pipeline.kept("SELECT pg_terminate_backend($1, 60000)", vec![connection.backend_pid().into()]);
    assert_eq!(one(&mut other, &pipeline).rows[0].get::<bool>(0), Ok(true));
    let mut pipeline = Pipeline::new();
    pipeline.text("SELECT 1");
    match connection.run(&pipeline, limit()) {
        Err(RunError::Lost { error: Some(error), is_sent: false, .. }) => assert_eq!(error.code, "57P01"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_ends_at_its_deadline() {
    let Some(server) = Server::shared() else { return };
    for large in [0, 10 << 20] {
        let mut connection = server.connection();
        let value = vec![7_u8; large];
        let mut pipeline = Pipeline::new();
        pipeline.text("SELECT pg_sleep(600)").once("SELECT $1::bytea", vec![value.into()]);
        let start = now();
        match connection.run(&pipeline, Some(start + Duration::from_millis(300))) {
            Err(RunError::Lost { why, is_sent: true, .. }) => assert!(why.contains("in time"), "{why}"),
            other => panic!("{other:?}"),
        }
        assert!(now() - start < Duration::from_secs(30));
        assert!(connection.is_lost());
        connection.simple("SELECT 1", limit()).unwrap_err();
        // The test ends the session: nothing else cancels its sleep.
        let mut pipeline = Pipeline::new();
        pipeline.kept("SELECT pg_terminate_backend($1, 60000)", vec![connection.backend_pid().into()]);
        one(&mut server.connection(), &pipeline);
    }
}

#[test]
fn a_setting_that_changes_is_reported() {
    let Some(server) = Server::shared() else { return };
    let mut connection = server.connection();
    assert_eq!(connection.parameter("in_hot_standby"), Some("off"));
    let mut pipeline = Pipeline::new();
    pipeline.text("SET application_name = 'another'");
    connection.run(&pipeline, limit()).unwrap();
    assert_eq!(connection.parameter("application_name"), Some("another"));
    assert_eq!(connection.parameter("nothing"), None);
}

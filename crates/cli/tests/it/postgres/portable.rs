//! `import` and `export` with `--postgres`: a directory becomes a data set in a database, and goes back.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;
use tickwheel_client::blocking::Client;

use crate::folder::Folder;
use crate::kit::{self, Database};
use crate::postgres::words::{asked, fails, succeeds, told};
use crate::program::tickwheel;
use crate::server::Server;

fn serve(data: &str) -> Server {
    Server::start(&["--listen", "127.0.0.1:0", "--data", data])
}

fn serve_database(url: &str) -> Server {
    Server::start(&["--listen", "127.0.0.1:0", "--postgres", url, "--node", "a"])
}

fn batch(server: &Server, queue: &str, keys: std::ops::Range<usize>) {
    let lines = keys.map(|key| {
        format!(
            "{{\"op\":\"put\",\"key\":\"k{key}\",\"delay\":\"{}s\",\"payload\":{{\"n\":{key}}}}}\n",
            3_600 + key
        )
    });
    asked(server, "POST", &format!("/v1/queues/{queue}/batch"), &lines.collect::<String>());
}

/// Fills a directory with all that an export has: tasks of several queues, one that has failed once, a dead one, settings, a schedule.
fn fill(directory: &str) {
    let server = serve(directory);
    for queue in ["close", "mail", "remind"] {
        batch(&server, queue, 0..40);
    }
    for (key, retry) in [("again", "{\"max_attempts\":3}"), ("dead", "{\"max_attempts\":1}")] {
        let body = format!("{{\"delay\":\"0s\",\"payload\":\"canary {key}\",\"retry\":{retry}}}");
        asked(&server, "PUT", &format!("/v1/queues/tries/tasks/{key}"), &body);
        let leased = asked(&server, "POST", "/v1/queues/tries/lease", "{\"max\":1,\"wait\":\"20s\"}");
        let token = leased["tasks"][0]["token"].as_str().unwrap_or_else(|| panic!("{leased}"));
        let nack = format!("{{\"tokens\":[\"{token}\"],\"delay\":\"2h\",\"reason\":\"no answer\"}}");
        asked(&server, "POST", "/v1/queues/tries/nack", &nack);
    }
    asked(&server, "PUT", "/v1/queues/mail", "{\"max_in_flight\":7}");
    asked(
        &server,
        "PUT",
        "/v1/queues/mail/schedules/daily",
        "{\"cron\":\"0 6 * * *\",\"tz\":\"Europe/Berlin\"}",
    );
    assert_eq!(server.stop(Signal::TERM).code(), Some(0));
}

/// The records of an export, by kind, queue and key. The ids are left out, because a database gives new ones.
fn content(path: &Path) -> BTreeMap<String, Value> {
    let text = fs::read_to_string(path).expect("a file");
    let mut content = BTreeMap::new();
    for line in text.lines() {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        let (kind, record) = line.as_object_mut().expect("an object").iter_mut().next().expect("a member");
        if ["export", "cursor", "end"].contains(&kind.as_str()) {
            continue;
        }
        record.as_object_mut().expect("an object").remove("id");
        let name = |member: &str| record[member].as_str().unwrap_or_default().to_owned();
        let name = format!("{kind} {} {} {}", name("queue"), name("key"), name("name"));
        assert!(content.insert(name.clone(), record.clone()).is_none(), "{name} is there twice");
    }
    content
}

/// The payload of a task in the queue `mail`.
fn payload(client: &Client, key: &str) -> String {
    let task = client.get("mail", key).expect("it is there");
    String::from_utf8(task.payload.expect("a payload").bytes).expect("JSON")
}

#[test]
fn a_directory_goes_into_a_database_and_back() {
    let Some(postgres) = kit::shared() else { return };
    let database = postgres.database();
    let url = database.url();
    let folder = Folder::new();
    let [source, back] = ["source", "back"].map(|name| folder.text(name));
    let [a, b, c] = ["a.ndjson", "b.ndjson", "c.ndjson"].map(|name| folder.text(name));
    fill(&source);
    succeeds(&["export", "--data", &source, "-o", &a]);
    let expected = content(Path::new(&a));
    assert_eq!(expected.keys().filter(|name| name.starts_with("task")).count(), 121, "{expected:?}");
    assert_eq!(expected.keys().filter(|name| name.starts_with("dead")).count(), 1, "{expected:?}");

    let output = succeeds(&["import", &source, "--postgres", &url]);
    assert!(told(&output).contains("0 replaced, 0 skipped"), "{}", told(&output));
    // The command of a person who is not sure.
    let output = succeeds(&["import", &source, "--postgres", &url, "--existing", "skip"]);
    assert!(told(&output).contains("0 added (0 with new ids), 0 replaced"), "{}", told(&output));
    succeeds(&["export", "--postgres", &url, "-o", &b]);
    assert_eq!(content(Path::new(&b)), expected);

    // A server serves the tasks at once, because the import gave the shards up.
    let server = serve_database(&url);
    let client = Client::new(&server.url).expect("a URL");
    assert!(client.health().expect("an answer").ready);
    assert_eq!(payload(&client, "k7"), r#"{"n":7}"#);
    assert_eq!(client.get("tries", "again").expect("it is there").attempt, 1);
    assert_eq!(server.stop(Signal::TERM).code(), Some(0));

    succeeds(&["import", &b, "--data", &back]);
    succeeds(&["export", "--data", &back, "-o", &c]);
    assert_eq!(content(Path::new(&c)), expected);
}

#[test]
fn what_is_no_source_is_refused_and_stays_as_it_is() {
    let Some(postgres) = kit::shared() else { return };
    let database = postgres.database();
    let url = database.url();
    let folder = Folder::new();
    let [empty, other, absent] = ["empty", "other", "absent"].map(|name| folder.text(name));
    fs::create_dir(&empty).expect("made");
    fs::create_dir(&other).expect("made");
    fs::write(folder.path("other").join("notes.txt"), "mine").expect("written");
    for directory in [&empty, &other] {
        let told = fails(&["import", directory, "--postgres", &url]);
        assert!(told.contains(&format!("{directory} is no data directory of Tickwheel")), "{told}");
    }
    let told = fails(&["export", "--data", &empty]);
    assert!(told.contains(&format!("{empty} is no data directory of Tickwheel")), "{told}");
    assert_eq!(fs::read_dir(&empty).expect("a folder").count(), 0, "nothing is made in it");
    let told = fails(&["import", &absent, "--postgres", &url]);
    assert!(told.contains(&format!("failed to open {absent}")), "{told}");
    assert_eq!(database.psql("SELECT to_regclass('tickwheel.cluster') IS NULL"), "t", "no tables are made");

    let told = fails(&["export", "--postgres", &url]);
    assert!(told.contains("has no tables of Tickwheel; is it the right database?"), "{told}");
    let source = folder.text("source");
    fill(&source);
    let told = fails(&["import", &source, "--postgres", &url, "--from-line", "7"]);
    assert!(told.contains("run the import again with --existing skip"), "{told}");
    let told = fails(&["import", &source, "--data", &source]);
    assert!(told.contains("is the source and the target"), "{told}");
    let running = serve(&source);
    let told = fails(&["import", &source, "--postgres", &url]);
    assert!(told.contains("is open in another process, or in this one; close it there"), "{told}");
    drop(running);

    // Both places at once, or shards without a place, are mistakes of the command line.
    for words in [&["--data", "a", "--postgres", &url][..], &["--shards", "4"]] {
        let output = tickwheel(&["import", &source]).args(words).output().expect("run it");
        assert_eq!(output.status.code(), Some(2), "{}", self::told(&output));
    }
}

#[test]
fn what_is_no_target_is_named_without_its_password() {
    let Some(postgres) = kit::shared() else { return };
    let folder = Folder::new();
    let source = folder.text("source");
    fill(&source);

    let told = fails(&["import", &source, "--postgres", "postgres://me:canary@127.0.0.1:1/shop"]);
    assert!(told.contains("failed to open postgres://me:***@127.0.0.1:1/shop"), "{told}");
    assert!(!told.contains("canary"), "{told}");

    let database = postgres.database();
    database.psql("CREATE ROLE no_tables LOGIN");
    let told = fails(&["import", &source, "--postgres", &database.url_as("no_tables")]);
    assert!(told.contains("failed to make the tables in postgres://no_tables@"), "{told}");
    assert!(told.contains("an administrator makes them with `tickwheel cluster sql | psql`"), "{told}");

    let url = database.url();
    succeeds(&["import", &source, "--postgres", &url, "--shards", "8"]);
    assert_eq!(database.psql("SELECT shards FROM tickwheel.cluster"), "8");
    let told = fails(&["import", &source, "--postgres", &url, "--shards", "4", "--existing", "skip"]);
    assert!(told.contains("the data set was made with 8 shards"), "{told}");
}

#[test]
fn a_database_that_a_server_uses_is_left_to_the_server() {
    let Some(postgres) = kit::shared() else { return };
    let database = postgres.database();
    let url = database.url();
    let folder = Folder::new();
    let source = folder.text("source");
    fill(&source);
    let server = serve_database(&url);
    for words in [&["import", &source][..], &["export"]] {
        let told = fails(&[words, &["--postgres", &url]].concat());
        let expected = format!("{url} is in use: `a` at 127.0.0.1:");
        assert!(told.contains(&expected), "{expected}: {told}");
        assert!(told.contains("stop that server, or go through it with --server"), "{told}");
    }
    let client = Client::new(&server.url).expect("a URL");
    assert!(client.health().expect("an answer").ready, "the server goes on");
    succeeds(&["import", &source, "--server", &server.url]);
    assert_eq!(payload(&client, "k7"), r#"{"n":7}"#);
}

#[test]
fn a_key_that_is_there_stops_the_import_until_it_is_said_what_to_do() {
    let Some(postgres) = kit::shared() else { return };
    let database = postgres.database();
    let url = format!("{}?sslmode=disable", database.url());
    let folder = Folder::new();
    let [source, all] = ["source", "all.ndjson"].map(|name| folder.text(name));
    fill(&source);
    let server = serve_database(&url);
    asked(&server, "PUT", "/v1/queues/mail/tasks/k7", "{\"delay\":\"9h\",\"payload\":\"mine\"}");
    assert_eq!(server.stop(Signal::TERM).code(), Some(0));

    let told = fails(&["import", &source, "--postgres", &url]);
    assert!(told.contains("`mail`") && told.contains("`k7`"), "{told}");
    let way_on = format!("go on with `tickwheel import {source} --existing skip --postgres '{url}'`");
    assert!(told.contains(&way_on), "{way_on}: {told}");
    succeeds(&["import", &source, "--existing", "skip", "--postgres", &url]);
    succeeds(&["export", "--postgres", &url, "-o", &all]);
    let content = content(Path::new(&all));
    assert_eq!(content.keys().filter(|name| name.starts_with("task")).count(), 121);
    assert!(content["task mail k7 "].to_string().contains("mine"), "what was there has stayed");
    succeeds(&["import", &source, "--existing", "replace", "--postgres", &url]);
    let server = serve_database(&url);
    let client = Client::new(&server.url).expect("a URL");
    assert_eq!(payload(&client, "k7"), r#"{"n":7}"#);
}

/// The number of live tasks in the database.
fn tasks(database: &Database<'_>) -> usize {
    let count = database.try_psql("SELECT count(*) FROM tickwheel.task WHERE NOT dead");
    count.ok().and_then(|count| count.parse().ok()).unwrap_or(0)
}

#[test]
fn an_import_that_was_killed_is_run_again_with_skip() {
    const TASKS: usize = 40_000;
    let Some(postgres) = kit::shared() else { return };
    let database = postgres.database();
    let url = database.url();
    let folder = Folder::new();
    let [source, a, b] = ["source", "a.ndjson", "b.ndjson"].map(|name| folder.text(name));
    let server = serve(&source);
    for (index, queue) in ["close", "mail"].into_iter().cycle().take(TASKS / 1_000).enumerate() {
        batch(&server, queue, index * 1_000..(index + 1) * 1_000);
    }
    assert_eq!(server.stop(Signal::TERM).code(), Some(0));
    succeeds(&["export", "--data", &source, "-o", &a]);

    let mut import = tickwheel(&["import", &source, "--postgres", &url]);
    let mut importing = import.stderr(Stdio::piped()).spawn().expect("started");
    kit::until("some tasks are in", || tasks(&database) > 1_000);
    importing.kill().expect("killed");
    importing.wait().expect("its end");
    let before = tasks(&database);
    assert!((1_000..TASKS).contains(&before), "{before}");

    // The killed import has the shards until its lease ends. The next one waits for that.
    let output = succeeds(&["import", &source, "--postgres", &url, "--existing", "skip"]);
    let expected = format!("{} added", TASKS - before);
    assert!(told(&output).contains(&expected), "{expected}: {}", told(&output));
    assert_eq!(tasks(&database), TASKS);
    succeeds(&["export", "--postgres", &url, "-o", &b]);
    assert_eq!(content(Path::new(&b)), content(Path::new(&a)));
}

//! A virtual clock on PostgreSQL: the database keeps its time, and its kind.

use tickwheel_api::{Due, LeaseBody, PutBody};
use tickwheel_client::blocking::Client;

use crate::kit;
use crate::postgres::words::fails;
use crate::program::tickwheel;
use crate::server::Server;

const HOUR_MS: i64 = 3_600_000;
/// 2027-03-27T20:00:00Z
const START_MS: i64 = 1_806_177_600_000;

fn serve(url: &str, more: &[&str]) -> Server {
    let words = ["--listen", "127.0.0.1:0", "--postgres", url, "--node", "a", "--virtual-clock"];
    Server::start(&[&words[..], more].concat())
}

/// Moves the clock, and returns its time (ms).
fn advance(client: &Client, by_ms: i64) -> i64 {
    client.advance(by_ms.cast_unsigned()).expect("the clock is virtual")
}

fn put(client: &Client, key: &str, after_ms: i64) {
    let body = PutBody { due: Due::After(after_ms.cast_unsigned()), ..PutBody::default() };
    client.put("flow", key, &body, Default::default(), None).expect("stored");
}

/// The keys of the tasks that are due.
fn lease(client: &Client) -> Vec<String> {
    let body = LeaseBody { max: 10, ..LeaseBody::default() };
    let tasks = client.lease("flow", &body).expect("leased");
    if tasks.is_empty() {
        return Vec::new();
    }
    client.ack("flow", tasks.iter().map(|task| task.token.clone()).collect()).expect("acked");
    tasks.into_iter().map(|task| task.key).collect()
}

#[test]
fn the_database_keeps_the_time_and_the_kind_of_a_virtual_clock() {
    let Some(postgres) = kit::shared() else { return };
    let database = postgres.database();
    let url = database.url();
    let server = serve(&url, &["--virtual-clock-at", "2027-03-27T20:00:00Z"]);
    let client = Client::new(&server.url).expect("a URL");
    assert_eq!(advance(&client, 0), START_MS);
    put(&client, "a", HOUR_MS);
    put(&client, "b", 24 * HOUR_MS);
    put(&client, "c", 48 * HOUR_MS);
    assert_eq!(lease(&client), [] as [&str; 0]);
    assert_eq!(advance(&client, HOUR_MS), START_MS + HOUR_MS);
    assert_eq!(lease(&client), ["a"]);
    assert_eq!(advance(&client, 11 * HOUR_MS), START_MS + 12 * HOUR_MS);
    assert_eq!(database.psql("SELECT clock FROM tickwheel.cluster"), "virtual");
    assert_eq!(server.stop(rustix::process::Signal::TERM).code(), Some(0));

    // A server with the other kind of clock is refused, and changes nothing.
    let told = fails(&["serve", "--listen", "127.0.0.1:0", "--postgres", &url]);
    assert!(told.contains("the data set has a virtual clock, and the kind never changes"), "{told}");
    assert!(told.contains("start with --virtual-clock"), "{told}");

    // The clock goes on at the time that was kept. An earlier start has no effect.
    let server = serve(&url, &["--virtual-clock-at", "2027-03-27T20:00:00Z"]);
    let client = Client::new(&server.url).expect("a URL");
    assert_eq!(advance(&client, 0), START_MS + 12 * HOUR_MS);
    assert_eq!(lease(&client), [] as [&str; 0]);
    assert_eq!(advance(&client, 12 * HOUR_MS), START_MS + 24 * HOUR_MS);
    assert_eq!(lease(&client), ["b"]);
    // After SIGKILL the time is that of the last change. Here that is the ack.
    server.kill();

    let server = serve(&url, &["--virtual-clock-at", "2027-03-27T20:00:00Z"]);
    let client = Client::new(&server.url).expect("a URL");
    kit::until("the lease of the killed server ends", || client.health().is_ok_and(|health| health.ready));
    assert_eq!(advance(&client, 0), START_MS + 24 * HOUR_MS);
    assert_eq!(advance(&client, 24 * HOUR_MS), START_MS + 48 * HOUR_MS);
    assert_eq!(lease(&client), ["c"]);
}

#[test]
fn a_virtual_clock_is_refused_where_the_clock_is_real() {
    let Some(postgres) = kit::shared() else { return };
    let database = postgres.database();
    let url = database.url();
    let server = Server::start(&["--listen", "127.0.0.1:0", "--postgres", &url, "--node", "a"]);
    let moved = tickwheel(&["put", "flow", "a", "--in", "1h", "--server", &server.url]).output();
    assert!(moved.expect("run it").status.success());
    assert_eq!(database.psql("SELECT clock FROM tickwheel.cluster"), "real");
    drop(server);
    let told = fails(&["serve", "--listen", "127.0.0.1:0", "--postgres", &url, "--virtual-clock"]);
    assert!(told.contains("the data set has a real clock, and the kind never changes"), "{told}");
    assert!(told.contains("start without --virtual-clock"), "{told}");
}

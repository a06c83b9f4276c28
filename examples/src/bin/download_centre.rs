//! Exports of many users: 2 may run at once, and 1 of each user; the others wait their turn.
//!
//! ```sh
//! cargo run -p tickwheel-examples --bin download_centre
//! ```
//!
//! The clock of the server is virtual, so that nothing here takes real time.
//! `examples/http` has the same story for the shell and for Python.

use std::collections::VecDeque;

use anyhow::{Context, Result, ensure};
use tickwheel_api::{LeasedTask, PutBody, PutQuery, SettingsBody, Terms};
use tickwheel_client::blocking::Client;
use tickwheel_examples::http_story::{ack, due, end, json, say, with_server};

const QUEUE: &str = "exports";

fn main() -> Result<()> {
    with_server(story)
}

/// A worker that has time asks for as many as it can do, and gets as many as may run.
fn next_exports(client: &Client, keys: &[&str]) -> Result<Vec<LeasedTask>> {
    let tasks = due(client, QUEUE, keys)?;
    // The first attempt of each: none has been handed out before, only to be given back.
    ensure!(tasks.iter().all(|task| task.attempt == 1), "not as told: {tasks:?}");
    Ok(tasks)
}

fn story(client: &Client) -> Result<()> {
    // The queue itself keeps the limits, however many workers there are and whatever they know of each other.
    let settings =
        SettingsBody { max_in_flight: Some(2), max_in_flight_per_group: Some(1), ..SettingsBody::default() };
    client.configure(QUEUE, &settings)?;
    say("2 exports may run at once, and 1 of each user")?;

    for (user, number) in [("anna", 1), ("anna", 2), ("anna", 3), ("ben", 1), ("carla", 1)] {
        let terms = Terms { group: Some(format!("user:{user}")), ..Terms::default() };
        let body = PutBody { payload: json(format!(r#"{{"user":"{user}"}}"#)), terms, ..PutBody::default() };
        let stored = client.put(QUEUE, &format!("{user}:{number}"), &body, PutQuery::default(), None)?;
        ensure!(stored.created, "not as told: {user}:{number} was there before");
    }
    say("anna asks for 3 exports, then ben for 1 and carla for 1")?;

    let mut running = VecDeque::from(next_exports(client, &["anna:1", "ben:1"])?);
    let counts = client.queue(QUEUE)?.counts;
    ensure!((counts.leased, counts.ready) == (2, 3), "not as told: {counts:?}");
    say("anna:1 and ben:1 run, and 3 are ready and wait")?;
    next_exports(client, &[])?;
    say("another worker gets nothing")?;

    // The one that has waited longest is next, unless its user has one that runs: anna:3 lets carla:1 pass.
    let turns = [
        ("anna:1", Some("anna:2")),
        ("ben:1", Some("carla:1")),
        ("anna:2", Some("anna:3")),
        ("carla:1", None),
        ("anna:3", None),
    ];
    for (key, next) in turns {
        let done = running.pop_front().with_context(|| format!("not as told: {key} does not run"))?;
        ensure!(done.key == key, "not as told: {} instead of {key}", done.key);
        ack(client, QUEUE, done)?;
        running.extend(next_exports(client, next.as_slice())?);
        say(&format!("{key} is done: {} begins", next.unwrap_or("nothing")))?;
    }

    end(client, QUEUE)
}

//! Reminders: one that is snoozed and put off, and one for many edits.
//!
//! ```sh
//! cargo run -p tickwheel-examples --bin snooze_reminders
//! ```
//!
//! The clock of the server is virtual, so that days take milliseconds.
//! `examples/http` has the same story for the shell and for Python.

use anyhow::{Result, ensure};
use tickwheel_api::{
    Due, LeasedTask, NackBody, PatchBody, PayloadBody, ProblemKind, PutBody, PutMode, PutQuery, RevokeQuery,
    TaskState, TokenResult,
};
use tickwheel_client::blocking::Client;
use tickwheel_client::{ClientError, Stored};
use tickwheel_examples::http_story::{
    DAY_MS, HOUR_MS, MINUTE_MS, ack, due, due_one, end, json, refused, say, with_server,
};

const QUEUE: &str = "snooze-reminders";

fn main() -> Result<()> {
    with_server(|client| {
        snooze(client)?;
        debounce(client)?;
        end(client, QUEUE)
    })
}

/// The worker who shows reminders: there is this one to show.
fn shown(client: &Client, key: &str, payload: &PayloadBody) -> Result<LeasedTask> {
    let task = due_one(client, QUEUE, key)?;
    ensure!(task.payload == *payload, "not as told: {:?} instead of {payload:?}", task.payload);
    Ok(task)
}

fn snooze(client: &Client) -> Result<()> {
    const KEY: &str = "anna:dentist";
    let dentist = json(r#"{"text":"call the dentist"}"#);
    let body = PutBody { due: Due::After(HOUR_MS), payload: dentist.clone(), ..PutBody::default() };
    let stored = client.put(QUEUE, KEY, &body, PutQuery::default(), None)?;
    ensure!(stored.created, "not as told: {KEY} was there before");
    say("anna wants to be reminded in 1 hour: call the dentist")?;

    // The worker who shows the reminder has it leased, and gives it back to come again later. That counts as
    // an attempt: with a retry policy of 3 attempts the third snooze would be the last.
    client.advance(HOUR_MS)?;
    let task = shown(client, KEY, &dentist)?;
    let body = NackBody {
        tokens: vec![task.token],
        delay_ms: Some(10 * MINUTE_MS),
        reason: Some("snoozed".to_owned()),
    };
    let results = client.nack(QUEUE, &body)?;
    ensure!(results == [TokenResult::Nacked], "not as told: {results:?}");
    say("1 hour later she sees it and snoozes it for 10 minutes: nacked")?;

    // Until then no worker has it, and a patch moves it by its key. That counts as nothing.
    client.advance(5 * MINUTE_MS)?;
    let patch = PatchBody { due: Some(Due::After(DAY_MS)), ..PatchBody::default() };
    let stored = client.patch(QUEUE, KEY, &patch, RevokeQuery::default(), None)?;
    ensure!(stored.state == TaskState::Scheduled, "not as told: {}", stored.state.name());
    say("5 minutes later she finds it in her list and puts it off for a day: scheduled")?;

    client.advance(5 * MINUTE_MS)?;
    due(client, QUEUE, &[])?;
    say("the 10 minutes are over: nothing, for she has put it off since")?;

    client.advance(DAY_MS - 5 * MINUTE_MS)?;
    let task = shown(client, KEY, &dentist)?;
    ensure!(task.attempt == 2, "not as told: attempt {}", task.attempt);
    ack(client, QUEUE, task)?;
    say("a day later she sees it for the second time and calls: acked")
}

fn edited(number: u32) -> PayloadBody {
    json(format!(r#"{{"edit":{number}}}"#))
}

/// The reminder comes 5 minutes after the last edit, but at the latest 15 after the first: some never stop
/// editing.
fn edit(client: &Client, number: u32) -> Result<Stored, ClientError> {
    let body = PutBody {
        due: Due::After(5 * MINUTE_MS),
        max_wait_ms: Some(15 * MINUTE_MS),
        payload: edited(number),
        ..PutBody::default()
    };
    let debounced = PutQuery { mode: PutMode::Debounce, ..PutQuery::default() };
    client.put(QUEUE, "ben:report", &body, debounced, None)
}

fn debounce(client: &Client) -> Result<()> {
    ensure!(edit(client, 1)?.created, "not as told: ben:report was there before");
    for number in 2..=4 {
        client.advance(4 * MINUTE_MS)?;
        ensure!(!edit(client, number)?.created, "not as told: edit {number} made a second reminder");
        due(client, QUEUE, &[])?;
    }
    say("ben edits his report, 4 times, each 4 minutes after the other: no reminder yet")?;

    client.advance(3 * MINUTE_MS - 1)?;
    due(client, QUEUE, &[])?;
    client.advance(1)?;
    let task = shown(client, "ben:report", &edited(4))?;
    say("15 minutes after the first edit there is one reminder for all, of edit 4")?;

    // Nothing is put over a task that a worker has, and the edit must not be forgotten: it is put again
    // later.
    refused(edit(client, 5), ProblemKind::Leased)?;
    say("ben edits while it is being sent: leased")?;
    ack(client, QUEUE, task)?;
    ensure!(edit(client, 5)?.created, "not as told: the reminder before is not done");
    client.advance(5 * MINUTE_MS)?;
    ack(client, QUEUE, shown(client, "ben:report", &edited(5))?)?;
    say("the edit is put again once it is sent, and 5 minutes later there is a reminder of edit 5")
}

//! Work that fails: tried again after longer and longer waits, given up, looked at, and given another life.
//!
//! ```sh
//! cargo run -p tickwheel-examples --bin retry_with_backoff
//! ```
//!
//! The clock of the server is virtual, so that the waits take no time.
//! `examples/http` has the same story for the shell and for Python.

use anyhow::{Context, Result, ensure};
use tickwheel_api::{
    DeathReason, FailureKind, LeasedTask, ListQuery, NackBody, PutBody, PutQuery, RedriveBody,
    RedriveOutcome, RetryBody, TaskFilter, TaskState, Terms, TokenResult,
};
use tickwheel_client::blocking::Client;
use tickwheel_examples::http_story::{MINUTE_MS, ack, due, due_one, end, json, say, with_server};

const QUEUE: &str = "retry-with-backoff";
const KEY: &str = "invoice:1";

fn main() -> Result<()> {
    with_server(story)
}

/// A worker gets the task with this attempt.
fn attempt(client: &Client, number: u32) -> Result<LeasedTask> {
    let task = due_one(client, QUEUE, KEY)?;
    ensure!(task.attempt == number, "not as told: attempt {} instead of {number}", task.attempt);
    Ok(task)
}

fn story(client: &Client) -> Result<()> {
    // Without a policy it would be tried again at once and for ever. The jitter is off here so that the story
    // is the same each time; leave it on where many tasks fail together, or they all come back together.
    let retry = RetryBody {
        max_attempts: Some(3),
        exponential: true,
        base_ms: MINUTE_MS,
        jitter_percent: 0,
        ..RetryBody::default()
    };
    let terms = Terms { retry: Some(retry), ..Terms::default() };
    let body = PutBody { payload: json(r#"{"invoice":1}"#), terms, ..PutBody::default() };
    let stored = client.put(QUEUE, KEY, &body, PutQuery::default(), None)?;
    ensure!(stored.created, "not as told: {KEY} was there before");
    say("invoice:1 is to be mailed: 3 attempts, with waits of 1 and 2 minutes")?;

    let failures = [(1, "no answer"), (2, "no answer"), (3, "the mailbox is full")];
    for (number, reason) in failures {
        let task = attempt(client, number)?;
        // The worker says why, and leaves it to the policy when to try again.
        let body = NackBody { tokens: vec![task.token], delay_ms: None, reason: Some(reason.to_owned()) };
        let results = client.nack(QUEUE, &body)?;
        ensure!(results == [TokenResult::Nacked], "not as told: {results:?}");
        say(&format!("attempt {number} fails: {reason}"))?;
        if number < 3 {
            due(client, QUEUE, &[])?;
            client.advance(u64::from(number) * MINUTE_MS)?;
        }
    }

    // Dead is not gone: it is out of the workers' way and kept for 30 days, with its story.
    due(client, QUEUE, &[])?;
    let filter = TaskFilter { state: Some(TaskState::Dead), ..TaskFilter::default() };
    let dead = client.list(QUEUE, &ListQuery { filter, ..ListQuery::default() })?.tasks;
    let [dead] = dead.as_slice() else { anyhow::bail!("not as told: {dead:?}") };
    let death = dead.dead.with_context(|| format!("not as told: {dead:?}"))?;
    ensure!(dead.key == KEY && death.reason == DeathReason::MaxAttempts, "not as told: {dead:?}");
    say("invoice:1 is dead: max_attempts")?;
    ensure!(dead.failures.len() == failures.len(), "not as told: {dead:?}");
    for (failure, (number, reason)) in dead.failures.iter().zip(failures) {
        let as_told = failure.attempt == number && failure.how == FailureKind::Nacked;
        ensure!(as_told && failure.reason.as_deref() == Some(reason), "not as told: {failure:?}");
        say(&format!("  attempt {number} was nacked: {reason}"))?;
    }

    // The same task again, with all of its attempts before it.
    let answer = client.redrive(QUEUE, &RedriveBody::Key(KEY.to_owned()))?;
    ensure!(answer.results == [RedriveOutcome::Redriven], "not as told: {answer:?}");
    say("the mailbox has room again, and invoice:1 is redriven")?;

    ack(client, QUEUE, attempt(client, 1)?)?;
    say("attempt 1 succeeds")?;

    end(client, QUEUE)
}

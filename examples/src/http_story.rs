//! The stories over HTTP share this: a server inside of this process, a worker, and how they are told.

use std::io::Write;

use anyhow::{Context, Error, Result, bail, ensure};
use tickwheel_api::{LeaseBody, LeasedTask, PayloadBody, ProblemKind, TokenResult};
use tickwheel_client::ClientError;
use tickwheel_client::blocking::Client;
use tickwheel_server::{Config, Server, Store};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// A minute.
pub const MINUTE_MS: u64 = 60_000;
/// An hour.
pub const HOUR_MS: u64 = 60 * MINUTE_MS;
/// A day.
pub const DAY_MS: u64 = 24 * HOUR_MS;

/// Starts a server in memory and on a virtual clock, lets the story happen there, and stops it.
///
/// # Errors
/// The server does not start, or the story does not go as it is told.
pub fn with_server(story: impl FnOnce(&Client) -> Result<()>) -> Result<()> {
    let runtime = Runtime::new()?;
    let config = Config { listen: "127.0.0.1:0".parse()?, virtual_clock: true, ..Config::new(Store::Memory) };
    let server = runtime.block_on(Server::bind(config))?;
    let client = Client::new(&format!("http://{}", server.local_addr()))?;
    let (stop, stopped) = oneshot::channel::<()>();
    let running = runtime.spawn(server.run(async { drop(stopped.await) }));

    let told = story(&client);

    drop(stop);
    runtime.block_on(running).context("the server panicked")?;
    told
}

/// Tells a line on stdout.
///
/// # Errors
/// Stdout is closed.
pub fn say(text: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{text}").context("write to stdout")
}

/// A payload of JSON.
pub fn json(text: impl Into<Vec<u8>>) -> PayloadBody {
    PayloadBody::json(text.into())
}

/// A worker who can do 10 tasks at once gets those with these keys.
///
/// # Errors
/// The worker gets others, or the call fails.
pub fn due(client: &Client, queue: &str, keys: &[&str]) -> Result<Vec<LeasedTask>> {
    let tasks = client.lease(queue, &LeaseBody { max: 10, ..LeaseBody::default() })?;
    let found: Vec<&str> = tasks.iter().map(|task| task.key.as_str()).collect();
    ensure!(found == keys, "not as told: {found:?} instead of {keys:?}");
    Ok(tasks)
}

/// The same if it is one.
///
/// # Errors
/// As for [`due`].
pub fn due_one(client: &Client, queue: &str, key: &str) -> Result<LeasedTask> {
    due(client, queue, &[key])?.pop().context("not as told: no task at all")
}

/// The worker has done it, and its lease holds.
///
/// # Errors
/// The lease does not hold any more, or the call fails.
pub fn ack(client: &Client, queue: &str, task: LeasedTask) -> Result<()> {
    let results = client.ack(queue, vec![task.token])?;
    ensure!(results == [TokenResult::Acked], "not as told: {results:?} for {}", task.key);
    Ok(())
}

/// The call was refused, for this reason.
///
/// # Errors
/// The call was not refused, or for another reason.
pub fn refused<T>(answer: Result<T, ClientError>, kind: ProblemKind) -> Result<()> {
    match answer {
        Err(ClientError::Problem(problem)) if problem.kind() == Some(kind) => Ok(()),
        Err(error) => {
            let what = format!("not as told: it failed otherwise than by `{}`", kind.title());
            Err(Error::new(error).context(what))
        }
        Ok(_) => bail!("not as told: it was done instead of refused: {}", kind.title()),
    }
}

/// The end of a story: its queue has no task any more.
///
/// # Errors
/// There is one, or the call fails.
pub fn end(client: &Client, queue: &str) -> Result<()> {
    let counts = client.queue(queue)?.counts;
    let left = counts.scheduled + counts.ready + counts.leased + counts.dead;
    ensure!(left == 0, "not as told: {left} tasks are left");
    say("nothing is left to do")
}

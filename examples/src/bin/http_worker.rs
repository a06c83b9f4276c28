//! A server inside of this process, and a task put, found, and worked on over HTTP.
//!
//! ```sh
//! cargo run -p tickwheel-examples --bin http_worker
//! ```
//!
//! The client half is all that a program needs which talks to a `tickwheel serve` elsewhere.

use std::io::Write;

use anyhow::{Context, Result, ensure};
use tickwheel_api::{
    CancelOutcome, Due, LeaseBody, PayloadBody, PutBody, PutQuery, RevokeQuery, TaskState, TokenResult,
};
use tickwheel_client::blocking::Client;
use tickwheel_server::{Config, Server, Store};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

fn main() -> Result<()> {
    let runtime = Runtime::new()?;
    let config = Config { listen: "127.0.0.1:0".parse()?, ..Config::new(Store::Memory) };
    let server = runtime.block_on(Server::bind(config))?;
    let url = format!("http://{}", server.local_addr());
    let (stop, stopped) = oneshot::channel::<()>();
    let running = runtime.spawn(server.run(async { drop(stopped.await) }));

    let worked = work(&url);

    drop(stop);
    runtime.block_on(running).context("the server panicked")?;
    worked
}

fn work(url: &str) -> Result<()> {
    let client = Client::new(url)?;
    let body = |due, payload: &str| PutBody {
        due,
        payload: PayloadBody::json(payload.as_bytes().to_vec()),
        ..PutBody::default()
    };

    // The key is the handle: an order that is paid in time is found again by its number.
    client.put(
        "close",
        "order:1",
        &body(Due::After(1_800_000), r#"{"order":1}"#),
        PutQuery::default(),
        None,
    )?;
    ensure!(client.get("close", "order:1")?.state == TaskState::Scheduled, "it is due in half an hour");
    let outcome = client.cancel("close", "order:1", RevokeQuery::default(), None)?;
    ensure!(
        outcome == CancelOutcome::Cancelled,
        "it was not due yet, but the cancel found {}",
        outcome.name()
    );
    say("order:1 was paid in time")?;

    // A worker waits for what is due, and says when it is done.
    client.put("close", "order:2", &body(Due::After(20), r#"{"order":2}"#), PutQuery::default(), None)?;
    let tasks = client.lease("close", &LeaseBody { wait_ms: 20_000, ..LeaseBody::default() })?;
    let [task] = tasks.as_slice() else { anyhow::bail!("one task is due, not {}", tasks.len()) };
    say(&format!(
        "{} is closed, with the payload {}",
        task.key,
        String::from_utf8_lossy(&task.payload.bytes)
    ))?;
    let results = client.ack("close", vec![task.token.clone()])?;
    ensure!(results == [TokenResult::Acked], "the lease holds for 30 s");
    Ok(())
}

fn say(text: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{text}").context("write to stdout")
}

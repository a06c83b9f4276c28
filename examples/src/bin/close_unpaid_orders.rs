//! An order is closed after 30 minutes unless it is paid before.
//!
//! ```sh
//! cargo run -p tickwheel-examples --bin close_unpaid_orders
//! ```
//!
//! The clock of the server is virtual, so that half an hour takes no time.
//! `examples/http` has the same story for the shell and for Python.

use anyhow::{Result, ensure};
use tickwheel_api::{CancelOutcome, Due, PutBody, PutQuery, RevokeQuery, TokenResult};
use tickwheel_client::blocking::Client;
use tickwheel_examples::http_story::{MINUTE_MS, due, end, json, say, with_server};

const QUEUE: &str = "close-unpaid-orders";

fn main() -> Result<()> {
    with_server(story)
}

fn story(client: &Client) -> Result<()> {
    let cancel = |key: &str, query: RevokeQuery, told: CancelOutcome| -> Result<()> {
        let found = client.cancel(QUEUE, key, query, None)?;
        ensure!(found == told, "not as told: {} instead of {}", found.name(), told.name());
        Ok(())
    };

    // The key is the handle: the payment knows the order's number, and needs nothing else to find the task.
    for order in 1..=3 {
        let payload = json(format!(r#"{{"order":{order}}}"#));
        let body = PutBody { due: Due::After(30 * MINUTE_MS), payload, ..PutBody::default() };
        let stored = client.put(QUEUE, &format!("order:{order}"), &body, PutQuery::default(), None)?;
        ensure!(stored.created, "not as told: order:{order} was there before");
    }
    say("order:1, order:2 and order:3 are placed, each to be closed in 30 minutes")?;

    // Paid in time. `Cancelled` is a promise: no worker will ever get this task.
    client.advance(10 * MINUTE_MS)?;
    cancel("order:1", RevokeQuery::default(), CancelOutcome::Cancelled)?;
    say("10 minutes later order:1 is paid: cancelled")?;

    // Never early, not by a millisecond.
    client.advance(20 * MINUTE_MS - 1)?;
    due(client, QUEUE, &[])?;
    say("a millisecond before its time no order is closed")?;

    // A worker has the tasks until it acks them, for 30 seconds unless it asks for more: then others may have
    // them.
    client.advance(1)?;
    let tasks = due(client, QUEUE, &["order:2", "order:3"])?;
    say("then a worker has order:2 and order:3")?;

    // Paid while the worker is at it. `Leased` has changed nothing: the shop may wait for the worker and give
    // the money back, or, as here, take the task back. Then the worker is told so when it acks.
    cancel("order:2", RevokeQuery::default(), CancelOutcome::Leased)?;
    say("order:2 is paid at this moment: leased")?;
    cancel("order:2", RevokeQuery { revoke: true }, CancelOutcome::Revoked)?;
    say("the shop wants the money and takes the task back: revoked")?;

    // The worker closes the orders first and acks then: the other way round a crash in between would leave an
    // order open for ever. So it has to undo what turns out to be revoked.
    let results = client.ack(QUEUE, tasks.into_iter().map(|task| task.token).collect())?;
    ensure!(results == [TokenResult::Revoked, TokenResult::Acked], "not as told: {results:?}");
    say("the worker has closed both and hears: revoked, acked")?;
    say("so it opens order:2 again, and order:3 stays closed")?;

    // Paid when all is over: the order is closed, and the money goes back. The server remembers for a day
    // what is `Done`; a payment that comes later still hears `NotFound`, and the shop's own books have to say
    // why.
    client.advance(5 * MINUTE_MS)?;
    cancel("order:3", RevokeQuery::default(), CancelOutcome::Done)?;
    say("5 minutes later order:3 is paid: done")?;
    say("so the shop gives the money back")?;

    end(client, QUEUE)
}

//! A receipt is confirmed 15 days after the delivery, unless the buyer says something else before.
//!
//! ```sh
//! cargo run -p tickwheel-examples --bin confirm_receipts
//! ```
//!
//! The clock of the server is virtual, so that three weeks take milliseconds.
//! `examples/http` has the same story for the shell and for Python.

use anyhow::{Result, ensure};
use tickwheel_api::{
    CancelOutcome, Due, PatchBody, PayloadBody, ProblemKind, PutBody, PutQuery, RevokeQuery,
};
use tickwheel_client::blocking::Client;
use tickwheel_examples::http_story::{DAY_MS, ack, due, due_one, end, json, refused, say, with_server};

const QUEUE: &str = "confirm-receipts";

fn main() -> Result<()> {
    with_server(story)
}

fn receipt(order: u32, extended: bool) -> PayloadBody {
    json(format!(r#"{{"order":{order},"extended":{extended}}}"#))
}

fn story(client: &Client) -> Result<()> {
    for order in 1..=3 {
        let body =
            PutBody { due: Due::After(15 * DAY_MS), payload: receipt(order, false), ..PutBody::default() };
        let stored = client.put(QUEUE, &format!("order:{order}"), &body, PutQuery::default(), None)?;
        ensure!(stored.created, "not as told: order:{order} was there before");
    }
    say("order:1, order:2 and order:3 are delivered; each receipt is confirmed by itself after 15 days")?;

    client.advance(3 * DAY_MS)?;
    let outcome = client.cancel(QUEUE, "order:1", RevokeQuery::default(), None)?;
    ensure!(outcome == CancelOutcome::Cancelled, "not as told: {}", outcome.name());
    say("day 3: the buyer of order:1 confirms early: cancelled")?;

    // A delay counts from now: 5 days are left on day 10, and 7 more make 12. That the buyer has had her
    // extension is written into the payload in the same step, and the version guards both: if another call has
    // been faster, be it her own second click, the patch does nothing.
    client.advance(7 * DAY_MS)?;
    let task = client.get(QUEUE, "order:2")?;
    ensure!(task.payload == Some(receipt(2, false)), "not as told: {:?}", task.payload);
    let patch = PatchBody {
        due: Some(Due::After(12 * DAY_MS)),
        payload: Some(receipt(2, true)),
        ..PatchBody::default()
    };
    let extend = || client.patch(QUEUE, "order:2", &patch, RevokeQuery::default(), Some(task.version));
    extend()?;
    say("day 10: the buyer of order:2 asks for 7 more days and gets them")?;

    refused(extend(), ProblemKind::VersionMismatch)?;
    let task = client.get(QUEUE, "order:2")?;
    ensure!(task.payload == Some(receipt(2, true)), "not as told: {:?}", task.payload);
    say("she has clicked twice: the second click meets another version and changes nothing")?;

    client.advance(5 * DAY_MS)?;
    ack(client, QUEUE, due_one(client, QUEUE, "order:3")?)?;
    say("day 15: order:3 is confirmed by itself")?;

    client.advance(7 * DAY_MS - 1)?;
    due(client, QUEUE, &[])?;
    client.advance(1)?;
    ack(client, QUEUE, due_one(client, QUEUE, "order:2")?)?;
    say("day 22: order:2 is confirmed by itself, and not a millisecond sooner")?;

    end(client, QUEUE)
}

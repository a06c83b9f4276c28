//! A price plan: one task with many instants, each with a price of its own.
//!
//! ```sh
//! cargo run -p tickwheel-examples --bin switch_prices
//! ```
//!
//! The clock of the server is virtual, so that a week takes milliseconds.
//! `examples/http` has the same story for the shell and for Python.

use anyhow::{Result, ensure};
use tickwheel_api::{
    CancelOutcome, Due, MomentBody, PatchBody, PayloadBody, ProblemKind, PutBody, PutQuery, RevokeQuery,
    TaskState,
};
use tickwheel_client::blocking::Client;
use tickwheel_examples::http_story::{
    DAY_MS, HOUR_MS, ack, due, due_one, end, json, refused, say, with_server,
};

const QUEUE: &str = "switch-prices";
const SKU: &str = "sku:7";

fn main() -> Result<()> {
    with_server(story)
}

fn payload(price: u32) -> PayloadBody {
    json(format!(r#"{{"price":{price}}}"#))
}

/// A timeline of pairs: from which midnight on there is which price.
fn plan(today_ms: u64, switches: &[(u64, u32)]) -> Result<Vec<MomentBody>> {
    let moment = |&(midnight, price): &(u64, u32)| -> Result<MomentBody> {
        Ok(MomentBody { at_ms: i64::try_from(today_ms + midnight * DAY_MS)?, payload: payload(price) })
    };
    switches.iter().map(moment).collect()
}

/// A worker sets the price that is due. Only its ack lets the next one come.
fn switched(client: &Client, price: u32) -> Result<()> {
    let task = due_one(client, QUEUE, SKU)?;
    ensure!(task.payload == payload(price), "not as told: {:?} instead of {price}", task.payload);
    ack(client, QUEUE, task)
}

fn story(client: &Client) -> Result<()> {
    // The instants of a timeline are absolute. The story may begin at any time of day: by the server's clock,
    // for that is the one that counts.
    let now_ms = u64::try_from(client.advance(0)?)?;
    let today_ms = now_ms - now_ms % DAY_MS;

    let body = PutBody { timeline: plan(today_ms, &[(1, 9), (2, 8), (3, 12)])?, ..PutBody::default() };
    let stored = client.put(QUEUE, SKU, &body, PutQuery::default(), None)?;
    ensure!(stored.created, "not as told: {SKU} was there before");
    say("the plan of sku:7: 9 from the first midnight on, 8 from the second, 12 from the third")?;

    client.advance(today_ms + DAY_MS - now_ms)?;
    switched(client, 9)?;
    say("the first midnight: the price is 9")?;

    // One instant alone cannot be moved or taken out: a plan is put in the place of the other, as a whole.
    client.advance(12 * HOUR_MS)?;
    let patch = |body: PatchBody| client.patch(QUEUE, SKU, &body, RevokeQuery::default(), None);
    let one_instant = PatchBody { due: Some(Due::After(DAY_MS)), ..PatchBody::default() };
    refused(patch(one_instant), ProblemKind::Timeline)?;
    let another = plan(today_ms, &[(2, 7), (4, 11)])?;
    let stored = patch(PatchBody { timeline: Some(another), ..PatchBody::default() })?;
    ensure!(stored.state == TaskState::Scheduled, "not as told: {}", stored.state.name());
    say("at noon there is another plan: 7 from the second midnight on, 11 from the fourth")?;

    client.advance(12 * HOUR_MS)?;
    switched(client, 7)?;
    say("the second midnight: the price is 7")?;
    client.advance(DAY_MS)?;
    due(client, QUEUE, &[])?;
    say("the third midnight: nothing, for that was in the plan before")?;

    let outcome = client.cancel(QUEUE, SKU, RevokeQuery::default(), None)?;
    ensure!(outcome == CancelOutcome::Cancelled, "not as told: {}", outcome.name());
    say("the plan is cancelled, with all that was to come")?;
    client.advance(30 * DAY_MS)?;
    due(client, QUEUE, &[])?;
    say("the fourth midnight: nothing; the price stays 7")?;

    end(client, QUEUE)
}

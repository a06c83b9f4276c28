//! Schedules, moves and cancels the task that closes an order.

use std::io::{Write, stdout};

use anyhow::Result;
use serde_json::json;
use tickwheel_api::{Due, PatchBody, PayloadBody, PutBody, PutQuery, RevokeQuery};
use tickwheel_client::blocking::Client;
use tickwheel_client::{Retries, SERVER_URL_DEFAULT};

fn main() -> Result<()> {
    let client = Client::new(SERVER_URL_DEFAULT)?.with_retries(Retries::default());
    let put = |order: u64, delay_ms: u64| {
        let payload = PayloadBody::json(json!({ "order": order }).to_string().into());
        let body = PutBody { due: Due::After(delay_ms), payload, ..PutBody::default() };
        client.put("close", &format!("order:{order}"), &body, PutQuery::default(), None)
    };
    let cancel = |key| client.cancel("close", key, RevokeQuery::default(), None);

    let mut out = stdout();
    writeln!(out, "{}", put(1, 1_800_000)?.task.state.name())?;
    let later = PatchBody { due: Some(Due::After(2_700_000)), ..PatchBody::default() };
    let moved = client.patch("close", "order:1", &later, RevokeQuery::default(), None)?;
    writeln!(out, "{}", moved.version)?;
    writeln!(out, "{}", cancel("order:1")?.name())?;
    writeln!(out, "{}", cancel("order:1")?.name())?;
    writeln!(out, "{}", put(2, 1_000)?.task.state.name())?;
    Ok(())
}

//! The workers' side: lease due tasks, record them, ack them.

use std::thread;
use std::time::Instant;

use tickwheel_api::{LeaseBody, TokenResult};
use tickwheel_client::ClientError;
use tickwheel_client::blocking::Client;

use super::ledger::{Delivery, Ledger};
use super::plan::{key, number_of};
use super::shop::{QUEUE, RETRY_AFTER, insist};

/// Works until the demo is over.
pub(super) fn run(client: &Client, ledger: &Ledger) {
    let body = LeaseBody { max: 20, lease_ms: Some(30_000), wait_ms: 1_000, worker: None };
    while !ledger.is_over() {
        let asked = Instant::now();
        let Ok(tasks) = client.lease(QUEUE, &body) else {
            thread::sleep(RETRY_AFTER);
            continue;
        };
        let received_ms = ledger.wall_ms();
        let mut numbers = Vec::new();
        let mut tokens = Vec::new();
        for task in tasks {
            let number = number_of(&task.key).expect("the shop put orders only");
            let delivery = Delivery { due_at_ms: task.due_at_ms, asked, received_ms };
            ledger.note(number, |page| page.deliveries.push(delivery));
            numbers.push(number);
            tokens.push(task.token);
        }
        if tokens.is_empty() {
            continue;
        }
        let results = insist(ledger, |_| client.ack(QUEUE, tokens.clone())).unwrap_or_default();
        for (number, result) in numbers.into_iter().zip(results) {
            // `expired`: the answer to an earlier ack was lost, or another worker has the task now and will ack it.
            if result == TokenResult::Acked || is_gone(client, ledger, number) {
                ledger.note(number, |page| page.acked = true);
            }
        }
    }
}

/// Whether the task that closes the order is no longer live.
fn is_gone(client: &Client, ledger: &Ledger, number: usize) -> bool {
    let gone = insist(ledger, |_| match client.get(QUEUE, &key(number)) {
        Ok(_) => Ok(false),
        Err(ClientError::Problem(problem)) if problem.status == 404 => Ok(true),
        Err(error) => Err(error),
    });
    gone == Some(true)
}

//! The load: writers that put, reschedule and cancel, workers that lease and ack.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel_api::client::{Client, ClientError};
use tickwheel_api::{
    CancelOutcome, CancelQuery, Due, LeaseBody, PayloadBody, PutBody, PutQuery, TokenResult,
};

use super::history::{Ack, Cancel, Delivery, History, PutAnswer, PutSeen, wall_ms};
use super::random::Random;

pub(crate) const WRITERS: usize = 8;
pub(crate) const WORKERS: usize = 4;

const QUEUES: [&str; 2] = ["close", "confirm"];
/// While nobody answers.
const RETRY_AFTER: Duration = Duration::from_millis(5);

#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) client: Client,
    pub(crate) history: Arc<History>,
    pub(crate) seed: u64,
}

/// The queue that a key is put into: part of the key.
fn queue_of(key: &str) -> &'static str {
    QUEUES[usize::from(key.ends_with('1'))]
}

/// What a task of this key carries: made from the key, so that a mix-up shows.
pub(crate) fn payload_of(key: &str) -> Vec<u8> {
    format!("{{\"key\":\"{key}\",\"filling\":\"{}\"}}", "x".repeat(key.len() * 7 % 200)).into_bytes()
}

impl Load {
    /// Puts keys of its own until it is told to stop; reschedules some, cancels some, soon or late.
    pub(crate) fn write(&self, writer: usize, stop: &AtomicBool) {
        let mut random = Random::new(self.seed.wrapping_mul(1_000_003).wrapping_add(writer as u64));
        for number in 0_u64.. {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let key = format!("w{writer}:{number}:{}", random.below(2));
            self.put(&key, 10 + random.below(400));
            match random.below(10) {
                // At once: most of these come in time.
                0..4 => self.cancel(&key),
                // Around the due time.
                4 => {
                    thread::sleep(Duration::from_millis(random.below(60)));
                    self.cancel(&key);
                }
                5 => self.put(&key, 10 + random.below(600)),
                _ => {}
            }
        }
    }

    /// Puts the key until it is acknowledged. Every attempt names the same instant, so that a lost answer changes nothing.
    fn put(&self, key: &str, delay_ms: u64) {
        let mut due_at_ms = wall_ms() + i64::try_from(delay_ms).expect("below a second");
        self.history.note(key, |story| {
            // Two puts of one key never name the same instant.
            due_at_ms += i64::from(story.puts.iter().any(|put| put.due_at_ms == due_at_ms));
            story.puts.push(PutSeen { due_at_ms, answer: PutAnswer::None, retried: false });
        });
        let body = PutBody { due: Due::At(due_at_ms), payload: PayloadBody::json(payload_of(key)) };
        let note = |write: &dyn Fn(&mut PutSeen)| {
            self.history.note(key, |story| write(story.puts.last_mut().expect("it was just pushed")));
        };
        let answer = loop {
            let put = || self.client.put(queue_of(key), key, &body, PutQuery::default(), None);
            match self.history.call(put) {
                Ok(stored) => {
                    assert_eq!(stored.task.due_at_ms, due_at_ms, "{key}: `at` is kept exactly");
                    break PutAnswer::Acknowledged { answered: Instant::now(), answered_ms: wall_ms() };
                }
                Err(ClientError::Problem(problem)) if problem.result == Some(CancelOutcome::Leased) => {
                    break PutAnswer::Leased;
                }
                Err(error) => {
                    if self.expect_outage(key, &error) == Outage::AnswerLost {
                        note(&|put| put.retried = true);
                    }
                }
            }
        };
        note(&|put| put.answer = answer);
    }

    /// Cancels until there is a definite answer.
    fn cancel(&self, key: &str) {
        self.history.note(key, |story| story.cancel = Cancel::Sent);
        let mut lost_answers = 0;
        let cancel = loop {
            let cancel = || self.client.cancel(queue_of(key), key, CancelQuery::default(), None);
            match self.history.call(cancel) {
                Ok(CancelOutcome::Cancelled | CancelOutcome::Revoked) => {
                    break Cancel::Cancelled { answered: Instant::now(), answered_ms: wall_ms() };
                }
                Ok(CancelOutcome::Leased | CancelOutcome::Done) => break Cancel::TooLate,
                Ok(CancelOutcome::NotFound) => {
                    assert!(lost_answers > 0, "LOST: {key} was acknowledged, and a cancel answers not_found");
                    break Cancel::CancelledUnseen;
                }
                Err(error) => {
                    lost_answers += usize::from(self.expect_outage(key, &error) == Outage::AnswerLost);
                }
            }
        };
        self.history.note(key, |story| story.cancel = cancel);
    }

    /// Leases and acks until it is told to stop.
    pub(crate) fn work(&self, stop: &AtomicBool) {
        let body = LeaseBody { max: 10, lease_ms: 30_000, wait_ms: 50 };
        while !stop.load(Ordering::Relaxed) {
            for queue in QUEUES {
                let asked = Instant::now();
                match self.client.lease(queue, &body) {
                    Err(error) => drop(self.expect_outage(queue, &error)),
                    Ok(tasks) if tasks.is_empty() => {}
                    Ok(tasks) => {
                        let received_ms = wall_ms();
                        let mut leases = Vec::new();
                        for task in tasks {
                            let delivery = Delivery {
                                asked,
                                received_ms,
                                due_at_ms: task.due_at_ms,
                                payload: task.payload.bytes,
                                ack: Ack::None,
                            };
                            let index = self.history.note(&task.key, |story| {
                                story.deliveries.push(delivery);
                                story.deliveries.len() - 1
                            });
                            leases.push(((task.key, index), task.token));
                        }
                        self.ack(queue, leases);
                    }
                }
            }
        }
    }

    /// Acks what was leased: key and number of the delivery, and its token.
    fn ack(&self, queue: &str, leases: Vec<((String, usize), String)>) {
        let (deliveries, tokens): (Vec<_>, Vec<_>) = leases.into_iter().unzip();
        let mut lost_answers = 0;
        let results = loop {
            match self.history.call(|| self.client.ack(queue, tokens.clone())) {
                Ok(results) => break results,
                Err(error) => {
                    lost_answers += usize::from(self.expect_outage(queue, &error) == Outage::AnswerLost);
                }
            }
        };
        let answered = Instant::now();
        for ((key, index), result) in deliveries.iter().zip(results) {
            let ack = match result {
                TokenResult::Acked => Ack::Acked { answered },
                TokenResult::Expired if lost_answers > 0 => Ack::AckedUnseen,
                // A kill ended the lease, and another worker has the task by now.
                TokenResult::Expired => Ack::None,
                other => panic!("{key}: an ack was answered with {other:?}"),
            };
            self.history.note(key, |story| story.deliveries[*index].ack = ack);
        }
    }

    /// A killed server is the one excuse.
    fn expect_outage(&self, about: &str, error: &ClientError) -> Outage {
        let outage = match error {
            ClientError::Unreachable { .. } => Outage::NothingSent,
            ClientError::NoAnswer { .. } => Outage::AnswerLost,
            other => panic!("{about}: {other:?}"),
        };
        thread::sleep(RETRY_AFTER);
        outage
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outage {
    NothingSent,
    /// The call may have taken effect.
    AnswerLost,
}

//! How late messages are confirmed: tasks fall due evenly, and a webhook takes them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, ensure};
use tickwheel_push::dispatch::Plan;
use tickwheel_push::{Attempt, Message, Outcome, Sink};
use tickwheel_queue::Timestamp;

use super::broker::Broker;
use super::kind::Kind;
use super::pushed::Pushed;
use super::rate::runtime;
use super::sinks::sink;
use crate::http::{control_sleep, lateness_figures, now_ms};
use crate::sample::Sample;

/// Between the last put and the first task that is due (ms).
const LEAD_MS: f64 = 1_000.0;

/// A sink that notes how late each confirm is.
struct Noting {
    inner: Arc<dyn Sink>,
    late_nanos: Mutex<Vec<f64>>,
}

impl Sink for Noting {
    fn send<'a>(&'a self, message: &'a Message) -> Attempt<'a> {
        Box::pin(async {
            let report = self.inner.send(message).await;
            if report.outcome == Outcome::Delivered {
                let late_ms = now_ms() - message.leased.due_at.as_ms() as f64;
                self.late_nanos.lock().unwrap_or_else(PoisonError::into_inner).push(late_ms * 1e6);
            }
            report
        })
    }
}

/// Returns the percentiles of the lateness, and those of a thread that sleeps meanwhile. The target has the number of messages under way that a
/// target has without settings.
pub(super) fn measured(
    program: &Path,
    base: &Path,
    tasks_s: u64,
    seconds: u64,
) -> anyhow::Result<(Sample, Sample)> {
    let broker = Broker::start(Kind::Webhook, program, base)?;
    let tasks = tasks_s * seconds;
    let inner = sink(Kind::Webhook, broker.address)?;
    let noting = Arc::new(Noting { inner, late_nanos: Mutex::default() });
    let stop = AtomicBool::new(false);
    let runtime = runtime()?;
    let mut slept = Vec::new();
    std::thread::scope(|scope| {
        let control = scope.spawn(|| control_sleep(&stop));
        let ended = runtime.block_on(async {
            let pushed = Pushed::open()?;
            pushed.begin(Arc::clone(&noting) as Arc<dyn Sink>, Plan::default());
            // The puts take a part of this time.
            let first_ms = now_ms() + LEAD_MS + tasks as f64 / 20.0;
            let due = |n: u64| Timestamp::from_ms((first_ms + (n * 1_000 / tasks_s) as f64) as i64);
            pushed.fill((0..tasks).map(due))?;
            ensure!(now_ms() < first_ms, "the puts took until the first was due; give fewer");
            pushed.confirmed(tasks).await?;
            pushed.end(tasks).await
        });
        stop.store(true, Ordering::Relaxed);
        slept = control.join().expect("a sleeper does not panic");
        ended
    })?;
    let late = std::mem::take(&mut *noting.late_nanos.lock().unwrap_or_else(PoisonError::into_inner));
    ensure!(late.len() as u64 == tasks, "{} of {tasks} messages were confirmed", late.len());
    ensure!(late.iter().all(|nanos| *nanos >= 0.0), "a message came before it was due");
    ensure!(!slept.is_empty(), "the control did not sleep");
    drop(broker);
    let late = lateness_figures(late);
    late.figures.first().context("a figure")?;
    Ok((late, lateness_figures(slept)))
}

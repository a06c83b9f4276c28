//! The processor time of a process while many tasks are ready and their target refuses connections.

use std::time::Duration;

use anyhow::ensure;
use tickwheel_push::TargetState;
use tickwheel_push::dispatch::Plan;

use super::broker::free_ports;
use super::kind::Kind;
use super::pushed::Pushed;
use super::rate::runtime;
use super::sinks::sink;
use crate::cpu;
use crate::sample::Sample;

/// The process does the work that the puts left to do in this time.
const SETTLED: Duration = Duration::from_secs(1);

/// Returns the share of one core (%) with the target and, before, without one. The span with the target begins with its first message, so
/// that all attempts until the breaker opens are in it.
pub(super) fn measured(tasks: usize, span: Duration) -> anyhow::Result<Sample> {
    let [port] = free_ports()?;
    let address = ([127, 0, 0, 1], port).into();
    let runtime = runtime()?;
    let (idle, down) = runtime.block_on(async {
        let pushed = Pushed::open()?;
        pushed.fill(std::iter::repeat_n(None, tasks))?;
        tokio::time::sleep(SETTLED).await;
        let idle = share_of_core(span).await;
        let before = cpu::of_process();
        pushed.begin(sink(Kind::Webhook, address)?, Plan::default());
        tokio::time::sleep(span).await;
        let down = percent(cpu::of_process() - before, span);
        let is_known = pushed.state().is_some_and(|state| state != TargetState::Closed);
        ensure!(is_known, "the breaker is {:?}", pushed.state());
        ensure!(pushed.count("given_back") > 0 && pushed.count("acked") == 0, "the target was not down");
        anyhow::Ok((idle, down))
    })?;
    let mut sample = Sample { measured: tasks as u64, ..Sample::default() };
    sample.figure("cpu_percent", down);
    sample.figure("idle_percent", idle);
    Ok(sample)
}

async fn share_of_core(span: Duration) -> f64 {
    let before = cpu::of_process();
    tokio::time::sleep(span).await;
    percent(cpu::of_process() - before, span)
}

fn percent(nanos: f64, span: Duration) -> f64 {
    100.0 * nanos / span.as_nanos() as f64
}

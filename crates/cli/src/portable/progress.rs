//! Progress of an export or an import, on stderr.

use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount};

use crate::output::say;

/// The time between two messages.
const APART: Duration = Duration::from_secs(2);

/// Reports progress at intervals.
#[derive(Debug)]
pub(crate) struct Progress {
    begun: Instant,
    told: Instant,
    /// The unit of the count, such as "tasks exported".
    done: &'static str,
}

impl Progress {
    pub(crate) fn new(done: &'static str) -> Self {
        Self { begun: Instant::now(), told: Instant::now(), done }
    }

    /// Reports the count, if the last message is old enough.
    pub(crate) fn at(&mut self, count: u64) {
        if self.told.elapsed() >= APART {
            self.told = Instant::now();
            say(&self.told(count));
        }
    }

    /// A line with the count, the rate, and the peak memory of this program.
    pub(crate) fn told(&self, count: u64) -> String {
        let seconds = self.begun.elapsed().as_secs_f64();
        let rate = if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let memory =
            peak_bytes().map_or_else(String::new, |bytes| format!(", peak memory {}", HumanBytes(bytes)));
        let (done, rate) = (self.done, HumanCount(rate as u64));
        format!("{} {done} in {seconds:.1} s, {rate}/s{memory}", HumanCount(count))
    }
}

/// The peak memory of this process (bytes), where the system tells it.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

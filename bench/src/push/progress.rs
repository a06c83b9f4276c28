//! [`Progress`]: how far the senders of one measurement are.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Context;

/// The number of messages of one measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// The first messages, which are not measured: connections are opened meanwhile.
    pub(super) warm_up: u64,
    pub(super) messages: u64,
}

impl Load {
    /// Returns a load with a tenth more of messages at its beginning.
    pub(super) fn new(messages: u64) -> Self {
        Self { warm_up: messages / 10 + 1, messages }
    }

    pub(super) fn all(self) -> u64 {
        self.warm_up + self.messages
    }
}

/// The senders take numbers, and tell when the message of a number is confirmed.
#[derive(Debug)]
pub(super) struct Progress {
    load: Load,
    next: AtomicU64,
    confirmed: AtomicU64,
    begun: OnceLock<Instant>,
    ended: OnceLock<Instant>,
}

impl Progress {
    pub(super) fn new(load: Load) -> Self {
        let (next, confirmed) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { load, next, confirmed, begun: OnceLock::new(), ended: OnceLock::new() }
    }

    /// Returns the number of the next message; `None`: all were taken.
    pub(super) fn take(&self) -> Option<u64> {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        (n < self.load.all()).then_some(n)
    }

    /// Counts a confirm.
    pub(super) fn confirm(&self) {
        let confirmed = self.confirmed.fetch_add(1, Ordering::Relaxed) + 1;
        // Each of the two is true once.
        if confirmed == self.load.warm_up {
            let _first = self.begun.set(Instant::now());
        } else if confirmed == self.load.all() {
            let _first = self.ended.set(Instant::now());
        }
    }

    /// Returns the messages in a second.
    pub(super) fn rate(&self) -> anyhow::Result<f64> {
        let times = self.begun.get().zip(self.ended.get());
        let (begun, ended) = times.with_context(|| {
            format!(
                "{} of {} messages are confirmed",
                self.confirmed.load(Ordering::Relaxed),
                self.load.all()
            )
        })?;
        Ok(self.load.messages as f64 / (*ended - *begun).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_there_when_all_are_confirmed() {
        let progress = Progress::new(Load { warm_up: 2, messages: 3 });
        let taken = std::iter::from_fn(|| progress.take()).inspect(|_| progress.confirm()).take(4).count();
        assert_eq!(taken, 4);
        let error = progress.rate().expect_err("one is missing").to_string();
        assert_eq!(error, "4 of 5 messages are confirmed");
        assert_eq!((progress.take(), progress.take()), (Some(4), None));
        progress.confirm();
        assert!(progress.rate().expect("all are confirmed") > 0.0);
    }
}

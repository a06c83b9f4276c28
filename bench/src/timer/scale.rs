//! [`Scale`]: how much of everything.

use std::time::Duration;

/// What a sample is told besides its workload, on the command line of both this program and the one it starts.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Threads that schedule and cancel.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    producers: u32,
    /// Timers that each of them keeps pending in `contention`.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    ring: u64,
    /// Pairs of a schedule and a cancel that are measured, by all of them.
    #[arg(long, default_value_t = 4_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pairs: u64,
    /// Seconds of `lateness` and of `idle`.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Tiny counts instead of all this, to see that it works. The figures mean nothing.
    #[arg(long)]
    quick: bool,
}

impl Load {
    /// Tiny counts.
    #[cfg(test)]
    pub(crate) const QUICK: Self = Self { producers: 2, ring: 100, pairs: 4_000, seconds: 1, quick: true };

    /// As they are written on the command line.
    pub(crate) fn words(self) -> Vec<String> {
        let Self { producers, ring, pairs, seconds, quick } = self;
        let mut words = vec![
            format!("--producers={producers}"),
            format!("--ring={ring}"),
            format!("--pairs={pairs}"),
            format!("--seconds={seconds}"),
        ];
        words.extend(quick.then(|| "--quick".to_owned()));
        words
    }

    /// In numbers.
    pub(crate) fn scale(self) -> Scale {
        let Self { producers, ring, pairs, seconds, quick } = self;
        if quick {
            return Scale {
                producers,
                ring: ring.min(100),
                ring_filed: 1_000,
                pairs: pairs.min(4_000),
                per_second: 2_000,
                part: Duration::from_millis(40),
                parts: 6,
                pending: 2_000,
                quiet: Duration::from_millis(20),
                span: Duration::from_millis(100),
                patience: Duration::from_millis(20),
                pairs_flat: 20_000,
            };
        }
        Scale {
            producers,
            ring,
            ring_filed: 200_000,
            pairs,
            per_second: 100_000,
            part: Duration::from_millis(500),
            parts: 2 * seconds,
            pending: 1_000_000,
            quiet: Duration::from_secs(1),
            span: Duration::from_secs(u64::from(seconds)),
            patience: Duration::from_secs(60),
            pairs_flat: 10_000_000,
        }
    }
}

/// Numbers for all workloads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) producers: u32,
    /// Pending timers of each producer.
    pub(crate) ring: u64,
    /// The same where timers live long enough to be filed.
    pub(crate) ring_filed: u64,
    /// Measured pairs of all producers.
    pub(crate) pairs: u64,
    /// Timers that fall due in a second.
    pub(crate) per_second: u64,
    /// Timers of one part are scheduled in random order, three parts before.
    pub(crate) part: Duration,
    pub(crate) parts: u32,
    /// Timers that wait far away.
    pub(crate) pending: u64,
    /// Before anybody looks at what idle timers use.
    pub(crate) quiet: Duration,
    /// How long they are looked at.
    pub(crate) span: Duration,
    /// How long to wait for the threads of a timer to come to rest.
    pub(crate) patience: Duration,
    /// Pairs after which memory must be what it was.
    pub(crate) pairs_flat: u64,
}

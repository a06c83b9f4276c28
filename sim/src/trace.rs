//! The events of a run: a hash of all events, and their text if the caller wants it.

use std::fmt;

/// Folds every event of a run into one number, so that two runs of a seed can be compared.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    hash: u64,
    print: bool,
    step: u64,
}

impl Trace {
    /// A trace without events. With `print`, each event is also printed to standard error.
    #[must_use]
    pub(crate) fn new(print: bool) -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, print, step: 0 }
    }

    /// Begins the next step of the run, and returns its number.
    pub(crate) fn step(&mut self) -> u64 {
        self.step += 1;
        self.step
    }

    /// The number of steps so far.
    #[must_use]
    pub(crate) fn steps(&self) -> u64 {
        self.step
    }

    /// Adds an event.
    #[expect(
        clippy::print_stderr,
        reason = "a trace is asked for on the command line and goes to the terminal"
    )]
    pub(crate) fn event(&mut self, event: fmt::Arguments<'_>) {
        let line = event.to_string();
        for byte in line.bytes() {
            // FNV-1a (Fowler, Noll, Vo).
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if self.print {
            eprintln!("{:6} {line}", self.step);
        }
    }

    /// The hash of all events.
    #[must_use]
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }
}

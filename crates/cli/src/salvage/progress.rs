//! What is said while it takes long.

use indicatif::HumanBytes;
use tickwheel_queue::backup::Progress;

use crate::output::say;

/// From this many bytes on it is said how far the reading has come.
const BYTES_LONG: u64 = 256 << 20;
/// From this many tasks on it is said how far the writing has come.
const TASKS_LONG: u64 = 500_000;

/// Says each tenth of what takes long.
#[derive(Default)]
pub(crate) struct Talk {
    read: u64,
    written: u64,
    long: bool,
}

impl Talk {
    pub(crate) fn told(&mut self, progress: Progress) {
        match progress {
            Progress::Read(done, all) if all >= BYTES_LONG => {
                self.long = true;
                let tenths = done.saturating_mul(10) / all;
                if tenths > self.read {
                    self.read = tenths;
                    say(&format!("{} % of {} read", tenths * 10, HumanBytes(all)));
                }
            }
            Progress::Written(done, all) if all >= TASKS_LONG => {
                self.long = true;
                let tenths = done.saturating_mul(10) / all;
                if tenths > self.written {
                    self.written = tenths;
                    say(&format!("{} % of {all} tasks written", tenths * 10));
                }
            }
            Progress::Checking if self.long => say("checking what was written, record by record"),
            _ => {}
        }
    }
}

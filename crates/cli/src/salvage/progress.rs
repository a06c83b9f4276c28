//! Messages during a long salvage.

use indicatif::HumanBytes;
use tickwheel_queue::backup::Progress;

use crate::output::say;

/// The progress of reading is reported if there are at least this many bytes to read.
const BYTES_LONG: u64 = 256 << 20;
/// The progress of writing is reported if there are at least this many tasks to write.
const TASKS_LONG: u64 = 500_000;

/// Reports each tenth of a long operation.
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
                // The next shard begins anew.
                if tenths == 0 {
                    self.written = 0;
                }
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

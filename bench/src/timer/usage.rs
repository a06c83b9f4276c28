//! [`Usage`]: what the threads of a timer use while nobody asks anything of it.

use anyhow::Context;
use rustix::time::{ClockId, clock_gettime};

/// Processor time and wake-ups of all threads of this process but the one that looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    cpu_nanos: i128,
    /// Times that one of them went to sleep: as many as it woke.
    sleeps: u64,
}

impl Usage {
    /// So far. Threads that have ended are missing in the wake-ups.
    ///
    /// # Errors
    /// Where the system does not tell.
    pub(crate) fn of_others() -> anyhow::Result<Self> {
        let cpu_nanos = nanos(ClockId::ProcessCPUTime) - nanos(ClockId::ThreadCPUTime);
        let this = std::fs::read_link("/proc/thread-self").context("ask for this thread")?;
        let mut sleeps = 0;
        for task in std::fs::read_dir("/proc/self/task").context("list the threads")? {
            let task = task.context("list the threads")?;
            if Some(task.file_name().as_os_str()) == this.file_name() {
                continue;
            }
            // It may have ended meanwhile.
            let Ok(status) = std::fs::read_to_string(task.path().join("status")) else { continue };
            sleeps += voluntary(&status).context("read the switches of a thread")?;
        }
        Ok(Self { cpu_nanos, sleeps })
    }

    /// Nanoseconds of work and wake-ups since `earlier`.
    pub(crate) fn since(self, earlier: Self) -> (f64, f64) {
        let sleeps = self.sleeps.saturating_sub(earlier.sleeps);
        // Two clocks are read one after the other, so nothing at all may look like less than nothing.
        ((self.cpu_nanos - earlier.cpu_nanos).max(0) as f64, sleeps as f64)
    }
}

/// Nanoseconds of work of the whole process so far.
pub(crate) fn process_nanos() -> i128 {
    nanos(ClockId::ProcessCPUTime)
}

fn nanos(clock: ClockId) -> i128 {
    let time = clock_gettime(clock);
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

fn voluntary(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn another_threads_sleeps_count() {
        let (ask, asked) = mpsc::channel::<()>();
        let (answer, answered) = mpsc::channel();
        let thread = std::thread::spawn(move || asked.iter().all(|()| answer.send(()).is_ok()));
        let before = Usage::of_others().expect("the system tells");
        let mut sleeps = 0.0;
        // Until the other one was caught asleep often enough, however the two are run.
        while sleeps < 10.0 {
            ask.send(()).expect("it listens");
            answered.recv().expect("it answers");
            sleeps = Usage::of_others().expect("the system tells").since(before).1;
        }
        drop(ask);
        thread.join().expect("it ends");
    }

    #[test]
    fn the_line_is_found() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t17\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(voluntary(status), Some(17));
        assert_eq!(voluntary("nonvoluntary_ctxt_switches:\t3\n"), None);
    }
}

//! [`Usage`]: what the threads of a timer use while nobody asks anything of it, and when they have come to rest.

use std::ffi::OsString;
use std::time::{Duration, Instant};

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
        let mut sleeps = 0;
        for (task, status) in others("status")? {
            sleeps += voluntary(&status).with_context(|| format!("read the switches of thread {task:?}"))?;
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

/// Waits until all threads but this one sleep, and says since when; or for `patience`.
///
/// That a thread is at work is seen in its state, not in the time it gets: on a busy machine it may have to wait for that.
///
/// # Errors
/// Where the system does not tell.
pub(crate) fn wait_for_rest(patience: Duration) -> anyhow::Result<Instant> {
    let begun = Instant::now();
    let (mut since, mut looks) = (begun, 0);
    while looks < LOOKS && begun.elapsed() < patience {
        let now = Instant::now();
        if others("stat")?.iter().all(|(_, stat)| sleeps(stat)) {
            if looks == 0 {
                since = now;
            }
            looks += 1;
        } else {
            looks = 0;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(if looks == 0 { Instant::now() } else { since })
}

/// Who waits for a lock sleeps, too, but not for long.
const LOOKS: u32 = 3;

/// A file of every thread but this one, by its number.
fn others(file: &str) -> anyhow::Result<Vec<(OsString, String)>> {
    let this = std::fs::read_link("/proc/thread-self").context("ask for this thread")?;
    let mut others = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").context("list the threads")? {
        let task = task.context("list the threads")?;
        // One that cannot be read has ended meanwhile.
        if Some(task.file_name().as_os_str()) != this.file_name()
            && let Ok(text) = std::fs::read_to_string(task.path().join(file))
        {
            others.push((task.file_name(), text));
        }
    }
    Ok(others)
}

/// The state comes after the name, which is in brackets and may hold any.
fn sleeps(stat: &str) -> bool {
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['S', 'I', 'Z', 'X']))
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
    fn a_state_is_read_behind_any_name() {
        assert!(sleeps("17 (a ) R b) S 1 17 "));
        assert!(!sleeps("17 (a ) S b) R 1 17 ") && !sleeps("17 (x) D 1") && !sleeps(""));
    }

    #[test]
    fn a_thread_at_work_is_waited_for_only_so_long() {
        let (stop, stopped) = mpsc::channel::<()>();
        let worker =
            std::thread::spawn(move || while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {});
        let begun = Instant::now();
        let patience = Duration::from_millis(20);
        let since = wait_for_rest(patience).expect("the system tells");
        assert!(since >= begun + patience, "it rested after {:?}", since - begun);
        drop(stop);
        worker.join().expect("it ends");
    }

    #[test]
    fn the_line_is_found() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t17\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(voluntary(status), Some(17));
        assert_eq!(voluntary("nonvoluntary_ctxt_switches:\t3\n"), None);
    }
}

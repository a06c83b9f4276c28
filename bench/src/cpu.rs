//! The clock: what this thread has worked, not what passed on the wall.

use anyhow::Context;
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of processor time that this process has used, all its threads together.
pub(crate) fn of_process() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Nanoseconds of processor time that the living threads of tokio's runtimes in this process have used.
pub(crate) fn of_async_threads() -> anyhow::Result<f64> {
    let mut nanos = 0.0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let folder = thread?.path();
        if std::fs::read_to_string(folder.join("comm"))?.trim_end() == "tokio-rt-worker" {
            let text = std::fs::read_to_string(folder.join("schedstat"))?;
            let used = text.split(' ').next().and_then(|word| word.parse::<f64>().ok());
            nanos += used.with_context(|| format!("a thread's schedstat is {text:?}"))?;
        }
    }
    Ok(nanos)
}

/// Processor time of a thread since some moment. What other processes do in between does not count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuTime(i128);

impl CpuTime {
    /// The time used so far. A system call of some 200 ns.
    pub(crate) fn now() -> Self {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Self(i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec))
    }

    /// Nanoseconds of work since then.
    pub(crate) fn elapsed_nanos(self) -> f64 {
        (Self::now().0 - self.0) as f64
    }
}

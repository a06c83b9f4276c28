//! Jobs under a name: some on a grid, such as a report each minute, and some with a pause between two runs, such as a poll.
//!
//! The difference shows when a run takes long. A job on a grid has missed its next times by then, and its policy says what
//! happens to them. A poller has missed nothing: its pause begins when it is done.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use tickwheel::{Missed, Refusal, Timeout, Timer};

/// Jobs that run again and again.
pub struct Jobs {
    timer: Timer,
    jobs: BTreeMap<String, Timeout>,
}

/// Why a job was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotStarted {
    /// There is one of that name.
    NameTaken,
    /// The timer did not take it.
    Refused(Refusal),
}

impl Jobs {
    /// No jobs yet.
    #[must_use]
    pub fn new(timer: &Timer) -> Self {
        Self { timer: timer.clone(), jobs: BTreeMap::new() }
    }

    /// Runs `job` each `period`, the first time after one.
    ///
    /// # Errors
    /// [`NotStarted`]: the name is taken, the period is zero, or the timer is full or shut down.
    pub fn every(
        &mut self,
        name: &str,
        period: Duration,
        missed: Missed,
        job: impl FnMut() + Send + 'static,
    ) -> Result<(), NotStarted> {
        self.start(name, |timer| timer.every(period).missed(missed).start(job).map_err(|refused| refused.why))
    }

    /// Runs `job` now, and again each time `pause` has passed since it was done.
    ///
    /// # Errors
    /// As [`every`](Self::every).
    pub fn poll(
        &mut self,
        name: &str,
        pause: Duration,
        job: impl FnMut() + Send + 'static,
    ) -> Result<(), NotStarted> {
        self.start(name, |timer| {
            timer.fixed_delay(pause).first(Duration::ZERO).start(job).map_err(|refused| refused.why)
        })
    }

    /// Stops a job. A run that goes on now is its last. False if there is no such job.
    pub fn stop(&mut self, name: &str) -> bool {
        self.jobs.remove(name).is_some_and(|timeout| timeout.cancel())
    }

    /// The names of the jobs, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.jobs.keys().map(String::as_str)
    }

    fn start(
        &mut self,
        name: &str,
        start: impl FnOnce(&Timer) -> Result<Timeout, Refusal>,
    ) -> Result<(), NotStarted> {
        if self.jobs.contains_key(name) {
            return Err(NotStarted::NameTaken);
        }
        let timeout = start(&self.timer).map_err(NotStarted::Refused)?;
        self.jobs.insert(name.to_owned(), timeout);
        Ok(())
    }
}

/// Jobs end with their list: a handle that is dropped would leave them running.
impl Drop for Jobs {
    fn drop(&mut self) {
        for timeout in self.jobs.values() {
            timeout.cancel();
        }
    }
}

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameTaken => f.write_str("a job of that name runs already; stop it first"),
            Self::Refused(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for NotStarted {}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use tickwheel::{Clock, Job, ManualClock};

    use super::*;
    use crate::story::pass;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    struct World {
        clock: ManualClock,
        timer: Timer,
        jobs: Jobs,
        log: Sender<u64>,
        runs: Receiver<u64>,
    }

    impl World {
        fn new() -> Self {
            let clock = ManualClock::new();
            let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build().expect("a timer");
            let (log, runs) = channel();
            Self { jobs: Jobs::new(&timer), clock, timer, log, runs }
        }

        /// A job that writes down when it runs; its run number `slow` takes `stall`.
        fn job(&self, slow: usize, stall: Duration) -> impl FnMut() + Send + 'static {
            let (clock, log, mut run) = (self.clock.clone(), self.log.clone(), 0);
            move || {
                log.send(clock.now().as_nanos() / 1_000_000).expect("the test listens");
                run += 1;
                if run == slow {
                    clock.advance(stall);
                }
            }
        }

        fn times(&self) -> Vec<u64> {
            self.runs.try_iter().collect()
        }
    }

    /// The stall begins with the run of 300 and ends at 950.
    fn stalled(missed: Missed) -> Vec<u64> {
        let mut world = World::new();
        let job = world.job(1, ms(650));
        world.jobs.every("report", ms(300), missed, job).expect("there is room");
        pass(&world.clock, ms(1_300));
        world.times()
    }

    #[test]
    fn pt5_burst_makes_up_for_each_missed_run() {
        assert_eq!(stalled(Missed::Burst), [300, 950, 951, 1_200, 1_500, 1_800]);
    }

    #[test]
    fn pt6_delay_begins_a_new_grid() {
        assert_eq!(stalled(Missed::Delay), [300, 950, 1_250, 1_550, 1_850]);
    }

    #[test]
    fn pt7_skip_comes_back_to_the_grid() {
        assert_eq!(stalled(Missed::Skip), [300, 950, 1_200, 1_500, 1_800]);
    }

    #[test]
    fn pt2_a_poller_pauses_after_each_run() {
        let mut world = World::new();
        let job = world.job(2, ms(500));
        world.jobs.poll("inbox", ms(100), job).expect("there is room");
        pass(&world.clock, ms(500));
        // The second run ends at 600.
        assert_eq!(world.times(), [0, 100, 700, 800, 900, 1_000]);
    }

    #[test]
    fn pt9_a_job_that_panics_goes_on() {
        let mut world = World::new();
        let mut job = world.job(0, ms(0));
        let broken = move || {
            job();
            std::panic::resume_unwind(Box::new("the report has no data"));
        };
        world.jobs.every("report", ms(300), Missed::Skip, broken).expect("there is room");
        pass(&world.clock, ms(900));
        assert_eq!(world.times(), [300, 600, 900]);
        assert_eq!(world.timer.metrics().panicked, 3);
    }

    #[test]
    fn a_stopped_job_does_not_run_again_and_its_name_is_free() {
        let mut world = World::new();
        let job = world.job(0, ms(0));
        world.jobs.every("report", ms(300), Missed::Skip, job).expect("there is room");
        let job = world.job(0, ms(0));
        let again = world.jobs.every("report", ms(300), Missed::Skip, job);
        assert_eq!(again, Err(NotStarted::NameTaken));
        pass(&world.clock, ms(300));
        assert_eq!(world.jobs.names().collect::<Vec<_>>(), ["report"]);
        assert!(world.jobs.stop("report"));
        assert!(!world.jobs.stop("report"));
        pass(&world.clock, ms(600));
        assert_eq!(world.times(), [300]);
        let job = world.job(0, ms(0));
        world.jobs.every("report", ms(300), Missed::Skip, job).expect("the name is free");
        world.jobs = Jobs::new(&world.timer);
        assert_eq!(world.timer.pending(), 0, "jobs end with their list");
    }

    #[test]
    fn pt1_no_period_is_refused() {
        let mut world = World::new();
        let refused = Err(NotStarted::Refused(Refusal::NoPeriod));
        assert_eq!(world.jobs.every("report", ms(0), Missed::Skip, || ()), refused);
        assert_eq!(world.jobs.poll("inbox", ms(0), || ()), refused);
        assert_eq!(world.jobs.names().count(), 0);
    }
}

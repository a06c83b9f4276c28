//! [`Executor`]: where bodies run.

use std::sync::Arc;

use crate::Job;

/// Where the bodies of a [`Timer`](crate::Timer) run.
///
/// The driver of a timer gives due jobs to the executor and continues; it never runs a body. So `execute` should take the job and return:
/// it queues or spawns the job. If an executor cannot take a job, it drops the job, and the timer hands the same task over again 100 ms
/// later. A [`Purgatory`](crate::Purgatory) calls `execute`, too, on the threads of its callers,
/// which may hold locks of the program: so `execute` must not wait for room in a queue.
///
/// Every `Fn(Job)` is an executor. On tokio, for bodies that do not block:
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Job, Timer};
///
/// # let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
/// let handle = runtime.handle().clone();
/// let timer = Timer::builder()
///     .executor(move |job: Job| { handle.spawn(async move { job.run() }); })
///     .build()?;
/// let (done, ran) = std::sync::mpsc::channel();
/// timer.schedule(Duration::from_millis(1), move || done.send(()).unwrap()).unwrap();
/// ran.recv().unwrap();
/// # Ok::<(), tickwheel::BuildError>(())
/// ```
///
/// [`Job::run`] itself is an executor, too: it runs each body on the thread that hands it over. This is right for tests with a
/// [`ManualClock`](crate::ManualClock): `advance` then returns after the bodies have run. With a clock that runs by itself, each body
/// delays all other tasks of the timer.
pub trait Executor: Send + Sync {
    /// Takes a job, to run it soon.
    fn execute(&self, job: Job);

    /// Takes jobs in the order in which they came due. An executor that can take all of them under one lock overrides this method.
    fn execute_all(&self, jobs: &mut dyn Iterator<Item = Job>) {
        for job in jobs {
            self.execute(job);
        }
    }
}

impl<F: Fn(Job) + Send + Sync> Executor for F {
    fn execute(&self, job: Job) {
        self(job);
    }
}

impl<E: Executor + ?Sized> Executor for Arc<E> {
    fn execute(&self, job: Job) {
        (**self).execute(job);
    }

    fn execute_all(&self, jobs: &mut dyn Iterator<Item = Job>) {
        (**self).execute_all(jobs);
    }
}

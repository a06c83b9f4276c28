//! An executor that takes jobs and runs them when the test says so.

use std::sync::{Arc, Mutex};

use tickwheel::{Executor, Job};

#[derive(Clone, Default)]
pub(crate) struct Queued {
    jobs: Arc<Mutex<Vec<Job>>>,
}

impl Queued {
    pub(crate) fn len(&self) -> usize {
        self.jobs.lock().unwrap().len()
    }

    pub(crate) fn run_all(&self) {
        let jobs = std::mem::take(&mut *self.jobs.lock().unwrap());
        for job in jobs {
            job.run();
        }
    }

    pub(crate) fn drop_all(&self) {
        let jobs = std::mem::take(&mut *self.jobs.lock().unwrap());
        drop(jobs);
    }
}

impl Executor for Queued {
    fn execute(&self, job: Job) {
        self.jobs.lock().unwrap().push(job);
    }
}

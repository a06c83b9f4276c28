//! The state that all handlers share.

use tickwheel_queue::Queue;

use crate::service::admission::Admission;
use crate::service::background::Background;
use crate::service::observed::Observed;

/// All state of the service, except that of single requests. Doors hold it, and reach the queue only by a
/// [`Caller`](crate::service::caller::Caller).
pub(crate) struct App {
    pub(super) queue: Queue,
    pub(crate) admission: Admission,
    pub(crate) observed: Observed,
    pub(crate) background: Background,
}

impl App {
    pub(crate) fn new(
        queue: Queue,
        admission: Admission,
        observed: Observed,
        background: Background,
    ) -> Self {
        Self { queue, admission, observed, background }
    }
}

#[cfg(test)]
mod kit {
    use tickwheel_api::{ConsoleMode, Levels};

    use super::*;
    use crate::access::authorizer::Authorizer;
    use crate::base::stopping::{self, Stopping};
    use crate::service::backups::{Backups, NoBackups};
    use crate::service::jobs::keeper::Jobs;
    use crate::service::permits::limits::Limits;
    use crate::service::supervisor::Supervisor;
    use crate::targets::{Outside, Targets};

    impl App {
        /// A state with a queue in memory and a stop signal that is never given.
        pub(crate) fn in_memory() -> Self {
            let (stop, stopping) = stopping::signal();
            std::mem::forget(stop);
            Self::of_test(stopping)
        }

        /// A state with a queue in memory.
        pub(crate) fn of_test(stopping: Stopping) -> Self {
            Self::with_limits(stopping, &Limits::default())
        }

        /// A state with a queue in memory and these limits.
        pub(crate) fn with_limits(stopping: Stopping, limits: &Limits) -> Self {
            Self::with_queue(Queue::options().open_memory().expect("a queue"), stopping, limits)
        }

        /// A state with this queue.
        pub(crate) fn with_queue(queue: Queue, stopping: Stopping, limits: &Limits) -> Self {
            let admission = Admission::new(Authorizer::default(), Levels::default(), false, limits);
            let observed = Observed::new(Vec::new(), None, ConsoleMode::default());
            let backups = Backups::new(queue.clone(), stopping.clone(), Err(NoBackups::NoDirectory), None);
            let supervisor = Supervisor::new(stopping.clone());
            let jobs = Jobs::new(queue.clone(), stopping.clone(), supervisor.clone(), limits);
            let targets = Targets::new(&queue, Outside::default());
            let background = Background::new(jobs, backups, targets, supervisor, stopping);
            Self::new(queue, admission, observed, background)
        }

        /// Closes the queue, so that it answers nothing more.
        pub(crate) fn close(&self) {
            self.queue.close();
        }
    }
}

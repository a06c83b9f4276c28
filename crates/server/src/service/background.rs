//! The work beside the calls: jobs, backups, targets, streams of events, and the supervisor that starts it again.

use crate::base::stopping::Stopping;
use crate::service::backups::Backups;
use crate::service::jobs::keeper::Jobs;
use crate::service::part::part;
use crate::service::subscriptions::Subscriptions;
use crate::service::supervisor::Supervisor;
use crate::targets::Targets;

part! {
    /// The work that no call waits for.
    Background {
        pub(super) jobs: Jobs,
        pub(crate) backups: Backups,
        /// The queues whose tasks the server sends by itself.
        pub(super) targets: Targets,
        /// The readers of events.
        pub(super) subscriptions: Subscriptions,
        pub(crate) supervisor: Supervisor,
        /// Ends all waits when the server stops.
        pub(crate) stopping: Stopping,
    }
}

impl Background {
    pub(crate) fn new(
        jobs: Jobs,
        backups: Backups,
        targets: Targets,
        supervisor: Supervisor,
        stopping: Stopping,
    ) -> Self {
        Self { jobs, backups, targets, subscriptions: Subscriptions::default(), supervisor, stopping }
    }
}

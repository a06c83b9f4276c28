//! The state that all connections of this door share.

use std::sync::Arc;
use std::time::Instant;

use tickwheel_api::beanstalk::Tube;
use tickwheel_api::{Problem, ProblemKind};
use tickwheel_queue::{QueueName, QueueTotals, Stats};

use super::budget::{Budget, WatchBudget};
use super::config::{Beanstalk, DEFAULT};
use super::counters::Counters;
use super::session;
use super::tubes::{Interest, Tubes};
use crate::access::authorizer::OWN_QUEUE;
use crate::access::producer::Producer;
use crate::access::tokens::Grant;
use crate::base::stopping::Stopping;
use crate::events;
use crate::listen::door::{Connection, Door, Idle, Serving};
use crate::listen::stream::Stream;
use crate::service::app::App;
use crate::service::caller::Caller;

/// The state that all connections share.
pub(crate) struct BeanstalkDoor {
    pub(super) stopping: Stopping,
    pub(super) job_bytes_max: u32,
    pub(super) tubes: Tubes,
    pub(super) counters: Arc<Counters>,
    /// The id of this run of the server.
    pub(super) id: String,
    pub(super) begun: Instant,
    /// The prefix of the names of all queues that are tubes here.
    pub(super) namespace: Option<Arc<str>>,
    pub(super) budget: Budget,
    pub(super) watches: WatchBudget,
    /// The rights of each client of this door.
    pub(super) caller: Caller,
}

impl BeanstalkDoor {
    /// A door with this configuration. The tubes that all connections together watch have `watched_bytes_max` of memory.
    pub(crate) fn new(
        app: Arc<App>,
        counters: Arc<Counters>,
        config: Beanstalk,
        watched_bytes_max: usize,
    ) -> Self {
        let Beanstalk { job_bytes_max, namespace, .. } = config;
        let begun = Instant::now();
        let caller = Caller::new(app, Grant::of_door(namespace.as_deref()), Producer::Local);
        let door = Self {
            tubes: Tubes::new(caller.clone()),
            stopping: caller.app().background.stopping().clone(),
            job_bytes_max,
            counters,
            caller,
            budget: Budget::new(),
            watches: WatchBudget::new(watched_bytes_max),
            // Hex digits may look like a number, so the id begins with a letter.
            id: format!("a{:015x}", fresh()),
            begun,
            namespace: namespace.map(|namespace| format!("{namespace}/").into()),
        };
        // The default tube always exists.
        if let Some(name) = Tube::new(DEFAULT.as_bytes()).and_then(|tube| door.queue_of(&tube)) {
            door.tubes.keep(&name, Interest::Use);
        }
        door
    }

    pub(super) fn is_draining(&self) -> bool {
        self.caller.app().admission.drain().is_on()
    }

    /// Logs that a watch was refused, because the protocol has no answer for this reason. [`events::LIMITED`]
    /// limits these lines.
    pub(super) fn warn_of_watches(&self) {
        tracing::warn!(
            event = events::WATCHES_FULL,
            "a client of beanstalkd wanted to watch one more tube, and was answered OUT_OF_MEMORY (--max-watched-bytes)"
        );
    }

    /// The queue of this tube; `None`: the tube is not of this door.
    pub(super) fn queue_of(&self, tube: &Tube) -> Option<QueueName> {
        let name = match &self.namespace {
            Some(namespace) => format!("{namespace}{tube}"),
            None => tube.as_str().to_owned(),
        };
        (name != OWN_QUEUE).then(|| QueueName::new(&name).ok()).flatten()
    }

    /// The counts of removed tubes in this door's namespace.
    pub(super) fn totals_of_gone(&self, stats: &Stats) -> QueueTotals {
        let namespace = self.namespace.as_deref().and_then(|prefix| prefix.strip_suffix('/'));
        namespace.and_then(|namespace| stats.gone.get(namespace)).copied().unwrap_or_default()
    }

    /// The tube of this queue; `None`: the queue is not a tube of this door.
    pub(super) fn tube_of(&self, queue: &QueueName) -> Option<Tube> {
        let name = queue.as_str().strip_prefix(self.namespace.as_deref().unwrap_or_default())?;
        Tube::new(name.as_bytes())
    }
}

impl Door for BeanstalkDoor {
    fn name(&self) -> &'static str {
        "beanstalk"
    }

    fn idle(&self) -> Idle {
        Idle::Stays
    }

    fn serve(self: Arc<Self>, connection: Connection) -> Serving {
        Box::pin(async move { session::serve(connection, &self).await })
    }

    /// Closes the connection, because the protocol has no answer for a refused connection.
    fn turn_away(self: Arc<Self>, why: Problem, _: Option<Stream>) -> Option<Serving> {
        if why.kind() == Some(ProblemKind::Busy) {
            self.counters.turn_away();
        } else {
            tracing::debug!(%why, "a connection of beanstalkd's protocol is closed");
        }
        None
    }
}

/// A random number that distinguishes this run from other runs.
fn fresh() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) >> 4
}

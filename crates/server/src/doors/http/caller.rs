//! Who calls, for the handlers that put: within the limits of the token.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;
use tickwheel_api::Problem;
use tickwheel_queue::{Due, ListQueues, Patch, Put, QueueCounts, QueueName, Timestamp};

use crate::access::producer::Producer;
use crate::access::quota::Quota;
use crate::access::refusal::Refusal;
use crate::access::tokens::{Grant, Right};
use crate::base::queue_pages::QueuePages;
use crate::doors::http::wire::Peer;
use crate::service::app::App;
use crate::translate;

/// The bearer of a token, in front of the application.
pub(crate) struct Caller {
    pub(crate) app: Arc<App>,
    grant: Grant,
    producer: Producer,
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Infallible> {
        let grant =
            parts.extensions.get().cloned().expect("the front grants something to each that it lets in");
        Ok(Self { app: Arc::clone(app), grant, producer: producer(&parts.extensions) })
    }
}

impl Caller {
    /// Whether its token has `read`, or the server has no tokens.
    pub(crate) fn may_read(&self) -> bool {
        self.grant.allows(Right::Read)
    }

    /// Whether its token holds for this queue.
    pub(crate) fn covers(&self, queue: &QueueName) -> bool {
        self.grant.covers(queue)
    }

    /// Who it is, for what callers have shares of.
    pub(crate) fn producer(&self) -> Producer {
        self.producer
    }

    pub(crate) fn quota(&self) -> Option<&Quota> {
        self.grant.quota()
    }

    pub(crate) fn shared_quota(&self) -> Option<Arc<Quota>> {
        self.grant.shared_quota()
    }

    /// Counts the tasks that it has, if their number is limited and they were not counted just now. Cost: a look at each queue of its scope, or
    /// at all queues without one.
    ///
    /// # Errors
    /// 503 if the queue cannot be looked at.
    pub(crate) async fn count(&self) -> Result<(), Refusal> {
        let Some(quota) = self.quota().filter(|quota| quota.has_to_count()) else { return Ok(()) };
        let of = |counts: &QueueCounts| counts.live() + counts.dead;
        let known = |counts: &&QueueCounts| self.grant.covers(&counts.queue);
        let mut count = 0;
        for prefix in self.grant.prefixes() {
            let list = ListQueues { prefix: prefix.into(), ..ListQueues::default() };
            let mut pages = QueuePages::new(&self.app.queue, list);
            while let Some(page) = pages.next().await.map_err(|error| translate::unavailable(&error))? {
                count += page.iter().filter(known).map(of).sum::<u64>();
            }
        }
        quota.counted(count);
        Ok(())
    }

    /// Whether it may put this, and whether that may add a task, as far as its tasks were counted.
    ///
    /// # Errors
    /// 400 if it is due too late, 503 if the server takes no new tasks.
    pub(crate) fn admit(&self, put: &mut Put) -> Result<(), Refusal> {
        if self.app.draining.is_on() {
            return Err(Problem::server_draining().into());
        }
        self.quota().map_or(Ok(()), |quota| quota.put(put, self.app.queue.now()))
    }

    /// Whether it may have tasks that are due then.
    ///
    /// # Errors
    /// 400 if that is too late.
    pub(crate) fn admit_due(&self, due: Due) -> Result<(), Refusal> {
        self.quota().map_or(Ok(()), |quota| quota.due(due, None, self.app.queue.now()))
    }

    /// Up to when it may put tasks off, counted from now.
    pub(crate) fn latest(&self) -> Option<Timestamp> {
        self.quota().and_then(|quota| quota.latest(self.app.queue.now()))
    }

    /// Whether it may put a task off until then.
    ///
    /// # Errors
    /// 400 if that is too late.
    pub(crate) fn admit_patch(&self, patch: &Patch) -> Result<(), Refusal> {
        let Some(quota) = self.quota() else { return Ok(()) };
        let last = patch.timeline.as_ref().and_then(|timeline| timeline.last()).map(|moment| moment.at);
        quota.due(patch.due.unwrap_or_default(), last, self.app.queue.now())
    }
}

/// The sender of a request with these extensions.
pub(crate) fn producer(extensions: &Extensions) -> Producer {
    let token = extensions.get::<Grant>().and_then(Grant::token);
    Producer::new(token, extensions.get::<Peer>().and_then(|peer| peer.0))
}

//! A caller, in front of the queue: rights, quotas, a drain, metrics and spans of deliveries, once for all doors.

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_api::{Problem, TraceContext};
use tickwheel_queue::{
    Ack, Act, Acted, ById, ByIdError, Cancel, CancelError, Cancelled, ChangeQueue, DeleteSchedule, Due,
    Extend, Get, GetError, GetSchedule, Lease, Leased, List, ListQueues, ListSchedules, Nack, NackError,
    Patch, PatchError, Pending, Put, PutError, PutSchedule, QueueCounts, QueueError, QueueName, QueueView,
    Redrive, RedriveError, ScheduleError, ScheduleView, Stored, StoredSchedule, TaskPage, TaskView,
    Timestamp, TokenAnswer, Unavailable,
};

use crate::access::authorizer::{Need, OWN_QUEUE};
use crate::access::producer::Producer;
use crate::access::quota::Quota;
use crate::access::refusal::Refusal;
use crate::access::tokens::{Grant, Right};
use crate::base::aside::discard;
use crate::base::queue_pages::QueuePages;
use crate::service::app::App;
use crate::telemetry::span::Span;
use crate::translate;

/// A caller that was let in, and the service that it calls.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) app: Arc<App>,
    grant: Grant,
    producer: Producer,
}

/// How the wait of a lease ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum WaitEnd<E> {
    /// There were tasks, or the time was over.
    Over,
    /// The door ended it.
    Ended,
    /// The connection failed; what was leased is given back.
    Broken(E),
    /// The server stops.
    Stopped,
}

impl Caller {
    pub(crate) fn new(app: Arc<App>, grant: Grant, producer: Producer) -> Self {
        Self { app, grant, producer }
    }

    /// Lets a caller in for one call that needs this right. `changes`: the call may change something. `from`: the caller's address; `None`: it
    /// came by a path of the file system.
    ///
    /// # Errors
    /// 401, 403 and 404 as [`Authorizer::check`](crate::access::authorizer::Authorizer::check) has them, 429 where the token has made all the
    /// calls that it may make.
    pub(crate) fn begin(
        app: &Arc<App>,
        token: Option<&[u8]>,
        need: &Need,
        changes: bool,
        from: Option<IpAddr>,
    ) -> Result<Self, Refusal> {
        let grant = app.authorizer.check(token, need, changes)?;
        grant.quota().map_or(Ok(()), Quota::call)?;
        let producer = Producer::new(grant.token(), from);
        Ok(Self::new(Arc::clone(app), grant, producer))
    }

    pub(crate) fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Whether the caller has this right in this queue.
    ///
    /// # Errors
    /// 404 for a queue outside of its scope, 403 without the right, or for a change of the queue that only the server changes.
    pub(crate) fn may(&self, right: Right, queue: &QueueName) -> Result<(), Refusal> {
        if !self.grant.covers(queue) {
            return Err(Problem::out_of_scope(queue.as_str()).into());
        }
        if !self.grant.allows(right) {
            return Err(Problem::forbidden(right.name()).into());
        }
        if right != Right::Read && queue.as_str() == OWN_QUEUE {
            return Err(Problem::own_queue(queue.as_str()).into());
        }
        Ok(())
    }

    /// Puts a task. The command is in the queue when this returns, so the order of calls is the order of commands. The tasks of the token are
    /// [counted](Self::count) before, if their number is limited.
    ///
    /// # Errors
    /// 503 from a server that drains, 400 if the task is due later than the token allows, and those of [`may`](Self::may).
    pub(crate) fn put(&self, mut put: Put) -> Result<Pending<Stored, PutError>, Refusal> {
        if let Err(refusal) = self.may(Right::Produce, &put.queue).and_then(|()| self.admit(&mut put)) {
            discard(put.body.payload);
            return Err(refusal);
        }
        Ok(self.app.queue.put(put))
    }

    /// Counts the tasks of a queue and shows its settings, to a caller with this right.
    ///
    /// # Errors
    /// Those of [`may`](Self::may).
    pub(crate) fn queue(
        &self,
        right: Right,
        queue: &QueueName,
    ) -> Result<Pending<Box<QueueView>, Unavailable>, Refusal> {
        self.may(right, queue)?;
        Ok(self.app.queue.queue(queue))
    }

    /// Changes a task, as [`put`](Self::put) puts one.
    ///
    /// # Errors
    /// 400 if the task is put off for longer than the token allows, and those of [`may`](Self::may).
    pub(crate) fn patch(&self, patch: Patch) -> Result<Pending<TaskView, PatchError>, Refusal> {
        self.may(Right::Produce, &patch.queue)?;
        self.admit_patch(&patch)?;
        Ok(self.app.queue.patch(patch))
    }

    /// Does something with the task of this id, in whichever queue of the caller's namespace it is.
    ///
    /// # Errors
    /// 403 without the right, or where the caller's scope is no namespace.
    pub(crate) fn by_id(
        &self,
        right: Right,
        id: u64,
        act: Act,
    ) -> Result<Pending<Acted, ByIdError>, Refusal> {
        let Some(namespace) = self.grant.namespace() else {
            return Err(Problem::forbidden_to_scoped().into());
        };
        if !self.grant.allows(right) {
            return Err(Problem::forbidden(right.name()).into());
        }
        let within = (!namespace.is_empty()).then(|| namespace.into());
        Ok(self.app.queue.by_id(ById { id, act, within }))
    }

    /// Leases tasks, and waits for the first if `wait` is more than zero. `end`: the door's own reason to end the wait; what is ready by then is
    /// leased all the same, unless the reason is an error. A caller that drops the future gives back what was leased for it in that moment.
    ///
    /// How late the tasks are is counted, and a span is made of each delivery; `trace` is its parent.
    ///
    /// # Errors
    /// Those of [`may`](Self::may); within, the queue cannot answer.
    pub(crate) async fn lease<E>(
        &self,
        lease: Lease,
        wait: Duration,
        trace: Option<&str>,
        end: impl Future<Output = Result<(), E>>,
    ) -> Result<Result<(Vec<Leased>, WaitEnd<E>), Unavailable>, Refusal> {
        lease.queues.iter().try_for_each(|queue| self.may(Right::Consume, queue))?;
        let app = &*self.app;
        let asked = app.queue.now();
        let mut leased = pin!(app.queue.lease(lease, wait));
        let (leased, how) = tokio::select! {
            biased;
            leased = &mut leased => (leased, WaitEnd::Over),
            ended = end, if !wait.is_zero() => {
                if let Err(broken) = ended {
                    return Ok(Ok((Vec::new(), WaitEnd::Broken(broken))));
                }
                leased.end_wait();
                (leased.await, WaitEnd::Ended)
            }
            () = app.stopping.wait(), if !wait.is_zero() => return Ok(Ok((Vec::new(), WaitEnd::Stopped))),
        };
        let leased = match leased {
            Ok(leased) => leased,
            Err(why) => return Ok(Err(why)),
        };
        let now = app.queue.now();
        app.deliveries.count(&leased, asked, now);
        if let Some(spans) = &app.spans {
            let parent = trace.and_then(TraceContext::read);
            leased.iter().for_each(|task| spans.take(Span::of_delivery(task, now, parent.clone())));
        }
        Ok(Ok((leased, how)))
    }
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
    fn admit_patch(&self, patch: &Patch) -> Result<(), Refusal> {
        let Some(quota) = self.quota() else { return Ok(()) };
        let last = patch.timeline.as_ref().and_then(|timeline| timeline.last()).map(|moment| moment.at);
        quota.due(patch.due.unwrap_or_default(), last, self.app.queue.now())
    }
}

/// Verbs that need nothing but a right in the queue that they name.
macro_rules! verbs {
    ($($verb:ident($call:ident) -> $answer:ty, $error:ty; $right:ident;)*) => {
        impl Caller {$(
            #[doc = concat!("Calls [`Queue::", stringify!($verb), "`](tickwheel_queue::Queue::", stringify!($verb), ").")]
            ///
            /// # Errors
            /// Those of [`may`](Self::may).
            pub(crate) fn $verb(&self, call: $call) -> Result<Pending<$answer, $error>, Refusal> {
                self.may(Right::$right, &call.queue)?;
                Ok(self.app.queue.$verb(call))
            }
        )*}
    };
}

verbs! {
    get(Get) -> TaskView, GetError; Read;
    list(List) -> TaskPage, Unavailable; Read;
    cancel(Cancel) -> Cancelled, CancelError; Produce;
    ack(Ack) -> Vec<TokenAnswer>, Unavailable; Consume;
    nack(Nack) -> Vec<TokenAnswer>, NackError; Consume;
    extend(Extend) -> Vec<TokenAnswer>, Unavailable; Consume;
    redrive(Redrive) -> TaskView, RedriveError; Admin;
    change_queue(ChangeQueue) -> (), QueueError; Admin;
    put_schedule(PutSchedule) -> StoredSchedule, ScheduleError; Produce;
    delete_schedule(DeleteSchedule) -> (), ScheduleError; Produce;
    schedule(GetSchedule) -> ScheduleView, ScheduleError; Read;
    schedules(ListSchedules) -> Vec<ScheduleView>, Unavailable; Read;
}

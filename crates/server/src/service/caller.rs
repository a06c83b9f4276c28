//! The checks of a call before the queue: rights, quotas, a drain; and the metrics and spans of deliveries. All doors
//! share them.

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_api::Problem;
use tickwheel_api::openapi::Needs;
use tickwheel_queue::{
    Ack, Act, Acted, ById, ByIdError, ByKey, ByKeyError, Cancel, CancelError, Cancelled, ChangeQueue,
    DeleteSchedule, Due, Extend, Get, GetError, GetSchedule, Lease, Leased, List, ListQueues, ListSchedules,
    Nack, NackError, Patch, PatchError, Pending, Put, PutError, PutSchedule, QueueCounts, QueueError,
    QueueName, QueueView, Redrive, RedriveError, ScheduleError, ScheduleView, Stored, StoredSchedule,
    TaskPage, TaskView, Timestamp, TokenAnswer, Unavailable,
};

use crate::access::authorizer::OWN_QUEUE;
use crate::access::producer::Producer;
use crate::access::quota::Quota;
use crate::access::refusal::Refusal;
use crate::access::tokens::{Grant, Right};
use crate::base::aside::discard;
use crate::service::answers::Held;
use crate::service::app::App;
use crate::service::known_queues::KnownQueues;

/// A caller that was admitted, and the service that it calls.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(super) app: Arc<App>,
    grant: Grant,
    producer: Producer,
}

/// The end of a lease's wait.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum WaitEnd<E> {
    /// Tasks were ready, or the time of the wait was over.
    Over,
    /// The door ended the wait.
    Ended,
    /// The connection failed; leased tasks are given back.
    Broken(E),
    /// The server stops.
    Stopped,
}

/// The tasks that a lease call has got.
#[derive(Debug)]
pub(crate) struct Leasing<E> {
    pub(crate) leased: Vec<Leased>,
    /// The memory for the payloads, until the client has read them.
    pub(crate) held: Held,
    pub(crate) end: WaitEnd<E>,
}

impl<E> Leasing<E> {
    fn without_tasks(end: WaitEnd<E>) -> Self {
        Self { leased: Vec::new(), held: Held::default(), end }
    }
}

impl Caller {
    pub(crate) fn new(app: Arc<App>, grant: Grant, producer: Producer) -> Self {
        Self { app, grant, producer }
    }

    /// Admits a caller for one call that needs this right. `queue`: the queue of the call, if its name is valid.
    /// `changes`: the call may change something. `from`: the caller's address; `None`: it came by a path of the file
    /// system.
    ///
    /// # Errors
    /// 401, 403 and 404 as in [`Authorizer::check`](crate::access::authorizer::Authorizer::check); 429 if the token
    /// has used up its calls.
    pub(crate) fn begin(
        app: &Arc<App>,
        token: Option<&[u8]>,
        needs: Needs,
        queue: Option<&QueueName>,
        changes: bool,
        from: Option<IpAddr>,
    ) -> Result<Self, Refusal> {
        let grant = app.admission.authorizer().check(token, needs, queue, changes)?;
        grant.quota().map_or(Ok(()), Quota::call)?;
        let producer = Producer::new(grant.token(), from);
        Ok(Self::new(Arc::clone(app), grant, producer))
    }

    pub(crate) fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Whether the server takes payloads that some JSON readers reject.
    pub(crate) fn lax_json(&self) -> bool {
        *self.app.admission.lax_json()
    }

    pub(crate) fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Whether the caller has this right in this queue.
    ///
    /// # Errors
    /// 404 for a queue outside of its scope; 403 without the right, or for a change of the server's own queue.
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

    /// Puts a task. The command is in the queue when this returns, so the order of calls is the order of commands. If
    /// the number of the token's tasks is limited, they must be [counted](Self::count) before.
    ///
    /// # Errors
    /// 503 from a server that drains, 400 if the task is due later than the token allows, and the errors of
    /// [`may`](Self::may).
    pub(crate) fn put(&self, mut put: Put) -> Result<Pending<Stored, PutError>, Refusal> {
        if let Err(refusal) = self.may(Right::Produce, &put.queue).and_then(|()| self.admit(&mut put)) {
            discard(put.body.payload);
            return Err(refusal);
        }
        Ok(self.app.queue.put(put))
    }

    /// Counts the tasks of a queue and shows its settings, for a caller with this right.
    ///
    /// # Errors
    /// The errors of [`may`](Self::may).
    pub(crate) fn queue(
        &self,
        right: Right,
        queue: &QueueName,
    ) -> Result<Pending<Box<QueueView>, Unavailable>, Refusal> {
        self.may(right, queue)?;
        Ok(self.app.queue.queue(queue))
    }

    /// Changes a task, with the order of commands as in [`put`](Self::put).
    ///
    /// # Errors
    /// 400 if the new due time is later than the token allows, and the errors of [`may`](Self::may).
    pub(crate) fn patch(&self, patch: Patch) -> Result<Pending<TaskView, PatchError>, Refusal> {
        self.may(Right::Produce, &patch.queue)?;
        self.admit_patch(&patch)?;
        Ok(self.app.queue.patch(patch))
    }

    /// Acts on the task with this id, in any queue of the caller's namespace.
    ///
    /// # Errors
    /// 403 without the right, or if the caller's scope is not one namespace.
    pub(crate) fn by_id(
        &self,
        right: Right,
        id: u64,
        act: Act,
        worker: Option<Arc<str>>,
    ) -> Result<Pending<Acted, ByIdError>, Refusal> {
        let Some(namespace) = self.grant.namespace() else {
            return Err(Problem::forbidden_to_scoped().into());
        };
        if !self.grant.allows(right) {
            return Err(Problem::forbidden(right.name()).into());
        }
        let within = (!namespace.is_empty()).then(|| namespace.into());
        Ok(self.app.queue.by_id(ById { id, act, within, if_version: None, worker }))
    }

    /// Leases tasks, and waits for the first one if `wait` is more than zero. `end` is a further reason of the door
    /// to end the wait. Tasks that are ready by then are still leased, unless the reason is an error. If the caller
    /// drops the future, tasks that were leased for it at that moment are given back.
    ///
    /// If memory for answers is short, only the first tasks are handed out, and the others are given back. The lateness of the tasks is
    /// counted, and each delivery makes a span with the parent `trace`.
    ///
    /// # Errors
    /// The errors of [`may`](Self::may), or 429 without memory for the first task; in the inner result, the queue cannot answer.
    pub(crate) async fn lease<E>(
        &self,
        lease: Lease,
        wait: Duration,
        trace: Option<&str>,
        end: impl Future<Output = Result<(), E>>,
    ) -> Result<Result<Leasing<E>, Unavailable>, Refusal> {
        lease.queues.iter().try_for_each(|queue| self.may(Right::Consume, queue))?;
        let app = &*self.app;
        let asked = app.queue.now();
        let mut leased = pin!(app.queue.lease(lease, wait));
        let (leased, end) = tokio::select! {
            biased;
            leased = &mut leased => (leased, WaitEnd::Over),
            ended = end, if !wait.is_zero() => {
                if let Err(broken) = ended {
                    return Ok(Ok(Leasing::without_tasks(WaitEnd::Broken(broken))));
                }
                leased.end_wait();
                (leased.await, WaitEnd::Ended)
            }
            () = app.background.stopping().wait(), if !wait.is_zero() => return Ok(Ok(Leasing::without_tasks(WaitEnd::Stopped))),
        };
        let mut leased = match leased {
            Ok(leased) => leased,
            Err(why) => return Ok(Err(why)),
        };
        let sizes = leased.iter().map(|task| task.body.payload_at(task.step).0.len());
        let held = app.admission.slots().answers.hold_first(self.producer, sizes);
        let rest = leased.split_off(held.as_ref().map_or(0, |(count, _)| *count));
        if !rest.is_empty() {
            app.queue.give_back(rest.iter().map(|task| task.token).collect());
        }
        let (_, held) = held?;
        let now = app.queue.now();
        app.observed.delivered(&leased, asked, now, trace);
        Ok(Ok(Leasing { leased, held, end }))
    }

    /// Whether the scope of the caller's token includes this queue.
    pub(crate) fn covers(&self, queue: &QueueName) -> bool {
        self.grant.covers(queue)
    }

    /// Takes the memory for the payloads of an answer (bytes).
    ///
    /// # Errors
    /// 429 if there is not enough.
    pub(crate) fn hold(&self, bytes: usize) -> Result<Held, Refusal> {
        self.app.admission.slots().answers.hold(self.producer, bytes)
    }

    /// The producer to whom the caller's shares count.
    pub(crate) fn producer(&self) -> Producer {
        self.producer
    }

    pub(crate) fn quota(&self) -> Option<&Quota> {
        self.grant.quota()
    }

    pub(crate) fn shared_quota(&self) -> Option<Arc<Quota>> {
        self.grant.shared_quota()
    }

    /// Counts the tasks of the caller, if their number is limited and was not counted just now. Cost: reads the
    /// counts of each queue in its scope, or of all queues without a scope.
    ///
    /// # Errors
    /// 503 if the queue cannot be read.
    pub(crate) async fn count(&self) -> Result<(), Refusal> {
        let Some(quota) = self.quota().filter(|quota| quota.has_to_count()) else { return Ok(()) };
        let of = |counts: &QueueCounts| counts.live() + counts.dead;
        let mut count = 0;
        for prefix in self.grant.prefixes() {
            let list = ListQueues { prefix: prefix.into(), ..ListQueues::default() };
            let mut pages = KnownQueues::new(&self.app.queue, &self.grant, list);
            while let Some(page) = pages.next().await? {
                count += page.iter().map(of).sum::<u64>();
            }
        }
        quota.counted(count);
        Ok(())
    }

    /// The instant from which a delay counts that begins now. It may be later than the believed time, see [`Queue::due_after`].
    fn now_at_most(&self) -> Timestamp {
        self.app.queue.due_after(0).unwrap_or(Timestamp::MAX)
    }

    /// Checks a put against the quota. Also checks, by the last count of tasks, whether it may add a task.
    ///
    /// # Errors
    /// 400 if the task is due too late, 503 if the server takes no new tasks.
    pub(crate) fn admit(&self, put: &mut Put) -> Result<(), Refusal> {
        if self.app.admission.drain().is_on() {
            return Err(Problem::server_draining().into());
        }
        self.quota().map_or(Ok(()), |quota| quota.put(put, self.now_at_most()))
    }

    /// Checks the due time of tasks against the quota.
    ///
    /// # Errors
    /// 400 if it is too late.
    pub(crate) fn admit_due(&self, due: Due) -> Result<(), Refusal> {
        self.quota().map_or(Ok(()), |quota| quota.due(due, None, self.now_at_most()))
    }

    /// The latest instant that the caller may give to a task, counted from now.
    pub(crate) fn latest(&self) -> Option<Timestamp> {
        self.quota().and_then(|quota| quota.latest(self.now_at_most()))
    }

    /// Checks the new due time of a patch against the quota.
    ///
    /// # Errors
    /// 400 if it is too late.
    fn admit_patch(&self, patch: &Patch) -> Result<(), Refusal> {
        let Some(quota) = self.quota() else { return Ok(()) };
        let last = patch.timeline.as_ref().and_then(|timeline| timeline.last()).map(|moment| moment.at);
        quota.due(patch.due.unwrap_or_default(), last, self.app.queue.now())
    }
}

/// Methods that need only a right in the queue that their call names.
macro_rules! verbs {
    ($($verb:ident($call:ident) -> $answer:ty, $error:ty; $right:ident;)*) => {
        impl Caller {$(
            #[doc = concat!("Calls [`Queue::", stringify!($verb), "`](tickwheel_queue::Queue::", stringify!($verb), ").")]
            ///
            /// # Errors
            /// The errors of [`may`](Self::may).
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
    by_key(ByKey) -> TaskView, ByKeyError; Produce;
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

//! [`Targets`]: all targets of a server.
//!
//! ```text
//! a call -> the settings of before -> the settings of now -> the store -> the runner
//! ```
//!
//! The store comes first: a runner works by settings that are durable. Changes are made one after the other.

use std::sync::Arc;
use std::time::Duration;

use tickwheel::{Clock, SystemClock};
use tickwheel_api::{
    AttemptBody, BadRequest, ConnectionRow, Problem, RotateBody, RotatedBody, SIGNING_MAX, SecretBody,
    SigningBody, TargetBody, TargetKind, TargetOrder, TargetRow, TargetTestBody, TargetView,
};
use tickwheel_push::broker::LinkState;
use tickwheel_push::webhook::new_secret;
use tickwheel_push::{Figures, Message, Notice, Pause, Push, TargetState};
use tickwheel_queue::{
    AdvanceError, Key, Queue, QueueChange, QueueError, QueueName, QueueSettings, TARGETS_MAX, TargetRecord,
    TaskView, Timestamp,
};
use tokio::sync::{Mutex, mpsc};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::brokers::Named;
use super::connection_states::ConnectionStates;
use super::facts::TargetFacts;
use super::log_lines;
use super::made;
use super::outside::Outside;
use super::secret_keys::id_of;
use super::secrets;
use super::shown;
use super::stored::{self, Stored, StoredPause};
use crate::access::refusal::Refusal;
use crate::telemetry::notices::ms;
use crate::translate;
use crate::translate::settings;

/// A test message is given up this long after the time-out of its target, if the sink does not give it up itself.
const TEST_SPARE: Duration = Duration::from_secs(5);
/// Targets that could not be read are tried again after this time.
const START_PAUSE: Duration = Duration::from_secs(10);
/// How often the states of the connections are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// All targets of a server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Targets(Arc<Shared>);

struct Shared {
    queue: Queue,
    push: Push,
    notices: Mutex<mpsc::UnboundedReceiver<Notice>>,
    outside: Outside,
    /// The lock is held while a target changes.
    changes: Mutex<Changes>,
}

/// The state that changes of targets share.
#[derive(Default)]
struct Changes {
    /// Whether the targets of the store are started.
    is_started: bool,
}

/// The state and the counts of all targets.
pub(crate) struct TargetFigures {
    /// The targets, in the order of the names of their queues.
    pub(crate) targets: Vec<(QueueName, tickwheel_push::TargetView)>,
    /// The counts of all targets of each kind.
    pub(crate) kinds: Vec<(&'static str, Arc<Figures>)>,
    /// The connections, in the order of their names.
    pub(crate) connections: Vec<ConnectionRow>,
}

/// A target that was found in the store.
struct Found {
    record: Arc<TargetRecord>,
    stored: Stored,
}

impl Targets {
    pub(crate) fn new(queue: &Queue, outside: Outside) -> Self {
        let (push, notices) = Push::new(queue);
        let (queue, notices) = (queue.clone(), Mutex::new(notices));
        Self(Arc::new(Shared { queue, push, notices, outside, changes: Mutex::default() }))
    }

    /// Starts the targets of the store, unless an earlier call did. Encrypts secrets that are under an old key under the first one. Returns `false`
    /// if the store cannot be read; a later call tries again.
    pub(crate) async fn start(&self) -> bool {
        let Shared { queue, push, outside, .. } = &*self.0;
        let mut changes = self.0.changes.lock().await;
        if changes.is_started {
            return true;
        }
        let targets = match queue.targets().await {
            Ok(targets) => targets,
            Err(why) => {
                // The log tells by itself that another server has the shards, or that the database is silent.
                if !why.is_of_database() {
                    log_lines::not_read(&translate::unavailable(&why).detail);
                }
                return false;
            }
        };
        let (count, mut renewed) = (targets.len(), 0);
        for (name, record) in targets {
            let mut stored = match Stored::read(&record) {
                Ok(stored) => stored,
                Err(unreadable) => {
                    push.set(&name, made::disabled(&unreadable.reason(), None));
                    continue;
                }
            };
            if secrets::renew(outside, &name, &mut stored)
                && queue.change_target(&name, Some(stored.record())).await.is_ok()
            {
                renewed += 1;
            }
            self.run(&name, &stored);
        }
        log_lines::started(count, renewed);
        changes.is_started = true;
        true
    }

    /// Moves the virtual clock, and waits at each instant until no message is under way to a target.
    pub(crate) async fn advance(&self, by: Duration) -> Result<Timestamp, AdvanceError> {
        self.0.push.advance(by).await
    }

    /// Stops all targets, within this time. Messages that are not confirmed by then are given back.
    pub(crate) async fn stop(&self, grace: Duration) {
        self.0.push.stop(grace).await;
    }

    /// Starts the targets of the store if that has failed before. Then writes changes of states to the log, and stores when a target is
    /// disabled, for ever.
    pub(crate) async fn keep_up(self) {
        while !self.start().await {
            sleep(START_PAUSE).await;
        }
        let mut notices = self.0.notices.lock().await;
        let mut connections = ConnectionStates::default();
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                notice = notices.recv() => {
                    let Some(notice) = notice else { return };
                    log_lines::changed(&notice);
                    if notice.state == TargetState::Disabled {
                        self.disabled(&notice).await;
                    }
                }
                _ = looks.tick(), if !self.0.outside.brokers.is_empty() => {
                    connections.changed(self.connections()).iter().for_each(log_lines::connection_changed);
                }
            }
        }
    }

    /// Stores that an answer disabled a target.
    async fn disabled(&self, notice: &Notice) {
        let queue = &notice.queue;
        let _one_by_one = self.0.changes.lock().await;
        // Meanwhile an operator may have changed the target.
        let is_disabled = self.0.push.view(queue).is_some_and(|view| view.state == TargetState::Disabled);
        let Ok(Some(Found { mut stored, .. })) = self.find(queue).await else { return };
        if !is_disabled || !stored.target.enabled || stored.pause.is_some() {
            return;
        }
        // A target that cannot be made is disabled for as long as its reason lasts.
        if made::target(&self.0.outside, queue, &stored).is_err() {
            return;
        }
        stored.pause = Some(StoredPause::Disabled(notice.reason.as_deref().unwrap_or_default().to_owned()));
        if let Err(error) = self.0.queue.change_target(queue, Some(stored.record())).await {
            log_lines::not_kept(queue.as_str(), &settings::change_refused(&error, queue).detail);
        }
    }

    /// Gives a queue a target. Returns whether it had none before, and the target. `scope`: that of the caller;
    /// `None`: all queues, so the caller may name the secrets and the certificates of the server.
    pub(crate) async fn put(
        &self,
        queue: &QueueName,
        mut target: TargetBody,
        if_version: Option<u64>,
        scope: Option<String>,
    ) -> Result<(bool, TargetView), Refusal> {
        if scope.is_some() {
            secrets::refuse_named(&target)?;
        }
        let _one_by_one = self.0.changes.lock().await;
        let before = self.record(queue).await?;
        check_version(before.as_deref(), if_version)?;
        if before.is_none() {
            self.one_more(queue).await?;
        }
        // A target that cannot be read is replaced. It has no secrets to keep.
        let stored = before.as_deref().and_then(|record| Stored::read(record).ok());
        let sealed = secrets::take(&self.0.outside, queue, &mut target, stored.as_ref())?;
        // A pause of an operator stays, and a new target is not disabled for what the old one answered.
        let is_paused = before.as_deref().is_some_and(stored::is_paused);
        let pause = is_paused.then_some(StoredPause::Paused);
        let stored = Stored { target, secrets: sealed, pause, scope };
        made::target(&self.0.outside, queue, &stored)?;
        if stored.target.order == Some(TargetOrder::Group) {
            self.one_of_a_group(queue).await?;
        }
        let view = self.store(queue, stored).await?;
        Ok((before.is_none(), view))
    }

    /// Returns the target of a queue.
    pub(crate) async fn get(&self, queue: &QueueName) -> Result<TargetView, Refusal> {
        let Found { record, stored } = self.found(queue).await?;
        Ok(self.shown(queue, &record, stored))
    }

    /// Takes the target of a queue away, even if it cannot be read. Returns when the messages under way are settled.
    pub(crate) async fn delete(&self, queue: &QueueName, if_version: Option<u64>) -> Result<(), Refusal> {
        let one_by_one = self.0.changes.lock().await;
        let record = self.record(queue).await?.ok_or_else(|| no_target(queue))?;
        check_version(Some(&record), if_version)?;
        self.change(queue, None).await?;
        let settled = self.0.push.remove(queue);
        drop(one_by_one);
        settled.await;
        Ok(())
    }

    /// Deletes a queue by this call, and ends its target, which was deleted with it. Does not wait for messages under way.
    pub(crate) async fn delete_queue<E>(
        &self,
        queue: &QueueName,
        deleted: impl Future<Output = Result<(), E>>,
    ) -> Result<(), E> {
        // No other change may bring the target back.
        let _one_by_one = self.0.changes.lock().await;
        deleted.await?;
        drop(self.0.push.remove(queue));
        Ok(())
    }

    /// Pauses the target of a queue.
    pub(crate) async fn pause(&self, queue: &QueueName) -> Result<TargetView, Refusal> {
        let _one_by_one = self.0.changes.lock().await;
        let Found { mut stored, .. } = self.found(queue).await?;
        stored.pause = Some(StoredPause::Paused);
        let record = stored.record();
        self.change(queue, Some(record.clone())).await?;
        self.0.push.pause(queue, Pause::Paused);
        Ok(self.shown(queue, &record, stored))
    }

    /// Ends the pause of the target of a queue, and enables it.
    pub(crate) async fn resume(&self, queue: &QueueName) -> Result<TargetView, Refusal> {
        let _one_by_one = self.0.changes.lock().await;
        let Found { mut stored, .. } = self.found(queue).await?;
        made::target(&self.0.outside, queue, &stored)?;
        stored.pause = None;
        stored.target.enabled = true;
        self.store(queue, stored).await
    }

    /// Makes a new secret that signs.
    pub(crate) async fn rotate(
        &self,
        queue: &QueueName,
        body: RotateBody,
    ) -> Result<(u64, RotatedBody), Refusal> {
        let _one_by_one = self.0.changes.lock().await;
        let Found { stored: before, .. } = self.found(queue).await?;
        if before.target.kind != TargetKind::Webhook {
            let what =
                format!("is for webhooks, and the target is of the kind `{}`", before.target.kind.name());
            let hint = "brokers are reached with the user and the password of the server's configuration";
            return Err(BadRequest::body(what, hint).into());
        }
        // A target whose secrets cannot be read would need the new key and the lost one.
        made::target(&self.0.outside, queue, &before)?;
        let now_ms = self.0.queue.now().as_ms();
        let until_ms = now_ms.saturating_add(i64::try_from(body.overlap_ms).unwrap_or(i64::MAX));
        let secret = new_secret().map_err(|error| Problem::internal(error.to_string()))?;
        let mut target = before.target.clone();
        for signing in &mut target.signing {
            signing.until_ms = Some(signing.until_ms.map_or(until_ms, |end| end.min(until_ms)));
        }
        target.signing.retain(|signing| signing.until_ms.is_none_or(|end| end > now_ms));
        if target.signing.len() >= SIGNING_MAX {
            let what = "secrets of a target that still sign";
            return Err(Problem::too_many(what, SIGNING_MAX).into());
        }
        target.signing.insert(0, SigningBody { secret: SecretBody::Text(secret.clone()), until_ms: None });
        let sealed = secrets::take(&self.0.outside, queue, &mut target, Some(&before))?;
        let view = self.store(queue, Stored { target, secrets: sealed, ..before }).await?;
        let id = id_of(secret.as_bytes());
        Ok((view.version, RotatedBody { secret, id, until_ms }))
    }

    /// Sends one message that is not a task.
    pub(crate) async fn test(&self, queue: &QueueName) -> Result<TargetTestBody, Refusal> {
        let Found { stored, .. } = self.found(queue).await?;
        let target = made::target(&self.0.outside, queue, &stored)?;
        let message = Message::test(&self.0.queue, queue);
        let clock = SystemClock::new();
        let begun = clock.now();
        let patience = Duration::from_millis(target.plan.timeout_ms) + TEST_SPARE;
        let report = timeout(patience, target.sink.send(&message)).await.unwrap_or_else(|_| {
            tickwheel_push::Outcome::task_failed(format!("no answer within {} s", patience.as_secs())).into()
        });
        Ok(shown::test(&report, ms(clock.now().saturating_since(begun))))
    }

    /// Returns the last attempts, the newest first.
    pub(crate) async fn attempts(
        &self,
        queue: &QueueName,
        limit: usize,
    ) -> Result<Vec<AttemptBody>, Refusal> {
        let Some(view) = self.0.push.view(queue) else {
            // The runners may not have begun yet.
            return self.record(queue).await?.map(|_| Vec::new()).ok_or_else(|| no_target(queue));
        };
        Ok(view.attempts.newest(limit).iter().map(shown::attempt).collect())
    }

    /// Returns the targets of the queues that `covers` names.
    pub(crate) async fn list(&self, covers: impl Fn(&QueueName) -> bool) -> Result<Vec<TargetRow>, Refusal> {
        let targets = self.0.queue.targets().await.map_err(|why| translate::unavailable(&why))?;
        let now_ms = self.0.queue.now().as_ms();
        let row = |(name, record): &(QueueName, Arc<TargetRecord>)| {
            let stored = Stored::read(record).ok();
            let running = self.0.push.view(name);
            shown::row(name, record, stored.as_ref(), running.as_ref(), now_ms)
        };
        Ok(targets.iter().filter(|(name, _)| covers(name)).map(row).collect())
    }

    /// Returns what there is to say about the target of a queue, which has this record, when the task of this key waits. `task`: that task;
    /// `None`: it is done.
    pub(crate) fn facts(
        &self,
        queue: &QueueName,
        record: &TargetRecord,
        key: &Key,
        task: Option<&TaskView>,
    ) -> TargetFacts {
        let (running, now_ms) = (self.0.push.view(queue), self.0.queue.now().as_ms());
        TargetFacts::of(&self.0.outside, queue, record, running.as_ref(), key, task, now_ms)
    }

    /// Returns the connections of the configuration and their states.
    pub(crate) fn connections(&self) -> Vec<ConnectionRow> {
        let now_ms = self.0.queue.now().as_ms();
        let row = |(name, Named { kind, broker }): (&String, &Named)| {
            let state = broker.as_ref().map_or(LinkState::Unused, |broker| broker.state());
            shown::connection(name, *kind, &state, now_ms)
        };
        self.0.outside.brokers.iter().map(row).collect()
    }

    /// Returns the state and the counts of all targets, for the metrics.
    pub(crate) fn figures(&self) -> TargetFigures {
        let (targets, kinds) = (self.0.push.views(), self.0.push.kinds());
        TargetFigures { targets, kinds, connections: self.connections() }
    }

    /// Checks new settings of a queue against its target. The caller holds the lock of settings.
    ///
    /// # Errors
    /// See [`stored::check_settings`].
    pub(crate) async fn check_settings(&self, queue: &QueueName, new: &QueueSettings) -> Result<(), Refusal> {
        let view = self.0.queue.queue(queue).await.map_err(|why| translate::unavailable(&why))?;
        Ok(stored::check_settings(queue, view.target.as_deref(), new)?)
    }

    /// Limits the tasks of a group that are in flight to one, unless the queue has another limit.
    async fn one_of_a_group(&self, queue: &QueueName) -> Result<(), Refusal> {
        let view = self.0.queue.queue(queue).await.map_err(|why| translate::unavailable(&why))?;
        match view.settings.max_in_flight_per_group {
            Some(1) => Ok(()),
            Some(limit) => Err(Problem::order_conflict(queue.as_str(), limit).into()),
            None => {
                let settings = QueueSettings { max_in_flight_per_group: Some(1), ..view.settings.clone() };
                let change = settings::change(queue, QueueChange::Settings(settings));
                let changed = self.0.queue.change_queue(change).await;
                Ok(changed.map_err(|error| settings::change_refused(&error, queue))?)
            }
        }
    }

    /// Returns the target of a queue as the store has it.
    async fn record(&self, queue: &QueueName) -> Result<Option<Arc<TargetRecord>>, Refusal> {
        let view = self.0.queue.queue(queue).await.map_err(|why| translate::unavailable(&why))?;
        Ok(view.target.clone())
    }

    async fn find(&self, queue: &QueueName) -> Result<Option<Found>, Refusal> {
        let Some(record) = self.record(queue).await? else { return Ok(None) };
        let stored = Stored::read(&record).map_err(|unreadable| unreadable.problem(queue))?;
        Ok(Some(Found { record, stored }))
    }

    async fn found(&self, queue: &QueueName) -> Result<Found, Refusal> {
        self.find(queue).await?.ok_or_else(|| no_target(queue))
    }

    /// Refuses one more target if the server has the most it may have. Each shard counts its own ones, and the limit is that of all.
    async fn one_more(&self, queue: &QueueName) -> Result<(), Refusal> {
        let targets = self.0.queue.targets().await.map_err(|why| translate::unavailable(&why))?;
        if targets.len() < TARGETS_MAX {
            return Ok(());
        }
        Err(settings::change_refused(&QueueError::TooManyTargets { limit: TARGETS_MAX }, queue).into())
    }

    /// Stores a target and starts it in place of the one of before.
    async fn store(&self, queue: &QueueName, stored: Stored) -> Result<TargetView, Refusal> {
        let record = stored.record();
        self.change(queue, Some(record.clone())).await?;
        self.run(queue, &stored);
        Ok(self.shown(queue, &record, stored))
    }

    async fn change(&self, queue: &QueueName, record: Option<TargetRecord>) -> Result<(), Refusal> {
        let changed = self.0.queue.change_target(queue, record).await;
        Ok(changed.map_err(|error| settings::change_refused(&error, queue))?)
    }

    fn run(&self, queue: &QueueName, stored: &Stored) {
        let target = made::target(&self.0.outside, queue, stored);
        self.0
            .push
            .set(queue, target.unwrap_or_else(|why| made::disabled(&why.reason(), Some(stored.target.kind))));
    }

    fn shown(&self, queue: &QueueName, record: &TargetRecord, stored: Stored) -> TargetView {
        let (running, now_ms) = (self.0.push.view(queue), self.0.queue.now().as_ms());
        shown::view(queue, stored, stored::version(record), running.as_ref(), now_ms)
    }
}

fn check_version(record: Option<&TargetRecord>, wanted: Option<u64>) -> Result<(), Refusal> {
    let current = record.map(stored::version);
    match wanted {
        Some(wanted) if current != Some(wanted) => Err(Problem::target_changed(wanted, current).into()),
        _ => Ok(()),
    }
}

fn no_target(queue: &QueueName) -> Refusal {
    Problem::no_target(queue.as_str()).into()
}

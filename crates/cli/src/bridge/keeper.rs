//! [`Keeper`]: the place where the messages of a bridge wait.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use tickwheel_api::{ContentForm, ProblemKind, TargetBody, TargetKind};
use tickwheel_client::{Client, ClientError};
use tickwheel_push::amqp::{AmqpDial, AmqpSink};
use tickwheel_push::bridge::{BridgePlan, QueueStore, Store};
use tickwheel_push::broker::Link;
use tickwheel_push::dispatch::Plan;
use tickwheel_push::{Push, Target, TargetState};
use tickwheel_queue::{Backoff, ChangeQueue, Queue, QueueChange, QueueName, QueueSettings, Retry};

use super::server_store::ServerStore;
use super::watched::Watched;

/// The number of messages that are published at one time and not confirmed yet, as for a target of a server.
const CONCURRENCY: usize = 512;
/// The time for one message.
const TIMEOUT_MS: u64 = 10_000;
/// The time in which the messages on their way to the broker are settled at the end.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// The retry policy for messages that the broker returns, as for a target of a server: 16 attempts within about two days.
const RETRY: Retry = Retry {
    max_attempts: Some(16),
    backoff: Some(Backoff { doubles: true, base_ms: 30_000, max_ms: 12 * 3_600_000, jitter_percent: 30 }),
};

/// The place where the messages of a bridge wait, and from which the due ones go out.
pub(crate) enum Keeper {
    /// A directory of this process, with the target in this process.
    Here { queue: Queue, name: QueueName, push: Push, store: Watched },
    /// A server. It has the target.
    Server { client: Client, name: QueueName, calls: Arc<ServerStore>, store: Watched },
}

/// The numbers of tasks in the queue of a bridge.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tasks {
    /// Messages that are not published yet.
    pub(crate) waiting: u64,
    /// Messages that were given up.
    pub(crate) dead: u64,
}

impl Keeper {
    /// Opens the directory, and begins to publish due messages. Must be called in a runtime of tokio.
    ///
    /// # Errors
    /// The directory cannot be opened. A server that uses it keeps others out.
    pub(crate) async fn here(
        directory: &Path,
        name: &QueueName,
        plan: &BridgePlan,
        link: Arc<Link<AmqpDial>>,
    ) -> Result<Self> {
        let place = directory.to_owned();
        let opened = tokio::task::spawn_blocking(move || Queue::options().open(place)).await;
        let queue = opened.context("open the directory")?;
        let queue = queue.with_context(|| format!("failed to open {}", directory.display()))?;
        let view = queue.queue(name).await.context("failed to read the settings of the queue")?;
        if view.settings.retry.is_none() {
            let settings = QueueSettings { retry: Some(RETRY), ..view.settings };
            let change = ChangeQueue { queue: name.clone(), change: QueueChange::Settings(settings) };
            queue.change_queue(change).await.context("failed to set the retry policy of the queue")?;
        }
        let (push, _) = Push::new(&queue);
        let sink = AmqpSink::new(link, plan.target()?);
        let sending = Plan { concurrency: CONCURRENCY, timeout_ms: TIMEOUT_MS, ..Plan::default() };
        push.set(name, Target { plan: sending, kind: "amqp", ..Target::new(Arc::new(sink)) });
        let store = Watched::new(Arc::new(QueueStore::new(&queue, name)));
        Ok(Self::Here { queue, name: name.clone(), push, store })
    }

    /// Gives the queue of a server its target, unless it has an equal one. `said` gets a sentence about the target.
    ///
    /// # Errors
    /// The server does not answer, does not know the connection, or has another target for the queue.
    pub(crate) async fn server(
        client: Client,
        name: &QueueName,
        connection: &str,
        plan: &BridgePlan,
    ) -> Result<(Self, String)> {
        let wanted = TargetBody {
            connection: Some(connection.to_owned()),
            exchange: Some(plan.due_exchange()),
            body: Some(ContentForm::Unpacked),
            ..TargetBody::of_kind(TargetKind::Amqp)
        };
        let queue = name.as_str();
        let there = match client.target(queue).await {
            Ok(view) => Some(view),
            Err(error) if is(&error, ProblemKind::NoTarget) => None,
            Err(error) => return Err(error).with_context(|| format!("failed to read the target of {queue}")),
        };
        let said = match there {
            Some(view) if is_equal(&view.target, &wanted) => {
                format!("the queue {queue} has its target already ({})", view.state.name())
            }
            Some(view) if view.target.kind != TargetKind::Amqp => bail!(
                "the queue {queue} has a target of the kind `{}`, which is not one of a bridge; remove it, or choose \
                 another --exchange",
                view.target.kind.name()
            ),
            there => {
                let version = there.as_ref().map(|view| view.version);
                client
                    .put_target(queue, &wanted, version)
                    .await
                    .map_err(|error| unknown(error, connection))?;
                format!(
                    "the queue {queue} has a new target: {}, by the connection `{connection}`",
                    plan.due_exchange()
                )
            }
        };
        let calls = Arc::new(ServerStore::new(&client, name));
        let store = Watched::new(Arc::<ServerStore>::clone(&calls));
        Ok((Self::Server { client, name: name.clone(), calls, store }, said))
    }

    /// Returns the place for the bridge.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        let (Self::Here { store, .. } | Self::Server { store, .. }) = self;
        Arc::new(store.clone())
    }

    /// Returns the numbers of tasks; `None`: they are not known now.
    pub(crate) async fn tasks(&self) -> Option<Tasks> {
        match self {
            Self::Here { queue, name, .. } => {
                let counts = queue.queue(name).await.ok()?.counts;
                Some(Tasks { waiting: counts.scheduled + counts.ready + counts.leased, dead: counts.dead })
            }
            Self::Server { client, name, .. } => {
                let counts = client.queue(name.as_str()).await.ok()?.counts;
                Some(Tasks { waiting: counts.scheduled + counts.ready + counts.leased, dead: counts.dead })
            }
        }
    }

    /// Returns the number of puts without a key whose answer was lost.
    pub(crate) fn repeatable(&self) -> u64 {
        match self {
            Self::Here { .. } => 0,
            Self::Server { calls, .. } => calls.repeatable(),
        }
    }

    /// Returns why messages are not kept, or are not published, now; `None`: nothing is known to be wrong. The state of the target of a
    /// server is told by the server.
    pub(crate) fn trouble(&self) -> Option<String> {
        let (Self::Here { store, .. } | Self::Server { store, .. }) = self;
        store.trouble().or_else(|| self.trouble_of_target())
    }

    fn trouble_of_target(&self) -> Option<String> {
        let Self::Here { name, push, .. } = self else { return None };
        let view = push.view(name)?;
        let fails = matches!(view.state, TargetState::Open | TargetState::HalfOpen | TargetState::Disabled);
        let reason = view.reason.as_deref().unwrap_or("no reason is known");
        fails.then(|| format!("due messages are not published: {reason}"))
    }

    /// Settles the messages on their way, and closes the directory.
    pub(crate) async fn close(self) {
        if let Self::Here { queue, push, .. } = self {
            push.stop(STOP_TIMEOUT).await;
            // A panic was reported by the hook.
            let _ = tokio::task::spawn_blocking(move || queue.close()).await;
        }
    }
}

fn is(error: &ClientError, kind: ProblemKind) -> bool {
    error.problem().is_some_and(|problem| problem.kind() == Some(kind))
}

/// Whether a target does the work of the wanted one. Its other settings are left to their owner.
fn is_equal(there: &TargetBody, wanted: &TargetBody) -> bool {
    let parts = |target: &TargetBody| {
        (
            target.kind,
            target.connection.clone(),
            target.exchange.clone(),
            target.body,
            target.mandatory != Some(false),
        )
    };
    parts(there) == parts(wanted)
}

/// Adds the advice for a server that does not know the connection.
fn unknown(error: ClientError, connection: &str) -> anyhow::Error {
    match error.problem() {
        Some(problem) if problem.member.as_deref() == Some("connection") => {
            let hint = problem.hint.as_deref().unwrap_or("none is known");
            anyhow!(
                "{} ({hint}); add the table [push.connections.{connection}] with kind = \"amqp\" to the configuration file of the server, \
                 and start it again",
                problem.detail
            )
        }
        _ => anyhow::Error::from(error).context("failed to give the queue its target"),
    }
}

//! [`Bridge`]: moves messages from RabbitMQ into a store, on one connection after the other.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::figures::BridgeFigures;
use super::plan::BridgePlan;
use super::session::{Ended, Session};
use super::store::Store;
use crate::amqp::AmqpDial;
use crate::broker::{Link, LinkState};
use crate::outcome::Outcome;

/// The pause after the first session that failed. It doubles with each that follows.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// The longest pause between two sessions.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Moves messages from a queue of RabbitMQ into a store that keeps them until they are due.
///
/// A message is acked when it is durable in the store. It is delivered again if the bridge, the broker or the connection ends before that:
/// with a key it makes the same task again, and without one it may make a second task. What the store will never take goes to the queue for
/// refused messages, with the reason as the header `tickwheel-refused`.
///
/// The other half is the target of the queue of Tickwheel, see [`BridgePlan::target`].
pub struct Bridge {
    plan: BridgePlan,
    link: Arc<Link<AmqpDial>>,
    store: Arc<dyn Store>,
    figures: Arc<BridgeFigures>,
}

/// Why a bridge cannot begin its work.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BridgeError {
    /// The broker refused to declare an exchange or a queue. One of the name may be there already and have another type.
    #[error("the broker refuses the exchanges and queues of the bridge: {0}")]
    Undeclared(String),
}

impl Bridge {
    /// Returns a bridge. Opens no connection yet. The link may be that of the target.
    #[must_use]
    pub fn open(plan: BridgePlan, link: Arc<Link<AmqpDial>>, store: Arc<dyn Store>) -> Self {
        Self { plan, link, store, figures: Arc::default() }
    }

    /// Returns the counts of the bridge.
    #[must_use]
    pub fn figures(&self) -> Arc<BridgeFigures> {
        Arc::clone(&self.figures)
    }

    /// Returns the state of the connection.
    #[must_use]
    pub fn state(&self) -> LinkState {
        self.link.state()
    }

    /// Moves messages until `until` is ready, and then settles those on their way, within 10 s. A lost connection is opened again. A future
    /// that is dropped stops at once, and the broker keeps what was not acked.
    ///
    /// # Errors
    /// [`BridgeError`] if the broker refuses the exchanges or queues before the first message. Later, such a refusal is tried again.
    pub async fn run(&self, until: impl Future<Output = ()> + Send) -> Result<(), BridgeError> {
        let mut until = pin!(until);
        let mut pause = PAUSE_MIN;
        let mut has_worked = false;
        loop {
            let live = tokio::select! {
                biased;
                () = &mut until => return Ok(()),
                live = self.link.live() => live,
            };
            let (reason, wait) = match live {
                Err(outcome) => {
                    let wait_ms = match &outcome {
                        Outcome::TargetFailed { open_ms: Some(open_ms), .. } => *open_ms,
                        _ => 100,
                    };
                    let reason = outcome.reason().cloned().unwrap_or_default();
                    (reason, Duration::from_millis(wait_ms))
                }
                Ok(connection) => {
                    let begun = tokio::select! {
                        biased;
                        () = &mut until => return Ok(()),
                        begun = Session::begin(&self.plan, &connection, &self.store, &self.figures) => begun,
                    };
                    let ended = match begun {
                        Ok(session) => {
                            (has_worked, pause) = (true, PAUSE_MIN);
                            match session.run(until.as_mut()).await {
                                Ok(()) => return Ok(()),
                                Err(ended) => ended,
                            }
                        }
                        Err(ended) => ended,
                    };
                    let reason = match ended {
                        Ended::Undeclared(reason) if !has_worked => {
                            return Err(BridgeError::Undeclared(reason));
                        }
                        Ended::Undeclared(reason) | Ended::Lost(reason) => reason,
                    };
                    let wait = pause;
                    pause = (pause * 2).min(PAUSE_MAX);
                    (reason.into(), wait)
                }
            };
            self.figures.set_trouble(Some(reason));
            tokio::select! {
                biased;
                () = &mut until => return Ok(()),
                () = sleep(wait) => {}
            }
        }
    }
}

//! [`Replicas`]: the wait until replicas have the entries of a connection.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{RedisError, cmd};
use tokio::sync::Mutex;

/// The wait until replicas have the entries of one connection.
///
/// `WAIT` covers all entries that its connection has added, and holds up all commands behind it. So one `WAIT` at a time is under way, and it
/// serves all messages whose entries were there when it began.
#[derive(Debug, Default)]
pub(super) struct Replicas {
    /// The number of entries that the server has confirmed.
    added: AtomicU64,
    last: Mutex<LastWait>,
}

/// The last `WAIT` that was answered.
#[derive(Debug, Default)]
struct LastWait {
    /// The number of confirmed entries when it began.
    covered: u64,
    /// The number of replicas at which it would have ended early.
    wanted: u32,
    /// The number of replicas that had them at its end.
    replicas: u32,
}

impl Replicas {
    /// Returns the number of replicas that have an entry which the server has just confirmed. Waits until there are `wanted` of them, or until
    /// the time is over.
    pub(super) async fn wait(
        &self,
        commands: &mut MultiplexedConnection,
        wanted: u32,
        time: Duration,
    ) -> Result<u32, RedisError> {
        let mine = self.added.fetch_add(1, Ordering::SeqCst) + 1;
        let mut last = self.last.lock().await;
        let is_answered = last.replicas >= wanted || last.wanted >= wanted;
        if last.covered < mine || !is_answered {
            let covered = self.added.load(Ordering::SeqCst);
            let time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
            let replicas = cmd("WAIT").arg(wanted).arg(time_ms).query_async(commands).await?;
            *last = LastWait { covered, wanted, replicas };
        }
        Ok(last.replicas)
    }
}

//! The open connections to one server that no call uses now.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use tickwheel_http::Connection;

/// The number of kept connections: 64. This number of calls can share one client at the same time without new connections.
const KEPT_MAX: usize = 64;
/// The time after which an unused connection is closed: 15 s. Proxies also close theirs after some time, and a call that is sent at that
/// moment is lost.
const KEPT_TIME_MAX: Duration = Duration::from_secs(15);

/// Kept connections. The one that was used last is at the end.
#[derive(Default)]
pub(crate) struct Pool(Mutex<Vec<(Connection, Instant)>>);

impl Pool {
    /// The open connection that was used last.
    pub(crate) async fn take(&self) -> Option<Connection> {
        loop {
            let (mut connection, since) = self.kept().pop()?;
            if since.elapsed() < KEPT_TIME_MAX && connection.is_open().await {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection, unless it can no longer be used.
    pub(crate) fn put(&self, connection: Connection) {
        if !connection.has_ended() {
            let mut kept = self.kept();
            // Closed outside of the lock.
            let _oldest = (kept.len() >= KEPT_MAX).then(|| kept.remove(0));
            kept.push((connection, Instant::now()));
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<(Connection, Instant)>> {
        // Each change is one step, so that a panic leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

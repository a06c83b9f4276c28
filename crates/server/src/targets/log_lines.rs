//! Log lines about targets.

use tickwheel_api::{ConnectionRow, ConnectionState, TargetKind, WITH_ALL_BROKERS};
use tickwheel_push::{Notice, TargetState};

use crate::events;

/// The program was built without the kind of a connection.
pub(super) fn unsupported(connection: &str, kind: TargetKind) {
    tracing::warn!(
        event = events::DOUBTFUL,
        connection,
        kind = kind.name(),
        "no target can use the connection, because this program was built without its kind; {WITH_ALL_BROKERS}"
    );
}

/// The state of a target changed.
pub(super) fn changed(notice: &Notice) {
    let (queue, state, reason) = (notice.queue.as_str(), notice.state.name(), notice.reason.as_deref());
    match notice.state {
        TargetState::Open | TargetState::Disabled => {
            tracing::warn!(
                event = events::TARGET_CHANGED,
                queue,
                state,
                reason,
                "nothing is sent to the target"
            )
        }
        TargetState::Paused => {
            tracing::info!(event = events::TARGET_CHANGED, queue, state, "the target is paused")
        }
        TargetState::HalfOpen => {
            tracing::info!(event = events::TARGET_CHANGED, queue, state, reason, "the target is tried again")
        }
        TargetState::Closed => {
            tracing::info!(event = events::TARGET_CHANGED, queue, state, "messages are sent to the target")
        }
    }
}

/// The state of a connection to a broker changed.
pub(super) fn connection_changed(connection: &ConnectionRow) {
    let ConnectionRow { name, kind, state, reason, .. } = connection;
    let (connection, kind, state, reason) = (name.as_str(), kind.name(), state.name(), reason.as_deref());
    if reason.is_some() {
        tracing::warn!(
            event = events::CONNECTION_CHANGED,
            connection,
            kind,
            state,
            reason,
            "nothing is sent over the connection"
        );
    } else {
        let text = if state == ConnectionState::Up.name() {
            "the connection is open"
        } else {
            "the connection was lost while no message needed it"
        };
        tracing::info!(event = events::CONNECTION_CHANGED, connection, kind, state, "{text}");
    }
}

/// A change of a target cannot be stored, so that it ends with this run of the server.
pub(super) fn not_kept(queue: &str, why: &str) {
    tracing::error!(
        event = events::TARGET_NOT_KEPT,
        queue,
        why,
        "failed to store that the target is disabled"
    );
}

/// The targets cannot be read, so nothing is sent.
pub(super) fn not_read(why: &str) {
    tracing::error!(event = events::TARGETS_NOT_READ, why, "failed to read the targets: nothing is sent");
}

/// The targets were read at the start.
pub(super) fn started(targets: usize, renewed: usize) {
    if targets > 0 {
        tracing::info!(event = events::TARGETS_STARTED, targets, renewed, "the targets are read");
    }
}

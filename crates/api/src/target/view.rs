//! A target as the server shows it.

use crate::declare::{body, choice, count, duration, flat, has, instant, list, may, object, or, text};

use super::body::TargetBody;
use super::kinds::TargetKind;

body! {
    /// A target with its state. Secrets are not shown: `{"set": true}` says that there is one.
    ///
    /// The answer to `GET` and `PUT /v1/queues/{q}/target` and to `pause` and `resume`.
    pub struct TargetView: answer "TargetState" {
        /// The name of the queue.
        queue: String = has(text(200, ""));
        /// The settings.
        target: TargetBody = flat();
        /// The version of the settings, as in `ETag`.
        version: u64 = has(count());
        /// The state.
        state: TargetState = has(choice());
        /// Since when the target is in this state, at the earliest since the start of the server. For `open` and `half_open`: since it first opened.
        since_ms as "since": Option<i64> = may(instant());
        /// When the server sends the next message, if the state is `open`.
        next_try_ms as "next_try": Option<i64> = may(instant());
        /// The reason of the state, or of the last failure.
        reason: Option<String> = may(text(1_000, ""));
        /// Number of messages that are under way.
        in_flight: u64 = has(count());
        /// Number of attempts by outcome, since the server started.
        attempts: PushCounts = has(object());
    }
}

body! {
    /// Number of attempts by outcome, since the server started.
    #[derive(Copy, Default)]
    pub struct PushCounts: answer "PushCounts" {
        /// The other side confirmed.
        acked: u64 = has(count());
        /// The task failed, and the attempt counted.
        failed: u64 = has(count());
        /// The task died at once.
        dead: u64 = has(count());
        /// The target failed, and the attempt did not count.
        given_back: u64 = has(count());
        /// The settings of the operator block the address, and the attempt did not count.
        blocked: u64 = has(count());
    }
}

choice! {
    /// The state of a target.
    pub enum TargetState {
        /// Messages are sent: the breaker is closed.
        Closed = "closed",
        /// The target has failed too often. Nothing is sent for a while.
        Open = "open",
        /// The target has failed. One message at a time is sent, to see whether it works again.
        HalfOpen = "half_open",
        /// The target was disabled by an answer of the other side, by its settings, or because the server cannot send to it.
        Disabled = "disabled",
        /// An operator paused it.
        Paused = "paused",
    }
}

body! {
    /// The targets inside the token's scope.
    ///
    /// The answer to `GET /v1/targets`.
    pub struct TargetsBody: answer "Targets" {
        /// The targets, in the order of the names of their queues.
        targets: Vec<TargetRow> = has(list(object(), ""));
        /// The connections of the server's configuration. A token with a scope does not see them.
        connections: Vec<ConnectionRow> = or(Vec::new(), list(object(), ""));
    }
}

body! {
    /// A target in a list.
    pub struct TargetRow: answer "TargetRow" {
        /// The name of the queue.
        queue: String = has(text(200, ""));
        /// The kind of the other side.
        kind: TargetKind = has(choice());
        /// The place: the URL without its query, or the connection and the name in the broker.
        to: String = has(text(4_096, ""));
        /// The state.
        state: TargetState = has(choice());
        /// Since when the target is in this state, at the earliest since the start of the server. For `open` and `half_open`: since it first opened.
        since_ms as "since": Option<i64> = may(instant());
        /// When the server sends the next message, if the state is `open`.
        next_try_ms as "next_try": Option<i64> = may(instant());
        /// The reason of the state, or of the last failure.
        reason: Option<String> = may(text(1_000, ""));
        /// Number of messages that are under way.
        in_flight: u64 = has(count());
        /// Number of attempts by outcome, since the server started.
        attempts: PushCounts = has(object());
    }
}

body! {
    /// A named connection to a broker.
    pub struct ConnectionRow: answer "Connection" {
        /// The name in the server's configuration.
        name: String = has(text(100, ""));
        /// The kind of the broker.
        kind: TargetKind = has(choice());
        /// The state.
        state: ConnectionState = has(choice());
        /// Since when the connection is in this state, if it was ever used.
        since_ms as "since": Option<i64> = may(instant());
        /// The reason why the connection is down.
        reason: Option<String> = may(text(1_000, ""));
    }
}

choice! {
    /// The state of a connection.
    pub enum ConnectionState {
        /// No message has needed it yet, or none has needed it since it was lost.
        Unused = "unused",
        /// The connection is open.
        Up = "up",
        /// The connection cannot be opened.
        Down = "down",
    }
}

body! {
    /// The target is taken away.
    ///
    /// The answer to `DELETE /v1/queues/{q}/target`: `{"result": "deleted"}`. Messages that were under way are settled.
    #[derive(Copy)]
    pub struct DeleteTargetAnswer: answer "TargetDeleted" {
        /// The queue has no target any more.
        result: TargetGone = has(choice());
    }
}

choice! {
    /// The result of the deletion of a target.
    pub enum TargetGone {
        /// The queue has no target any more. Its tasks stay.
        Deleted = "deleted",
    }
}

/// The default of the time for which the old secret signs, too: 24 h.
const OVERLAP_MS_DEFAULT: u64 = 86_400_000;
/// The longest time for which the old secret signs, too: 30 days.
const OVERLAP_MS_MAX: u64 = 30 * 86_400_000;

body! {
    /// The exchange of the secret that signs.
    ///
    /// The body of `POST /v1/queues/{q}/target/rotate`: empty, or `{"overlap": "24h"}`.
    #[derive(Copy)]
    pub struct RotateBody: request "Rotate" {
        /// The time for which the secrets of before sign, too, up to 30 days. Default: 24 h.
        overlap_ms as "overlap": u64 = or(OVERLAP_MS_DEFAULT, duration().within(0, OVERLAP_MS_MAX).like("24h"));
    }
}

impl Default for RotateBody {
    fn default() -> Self {
        Self { overlap_ms: OVERLAP_MS_DEFAULT }
    }
}

body! {
    /// The new secret.
    ///
    /// The answer to `POST /v1/queues/{q}/target/rotate`. No later call shows the secret.
    pub struct RotatedBody: answer "Rotated" {
        /// The secret, for the receiver.
        secret: String = has(text(100, "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"));
        /// The id of the secret in the settings of the target.
        id: String = has(text(100, "5e884898"));
        /// Until when the secrets of before sign, too.
        until_ms as "until": i64 = has(instant());
    }
}

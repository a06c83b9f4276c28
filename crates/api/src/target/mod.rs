//! Targets: the other side of a queue whose tasks the server sends by itself.
//!
//! - `body`: the settings of a target.
//! - `kinds`: which member goes with which kind.
//! - `parts`: the objects in the settings.
//! - `secret`, `names`: how secrets and headers are written.
//! - `view`: a target as the server shows it.
//! - `attempt`: the attempts to send.

mod attempt;
mod body;
mod kinds;
mod names;
mod parts;
mod secret;
mod view;

pub use attempt::{AttemptBody, AttemptOutcome, AttemptsBody, AttemptsQuery, TargetTestBody};
pub use body::{
    ContentForm, HttpMethod, TARGET_CONCURRENCY_MAX, TARGET_HEADERS_MAX, TARGET_TIMEOUT_MS_MAX,
    TARGET_TIMEOUT_MS_MIN, TargetBody, TargetOrder,
};
pub use kinds::TargetKind;
pub use parts::{
    AuthBody, BasicBody, BreakerBody, ListEnd, SIGNING_MAX, SigningBody, TargetTlsBody, TlsVersion,
};
pub use secret::SecretBody;
pub use view::{
    ConnectionRow, ConnectionState, DeleteTargetAnswer, PushCounts, RotateBody, RotatedBody, TargetGone,
    TargetRow, TargetState, TargetView, TargetsBody,
};

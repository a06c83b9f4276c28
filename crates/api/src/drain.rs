//! A server that takes no new tasks.

use serde::{Deserialize, Serialize};

/// The answer of `POST /v1/drain` and `POST /v1/resume`: `{"draining": true}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainBody {
    /// Whether the server takes no new tasks, while all else goes on.
    pub draining: bool,
}

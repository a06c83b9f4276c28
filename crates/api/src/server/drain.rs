//! The answer of a server that is told to drain or to resume.

use crate::declare::body::body;
use crate::declare::kind::flag;
use crate::declare::part::has;

body! {
    /// Whether the server drains.
    ///
    /// The answer of `POST /v1/drain` and `POST /v1/resume`: `{"draining": true}`.
    #[derive(Copy)]
    pub struct DrainBody: answer "Drained" {
        /// Whether the server refuses new tasks. All other calls go on.
        draining: bool = has(flag());
    }
}

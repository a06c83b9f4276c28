//! A server that takes no new tasks.

use crate::body::body;
use crate::kind::flag;
use crate::part::has;

body! {
    /// Whether the server drains.
    ///
    /// The answer of `POST /v1/drain` and `POST /v1/resume`: `{"draining": true}`.
    #[derive(Copy)]
    pub struct DrainBody: answer "Drained" {
        /// Whether no new tasks are taken while all else goes on.
        draining: bool = has(flag());
    }
}

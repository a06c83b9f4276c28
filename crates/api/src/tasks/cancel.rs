//! The definite answers to a cancel.

use crate::declare::schema::one_of;
use crate::declare::{ValueCodec, body, choice, has};
use crate::problems::cancel_outcome::CancelOutcome;

body! {
    /// The task is not delivered any more.
    ///
    /// The body of a cancel that took effect: `{"result": "cancelled"}`. The other outcomes are a [`Problem`](crate::Problem) with the same
    /// member.
    #[derive(Copy)]
    pub struct CancelAnswer: answer "Cancelled" {
        /// `revoked`: a worker had the task.
        result: CancelOutcome = has(choice().described(|| one_of(&["cancelled", "revoked"])));
    }
}

//! [`InboxRow`]: a put or a cancel that a user has written to the inbox of a store.

use tickwheel_engine::TakeRow;

/// A row of the inbox of a store. A transaction of a user wrote the row and has committed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InboxRow {
    /// The id of the row.
    pub id: u64,
    /// The call that takes the row, or the reason why there can be none.
    pub asked: Result<TakeRow, String>,
}

/// The end of a row that the queue took out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RowEnd {
    /// The row had its effect, and a commit has deleted it.
    Taken,
    /// No task can be made of the row. The store keeps the row and the reason for a person, and hands the row out no more.
    Refused {
        /// The reason, as a part of a sentence.
        why: String,
    },
    /// The row had no effect, or its outcome is unknown. If the row is still in the inbox, the store hands it out again.
    Later,
}

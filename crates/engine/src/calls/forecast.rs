//! The forecast: how many tasks fall due in each bucket of time.

use crate::name::QueueName;
use crate::seam::Grid;
use crate::time::{Seq, Timestamp};

/// Counts the tasks that fall due from now on, by their due times. Not counted: dead tasks, tasks that are ready or leased by now, tasks
/// that a schedule will put, and later instants of a timeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forecast {
    /// Only tasks of this queue; `None`: tasks of all queues.
    pub queue: Option<QueueName>,
    /// Where the first bucket begins; `None`: now. Tasks that are due by now are never counted, even if the first bucket begins earlier.
    pub from: Option<Timestamp>,
    /// The buckets, at most [`FORECAST_BUCKETS_MAX`]. Buckets of one length are counted from 1970 on, side by side, and the first of them
    /// is the one that `from` is in.
    pub grid: Grid,
}

/// The largest number of buckets of a forecast: one for each minute of a week, and one for the minute that has begun.
pub const FORECAST_BUCKETS_MAX: usize = 10_081;

/// How many tasks fall due in each bucket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForecastView {
    /// Where the first bucket begins. The `from` of the call is in this bucket.
    pub from: Timestamp,
    /// How many tasks are due in each bucket, of those that are due later than now.
    pub counts: Vec<u64>,
    /// All changes up to this one are counted. Later changes may be counted, too. A task that was changed during the count may be missing.
    pub as_of: Seq,
}

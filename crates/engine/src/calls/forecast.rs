//! The forecast: how many tasks fall due in each bucket of time.

use crate::name::QueueName;
use crate::seam::Grid;
use crate::time::{Seq, Timestamp};

/// Counts the tasks that fall due later than now, by their due times. Not counted: dead tasks, tasks that are due already, tasks that
/// schedules have not made yet, and later instants of timelines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forecast {
    /// Only tasks of this queue; `None`: tasks of all queues.
    pub queue: Option<QueueName>,
    /// The instant at which the forecast begins; `None`: now. Tasks that are due now or earlier are never counted, even if the forecast
    /// begins earlier.
    pub from: Option<Timestamp>,
    /// The buckets, at most [`FORECAST_BUCKETS_MAX`]; later buckets are left out. Buckets of one length are counted from the Unix epoch,
    /// and the first bucket of the forecast is the one that contains `from`.
    pub grid: Grid,
}

/// The largest number of buckets of a forecast: one for each minute of a week, and one for the minute that has begun.
pub const FORECAST_BUCKETS_MAX: usize = 10_081;

/// The number of tasks that fall due in each bucket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForecastView {
    /// The instant at which the first bucket begins. This bucket contains the `from` of the call.
    pub from: Timestamp,
    /// For each bucket, the number of tasks that are due in it and later than now.
    pub counts: Vec<u64>,
    /// The seq up to which all changes are counted. Later changes may be counted, too. A task that was changed during the count may be
    /// missing or counted twice.
    pub as_of: Seq,
}

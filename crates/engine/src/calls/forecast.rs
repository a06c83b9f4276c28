//! How much falls due when.

use crate::name::QueueName;
use crate::seam::Grid;
use crate::time::{Seq, Timestamp};

/// Counts the tasks that fall due from now on, by when they do. Dead ones do not count, nor does what is ready or leased by now, what a schedule
/// will put, or a later instant of a timeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forecast {
    /// Those of this queue; `None`: of all.
    pub queue: Option<QueueName>,
    /// Where the first bucket begins; `None`: now. Of what is due by now nothing is counted, wherever that is.
    pub from: Option<Timestamp>,
    /// The buckets, at most [`FORECAST_BUCKETS_MAX`]. Those of one length stand side by side from 1970 on; the first is the one that `from` is in.
    pub grid: Grid,
}

/// The largest number of buckets of a forecast: one for each minute of a week, and the one that has begun.
pub const FORECAST_BUCKETS_MAX: usize = 10_081;

/// How many tasks fall due when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForecastView {
    /// Where the first bucket begins: now is in it.
    pub from: Timestamp,
    /// How many tasks are due in each; of the first those that are later than now.
    pub counts: Vec<u64>,
    /// All changes up to this one are counted; later ones may be, and a task that was changed while it was counted may be missing.
    pub as_of: Seq,
}

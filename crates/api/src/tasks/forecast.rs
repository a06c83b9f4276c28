//! The forecast: how many tasks fall due in each bucket of time.

use crate::declare::query::{self, query};
use crate::declare::{
    ValueCodec, body, choice, count, duration, flag, has, instant, list, may, object, schema, text, unless,
};
use crate::tasks::filter::instant as time_or_ms;
use crate::text::bad_request::BadRequest;
use crate::text::{duration, time};

/// Maximum number of buckets of a forecast (one week in minutes).
pub const FORECAST_BUCKETS_MAX: u64 = 10_080;

choice! {
    /// The lengths of the buckets of a forecast.
    #[derive(Default)]
    pub enum ForecastScale {
        /// All buckets have one length.
        #[default]
        Linear = "linear",
        /// The buckets get longer with their distance from now: [`LOG_ENDS_MS`].
        Log = "log",
    }
}

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const YEAR: u64 = 365 * DAY;

/// The ends of the buckets of a forecast with a logarithmic scale, after its begin (ms): from a second to 100 years of 365 days.
pub const LOG_ENDS_MS: [u64; 39] = [
    SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    20 * SECOND,
    25 * SECOND,
    30 * SECOND,
    35 * SECOND,
    40 * SECOND,
    45 * SECOND,
    50 * SECOND,
    55 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    20 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    3 * DAY,
    7 * DAY,
    14 * DAY,
    30 * DAY,
    60 * DAY,
    90 * DAY,
    180 * DAY,
    YEAR,
    2 * YEAR,
    5 * YEAR,
    10 * YEAR,
    20 * YEAR,
    50 * YEAR,
    100 * YEAR,
];

/// Length of a bucket if the request does not say (ms).
const BUCKET_DEFAULT_MS: u64 = MINUTE;
/// Length of a forecast if the request does not say (ms).
const SPAN_DEFAULT_MS: u64 = DAY;

query! {
    /// The query of `GET /v1/forecast`: `?queue=&scale=linear&bucket=1m&span=24h&from=&schedules=true|false`.
    pub struct ForecastQuery {
        /// The queue whose tasks are counted; `None`: the tasks of all queues are.
        queue: Option<String> = None, |_, given: &str| Ok::<_, BadRequest>(Some(given.to_owned()));
        /// The lengths of the buckets.
        scale: ForecastScale = ForecastScale::Linear, query::choice;
        /// Length of a bucket (ms): 1 s or more; `None`: 1 min. A logarithmic scale has none.
        bucket_ms as "bucket": Option<u64> = None, length, written;
        /// Length of the forecast after its first bucket (ms); `None`: 24 h; at most [`FORECAST_BUCKETS_MAX`] buckets. A logarithmic scale has none.
        span_ms as "span": Option<u64> = None, length, written;
        /// An instant in the first bucket (ms since 1970); `None`: now. A logarithmic scale begins now.
        from_ms as "from": Option<i64> = None, |name, given| time_or_ms(name, given).map(Some), |ms: &Option<i64>| ms.map(time::format).unwrap_or_default();
        /// Whether the instants of schedules are counted, too.
        schedules: bool = false, query::flag;
    }
    later: &["tag"];
    check: ForecastQuery::check;
}

fn length(name: &'static str, given: &str) -> Result<Option<u64>, BadRequest> {
    duration::parse(given).map(Some).map_err(|error| error.of_parameter(name))
}

fn written(ms: &Option<u64>) -> String {
    ms.map(duration::format).unwrap_or_default()
}

impl ForecastQuery {
    /// Refuses buckets that are too short or too many, and what a logarithmic scale does not have.
    fn check(&self) -> Result<(), BadRequest> {
        if self.scale == ForecastScale::Log {
            let given = [
                ("bucket", self.bucket_ms.is_some()),
                ("span", self.span_ms.is_some()),
                ("from", self.from_ms.is_some()),
            ];
            let Some((name, _)) = given.into_iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
            let what = "means nothing with `scale=log`, whose buckets are fixed and begin now";
            return Err(BadRequest::parameter(name, what, "leave one of the two out"));
        }
        let [span, bucket] = [self.span(), self.bucket()].map(duration::format);
        if self.bucket() < 1_000 {
            let what = format!("{bucket} is shorter than a second");
            return Err(BadRequest::parameter("bucket", what, "write `1s` or more"));
        }
        if !(1..=FORECAST_BUCKETS_MAX).contains(&self.buckets()) {
            let buckets = self.buckets();
            let what =
                format!("{span} has {buckets} buckets of {bucket}, not from 1 to {FORECAST_BUCKETS_MAX}");
            return Err(BadRequest::parameter("span", what, "make the buckets longer, or change the span"));
        }
        Ok(())
    }

    /// Length of a bucket of a linear forecast (ms).
    #[must_use]
    pub fn bucket(&self) -> u64 {
        self.bucket_ms.unwrap_or(BUCKET_DEFAULT_MS)
    }

    /// Length of a linear forecast after its first bucket (ms).
    #[must_use]
    pub fn span(&self) -> u64 {
        self.span_ms.unwrap_or(SPAN_DEFAULT_MS)
    }

    /// Number of buckets of a linear forecast after the first.
    #[must_use]
    pub fn buckets(&self) -> u64 {
        self.span().div_ceil(self.bucket().max(1))
    }
}

body! {
    /// The number of tasks that fall due in each bucket of time.
    ///
    /// The answer to `GET /v1/forecast`: `{"queue", "bucket", "from", "to", "tasks", "buckets": [{"at", "tasks"}]}`. With a logarithmic scale it has no `bucket`, and each bucket has its end, `to`.
    pub struct ForecastBody: answer "Forecast" {
        /// The queue that the request named.
        queue: Option<String> = may(text(200, ""));
        /// Length of a bucket; absent with a logarithmic scale.
        bucket_ms as "bucket": Option<u64> = may(duration().described(|| schema::text(64)));
        /// Begin of the first bucket. Only tasks that are still to come are counted.
        from_ms as "from": i64 = has(instant());
        /// End of the last bucket.
        to_ms as "to": i64 = has(instant());
        /// Number of tasks in all buckets.
        tasks: u64 = has(count());
        /// Number of instants of schedules in all buckets, if the request asked for them. A schedule puts a task at each of them, unless its rules leave the instant out.
        expected: Option<u64> = may(count());
        /// Whether schedules have more instants than were counted: at most 10,000 of a schedule and 50,000 of all, the nearest first.
        truncated: bool = unless(false, flag());
        /// If they have more: the instant up to which all are counted.
        expected_until_ms as "expected_until": Option<i64> = may(instant());
        /// The buckets that have tasks or instants of schedules, in the order of time.
        buckets: Vec<BucketBody> = has(list(object(), ""));
    }
}

body! {
    /// One bucket of a forecast.
    #[derive(Copy)]
    pub struct BucketBody: answer "Bucket" {
        /// Begin of the bucket.
        at_ms as "at": i64 = has(instant());
        /// End of the bucket, which belongs to the next one; with a logarithmic scale only.
        to_ms as "to": Option<i64> = may(instant());
        /// Number of tasks that fall due in the bucket.
        tasks: u64 = has(count());
        /// Number of instants of schedules in the bucket, if the request asked for them.
        expected: Option<u64> = may(count());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read_and_written() {
        assert_eq!(ForecastQuery::parse(""), Ok(ForecastQuery::default()));
        let asked = ForecastQuery::parse("queue=shop%2Fclose&bucket=1h&span=7d").expect("good");
        assert_eq!((asked.queue.as_deref(), asked.buckets()), (Some("shop/close"), 168));
        assert_eq!(ForecastQuery::parse(&asked.to_query()), Ok(asked));
        let later = ForecastQuery::parse("from=2030-01-01T00:00:00Z&schedules=true").expect("good");
        assert_eq!((later.from_ms, later.schedules), (Some(1_893_456_000_000), true));
        assert_eq!(ForecastQuery::parse(&later.to_query()), Ok(later));
        assert!(LOG_ENDS_MS.is_sorted() && LOG_ENDS_MS[38] == 3_153_600_000_000);
        for (query, what) in [
            ("bucket=1", "has no unit"),
            ("bucket=999ms", "999ms is shorter than a second"),
            ("span=8d", "8d has 11520 buckets of 1m, not from 1 to 10080"),
            ("span=0s", "0s has 0 buckets"),
            ("from=now", "`now` is not an RFC 3339 time"),
            ("scale=log&bucket=1m", "`bucket`: means nothing with `scale=log`"),
            ("scale=log&from=5", "`from`: means nothing with `scale=log`"),
            ("scale=even", "`even` is not known"),
            ("tag=a", "is not supported by this version"),
            ("que=a", "is not a parameter of this request"),
        ] {
            let refused = ForecastQuery::parse(query).expect_err(query).to_string();
            assert!(refused.contains(what), "{query}: {refused}");
        }
    }
}

//! The forecast: how many tasks fall due in each bucket of time.

use crate::bad_request::BadRequest;
use crate::body::body;
use crate::duration;
use crate::kind::{Kind, count, duration, instant, list, object, text};
use crate::openapi::schema;
use crate::part::{has, may};
use crate::query::query;

/// Maximum number of buckets of a forecast (one week in minutes).
pub const FORECAST_BUCKETS_MAX: u64 = 10_080;

query! {
    /// The query of `GET /v1/forecast`: `?queue=&bucket=1m&span=24h`.
    pub struct ForecastQuery {
        /// The queue whose tasks are counted; `None`: the tasks of all queues are.
        queue: Option<String> = None, |_, given: &str| Ok::<_, BadRequest>(Some(given.to_owned()));
        /// Length of a bucket (ms): 1 s or more, by default 1 min.
        bucket_ms as "bucket": u64 = 60_000, length, |ms: &u64| duration::format(*ms);
        /// Length of the forecast after the current bucket (ms), by default 24 h; at most [`FORECAST_BUCKETS_MAX`] buckets.
        span_ms as "span": u64 = 86_400_000, length, |ms: &u64| duration::format(*ms);
    }
    later: &["from", "tag"];
    check: ForecastQuery::check;
}

fn length(name: &'static str, given: &str) -> Result<u64, BadRequest> {
    duration::parse(given).map_err(|error| error.of_parameter(name))
}

impl ForecastQuery {
    /// Refuses buckets that are too short or too many.
    fn check(&self) -> Result<(), BadRequest> {
        let [span, bucket] = [self.span_ms, self.bucket_ms].map(duration::format);
        if self.bucket_ms < 1_000 {
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

    /// Number of buckets after the current one.
    pub fn buckets(&self) -> u64 {
        self.span_ms.div_ceil(self.bucket_ms.max(1))
    }
}

body! {
    /// The number of tasks that fall due in each bucket of time.
    ///
    /// The answer to `GET /v1/forecast`: `{"queue", "bucket", "from", "to", "tasks", "buckets": [{"at", "tasks"}]}`.
    pub struct ForecastBody: answer "Forecast" {
        /// The queue that the request named.
        queue: Option<String> = may(text(200, ""));
        /// Length of a bucket.
        bucket_ms as "bucket": u64 = has(duration().described(|| schema::text(64)));
        /// Begin of the first bucket, which contains now. Only tasks that are still to come are counted in it.
        from_ms as "from": i64 = has(instant());
        /// End of the last bucket.
        to_ms as "to": i64 = has(instant());
        /// Number of tasks in all buckets.
        tasks: u64 = has(count());
        /// The buckets that have tasks, in the order of time.
        buckets: Vec<BucketBody> = has(list(object(), ""));
    }
}

body! {
    /// One bucket of a forecast.
    #[derive(Copy)]
    pub struct BucketBody: answer "Bucket" {
        /// Begin of the bucket.
        at_ms as "at": i64 = has(instant());
        /// Number of tasks that fall due in the bucket.
        tasks: u64 = has(count());
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
        for (query, what) in [
            ("bucket=1", "has no unit"),
            ("bucket=999ms", "999ms is shorter than a second"),
            ("span=8d", "8d has 11520 buckets of 1m, not from 1 to 10080"),
            ("span=0s", "0s has 0 buckets"),
            ("from=now", "is not supported by this version"),
            ("que=a", "is not a parameter of this request"),
        ] {
            let refused = ForecastQuery::parse(query).expect_err(query).to_string();
            assert!(refused.contains(what), "{query}: {refused}");
        }
    }
}

//! The forecast: how many tasks fall due in each bucket of time.

use crate::bad_request::BadRequest;
use crate::body::body;
use crate::duration;
use crate::kind::{Kind, count, duration, instant, list, object, text};
use crate::openapi::schema;
use crate::part::{has, may};
use crate::query::{Parameters, Query};

/// Maximum number of buckets of a forecast (one week in minutes).
pub const FORECAST_BUCKETS_MAX: u64 = 10_080;

/// The query of `GET /v1/forecast`: `?queue=&bucket=1m&span=24h`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForecastQuery {
    /// The queue whose tasks are counted; `None`: the tasks of all queues are.
    pub queue: Option<String>,
    /// Length of a bucket (ms): 1 s or more, by default 1 min.
    pub bucket_ms: u64,
    /// Length of the forecast after the current bucket (ms), by default 24 h; at most [`FORECAST_BUCKETS_MAX`] buckets.
    pub span_ms: u64,
}

impl Default for ForecastQuery {
    fn default() -> Self {
        Self { queue: None, bucket_ms: 60_000, span_ms: 86_400_000 }
    }
}

impl ForecastQuery {
    /// Reads the text after the `?`.
    ///
    /// # Errors
    ///
    /// The errors of [`PutQuery::parse`](crate::PutQuery::parse); a forecast of more than [`FORECAST_BUCKETS_MAX`] buckets.
    pub fn parse(query: &str) -> Result<Self, BadRequest> {
        let found = Parameters::read(query, &["queue", "bucket", "span"], &["from", "tag"])?;
        let usual = Self::default();
        let length = |name: &'static str, usual: u64| match found.get(name) {
            None => Ok(usual),
            Some(given) => duration::parse(given).map_err(|error| error.of_parameter(name)),
        };
        let asked = Self {
            queue: found.get("queue").map(str::to_owned),
            bucket_ms: length("bucket", usual.bucket_ms)?,
            span_ms: length("span", usual.span_ms)?,
        };
        if asked.bucket_ms < 1_000 {
            let what = format!("{} is shorter than a second", duration::format(asked.bucket_ms));
            return Err(BadRequest::parameter("bucket", what, "write `1s` or more"));
        }
        if !(1..=FORECAST_BUCKETS_MAX).contains(&asked.buckets()) {
            let (span, bucket) = (duration::format(asked.span_ms), duration::format(asked.bucket_ms));
            let what = format!(
                "{span} has {} buckets of {bucket}, not from 1 to {FORECAST_BUCKETS_MAX}",
                asked.buckets()
            );
            return Err(BadRequest::parameter("span", what, "make the buckets longer, or change the span"));
        }
        Ok(asked)
    }

    /// Number of buckets after the current one.
    pub fn buckets(&self) -> u64 {
        self.span_ms.div_ceil(self.bucket_ms.max(1))
    }

    /// The query as [`parse`](Self::parse) reads it, without the `?`.
    pub fn to_query(&self) -> String {
        let mut query = Query::default();
        if let Some(queue) = &self.queue {
            query.add("queue", queue);
        }
        query.add("bucket", &duration::format(self.bucket_ms));
        query.add("span", &duration::format(self.span_ms));
        query.text
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

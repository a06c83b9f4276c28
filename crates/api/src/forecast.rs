//! How many tasks fall due when.

use crate::bad_request::BadRequest;
use crate::body::body;
use crate::duration;
use crate::kind::{Kind, count, duration, instant, list, object, text};
use crate::openapi::schema;
use crate::part::{has, may};
use crate::query::{Parameters, Query};

/// A forecast has at most so many buckets: a week by the minute.
pub const FORECAST_BUCKETS_MAX: u64 = 10_080;

/// The query of `GET /v1/forecast`: `?queue=&bucket=1m&span=24h`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForecastQuery {
    /// The tasks of this queue; `None`: of all.
    pub queue: Option<String>,
    /// How long a bucket is, ms: 1 s or more, by default a minute.
    pub bucket_ms: u64,
    /// How far it reaches beyond the bucket that has begun, ms, by default 24 hours: at most [`FORECAST_BUCKETS_MAX`] buckets.
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
    /// As [`PutQuery::parse`](crate::PutQuery::parse); more buckets than a forecast has.
    pub fn parse(query: &str) -> Result<Self, BadRequest> {
        let found = Parameters::read(query, &["queue", "bucket", "span"], &["from", "tag"])?;
        let usual = Self::default();
        let length = |name: &'static str, usual: u64| match found.get(name) {
            None => Ok(usual),
            Some(given) => duration::parse(given)
                .map_err(|error| BadRequest::parameter(name, error.to_string(), error.hint())),
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
            return Err(BadRequest::parameter("span", what, "make the buckets longer, or the span another"));
        }
        Ok(asked)
    }

    /// How many buckets that are, besides the one that has begun.
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
    /// How many tasks fall due when.
    ///
    /// The answer to `GET /v1/forecast`: `{"queue", "bucket", "from", "to", "tasks", "buckets": [{"at", "tasks"}]}`.
    pub struct ForecastBody: answer "Forecast" {
        /// The queue, if it was asked for one.
        queue: Option<String> = may(text(200, ""));
        /// How long a bucket is.
        bucket_ms as "bucket": u64 = has(duration().described(|| schema::text(64)));
        /// Where the first bucket begins: now is in it, and of it only counts what is still to come.
        from_ms as "from": i64 = has(instant());
        /// Where the last one ends.
        to_ms as "to": i64 = has(instant());
        /// How many fall due in all of them.
        tasks: u64 = has(count());
        /// Those that have any, in the order of time.
        buckets: Vec<BucketBody> = has(list(object(), ""));
    }
}

body! {
    /// One of them.
    #[derive(Copy)]
    pub struct BucketBody: answer "Bucket" {
        /// Where it begins.
        at_ms as "at": i64 = has(instant());
        /// How many fall due in it.
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

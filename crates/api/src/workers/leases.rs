//! The list of the leases that run.

use crate::declare::query::{self, query};
use crate::declare::{body, has, instant, key, list, number, object, or_null, shown, text};
use crate::text::bad_request::BadRequest;
use crate::values::limits::{CURSOR_BYTES_MAX, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, WORKER_BYTES_MAX};

query! {
    /// The query of `GET /v1/leases`: `?queue=&worker=&limit=&cursor=`.
    pub struct LeasesQuery {
        /// The queue of the tasks; `None`: all queues.
        queue: Option<String> = None, |_, given: &str| Ok::<_, BadRequest>(Some(given.to_owned()));
        /// The name of the worker that has the tasks; `None`: all workers.
        worker: Option<String> = None, |_, given| worker(given).map(Some);
        /// Maximum number of entries on the page: 1 to 1,000, by default 100.
        limit: usize = LIST_LIMIT_DEFAULT, |name, given| query::number(name, given, 1..=LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT);
        /// The `next_cursor` of the page before.
        cursor: Option<String> = None, |_, given| query::cursor(given, CURSOR_BYTES_MAX).map(Some);
    }
}

/// Checks the name of a worker by the rule of the member of a lease call. Another name would find nothing.
fn worker(given: &str) -> Result<String, BadRequest> {
    if (1..=WORKER_BYTES_MAX).contains(&given.len()) && !given.chars().any(char::is_control) {
        return Ok(given.to_owned());
    }
    let hint =
        format!("write 1 to {WORKER_BYTES_MAX} bytes without control characters, as a lease call has them");
    Err(BadRequest::parameter("worker", "is the name of no worker", hint))
}

body! {
    /// A lease that runs: which worker has which task.
    pub struct HeldLease: answer "HeldLease" {
        /// The queue of the task.
        queue: String = has(text(200, "close"));
        /// The key of the task.
        key: String = has(key("order:1"));
        /// The number of the attempt; 1 for the first one.
        attempt: u32 = has(number(1, u32::MAX.into()));
        /// The name of the worker; `null` if its lease call gave none, or the lease began before the last start of the server.
        worker: Option<String> = shown(None, or_null(text(WORKER_BYTES_MAX, "")));
        /// When the lease began; `null` if that was before the last start of the server.
        since_ms as "since": Option<i64> = shown(None, or_null(instant()));
        /// When the lease ends, unless the worker extends it.
        until_ms as "until": i64 = has(instant());
    }
}

body! {
    /// One page of the leases that run. A page may have fewer entries than `limit`, or none, and still have a next one.
    pub struct LeasesPage: answer "LeasesPage" {
        /// The leases in the order in which they began, shard by shard.
        leases: Vec<HeldLease> = has(list(object(), ""));
        /// The `cursor` of the next page; `null` on the last page.
        next_cursor: Option<String> = shown(None, or_null(text(512, "")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_reads_what_it_writes_and_refuses_what_finds_nothing() {
        let asked = LeasesQuery::parse("queue=shop%2Fclose&worker=mailer%201&limit=5").expect("good");
        assert_eq!((asked.queue.as_deref(), asked.worker.as_deref()), (Some("shop/close"), Some("mailer 1")));
        assert_eq!(LeasesQuery::parse(&asked.to_query()), Ok(asked));
        let long = format!("worker={}", "x".repeat(WORKER_BYTES_MAX + 1));
        for (query, what) in [
            ("worker=", "is the name of no worker"),
            ("worker=a%0Ab", "is the name of no worker"),
            (&long, "is the name of no worker"),
            ("limit=0", "limit"),
            ("key=a", "is not a parameter of this request"),
        ] {
            let refused = LeasesQuery::parse(query).expect_err(query).to_string();
            assert!(refused.contains(what), "{query}: {refused}");
        }
    }
}

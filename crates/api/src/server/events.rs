//! The events of `GET /v1/events`: the state of a server, told again when it changes.

use crate::declare::query::{query, word};
use crate::declare::{
    Choice, body, choice, count, flat, has, instant, list, may, object, or_null, shown as always, text,
};
use crate::queues::queries::queue_prefix;
use crate::queues::queue::QueueCounts;
use crate::server::job::JobBody;
use crate::text::bad_request::{BadRequest, shown};

/// The content type of a stream of events (WHATWG HTML, section 9.2).
pub const EVENTS_CONTENT_TYPE: &str = "text/event-stream";
/// Maximum number of queues in the events of one stream.
pub const EVENT_QUEUES_MAX: usize = 1_000;

choice! {
    /// A kind of events.
    pub enum EventTopic {
        /// The counts of all queues together, the events since the start, and lateness: each second.
        Stats = "stats",
        /// The queues whose rows have changed: every two seconds.
        Queues = "queues",
        /// The jobs: when one of them has changed.
        Jobs = "jobs",
        /// The wheel of the tasks in memory: four times a second. A token with a scope does not get it.
        Wheel = "wheel",
    }
}

impl EventTopic {
    /// The topics of a stream that names none.
    pub const DEFAULT: &[Self] = &[Self::Stats, Self::Queues, Self::Jobs];
}

query! {
    /// The query of `GET /v1/events`: `?topics=stats,queues,jobs&queue=&prefix=`.
    pub struct EventsQuery {
        /// The topics of the stream, by default all but `wheel`.
        topics: Vec<EventTopic> = EventTopic::DEFAULT.to_vec(), topics, |topics: &[EventTopic]| written(topics);
        /// The only queue in the events of the topic `queues`; `None`: each queue of the caller may be.
        queue: Option<String> = None, |_, given: &str| Ok::<_, BadRequest>(Some(given.to_owned()));
        /// The beginning of the names of the queues in the events of the topic `queues`.
        prefix: String = String::new(), |_, given| queue_prefix(given);
    }
    check: EventsQuery::check;
}

impl EventsQuery {
    fn check(&self) -> Result<(), BadRequest> {
        if self.queue.is_some() && !self.prefix.is_empty() {
            let hint = "leave one of the two out";
            return Err(BadRequest::parameter(
                "prefix",
                "stands beside `queue`, which names one queue",
                hint,
            ));
        }
        Ok(())
    }
}

fn topics(name: &'static str, given: &str) -> Result<Vec<EventTopic>, BadRequest> {
    let mut topics = Vec::new();
    for one in given.split(',') {
        let topic = word(name, one, EventTopic::WORDS)?;
        if topics.contains(&topic) {
            let what = format!("names `{}` twice", shown(one));
            return Err(BadRequest::parameter(name, what, "leave one of them out"));
        }
        topics.push(topic);
    }
    Ok(topics)
}

fn written(topics: &[EventTopic]) -> String {
    topics.iter().map(|topic| topic.name()).collect::<Vec<_>>().join(",")
}

body! {
    /// The data of an event `stats`: the queues of the caller together.
    ///
    /// Counters begin at 0 when the server starts, and never fall while it runs.
    pub struct StatsEvent: answer "StatsEvent" {
        /// The time of the server.
        now_ms as "now": i64 = has(instant());
        /// Number of queues.
        queues: u64 = has(count());
        /// Number of tasks by state.
        totals: StateTotals = has(object());
        /// Number of events by kind since the server started.
        counters: EventCounters = has(object());
        /// When the oldest ready task was due; `null`: no task is ready.
        oldest_due_ms as "oldest_due": Option<i64> = always(None, or_null(instant()));
        /// The time from due to ready of the tasks that fell due since the server started, as a histogram.
        lateness: Vec<HistogramBucket> = has(list(object(), ""));
        /// The time of the commits since the server started, as a histogram. A token with a scope does not get it.
        commit: Option<Vec<HistogramBucket>> = may(list(object(), ""));
        /// Number of bytes by which the store may still grow. A store in memory has no limit, and a token with a scope does not get the number.
        room_bytes: Option<u64> = may(count());
    }
}

body! {
    /// Number of tasks by state.
    #[derive(Copy, Default)]
    pub struct StateTotals: answer "StateTotals" {
        /// Number of tasks that are not due yet.
        scheduled: u64 = has(count());
        /// Number of tasks that are due and not leased.
        ready: u64 = has(count());
        /// Number of tasks that workers have leased.
        leased: u64 = has(count());
        /// Number of dead tasks.
        dead: u64 = has(count());
    }
}

body! {
    /// Number of events by kind since the server started.
    #[derive(Copy, Default)]
    pub struct EventCounters: answer "EventCounters" {
        /// Puts.
        put: u64 = has(count());
        /// Tasks that became ready because they fell due.
        fired: u64 = has(count());
        /// Leases.
        delivered: u64 = has(count());
        /// Leases that ended by ack.
        acked: u64 = has(count());
        /// Leases that ended by nack.
        nacked: u64 = has(count());
        /// Leases that ran out.
        expired: u64 = has(count());
        /// Tasks that were cancelled or revoked.
        cancelled: u64 = has(count());
        /// Tasks that became dead.
        dead: u64 = has(count());
    }
}

body! {
    /// A bucket of a histogram: the number of observations up to a bound, those of the smaller buckets among them.
    #[derive(Copy)]
    pub struct HistogramBucket: answer "HistogramBucket" {
        /// The bound in microseconds, which belongs to the bucket; `null`: the bucket has all observations.
        le_us: Option<u64> = always(None, or_null(count()));
        /// Number of observations.
        count: u64 = has(count());
    }
}

body! {
    /// The data of an event `queues`. The first event of a stream has all rows; a later one has the rows that have changed since the event before.
    ///
    /// An event that is `whole` replaces all rows before. It comes first, and after a reader was too slow for some events.
    pub struct QueuesEvent: answer "QueuesEvent" {
        /// The time of the server.
        now_ms as "now": i64 = has(instant());
        /// Whether the event has all rows.
        whole: bool = has(crate::declare::value_codec::flag());
        /// The rows. At most 1,000 queues have one: those with the oldest ready tasks first, then those with the most.
        queues: Vec<QueueRow> = has(list(object(), ""));
        /// The queues that have no row any more.
        removed: Vec<String> = has(list(text(200, ""), ""));
        /// Whether there are queues beyond the 1,000 with a row.
        more: bool = has(crate::declare::value_codec::flag());
    }
}

body! {
    /// The row of a queue.
    pub struct QueueRow: answer "QueueRow" {
        /// The queue and its number of tasks by state.
        counts: QueueCounts = flat();
        /// When the oldest ready task was due; `null`: no task is ready.
        oldest_due_ms as "oldest_due": Option<i64> = always(None, or_null(instant()));
    }
}

body! {
    /// The data of an event `jobs`: the jobs on queues of the caller, the newest first.
    pub struct JobsEvent: answer "JobsEvent" {
        /// The jobs under way and the last 100 that ended.
        jobs: Vec<JobBody> = has(list(object(), ""));
    }
}

body! {
    /// The data of an event `wheel`: the timing wheel in which the tasks in memory wait, for a picture of it.
    pub struct WheelEvent: answer "WheelEvent" {
        /// The time of the wheel.
        now_ms as "now": i64 = has(instant());
        /// Number of tasks in the wheel. Those due after the end of the turn of the last level are in no slot.
        tasks: u64 = has(count());
        /// The levels, the finest first.
        levels: Vec<WheelLevel> = has(list(object(), ""));
    }
}

body! {
    /// A level of the wheel: a ring of slots.
    pub struct WheelLevel: answer "WheelLevel" {
        /// The time that a slot spans, in milliseconds. It is a turn of the level before.
        slot_ms: u64 = has(count());
        /// Number of slots.
        slots: u64 = has(count());
        /// The slot of now, from 0. The slots before it have passed.
        hand: u64 = has(count());
        /// The slots with tasks, as bytes in hexadecimal. The lowest bit of the first byte is slot 0.
        occupied: String = has(text(1_000, ""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_read_and_written() {
        assert_eq!(EventsQuery::parse(""), Ok(EventsQuery::default()));
        let query = EventsQuery::parse("topics=jobs,stats&queue=shop").expect("a query");
        assert_eq!(
            (&query.topics[..], query.queue.as_deref()),
            (&[EventTopic::Jobs, EventTopic::Stats][..], Some("shop"))
        );
        assert_eq!(EventsQuery::parse(&query.to_query()), Ok(query));
        for (text, what) in [
            ("topics=", "`topics`: `` is not known"),
            ("topics=stats,odd", "`topics`: `odd` is not known"),
            ("topics=stats,stats", "`topics`: names `stats` twice"),
            ("queue=a&prefix=b", "`prefix`: stands beside `queue`"),
            ("prefix=a%20b", "`prefix`: is a b with a character"),
        ] {
            let refused = EventsQuery::parse(text).expect_err(text).to_string();
            assert!(refused.contains(what), "{refused} instead of {what}");
        }
    }

    #[test]
    fn the_row_of_a_queue_is_its_counts_with_one_member_more() {
        let counts = QueueCounts {
            queue: "q".to_owned(),
            scheduled: 1,
            ready: 2,
            leased: 3,
            dead: 4,
            paused: false,
            draining: false,
        };
        let row = QueueRow { counts, oldest_due_ms: Some(0) };
        assert_eq!(
            serde_json::to_string(&row).expect("JSON"),
            r#"{"queue":"q","scheduled":1,"ready":2,"leased":3,"dead":4,"paused":false,"oldest_due":"1970-01-01T00:00:00.000Z"}"#
        );
    }
}

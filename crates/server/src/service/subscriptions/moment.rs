//! The state of the queues and jobs of one scope at one moment, as the data of events.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use axum::body::Bytes;
use serde::Serialize;
use tickwheel_api::{EVENT_QUEUES_MAX, EventTopic, QueueRow, QueuesEvent};
use tickwheel_queue::{QueueCounts, QueueName, Timestamp};

use crate::translate;

/// The queues that have rows.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Rows {
    /// This queue.
    Of(QueueName),
    /// The queues whose names begin with this text.
    Beginning(String),
}

impl Rows {
    fn has(&self, queue: &QueueName) -> bool {
        match self {
            Self::Of(name) => name == queue,
            Self::Beginning(prefix) => queue.as_str().starts_with(prefix),
        }
    }
}

/// An event for a subscriber.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) topic: EventTopic,
    /// Rises with the events of a channel.
    pub(crate) number: u64,
    /// One JSON object.
    pub(crate) data: Bytes,
}

/// All data of the events of one scope at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Moment {
    /// From 1; 0 before the first look.
    pub(super) number: u64,
    pub(super) stats: Bytes,
    pub(super) jobs: Jobs,
    /// The rows that subscribers want.
    pub(super) rows: BTreeMap<Rows, Arc<Table>>,
}

/// The jobs, and the number of the moment at which they had changed.
#[derive(Clone, Debug, Default)]
pub(super) struct Jobs {
    pub(super) number: u64,
    pub(super) data: Bytes,
}

/// The rows of some queues, and how they differ from those before.
#[derive(Debug)]
pub(super) struct Table {
    /// The number of the moment.
    number: u64,
    /// The number of the table before; 0: there is none.
    before: u64,
    now_ms: i64,
    rows: Vec<QueueRow>,
    more: bool,
    /// The data for a subscriber that has the table before; `None`: nothing has changed.
    changes: Option<Bytes>,
    /// The data for other subscribers, made for the first of them.
    whole: OnceLock<Bytes>,
}

/// The events that a subscriber has got, by the numbers of their moments.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Seen {
    stats: u64,
    rows: u64,
    jobs: u64,
}

impl Table {
    /// The rows of the wanted queues, the worst first: those with the oldest ready tasks, then those with the most.
    pub(super) fn new(
        number: u64,
        now: Timestamp,
        counts: &[QueueCounts],
        wanted: &Rows,
        before: Option<&Self>,
    ) -> Self {
        let mut found: Vec<&QueueCounts> = counts.iter().filter(|counts| wanted.has(&counts.queue)).collect();
        let rank = |counts: &&QueueCounts| {
            let oldest = counts.oldest_due.unwrap_or(Timestamp::MAX);
            (oldest, Reverse(counts.ready), counts.queue.clone())
        };
        let more = found.len() > EVENT_QUEUES_MAX;
        if more {
            found.select_nth_unstable_by_key(EVENT_QUEUES_MAX, rank);
            found.truncate(EVENT_QUEUES_MAX);
        }
        found.sort_by_cached_key(rank);
        let row = |counts: &QueueCounts| QueueRow {
            counts: translate::queue_counts(counts),
            oldest_due_ms: counts.oldest_due.map(Timestamp::as_ms),
        };
        let rows: Vec<QueueRow> = found.into_iter().map(row).collect();
        let now_ms = now.as_ms();
        let changes = before.and_then(|before| changes(before, &rows, more, now_ms));
        let before = before.map_or(0, |before| before.number);
        Self { number, before, now_ms, rows, more, changes, whole: OnceLock::new() }
    }

    /// The data for a subscriber that has got the table with this number; `None`: it knows all of this one.
    fn for_one_that_has(&self, number: u64) -> Option<Bytes> {
        if number != 0 && number == self.before {
            return self.changes.clone();
        }
        let whole = self.whole.get_or_init(|| {
            json(&QueuesEvent {
                now_ms: self.now_ms,
                whole: true,
                queues: self.rows.clone(),
                removed: Vec::new(),
                more: self.more,
            })
        });
        Some(whole.clone())
    }
}

fn changes(before: &Table, rows: &[QueueRow], more: bool, now_ms: i64) -> Option<Bytes> {
    let mut old: HashMap<&str, &QueueRow> =
        before.rows.iter().map(|row| (row.counts.queue.as_str(), row)).collect();
    let changed = |row: &&QueueRow| old.remove(row.counts.queue.as_str()) != Some(*row);
    let queues: Vec<QueueRow> = rows.iter().filter(changed).cloned().collect();
    let mut removed: Vec<String> = old.into_keys().map(str::to_owned).collect();
    removed.sort_unstable();
    if queues.is_empty() && removed.is_empty() && more == before.more {
        return None;
    }
    Some(json(&QueuesEvent { now_ms, whole: false, queues, removed, more }))
}

impl Moment {
    /// The events of these topics that a subscriber has not got yet.
    pub(super) fn news(&self, topics: &[EventTopic], wanted: &Rows, seen: &mut Seen) -> Vec<Event> {
        let mut events = Vec::new();
        let mut event = |topic, number, data| events.push(Event { topic, number, data });
        for topic in topics {
            match topic {
                EventTopic::Stats if self.number > seen.stats => {
                    seen.stats = self.number;
                    event(*topic, self.number, self.stats.clone());
                }
                EventTopic::Jobs if self.jobs.number > seen.jobs => {
                    seen.jobs = self.jobs.number;
                    event(*topic, self.jobs.number, self.jobs.data.clone());
                }
                EventTopic::Queues => {
                    let table = self.rows.get(wanted).filter(|table| table.number > seen.rows);
                    let Some(table) = table else { continue };
                    let data = table.for_one_that_has(seen.rows);
                    seen.rows = table.number;
                    data.into_iter().for_each(|data| event(*topic, table.number, data));
                }
                EventTopic::Stats | EventTopic::Jobs | EventTopic::Wheel => {}
            }
        }
        events
    }
}

/// The data of an event.
pub(super) fn json<T: Serialize>(data: &T) -> Bytes {
    serde_json::to_vec(data).expect("our own types have string keys, and memory takes all").into()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn counts(queue: &str, ready: u64, oldest_ms: Option<i64>) -> QueueCounts {
        QueueCounts {
            queue: QueueName::new(queue).expect("a name"),
            ready,
            oldest_due: oldest_ms.and_then(Timestamp::from_ms),
            scheduled: 0,
            leased: 0,
            dead: 0,
            urgent: 0,
            paused: false,
            draining: false,
            totals: Default::default(),
            figures: Default::default(),
            appeared: 1,
        }
    }

    fn all() -> Rows {
        Rows::Beginning(String::new())
    }

    fn table(number: u64, counts: &[QueueCounts], before: Option<&Table>) -> Table {
        Table::new(number, Timestamp::EPOCH, counts, &all(), before)
    }

    fn read(data: &Bytes) -> Value {
        serde_json::from_slice(data).expect("JSON")
    }

    fn names(value: &Value) -> Vec<&str> {
        value["queues"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|row| row["queue"].as_str().expect("a name"))
            .collect()
    }

    #[test]
    fn the_worst_queues_have_rows() {
        let mut queues: Vec<_> =
            (0..EVENT_QUEUES_MAX).map(|n| counts(&format!("idle{n:04}"), 0, None)).collect();
        queues.extend([counts("few", 1, Some(5)), counts("many", 9, Some(5)), counts("old", 1, Some(4))]);
        let table = table(1, &queues, None);
        let whole = read(&table.for_one_that_has(0).expect("all rows"));
        assert_eq!(names(&whole)[..4], ["old", "many", "few", "idle0000"]);
        assert_eq!(
            (names(&whole).len(), &whole["more"], &whole["whole"]),
            (1_000, &true.into(), &true.into())
        );
        assert_eq!(names(&whole).last(), Some(&"idle0996"));
    }

    #[test]
    fn a_later_event_has_the_changes_and_a_slow_subscriber_gets_all_rows() {
        let first = table(2, &[counts("a", 1, Some(1)), counts("b", 1, Some(1)), counts("c", 0, None)], None);
        let second =
            table(4, &[counts("a", 2, Some(1)), counts("b", 1, Some(1)), counts("d", 0, None)], Some(&first));
        let changed = read(&second.for_one_that_has(2).expect("changes"));
        assert_eq!(
            (names(&changed), &changed["removed"], &changed["whole"]),
            (vec!["a", "d"], &serde_json::json!(["c"]), &false.into())
        );
        let third = table(
            6,
            &[counts("a", 2, Some(1)), counts("b", 1, Some(1)), counts("d", 0, None)],
            Some(&second),
        );
        assert!(third.for_one_that_has(4).is_none(), "nothing has changed");
        for missed in [0, 2] {
            let whole = read(&third.for_one_that_has(missed).expect("all rows"));
            assert_eq!((names(&whole), &whole["whole"]), (vec!["a", "b", "d"], &true.into()));
        }
    }

    #[test]
    fn rows_are_of_one_queue_or_of_a_prefix() {
        let queues = [counts("shop/a", 0, None), counts("shop/b", 0, None), counts("shop", 0, None)];
        let of = |wanted: &Rows| {
            let table = Table::new(1, Timestamp::EPOCH, &queues, wanted, None);
            table.rows.into_iter().map(|row| row.counts.queue).collect::<Vec<_>>()
        };
        assert_eq!(of(&Rows::Beginning("shop/".to_owned())), ["shop/a", "shop/b"]);
        assert_eq!(of(&Rows::Of(QueueName::new("shop").expect("a name"))), ["shop"]);
    }

    #[test]
    fn each_event_is_told_once() {
        let mut moment =
            Moment { number: 1, jobs: Jobs { number: 1, data: "{}".into() }, ..Moment::default() };
        moment.rows.insert(all(), Arc::new(table(1, &[counts("a", 0, None)], None)));
        let mut seen = Seen::default();
        let topics = |moment: &Moment, seen: &mut Seen| {
            let news = moment.news(&EventTopic::ALL, &all(), seen);
            news.iter().map(|event| event.topic.name()).collect::<Vec<_>>()
        };
        assert_eq!(topics(&moment, &mut seen), ["stats", "queues", "jobs"]);
        assert!(topics(&moment, &mut seen).is_empty());
        moment.number = 2;
        assert_eq!(topics(&moment, &mut seen), ["stats"]);
        assert!(moment.news(&[], &all(), &mut Seen::default()).is_empty());
    }
}

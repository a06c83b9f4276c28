//! The instants of schedules that are to come, counted in the buckets of a forecast.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use tickwheel_queue::{
    Grid, ListAllSchedules, ListSchedules, Queue, QueueName, SCHEDULES_PAGE_MAX, ScheduleView, Timestamp,
    instants,
};

use crate::access::refusal::Refusal;
use crate::base::aside::aside;

/// The largest number of instants of one schedule that are looked at.
const OF_ONE_MAX: usize = 10_000;
/// The largest number of instants of all schedules that are looked at, and the time for it. The instants of plain expressions of cron take a
/// fifth of a second.
const OF_ALL_MAX: usize = 50_000;
const TIME_MAX: Duration = Duration::from_secs(1);

/// The counts of instants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Expected {
    /// One count for each bucket.
    pub(crate) counts: Vec<u64>,
    /// The end of the counts that are complete; `None`: all instants in the buckets were looked at.
    pub(crate) until: Option<Timestamp>,
}

/// Counts the instants after now of the schedules of one queue, or of all queues. The first bucket begins at `from`.
///
/// # Errors
/// 503 if the schedules cannot be read.
pub(crate) async fn expected(
    store: &Queue,
    queue: Option<&QueueName>,
    from: Timestamp,
    grid: Grid,
) -> Result<Expected, Refusal> {
    let now = store.now();
    let end = from.saturating_plus_ms(grid.length_ms());
    let (mut views, mut after) = (Vec::new(), None);
    loop {
        let page = match queue {
            Some(queue) => {
                let after = after.map(|(_, name)| name);
                let list = ListSchedules { queue: queue.clone(), after, max: SCHEDULES_PAGE_MAX };
                store.schedules(list).await?
            }
            None => {
                store
                    .all_schedules(ListAllSchedules { prefix: "".into(), after, max: SCHEDULES_PAGE_MAX })
                    .await?
            }
        };
        after = page.last().map(|last| (last.queue.clone(), last.name.clone()));
        let is_last = page.len() < SCHEDULES_PAGE_MAX;
        views.extend(page);
        if is_last {
            break;
        }
    }
    // An instant of a rare expression of cron takes long to find, so another thread does it.
    Ok(aside(move || {
        let begun = Instant::now();
        let is_late = || begun.elapsed() >= TIME_MAX;
        let mut ahead = Ahead::default();
        let added = views.iter().take_while(|_| !is_late()).map(|view| ahead.add(view, from, end)).count();
        let mut expected = ahead.count(now, from, &grid, is_late);
        if added < views.len() {
            expected.until = Some(now);
        }
        expected
    })
    .await?)
}

/// The instants of all schedules, in the order of time: if there are too many, the nearest of all schedules are counted.
#[derive(Default)]
struct Ahead {
    schedules: Vec<Instants>,
    /// The next instant of each schedule that has one, by its place in the list.
    next: BinaryHeap<Reverse<(Timestamp, usize)>>,
}

/// The instants of a schedule that are to come.
struct Instants {
    instants: Box<dyn Iterator<Item = Timestamp>>,
    looked_at: usize,
}

impl Ahead {
    fn add(&mut self, view: &ScheduleView, from: Timestamp, end: Timestamp) {
        // An expression that was good when it was put may be none with another database of zones. Its schedule makes no
        // task then, and the log says so.
        // Those that count towards a limit of the schedule are walked over, and so they are looked at.
        let first = if view.record.left().is_some() { Timestamp::EPOCH } else { from };
        let Ok(instants) = instants(&view.record, first) else { return };
        let mut instants = instants.take_while(move |at| *at < end);
        if let Some(first) = instants.next() {
            self.next.push(Reverse((first, self.schedules.len())));
            self.schedules.push(Instants { instants: Box::new(instants), looked_at: 0 });
        }
    }

    fn count(mut self, now: Timestamp, from: Timestamp, grid: &Grid, is_late: impl Fn() -> bool) -> Expected {
        let mut expected = Expected { counts: vec![0; grid.buckets()], until: None };
        for _ in 0..OF_ALL_MAX {
            if is_late() {
                break;
            }
            let Some(Reverse((at, number))) = self.next.pop() else { return expected };
            let schedule = &mut self.schedules[number];
            if schedule.looked_at == OF_ONE_MAX {
                expected.until.get_or_insert(at);
                continue;
            }
            schedule.looked_at += 1;
            if let Some(next) = schedule.instants.next() {
                self.next.push(Reverse((next, number)));
            }
            if at <= now || at < from {
                continue;
            }
            if let Some(bucket) = grid.bucket(at.ms_since(from)) {
                expected.counts[bucket] += 1;
            }
        }
        if let Some(Reverse((at, _))) = self.next.pop() {
            expected.until.get_or_insert(at);
        }
        expected
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tickwheel_queue::{Cadence, PutSchedule, Schedule, ScheduleName};

    use super::*;
    use crate::service::app::App;

    async fn with(schedules: &[(&str, u64)]) -> App {
        let app = App::in_memory();
        for (name, every_ms) in schedules {
            let schedule = Arc::new(Schedule::new(Cadence::Every { ms: *every_ms }));
            let (queue, name) =
                (QueueName::new("q").expect("a name"), ScheduleName::new(name).expect("a name"));
            app.queue.put_schedule(PutSchedule::new(&queue, name, schedule)).await.expect("it stands");
        }
        app
    }

    const HOUR_MS: u64 = 3_600_000;

    fn hours(buckets: usize) -> Grid {
        Grid::Even { width_ms: HOUR_MS, buckets }
    }

    #[tokio::test]
    async fn instants_are_counted_in_their_buckets() {
        let app = with(&[("a", HOUR_MS), ("b", 2 * HOUR_MS)]).await;
        let from = Timestamp::from_ms(app.queue.now().as_ms() + 240 * HOUR_MS as i64).expect("a time");
        for queue in [None, Some(QueueName::new("q").expect("a name"))] {
            let found = expected(&app.queue, queue.as_ref(), from, hours(4)).await.expect("counted");
            assert_eq!((found.counts.iter().sum::<u64>(), found.until), (6, None), "{found:?}");
        }
        let none = QueueName::new("none").expect("a name");
        let found = expected(&app.queue, Some(&none), from, hours(4)).await.expect("counted");
        assert_eq!(found, Expected { counts: vec![0; 4], until: None });
    }

    #[tokio::test]
    async fn a_schedule_with_very_many_instants_is_cut() {
        let app = with(&[("often", 1_000)]).await;
        let found = expected(&app.queue, None, app.queue.now(), hours(3)).await.expect("counted");
        let complete_ms = found.until.expect("it is cut").ms_since(app.queue.now());
        assert!((9_998_000..=10_002_000).contains(&complete_ms), "{complete_ms}");
        let sum = found.counts.iter().sum::<u64>();
        assert!((OF_ONE_MAX as u64 - 10..=OF_ONE_MAX as u64).contains(&sum), "{found:?}");
        let found = expected(&app.queue, None, app.queue.now(), hours(1)).await.expect("counted");
        assert_eq!(found.until, None, "{found:?}");
    }

    /// Regression: the instants before a later begin used up the limit, and the forecast had none.
    #[tokio::test]
    async fn a_later_begin_costs_nothing() {
        let app = with(&[("often", 1_000)]).await;
        let from = Timestamp::from_ms(app.queue.now().as_ms() + 8 * 24 * HOUR_MS as i64).expect("a time");
        let found = expected(&app.queue, None, from, hours(2)).await.expect("counted");
        assert_eq!((found.counts.as_slice(), found.until), (&[3_600, 3_600][..], None));
    }

    /// Regression: the instants of the first schedules, far ahead, used up the limit, and the others had none.
    #[tokio::test]
    async fn of_many_schedules_the_near_instants_are_counted() {
        let names: Vec<String> = (0..12).map(|n| format!("s{n:02}")).collect();
        let schedules: Vec<(&str, u64)> = names.iter().map(|name| (&**name, 1_000)).collect();
        let app = with(&schedules).await;
        let found = expected(&app.queue, None, app.queue.now(), hours(9)).await.expect("counted");
        let sum = found.counts.iter().sum::<u64>();
        assert!(sum <= OF_ALL_MAX as u64 && sum > OF_ALL_MAX as u64 - 50, "{sum}");
        let complete_s = found.until.expect("it is cut").ms_since(app.queue.now()) / 1_000;
        assert!(complete_s.abs_diff(OF_ALL_MAX as u64 / 12) <= 2, "{complete_s}");
        // An instant between the two looks at the clock is in none.
        assert!(
            (12 * 3_599..=12 * 3_600).contains(&found.counts[0]),
            "the first hour has those of all: {found:?}"
        );
    }

    /// A schedule with a limited count has to be walked over to a far begin, which is bounded, too.
    #[tokio::test]
    async fn a_far_begin_of_a_counted_schedule_is_cut() {
        let app = with(&[]).await;
        let schedule = Schedule { count: Some(1_000_000_000), ..Schedule::new(Cadence::Every { ms: 1_000 }) };
        let (queue, name) = (QueueName::new("q").expect("a name"), ScheduleName::new("n").expect("a name"));
        app.queue.put_schedule(PutSchedule::new(&queue, name, Arc::new(schedule))).await.expect("it stands");
        let from = app.queue.now().saturating_plus_ms(1_000 * 24 * HOUR_MS);
        let found = expected(&app.queue, None, from, hours(1)).await.expect("counted");
        assert!(found.until.is_some_and(|until| until < from), "{found:?}");
    }
}

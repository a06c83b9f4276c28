//! The instants of schedules that are to come, counted in the buckets of a forecast.

use tickwheel_queue::{
    Grid, ListAllSchedules, ListSchedules, QueueName, SCHEDULES_PAGE_MAX, ScheduleView, Timestamp, instants,
};

use crate::access::refusal::Refusal;
use crate::base::aside::aside;
use crate::service::app::App;

/// The largest number of instants of one schedule that are looked at.
const OF_ONE_MAX: usize = 10_000;
/// The largest number of instants of all schedules that are looked at.
const OF_ALL_MAX: usize = 100_000;

/// The counts of instants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Expected {
    /// One count for each bucket.
    pub(crate) counts: Vec<u64>,
    /// Whether schedules have more instants in the buckets than were looked at.
    pub(crate) truncated: bool,
}

/// Counts the instants after now of the schedules of one queue, or of all queues. The first bucket begins at `from`.
///
/// # Errors
/// 503 if the schedules cannot be read.
pub(crate) async fn expected(
    app: &App,
    queue: Option<&QueueName>,
    from: Timestamp,
    grid: Grid,
) -> Result<Expected, Refusal> {
    let mut counting = Counting {
        now: app.queue.now(),
        from,
        left: OF_ALL_MAX,
        expected: Expected { counts: vec![0; grid.buckets()], truncated: false },
        grid,
    };
    let mut after = None;
    loop {
        let page = match queue {
            Some(queue) => {
                let after = after.map(|(_, name)| name);
                let list = ListSchedules { queue: queue.clone(), after, max: SCHEDULES_PAGE_MAX };
                app.queue.schedules(list).await?
            }
            None => {
                app.queue
                    .all_schedules(ListAllSchedules { prefix: "".into(), after, max: SCHEDULES_PAGE_MAX })
                    .await?
            }
        };
        after = page.last().map(|last| (last.queue.clone(), last.name.clone()));
        let is_last = page.len() < SCHEDULES_PAGE_MAX;
        // An instant of a rare expression of cron takes long to find, so another thread does it.
        counting = aside(move || {
            page.iter().for_each(|view| counting.add(view));
            counting
        })
        .await?;
        if is_last || counting.left == 0 {
            counting.expected.truncated |= !is_last;
            return Ok(counting.expected);
        }
    }
}

struct Counting {
    now: Timestamp,
    from: Timestamp,
    grid: Grid,
    /// The number of instants that may still be looked at.
    left: usize,
    expected: Expected,
}

impl Counting {
    fn add(&mut self, view: &ScheduleView) {
        let max = self.left.min(OF_ONE_MAX);
        let end = self.from.saturating_plus_ms(self.grid.length_ms());
        // An expression that was good when it was put may be none with another database of zones. Its schedule makes no
        // task then, and the log says so.
        let Ok(instants) = instants(&view.record, self.from) else { return };
        let mut ahead = instants.take_while(|at| *at < end);
        for at in ahead.by_ref().take(max) {
            self.left -= 1;
            if at <= self.now || at < self.from {
                continue;
            }
            if let Some(bucket) = self.grid.bucket(at.ms_since(self.from)) {
                self.expected.counts[bucket] += 1;
            }
        }
        self.expected.truncated |= ahead.next().is_some();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tickwheel_queue::{Cadence, PutSchedule, Schedule, ScheduleName};

    use super::*;

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
            let found = expected(&app, queue.as_ref(), from, hours(4)).await.expect("counted");
            assert_eq!((found.counts.iter().sum::<u64>(), found.truncated), (6, false), "{found:?}");
        }
        let none = QueueName::new("none").expect("a name");
        let found = expected(&app, Some(&none), from, hours(4)).await.expect("counted");
        assert_eq!(found, Expected { counts: vec![0; 4], truncated: false });
    }

    #[tokio::test]
    async fn a_schedule_with_very_many_instants_is_cut() {
        let app = with(&[("often", 1_000)]).await;
        let found = expected(&app, None, app.queue.now(), hours(3)).await.expect("counted");
        assert!(found.truncated && found.counts.iter().sum::<u64>() <= OF_ONE_MAX as u64, "{found:?}");
        let found = expected(&app, None, app.queue.now(), hours(1)).await.expect("counted");
        assert!(!found.truncated, "{found:?}");
    }

    /// Regression: the instants before a later begin used up the limit, and the forecast had none.
    #[tokio::test]
    async fn a_later_begin_costs_nothing() {
        let app = with(&[("often", 1_000)]).await;
        let from = Timestamp::from_ms(app.queue.now().as_ms() + 8 * 24 * HOUR_MS as i64).expect("a time");
        let found = expected(&app, None, from, hours(2)).await.expect("counted");
        assert_eq!((found.counts.as_slice(), found.truncated), (&[3_600, 3_600][..], false));
    }

    #[tokio::test]
    async fn all_schedules_together_are_cut() {
        let names: Vec<String> = (0..12).map(|n| format!("s{n}")).collect();
        let schedules: Vec<(&str, u64)> = names.iter().map(|name| (&**name, 1_000)).collect();
        let app = with(&schedules).await;
        let found = expected(&app, None, app.queue.now(), hours(9)).await.expect("counted");
        let sum = found.counts.iter().sum::<u64>();
        assert!(found.truncated && sum <= OF_ALL_MAX as u64 && sum > OF_ALL_MAX as u64 - 200, "{sum}");
    }
}

//! The answer to "why has this not run yet": one sentence about a task.

use tickwheel_api::{RateBody, duration, shown, time};
use tickwheel_queue::{Dead, Death, QueueView, Rate, State, TaskView, Timestamp};

/// The sentence about a task that a worker has acked.
pub(crate) const DONE: &str = "The task is done: a worker has acked it.";

/// Why the task does not run now: what it waits for, or what has become of it. The queue is that of the task.
pub(crate) fn why(now: Timestamp, task: &TaskView, queue: &QueueView) -> String {
    match (task.state, &task.extra.dead) {
        (_, Some(dead)) => why_dead(task, dead),
        (State::Leased, _) => why_leased(task),
        (State::Scheduled, _) => why_scheduled(now, task),
        (State::Ready | State::Dead, _) => why_ready(now, task, queue),
    }
}

fn why_dead(task: &TaskView, dead: &Dead) -> String {
    let at = at(dead.at);
    match dead.why {
        Death::MaxAttempts => {
            let reason = task.extra.failures.last().and_then(|failure| failure.reason.as_deref());
            let reason =
                reason.map(|reason| format!(" with the reason `{}`", shown(reason))).unwrap_or_default();
            format!(
                "The task is dead: attempt {}, the last one that its retry policy allows, failed at {at}{reason}.",
                task.attempt
            )
        }
        Death::Expired => format!("The task is dead: it expired at {at}, before a worker had acked it."),
        Death::Buried => format!("The task is dead: a worker buried it at {at}."),
        Death::Refused => format!("The task is dead: the target of the queue refused it for good at {at}."),
        Death::Template => format!(
            "The task is dead: at {at} the template of the queue's target could not be filled with its values."
        ),
        Death::TooLarge => {
            format!("The task is dead: at {at} its payload was larger than the target of the queue takes.")
        }
    }
}

fn why_leased(task: &TaskView) -> String {
    let by = task
        .leased_by
        .as_deref()
        .map_or("A worker".to_owned(), |name| format!("The worker `{}`", shown(name)));
    let since = task.leased_since.map(|since| format!(" since {}", at(since))).unwrap_or_default();
    let until = task.leased_until.map(|until| format!(" until {}", at(until))).unwrap_or_default();
    format!("{by} has the task{since}, at the latest{until}: this is attempt {}.", task.attempt)
}

fn why_scheduled(now: Timestamp, task: &TaskView) -> String {
    let due = at(task.due_at);
    let left = match task.due_at.ms_since(now) {
        0 => String::new(),
        ms => format!(", in {}", length(ms)),
    };
    match task.extra.failures.last() {
        Some(failure) if task.attempt > 0 => {
            format!("Attempt {} failed, and the task is due again at {due}{left}.", failure.attempt)
        }
        _ if task.extra.step > 0 => format!("The next instant of its timeline is at {due}{left}."),
        _ => format!("The task is due at {due}{left}."),
    }
}

/// The reason that holds a ready task up. A pause and the limits come before a lack of workers.
fn why_ready(now: Timestamp, task: &TaskView, queue: &QueueView) -> String {
    let QueueView { counts, settings, paused_until, waiting, next_delivery_ms, first_ready, .. } = queue;
    if counts.paused {
        let until = paused_until.filter(|until| *until < Timestamp::MAX);
        let until = until.map_or("it is resumed".to_owned(), at);
        return format!("The task is ready, but its queue is paused until {until}.");
    }
    if let Some(max) = settings.max_in_flight.filter(|max| counts.leased >= *max) {
        return format!(
            "The task is ready, but its queue has {} of {max} tasks in flight (`max_in_flight`).",
            counts.leased
        );
    }
    if let (Some(max), Some(leased)) = (settings.max_in_flight_per_group, task.group_in_flight)
        && leased >= max
    {
        let group = task.extra.group.as_ref().map_or("", |group| group.as_str());
        return format!(
            "The task is ready, but its group `{}` has {leased} of {max} tasks in flight (`max_in_flight_per_group`).",
            shown(group)
        );
    }
    if let (Some(rate), Some(ms)) = (settings.rate, next_delivery_ms.filter(|ms| *ms > 0)) {
        return format!(
            "The task is ready, but the rate of its queue, {}, allows the next delivery in {}.",
            rate_text(rate),
            length(ms)
        );
    }
    let since = length(now.ms_since(task.due_at));
    let ahead = match counts.ready.saturating_sub(1) {
        0 => None,
        _ if *first_ready == Some(task.id) => None,
        1 => Some("1 task may be ahead of it".to_owned()),
        count => Some(format!("up to {count} tasks are ahead of it")),
    };
    match (ahead, waiting) {
        (None, 0) => {
            format!("The task has been due for {since}, and no worker asks for tasks of its queue.")
        }
        (Some(ahead), 0) => {
            format!("The task has been due for {since}: {ahead}, and no worker asks for tasks of its queue.")
        }
        (None, _) => "The task is ready, and the next worker in line gets it.".to_owned(),
        (Some(ahead), _) => format!("The task has been due for {since}: {ahead}."),
    }
}

fn at(instant: Timestamp) -> String {
    time::format(instant.as_ms())
}

/// A length for people: of a long one, the small units are left out.
fn length(ms: u64) -> String {
    let unit = match ms {
        0..1_000 => 1,
        1_000..600_000 => 1_000,
        600_000..86_400_000 => 60_000,
        _ => 3_600_000,
    };
    duration::format(ms / unit * unit)
}

fn rate_text(rate: Rate) -> String {
    let Rate { tasks, per_ms, burst: _ } = rate;
    RateBody { tasks, per_ms }.to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use tickwheel_queue::{
        Dead, Extra, Failed, Failure, Get, Group, Key, Lease, Put, Queue, QueueName, QueueSettings,
    };

    const NOW_MS: i64 = 1_893_456_000_000;

    fn now() -> Timestamp {
        Timestamp::from_ms(NOW_MS).expect("after 1970")
    }

    fn in_ms(ms: u64) -> Timestamp {
        now().saturating_plus_ms(ms)
    }

    fn ago_ms(ms: i64) -> Timestamp {
        Timestamp::from_ms(NOW_MS - ms).expect("after 1970")
    }

    /// A ready task that has been due for 5 s, and its queue, which has nothing else.
    fn seen() -> (TaskView, QueueView) {
        let queue = Queue::options().virtual_clock().open_memory().expect("open");
        let (name, key) = (QueueName::new("q").expect("a name"), Key::new("k").expect("a key"));
        queue.put(Put::new(&name, key.clone())).wait().expect("put");
        let task = queue.get(Get::new(&name, key)).wait().expect("live");
        let view = queue.queue(&name).wait().expect("a view");
        (TaskView { due_at: ago_ms(5_000), ..task }, *view)
    }

    fn failed(attempt: u32, reason: &str) -> Vec<Failure> {
        vec![Failure { at: ago_ms(10), attempt, how: Failed::Nacked, reason: Some(reason.into()) }]
    }

    #[test]
    fn a_scheduled_task_says_when_it_is_due() {
        let (task, queue) = seen();
        let task = TaskView { state: State::Scheduled, due_at: in_ms(5_400_000), ..task };
        assert_eq!(why(now(), &task, &queue), "The task is due at 2030-01-01T01:30:00.000Z, in 1h30m.");
        let extra = Extra { failures: failed(2, "x"), ..Extra::default() };
        let task = TaskView { due_at: in_ms(1_500), attempt: 2, extra, ..task };
        assert_eq!(
            why(now(), &task, &queue),
            "Attempt 2 failed, and the task is due again at 2030-01-01T00:00:01.500Z, in 1s."
        );
        let extra = Extra { step: 1, ..task.extra };
        let task = TaskView { due_at: in_ms(100 * 86_400_000 + 1), attempt: 0, extra, ..task };
        assert_eq!(
            why(now(), &task, &queue),
            "The next instant of its timeline is at 2030-04-11T00:00:00.001Z, in 100d."
        );
    }

    #[test]
    fn a_leased_task_says_who_has_it() {
        let (task, queue) = seen();
        let until = Some(in_ms(30_000));
        let task = TaskView { state: State::Leased, leased_until: until, attempt: 2, ..task };
        assert_eq!(
            why(now(), &task, &queue),
            "A worker has the task, at the latest until 2030-01-01T00:00:30.000Z: this is attempt 2."
        );
        let (leased_by, leased_since) = (Some(Arc::from("mailer-1")), Some(now()));
        let task = TaskView { leased_by, leased_since, ..task };
        assert_eq!(
            why(now(), &task, &queue),
            "The worker `mailer-1` has the task since 2030-01-01T00:00:00.000Z, at the latest until \
             2030-01-01T00:00:30.000Z: this is attempt 2."
        );
    }

    #[test]
    fn a_dead_task_says_of_what_it_died() {
        let (task, queue) = seen();
        let of = |why| TaskView {
            state: State::Dead,
            attempt: 3,
            extra: Extra {
                failures: failed(3, "no paper"),
                dead: Some(Dead { at: now(), due_at: now(), why, keyless: false }),
                ..Extra::default()
            },
            ..task.clone()
        };
        let told = |death| why(now(), &of(death), &queue);
        assert_eq!(
            told(Death::MaxAttempts),
            "The task is dead: attempt 3, the last one that its retry policy allows, failed at 2030-01-01T00:00:00.000Z with the reason \
             `no paper`."
        );
        assert_eq!(
            told(Death::Expired),
            "The task is dead: it expired at 2030-01-01T00:00:00.000Z, before a worker had acked it."
        );
        assert_eq!(told(Death::Buried), "The task is dead: a worker buried it at 2030-01-01T00:00:00.000Z.");
        assert_eq!(
            told(Death::Refused),
            "The task is dead: the target of the queue refused it for good at 2030-01-01T00:00:00.000Z."
        );
    }

    #[test]
    fn a_paused_queue_is_named_first() {
        let (task, mut queue) = seen();
        queue.counts.paused = true;
        (queue.paused_until, queue.settings.max_in_flight) = (Some(Timestamp::MAX), Some(1));
        queue.counts.leased = 1;
        assert_eq!(
            why(now(), &task, &queue),
            "The task is ready, but its queue is paused until it is resumed."
        );
        queue.paused_until = Some(in_ms(60_000));
        assert_eq!(
            why(now(), &task, &queue),
            "The task is ready, but its queue is paused until 2030-01-01T00:01:00.000Z."
        );
    }

    #[test]
    fn a_full_limit_is_named_with_its_numbers() {
        let (task, mut queue) = seen();
        queue.settings = QueueSettings { max_in_flight: Some(3), ..QueueSettings::default() };
        queue.counts.leased = 3;
        assert_eq!(
            why(now(), &task, &queue),
            "The task is ready, but its queue has 3 of 3 tasks in flight (`max_in_flight`)."
        );
        queue.settings = QueueSettings { max_in_flight_per_group: Some(2), ..QueueSettings::default() };
        let extra = Extra { group: Group::new("user:7").ok(), ..Extra::default() };
        let task = TaskView { extra, group_in_flight: Some(2), ..task };
        assert_eq!(
            why(now(), &task, &queue),
            "The task is ready, but its group `user:7` has 2 of 2 tasks in flight (`max_in_flight_per_group`)."
        );
        let task = TaskView { group_in_flight: Some(1), ..task };
        assert!(why(now(), &task, &queue).contains("no worker asks"), "one more may be");
    }

    #[test]
    fn a_rate_says_when_the_next_delivery_may_begin() {
        let (task, mut queue) = seen();
        queue.settings.rate = Some(Rate { tasks: 5, per_ms: 1_000, burst: 5 });
        queue.next_delivery_ms = Some(120);
        assert_eq!(
            why(now(), &task, &queue),
            "The task is ready, but the rate of its queue, 5/s, allows the next delivery in 120ms."
        );
        queue.next_delivery_ms = Some(0);
        assert!(why(now(), &task, &queue).contains("no worker asks"), "it holds nothing up");
    }

    #[test]
    fn a_task_that_nothing_holds_up_waits_for_a_worker_or_for_its_turn() {
        let (task, mut queue) = seen();
        assert_eq!(
            why(now(), &task, &queue),
            "The task has been due for 5s, and no worker asks for tasks of its queue."
        );
        queue.counts.ready = 5;
        assert!(!why(now(), &task, &queue).contains("ahead"), "it is the first of them");
        queue.first_ready = Some(task.id + 1);
        assert_eq!(
            why(now(), &task, &queue),
            "The task has been due for 5s: up to 4 tasks are ahead of it, and no worker asks for tasks of its queue."
        );
        queue.waiting = 1;
        assert_eq!(why(now(), &task, &queue), "The task has been due for 5s: up to 4 tasks are ahead of it.");
        queue.counts.ready = 2;
        assert_eq!(why(now(), &task, &queue), "The task has been due for 5s: 1 task may be ahead of it.");
        queue.first_ready = Some(task.id);
        assert_eq!(why(now(), &task, &queue), "The task is ready, and the next worker in line gets it.");
    }

    /// The engine says all that the sentences need.
    #[test]
    fn the_view_of_a_queue_knows_what_holds_it_up() {
        let queue = Queue::options().virtual_clock().open_memory().expect("open");
        let name = QueueName::new("q").expect("a name");
        let settings = QueueSettings {
            rate: Some(Rate { tasks: 1, per_ms: 60_000, burst: 1 }),
            max_in_flight_per_group: Some(1),
            ..QueueSettings::default()
        };
        let change = tickwheel_queue::QueueChange::Settings(settings);
        let change = tickwheel_queue::ChangeQueue { queue: name.clone(), change };
        queue.change_queue(change).wait().expect("changed");
        for key in ["a", "b"] {
            let mut put = Put::new(&name, Key::new(key).expect("a key"));
            put.terms.group = Group::new("g").ok();
            queue.put(put).wait().expect("put");
        }
        let _ = queue.lease(Lease::new(&name), Duration::ZERO).wait();
        let waits = queue.lease(Lease::new(&name), Duration::MAX);
        let view = queue.queue(&name).wait().expect("a view");
        assert_eq!(view.waiting, 1);
        assert!(view.next_delivery_ms.is_some_and(|ms| ms > 0), "{:?}", view.next_delivery_ms);
        let task = queue.get(Get::new(&name, Key::new("b").expect("a key"))).wait().expect("live");
        assert!(task.group_in_flight.is_some());
        drop(waits);
    }
}

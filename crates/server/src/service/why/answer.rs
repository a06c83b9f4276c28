//! The answer to "why has this not run yet": a few sentences about a task.

use tickwheel_api::{RateBody, TargetState};
use tickwheel_queue::{Dead, Death, Failed, Failure, QueueView, Rate, State, TaskView, Timestamp};

use super::hand;
use super::target;
use super::words::{argument, at, length, quoted, with_reason};
use crate::targets::TargetFacts;

/// The sentence about a task that a worker or a target has acked. The server does not keep which.
const DONE: &str = "The task is done: it was acked.";

/// Why the task does not run now: what it waits for, or what has become of it. The queue and the target are those of the task. `ahead_ms`: by
/// how much the clock is ahead of the time by which tasks fall due.
pub(crate) fn why(
    now: Timestamp,
    ahead_ms: u64,
    task: &TaskView,
    queue: &QueueView,
    target: Option<&TargetFacts>,
) -> String {
    let sentences = match (task.state, &task.extra.dead) {
        (_, Some(dead)) => vec![why_dead(task, dead, queue, target)],
        (State::Leased, _) => why_leased(now, task, target),
        (State::Scheduled, _) => why_scheduled(now, ahead_ms, task, target),
        (State::Ready | State::Dead, _) => why_ready(now, task, queue, target),
    };
    sentences.join(" ")
}

/// The sentence about a task that is done.
pub(crate) fn done(target: Option<&TargetFacts>) -> String {
    target.and_then(target::confirmed).unwrap_or_else(|| DONE.to_owned())
}

fn why_dead(task: &TaskView, dead: &Dead, queue: &QueueView, target: Option<&TargetFacts>) -> String {
    let at = at(dead.at);
    // The last failure may be older than the death.
    let is_cause = |failure: &&Failure| match dead.why {
        Death::MaxAttempts => true,
        Death::Buried => failure.how == Failed::Buried,
        Death::Refused | Death::Template | Death::TooLarge => failure.how == Failed::Undeliverable,
        Death::Expired => false,
    };
    let failure = task.extra.failures.last().filter(is_cause);
    let reason = failure.and_then(|failure| failure.reason.as_deref());
    let reason = with_reason(reason);
    match dead.why {
        Death::MaxAttempts => {
            let last = match last_number(task, queue, target) {
                Some(number) => format!("attempt {number}, the last one that its retry policy allows,"),
                None => "the last attempt that its retry policy allows".to_owned(),
            };
            format!("The task is dead: {last} failed at {at}{reason}.")
        }
        Death::Expired => format!("The task is dead: it expired at {at}, before a worker had acked it."),
        Death::Buried => format!("The task is dead: a worker buried it at {at}{reason}."),
        Death::Refused => {
            format!("The task is dead: the target of the queue refused it for good at {at}{reason}.")
        }
        Death::Template => format!(
            "The task is dead: at {at} the template of the queue's target could not be filled with its values{reason}."
        ),
        Death::TooLarge => {
            format!(
                "The task is dead: at {at} its payload was larger than the target of the queue takes{reason}."
            )
        }
    }
}

/// The number of the last attempt of a task whose attempts are used up; `None`: it is not known. An order tries a task in hand, and the task
/// does not count those tries.
fn last_number(task: &TaskView, queue: &QueueView, target: Option<&TargetFacts>) -> Option<u32> {
    let of_queue = || queue.settings.retry.or_else(|| queue.target.as_ref()?.retry);
    let allowed = task.extra.retry.or_else(of_queue).and_then(|retry| retry.max_attempts);
    if allowed.is_none_or(|allowed| task.attempt >= allowed) {
        return Some(task.attempt);
    }
    target.and_then(|target| target::last_attempt(task, target)).map(|last| last.attempt)
}

fn why_leased(now: Timestamp, task: &TaskView, target: Option<&TargetFacts>) -> Vec<String> {
    if task.leased_by.as_ref().is_some_and(tickwheel_push::is_own_lease) {
        let fails = target.filter(|target| target.row.state != TargetState::Closed);
        let state = fails.map(|target| target::state(now, target, false));
        return [hand::in_hand(now, task, target)].into_iter().chain(state).collect();
    }
    let by = task
        .leased_by
        .as_deref()
        .map_or("A worker".to_owned(), |name| format!("The worker {}", quoted(name)));
    let since = task.leased_since.map(|since| format!(" since {}", at(since))).unwrap_or_default();
    let until = task.leased_until.map(|until| format!(" until {}", at(until))).unwrap_or_default();
    vec![format!("{by} has the task{since}, at the latest{until}: this is attempt {}.", task.attempt)]
}

fn why_scheduled(
    now: Timestamp,
    ahead_ms: u64,
    task: &TaskView,
    target: Option<&TargetFacts>,
) -> Vec<String> {
    let due = at(task.due_at);
    let left = match task.due_at.ms_since(now) {
        0 => String::new(),
        ms => format!(", in {}", length(ms)),
    };
    let first = match task.extra.failures.last() {
        Some(failure) if task.attempt > 0 => {
            let reason = with_reason(failure.reason.as_deref());
            let to =
                target.map(|target| format!(" {}", target::next_attempt(task, target))).unwrap_or_default();
            format!(
                "Attempt {} failed{reason}, and the task is due again at {due}{left}.{to}",
                failure.attempt
            )
        }
        _ if task.extra.step > 0 => format!("The next instant of its timeline is at {due}{left}."),
        _ => format!("The task is due at {due}{left}."),
    };
    // A target that fails may work again by then.
    let stopped = target.filter(|target| target::waits_for_operator(target));
    let stopped = stopped.map(|target| target::state(now, target, false));
    let doubted = (ahead_ms > 0).then(|| {
        let ahead = length(ahead_ms);
        format!("The clock of the server is {ahead} ahead of the time by which tasks fall due: it is believed once it has stood for 60 s.")
    });
    [first].into_iter().chain(doubted).chain(stopped).collect()
}

/// The reasons that hold a ready task up. A pause and the limits come before a target that takes nothing or a lack of workers.
fn why_ready(
    now: Timestamp,
    task: &TaskView,
    queue: &QueueView,
    target: Option<&TargetFacts>,
) -> Vec<String> {
    let held_up = held_up(now, task, queue, target);
    let is_held_up = held_up.is_some();
    let first = held_up.unwrap_or_else(|| in_line(now, task, queue, target.is_some()));
    let target_state = target.map(|target| target::state(now, target, is_held_up));
    let told = [Some(first), target_state, last_failure(task, target)];
    told.into_iter().flatten().collect()
}

/// The pause, the order of the target or the limit that keeps all tasks of the queue or of the group from being delivered, if there is one.
fn held_up(
    now: Timestamp,
    task: &TaskView,
    queue: &QueueView,
    target: Option<&TargetFacts>,
) -> Option<String> {
    let QueueView { counts, settings, paused_until, next_delivery_ms, .. } = queue;
    if counts.paused {
        let resume = format!("`tickwheel queues resume {}`", argument(counts.queue.as_str()));
        let until = match paused_until.filter(|until| *until < Timestamp::MAX) {
            Some(until) => format!("{}, and {resume} ends the pause at once", at(until)),
            None => resume,
        };
        return Some(format!("The task is ready, but its queue is paused until {until}."));
    }
    if let Some(behind) = target.and_then(|target| hand::behind(now, task, queue, target)) {
        return Some(behind);
    }
    if let Some(max) = settings.max_in_flight.filter(|max| counts.leased >= *max) {
        return Some(format!(
            "The task is ready, but its queue has {} of {max} tasks in flight (`max_in_flight`).",
            counts.leased
        ));
    }
    if let (Some(max), Some(leased)) = (settings.max_in_flight_per_group, task.group_in_flight)
        && leased >= max
    {
        let group = task.extra.group.as_ref().map_or("", |group| group.as_str());
        return Some(format!(
            "The task is ready, but its group {} has {leased} of {max} tasks in flight (`max_in_flight_per_group`).",
            quoted(group)
        ));
    }
    if let (Some(rate), Some(ms)) = (settings.rate, next_delivery_ms.filter(|ms| *ms > 0)) {
        return Some(format!(
            "The task is ready, but the rate of its queue, {}, allows the next delivery in {}.",
            rate_text(rate),
            length(ms)
        ));
    }
    None
}

/// The task waits in the line of its queue. A queue with a target needs no worker.
fn in_line(now: Timestamp, task: &TaskView, queue: &QueueView, has_target: bool) -> String {
    let QueueView { counts, waiting, first_ready, .. } = queue;
    let since = length(now.ms_since(task.due_at));
    let ahead = match counts.ready.saturating_sub(1) {
        0 => None,
        _ if *first_ready == Some(task.id) => None,
        1 => Some("1 task may be ahead of it".to_owned()),
        count => Some(format!("up to {count} tasks are ahead of it")),
    };
    match (ahead, waiting) {
        (None, _) if has_target => format!("The task has been due for {since}, and it is the next in line."),
        (Some(ahead), _) if has_target => format!("The task has been due for {since}: {ahead}."),
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

/// The last attempt, if it failed: one that counted, or one that the target is to blame for.
fn last_failure(task: &TaskView, target: Option<&TargetFacts>) -> Option<String> {
    let counted = task.extra.failures.last();
    let sent = target.and_then(|target| Some((target::last_attempt(task, target)?, target)));
    match sent.filter(|(sent, _)| counted.is_none_or(|counted| target::ended_ms(sent) > counted.at.as_ms())) {
        Some((sent, target)) => target::has_failed(sent).then(|| target::uncounted(sent, target)),
        None => counted.map(|counted| failure(counted, target)),
    }
}

fn failure(failure: &Failure, target: Option<&TargetFacts>) -> String {
    let Failure { at: ended, attempt, how, reason } = failure;
    let how = match (reason, how) {
        (Some(reason), _) => {
            format!("failed at {}{}", at(*ended), target::because(Some(reason), target))
        }
        (None, Failed::LeaseEnded) => format!("failed at {}: its lease ended without an ack", at(*ended)),
        (None, Failed::Revoked) => {
            format!("ended at {}: the owner took the task from its worker", at(*ended))
        }
        (None, Failed::Gone) => format!("failed at {}: the connection of its worker closed", at(*ended)),
        (None, Failed::Nacked | Failed::Buried | Failed::Undeliverable) => {
            format!("failed at {} without a reason", at(*ended))
        }
    };
    format!("Attempt {attempt} {how}.")
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

    fn told(task: &TaskView, queue: &QueueView) -> String {
        why(now(), 0, task, queue, None)
    }

    fn failed(attempt: u32, reason: &str) -> Vec<Failure> {
        vec![Failure { at: ago_ms(10), attempt, how: Failed::Nacked, reason: Some(reason.into()) }]
    }

    #[test]
    fn a_scheduled_task_says_when_it_is_due() {
        let (task, queue) = seen();
        let task = TaskView { state: State::Scheduled, due_at: in_ms(5_400_000), ..task };
        assert_eq!(told(&task, &queue), "The task is due at 2030-01-01T01:30:00.000Z, in 1h30m.");
        // A start may find its clock far ahead, and hold back a task whose instant has come by the clock.
        let held = TaskView { due_at: ago_ms(5_000), ..task.clone() };
        assert_eq!(
            why(now(), 2 * 3_600_000, &held, &queue, None),
            "The task is due at 2029-12-31T23:59:55.000Z. The clock of the server is 2h ahead of the time by which tasks fall due: it is believed once it has stood for 60 s."
        );
        let extra = Extra { failures: failed(2, "x"), ..Extra::default() };
        let task = TaskView { due_at: in_ms(1_500), attempt: 2, extra, ..task };
        assert_eq!(
            told(&task, &queue),
            "Attempt 2 failed with the reason `x`, and the task is due again at 2030-01-01T00:00:01.500Z, in 1s."
        );
        let extra = Extra { step: 1, ..task.extra };
        let task = TaskView { due_at: in_ms(100 * 86_400_000 + 1), attempt: 0, extra, ..task };
        assert_eq!(
            told(&task, &queue),
            "The next instant of its timeline is at 2030-04-11T00:00:00.001Z, in 100d."
        );
    }

    #[test]
    fn a_leased_task_says_who_has_it() {
        let (task, queue) = seen();
        let until = Some(in_ms(30_000));
        let task = TaskView { state: State::Leased, leased_until: until, attempt: 2, ..task };
        assert_eq!(
            told(&task, &queue),
            "A worker has the task, at the latest until 2030-01-01T00:00:30.000Z: this is attempt 2."
        );
        let (leased_by, leased_since) = (Some(Arc::from("mailer-1")), Some(now()));
        let task = TaskView { leased_by, leased_since, ..task };
        assert_eq!(
            told(&task, &queue),
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
        let told = |death| super::why(now(), 0, &of(death), &queue, None);
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
        let mut refused = of(Death::Refused);
        refused.extra.failures[0].how = Failed::Undeliverable;
        assert!(
            super::why(now(), 0, &refused, &queue, None).ends_with("Z with the reason `no paper`."),
            "it is the reason of the refusal"
        );
    }

    #[test]
    fn a_paused_queue_is_named_first() {
        let (task, mut queue) = seen();
        queue.counts.paused = true;
        (queue.paused_until, queue.settings.max_in_flight) = (Some(Timestamp::MAX), Some(1));
        queue.counts.leased = 1;
        assert_eq!(
            told(&task, &queue),
            "The task is ready, but its queue is paused until `tickwheel queues resume q`."
        );
        queue.paused_until = Some(in_ms(60_000));
        queue.counts.queue = QueueName::new("a;b").expect("a name");
        assert_eq!(
            told(&task, &queue),
            "The task is ready, but its queue is paused until 2030-01-01T00:01:00.000Z, and `tickwheel queues resume 'a;b'` ends the pause \
             at once."
        );
    }

    #[test]
    fn a_full_limit_is_named_with_its_numbers() {
        let (task, mut queue) = seen();
        queue.settings = QueueSettings { max_in_flight: Some(3), ..QueueSettings::default() };
        queue.counts.leased = 3;
        assert_eq!(
            told(&task, &queue),
            "The task is ready, but its queue has 3 of 3 tasks in flight (`max_in_flight`)."
        );
        queue.settings = QueueSettings { max_in_flight_per_group: Some(2), ..QueueSettings::default() };
        let extra = Extra { group: Group::new("user:7").ok(), ..Extra::default() };
        let task = TaskView { extra, group_in_flight: Some(2), ..task };
        assert_eq!(
            told(&task, &queue),
            "The task is ready, but its group `user:7` has 2 of 2 tasks in flight (`max_in_flight_per_group`)."
        );
        let task = TaskView { group_in_flight: Some(1), ..task };
        assert!(told(&task, &queue).contains("no worker asks"), "one more may be");
    }

    #[test]
    fn a_rate_says_when_the_next_delivery_may_begin() {
        let (task, mut queue) = seen();
        queue.settings.rate = Some(Rate { tasks: 5, per_ms: 1_000, burst: 5 });
        queue.next_delivery_ms = Some(120);
        assert_eq!(
            told(&task, &queue),
            "The task is ready, but the rate of its queue, 5/s, allows the next delivery in 120ms."
        );
        queue.next_delivery_ms = Some(0);
        assert!(told(&task, &queue).contains("no worker asks"), "it holds nothing up");
    }

    #[test]
    fn a_task_that_nothing_holds_up_waits_for_a_worker_or_for_its_turn() {
        let (task, mut queue) = seen();
        assert_eq!(
            told(&task, &queue),
            "The task has been due for 5s, and no worker asks for tasks of its queue."
        );
        queue.counts.ready = 5;
        assert!(!told(&task, &queue).contains("ahead"), "it is the first of them");
        queue.first_ready = Some(task.id + 1);
        assert_eq!(
            told(&task, &queue),
            "The task has been due for 5s: up to 4 tasks are ahead of it, and no worker asks for tasks of its queue."
        );
        queue.waiting = 1;
        assert_eq!(told(&task, &queue), "The task has been due for 5s: up to 4 tasks are ahead of it.");
        queue.counts.ready = 2;
        assert_eq!(told(&task, &queue), "The task has been due for 5s: 1 task may be ahead of it.");
        queue.first_ready = Some(task.id);
        assert_eq!(told(&task, &queue), "The task is ready, and the next worker in line gets it.");
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

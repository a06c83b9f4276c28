//! The sentences about tasks that the server has in hand, to send them to the target of their queue.

use tickwheel_api::{AttemptBody, TargetKind, TargetOrder, TargetState, time};
use tickwheel_queue::{QueueView, TaskView, Timestamp};

use super::target::{because, ended_ms, has_failed, last_attempt, name};
use super::words::{at, length, quoted};
use crate::targets::{HandFacts, HandState, TargetFacts};

/// The condition of a task that is sent next.
const FOLLOWS: &str = "it is sent as soon as the end of the task before it is stored";

/// A task that the server itself has leased. `None`: the queue has no target any more.
pub(super) fn in_hand(now: Timestamp, task: &TaskView, target: Option<&TargetFacts>) -> String {
    let since = task.leased_since.map(|since| format!(" since {}", at(since))).unwrap_or_default();
    let has = format!("The server has the task in hand{since}");
    let Some(target) = target else {
        return format!("{has}: it was under way when its queue lost its target.");
    };
    let has = format!("{has} to send it to the target of its queue, {}", name(target));
    match &target.hand {
        Some(hand) => match hand.state {
            HandState::New => format!("{has}: {FOLLOWS}."),
            HandState::Sending { since_ms, until_ms } => {
                let earlier = failed_before(task, target).map(|text| format!(" {text}.")).unwrap_or_default();
                let times = times(since_ms, until_ms, target);
                format!("{has}: this is attempt {}, under way {times}.{earlier}", hand.attempt)
            }
            HandState::Failed { next_ms } => {
                let shown = is_state_told(target).then_some(target);
                let failed = failed("Attempt", hand.attempt, hand.ended.as_ref(), shown);
                let next = next_attempt(now, hand.attempt, next_ms);
                format!("{has}. {failed}, and {next}, before later tasks of its order.")
            }
        },
        None => between(task, target, &has),
    }
}

/// Whether the answer has a sentence about the state of the target, which names its last failure.
fn is_state_told(target: &TargetFacts) -> bool {
    target.row.state != TargetState::Closed
}

/// A task that is not in hand yet, or that has just left it: the queue stores the one or the other.
fn between(task: &TaskView, target: &TargetFacts, has: &str) -> String {
    match of_this_lease(task, target) {
        Some(last) if has_failed(last) => {
            format!(
                "{has}. {}, and the server stores that now.",
                failed("Attempt", last.attempt, Some(last), is_state_told(target).then_some(target))
            )
        }
        Some(last) => {
            format!("{has}. The target confirmed attempt {}, and the server stores that now.", last.attempt)
        }
        None => format!("{has}: this is attempt {}.", task.attempt),
    }
}

/// The last attempt that ended, if it was made for this task while the server had it in hand as it has now.
fn of_this_lease<'t>(task: &TaskView, target: &'t TargetFacts) -> Option<&'t AttemptBody> {
    let begun = task.leased_since.map_or(0, Timestamp::as_ms);
    last_attempt(task, target).filter(|last| last.at_ms >= begun)
}

/// The failed attempt before the one that is under way.
fn failed_before(task: &TaskView, target: &TargetFacts) -> Option<String> {
    let last = of_this_lease(task, target).filter(|last| has_failed(last))?;
    Some(failed("Attempt", last.attempt, Some(last), is_state_told(target).then_some(target)))
}

/// The clause about an attempt that failed. `what`: the words before its number. `target`: a later sentence tells the reason of its last
/// failure, so this clause leaves that reason out.
fn failed(what: &str, attempt: u32, ended: Option<&AttemptBody>, target: Option<&TargetFacts>) -> String {
    let Some(ended) = ended else { return format!("{what} {attempt} failed") };
    let reason = ended.reason.as_deref();
    let is_told = target.is_some_and(|target| target.row.reason.as_deref() == reason);
    let because = because(reason.filter(|_| !is_told), None);
    format!("{what} {attempt} failed at {}{because}", time::format(ended_ms(ended)))
}

/// The clause about the attempt after `attempt`.
fn next_attempt(now: Timestamp, attempt: u32, next_ms: i64) -> String {
    let number = attempt.saturating_add(1);
    match Timestamp::from_ms(next_ms).map(|next| (next, next.ms_since(now))) {
        Some((next, left @ 1..)) => format!("attempt {number} is due at {}, in {}", at(next), length(left)),
        _ => format!("attempt {number} comes as soon as the target takes a message"),
    }
}

/// The times of an attempt that is under way. A sink opens the connection to a broker first, if there is none; of a webhook and of RabbitMQ,
/// this is a part of the attempt's time-out.
fn times(since_ms: i64, until_ms: i64, target: &TargetFacts) -> String {
    let (since, until) = (time::format(since_ms), time::format(until_ms));
    let timeout = match target.row.kind {
        TargetKind::Webhook | TargetKind::Amqp => "`timeout`",
        _ => "`timeout`, and the time to connect if there is no connection",
    };
    format!("since {since}, at the latest until {until} ({timeout})")
}

/// The order of the target, if it holds the task up behind another one.
pub(super) fn behind(
    now: Timestamp,
    task: &TaskView,
    queue: &QueueView,
    target: &TargetFacts,
) -> Option<String> {
    let order = match (target.order, &task.extra.group) {
        (TargetOrder::None, _) | (TargetOrder::Group, None) => return None,
        (TargetOrder::Group, Some(group)) => {
            // The target has set the limit of the queue to one.
            let limit = queue.settings.max_in_flight_per_group?;
            task.group_in_flight.filter(|leased| *leased >= limit)?;
            format!("the order of its group {}", quoted(group.as_str()))
        }
        (TargetOrder::Queue, _) => "the order of its queue".to_owned(),
    };
    let keeps = format!("The task is ready, but the target keeps {order} (`order`)");
    match (&target.head, target.order) {
        (Some(head), _) => {
            let key = quoted(head.key.as_str());
            Some(format!("{keeps}, and the task {key} comes first: {}.", doing(now, head, target)))
        }
        (None, TargetOrder::Group) => Some(format!(
            "{keeps}, and another task of the group is in flight: a worker has it, or its end is not stored yet."
        )),
        (None, TargetOrder::None | TargetOrder::Queue) => None,
    }
}

/// The clause about the task that comes first. A later sentence tells the last failure of the target.
fn doing(now: Timestamp, head: &HandFacts, target: &TargetFacts) -> String {
    match head.state {
        HandState::New => FOLLOWS.to_owned(),
        HandState::Sending { since_ms, until_ms } => {
            format!("its attempt {} is under way {}", head.attempt, times(since_ms, until_ms, target))
        }
        HandState::Failed { next_ms } => {
            let failed = failed("its attempt", head.attempt, head.ended.as_ref(), Some(target));
            format!("{failed}, and {}", next_attempt(now, head.attempt, next_ms))
        }
    }
}

//! The story of a task, from its record.

use tickwheel_api::{StoryEvent, StoryWord};
use tickwheel_queue::{Death, Failed, Failure, State, TaskView, Timestamp};

/// The events of a task, behind it and to come, and whether they are all.
pub(crate) struct Story {
    pub(crate) events: Vec<StoryEvent>,
    pub(crate) next: Vec<StoryEvent>,
    pub(crate) complete: bool,
}

/// An event without details.
pub(crate) fn event(what: StoryWord, at: Option<Timestamp>) -> StoryEvent {
    StoryEvent { at_ms: at.map(Timestamp::as_ms), what, attempt: None, reason: None, by: None }
}

pub(crate) fn story(task: &TaskView) -> Story {
    let is_changed = task.version != task.put_seq;
    let counted = usize::try_from(task.extra.tally.leases).unwrap_or(usize::MAX);
    let earlier = u32::try_from(counted.saturating_sub(task.extra.failures.len())).unwrap_or(u32::MAX);
    let is_known = task.state != State::Leased || task.leased_since.is_some();
    Story {
        events: past(task, is_changed, earlier),
        next: future(task),
        complete: !is_changed && earlier == 0 && task.step() == 0 && is_known,
    }
}

fn past(task: &TaskView, is_changed: bool, earlier: u32) -> Vec<StoryEvent> {
    let mut events = vec![event(StoryWord::Put, Some(task.put_at))];
    // The instants of these are unknown, so they stand before the others.
    events.extend(is_changed.then(|| event(StoryWord::Changed, None)));
    let earlier = Some(earlier).filter(|count| *count > 0);
    events
        .extend(earlier.map(|count| StoryEvent { attempt: Some(count), ..event(StoryWord::Earlier, None) }));
    let done = task.body.timeline.iter().take(task.step());
    let mut dated: Vec<StoryEvent> = done.map(|moment| event(StoryWord::Moment, Some(moment.at))).collect();
    if task.state != State::Scheduled {
        dated.push(event(StoryWord::Due, Some(task.due_at)));
    }
    // The due time comes first of what has one instant, for no attempt begins before it.
    dated.extend(task.extra.failures.iter().map(failed));
    dated.sort_by_key(|event| event.at_ms);
    events.extend(dated);
    if task.state == State::Leased {
        let leased = event(StoryWord::Leased, task.leased_since);
        let by = task.leased_by.as_deref().map(str::to_owned);
        events.push(StoryEvent { attempt: Some(task.attempt), by, ..leased });
    }
    if let Some(dead) = &task.extra.dead {
        let why = match dead.why {
            Death::MaxAttempts => "max_attempts",
            Death::Expired => "expired",
            Death::Buried => "buried",
            Death::Refused => "refused",
            Death::Template => "template",
            Death::TooLarge => "too_large",
        };
        events.push(StoryEvent { reason: Some(why.to_owned()), ..event(StoryWord::Dead, Some(dead.at)) });
    }
    events
}

fn failed(failure: &Failure) -> StoryEvent {
    let what = match failure.how {
        Failed::Nacked => StoryWord::Nacked,
        Failed::LeaseEnded => StoryWord::LeaseEnded,
        Failed::Revoked => StoryWord::Revoked,
        Failed::Buried => StoryWord::Buried,
        Failed::Gone => StoryWord::WorkerGone,
        Failed::Undeliverable => StoryWord::Undeliverable,
    };
    let reason = failure.reason.as_deref().map(str::to_owned);
    StoryEvent { attempt: Some(failure.attempt), reason, ..event(what, Some(failure.at)) }
}

fn future(task: &TaskView) -> Vec<StoryEvent> {
    let mut next = Vec::new();
    if task.state == State::Dead {
        return next;
    }
    if task.state == State::Scheduled {
        let attempt = Some(task.attempt.saturating_add(1));
        next.push(StoryEvent { attempt, ..event(StoryWord::Due, Some(task.due_at)) });
    }
    next.extend(task.leased_until.map(|until| event(StoryWord::LeaseEnds, Some(until))));
    let moments = task.body.timeline.iter().skip(task.step() + 1);
    next.extend(moments.map(|moment| event(StoryWord::Moment, Some(moment.at))));
    next.extend(task.extra.expire_at.map(|at| event(StoryWord::Expires, Some(at))));
    next.sort_by_key(|event| event.at_ms);
    next
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use tickwheel_queue::{
        Body, Get, Key, Lease, Moment, Nack, Patch, Put, Queue, QueueName, Retry, Terms, Token,
    };

    /// A queue in memory with one task.
    struct World {
        queue: Queue,
        name: QueueName,
        key: Key,
    }

    impl World {
        fn new(put: impl FnOnce(Put) -> Put) -> Self {
            let queue = Queue::options().virtual_clock().open_memory().expect("open");
            let (name, key) = (QueueName::new("q").expect("a name"), Key::new("k").expect("a key"));
            queue.put(put(Put::new(&name, key.clone()))).wait().expect("put");
            Self { queue, name, key }
        }

        fn story(&self) -> Story {
            story(&self.task())
        }

        fn task(&self) -> TaskView {
            self.queue.get(Get::new(&self.name, self.key.clone())).wait().expect("live")
        }

        fn lease(&self, worker: Option<&str>) -> Token {
            let lease = Lease { worker: worker.map(Into::into), ..Lease::new(&self.name) };
            let leased = self.queue.lease(lease, Duration::ZERO).wait().expect("leased");
            leased[0].token
        }

        fn nack(&self, reason: &str) {
            let nack = Nack { reason: Some(reason.into()), ..Nack::new(&self.name, [self.lease(None)]) };
            self.queue.nack(nack).wait().expect("nacked");
        }
    }

    fn words(events: &[StoryEvent]) -> Vec<&'static str> {
        events.iter().map(|event| event.what.name()).collect()
    }

    #[test]
    fn a_task_that_waits_has_been_put_and_will_be_due() {
        let world = World::new(|put| put.after(Duration::from_secs(60)));
        let told = world.story();
        assert_eq!((words(&told.events), words(&told.next)), (vec!["put"], vec!["due"]));
        assert_eq!(told.next[0].attempt, Some(1));
        assert!(told.complete && told.events[0].at_ms.is_some());
        let patch = Patch { priority: Some(7), ..Patch::new(&world.name, world.key.clone()) };
        world.queue.patch(patch).wait().expect("patched");
        let told = world.story();
        assert_eq!((words(&told.events), told.events[1].at_ms), (vec!["put", "changed"], None));
        assert!(!told.complete, "it is not kept when it was changed");
    }

    #[test]
    fn failures_a_lease_and_the_end_are_told_in_their_order() {
        let retry = Some(Retry { max_attempts: Some(13), backoff: None });
        let expire_after_ms = Some(3_600_000);
        let terms = Terms { retry, expire_after_ms, ..Terms::default() };
        let world = World::new(|put| Put { terms, ..put });
        world.nack("no paper");
        let told = world.story();
        assert_eq!(words(&told.events), ["put", "due", "nacked"]);
        assert_eq!((told.events[2].attempt, told.events[2].reason.as_deref()), (Some(1), Some("no paper")));
        assert_eq!(words(&told.next), ["expires"]);
        (0..10).for_each(|_| world.nack("again"));
        world.lease(Some("mailer-1"));
        let told = world.story();
        assert_eq!(words(&told.events[..2]), ["put", "earlier"]);
        assert_eq!((told.events[1].attempt, told.complete), (Some(1), false), "ten failures are kept");
        let leased = told.events.last().expect("a lease");
        assert_eq!((leased.what, leased.attempt), (StoryWord::Leased, Some(12)));
        assert!(leased.by.as_deref() == Some("mailer-1") && leased.at_ms.is_some());
        assert_eq!(words(&told.next), ["lease_ends", "expires"]);
    }

    #[test]
    fn the_end_of_a_dead_task_says_why() {
        let terms = Terms { retry: Some(Retry { max_attempts: Some(1), backoff: None }), ..Terms::default() };
        let world = World::new(|put| Put { terms, ..put });
        world.nack("no paper");
        let told = world.story();
        assert_eq!(words(&told.events), ["put", "due", "nacked", "dead"]);
        assert_eq!(told.events[3].reason.as_deref(), Some("max_attempts"));
        assert!(told.next.is_empty() && told.complete);
    }

    #[test]
    fn the_instants_of_a_timeline_are_behind_or_to_come() {
        let now = Queue::options().virtual_clock().open_memory().expect("open").now();
        let moment = |ms| Moment {
            at: now.saturating_plus_ms(ms),
            payload: Vec::new(),
            content_type: Arc::from("text/plain"),
        };
        let timeline = vec![moment(0), moment(3_600_000), moment(7_200_000)];
        let world = World::new(|put| Put { body: Body { timeline, ..Body::default() }, ..put });
        let ack = tickwheel_queue::Ack::new(&world.name, [world.lease(None)]);
        world.queue.ack(ack).wait().expect("acked");
        let told = world.story();
        let mut events = words(&told.events);
        events.sort_unstable();
        assert_eq!((events, words(&told.next)), (vec!["moment", "put"], vec!["due", "moment"]));
        assert!(!told.complete, "it is not kept when its work was done");
    }
}

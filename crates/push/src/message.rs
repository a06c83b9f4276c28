//! [`Message`]: a task on its way to a target, with the facts of this attempt.

use std::sync::Arc;

use tickwheel_api::{EnvelopeBody, PayloadBody, TraceContext};
use tickwheel_queue::{
    Body, Group, Key, Leased, PRIORITY_DEFAULT, Queue, QueueName, Retry, Seq, Tag, Timestamp, Token,
};

use crate::text::{percent_encoded, rfc3339};

/// The text of a token that no lease has.
const NO_TOKEN: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// A task on its way to a target, with the facts of this attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The task.
    pub leased: Arc<Leased>,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// Whether the task is dead if this attempt fails.
    pub is_last: bool,
    /// When this attempt began.
    pub sent_at: Timestamp,
    /// The name of the instance of the queue, see [`Queue::instance`](tickwheel_queue::Queue::instance).
    pub instance: u32,
}

impl Message {
    /// Returns a message that is no task, to try a target: its key, its group and its tag are `test`, its id is 0, and its payload `{"test":true}`. The queue stores
    /// nothing.
    #[must_use]
    pub fn test(queue: &Queue, name: &QueueName) -> Self {
        let now = queue.now();
        let body = Body {
            payload: br#"{"test":true}"#.to_vec(),
            content_type: tickwheel_api::CONTENT_TYPE_JSON.into(),
            tags: vec![Tag::new("test").expect("a tag")],
            timeline: Vec::new(),
        };
        let leased = Leased {
            id: 0,
            queue: name.clone(),
            key: Key::new("test").expect("a key"),
            due_at: now,
            ready_at: now,
            put_seq: Seq(0),
            attempt: 1,
            token: Token::parse(NO_TOKEN).expect("the form of a token"),
            lease_until: now,
            lease_ms: 0,
            priority: PRIORITY_DEFAULT,
            group: Some(Group::new("test").expect("a group")),
            trace: None,
            step: 0,
            retry: Retry::default(),
            body: Arc::new(body),
        };
        Self { leased: Arc::new(leased), attempt: 1, is_last: true, sent_at: now, instance: queue.instance() }
    }

    /// Returns the id of the message: the same for all attempts, and different for each task, and for each instant of a timeline. A receiver
    /// that remembers the ids it has seen takes each message once.
    ///
    /// The id has only letters, digits and `_`, as the Standard Webhooks specification wants it.
    #[must_use]
    pub fn id(&self) -> String {
        let Leased { id, step, ref body, .. } = *self.leased;
        let instance = self.instance;
        if body.timeline.is_empty() {
            return format!("tw_{instance:08x}_{id}");
        }
        format!("tw_{instance:08x}_{id}_{step}")
    }

    /// Returns the facts that go beside each payload, with their names. The values are ASCII: the key is percent-encoded.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let Leased { queue, key, due_at, trace, .. } = &*self.leased;
        let mut encoded_key = String::new();
        percent_encoded(&mut encoded_key, key.as_str());
        let mut facts = vec![
            ("tickwheel-queue", queue.as_str().to_owned()),
            ("tickwheel-key", encoded_key),
            ("tickwheel-attempt", self.attempt.to_string()),
            ("tickwheel-due-at", rfc3339(due_at.as_ms())),
            ("tickwheel-last-attempt", self.is_last.to_string()),
        ];
        if let Some(trace) = trace.as_deref().and_then(TraceContext::read) {
            facts.push(("traceparent", trace.traceparent));
            facts.extend(trace.tracestate.map(|state| ("tracestate", state)));
        }
        facts
    }

    /// Returns the task with its payload as JSON, for receivers that want the facts in the body.
    pub(crate) fn envelope(&self) -> Vec<u8> {
        let Leased { queue, key, id, due_at, group, body, .. } = &*self.leased;
        let (payload, content_type) = self.payload();
        let envelope = EnvelopeBody {
            queue: queue.as_str().to_owned(),
            key: key.as_str().to_owned(),
            id: *id,
            attempt: self.attempt,
            due_at_ms: due_at.as_ms(),
            sent_at_ms: self.sent_at.as_ms(),
            tags: body.tags.iter().map(|tag| tag.as_str().to_owned()).collect(),
            group: group.as_ref().map(|group| group.as_str().to_owned()),
            payload: PayloadBody { bytes: payload.to_vec(), content_type: content_type.to_owned() },
        };
        serde_json::to_vec(&envelope).expect("no member of an envelope fails to be written")
    }

    /// Returns the payload and its content type.
    #[must_use]
    pub fn payload(&self) -> (&[u8], &str) {
        let (payload, content_type) = self.leased.body.payload_at(self.leased.step);
        (payload, content_type)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use tickwheel_queue::{Key, Lease, Put, Queue, QueueName};

    use super::*;

    /// A message with the key `order:1/ä` in the queue `close`.
    pub(crate) fn message() -> Message {
        let start = Timestamp::from_ms(1_795_000_000_000).expect("an instant");
        let queue = Queue::options().virtual_clock_at(start).open_memory().expect("a queue");
        let close = QueueName::new("close").expect("a name");
        let put = Put::new(&close, Key::new("order:1/ä").expect("a key")).payload(br#"{"a":1}"#.to_vec());
        queue.put(put).wait().expect("a put");
        let mut leased = queue.lease(Lease::new(&close), Duration::ZERO).wait().expect("a lease");
        let leased = Arc::new(leased.remove(0));
        Message { leased, attempt: 1, is_last: false, sent_at: queue.now(), instance: 0xab }
    }

    #[test]
    fn a_test_message_is_no_task() {
        let queue = Queue::options().open_memory().expect("a queue");
        let close = QueueName::new("close").expect("a name");
        let message = Message::test(&queue, &close);
        assert_eq!(message.id(), format!("tw_{:08x}_0", queue.instance()));
        assert_eq!(message.payload(), (br#"{"test":true}"#.as_slice(), "application/json"));
        assert_eq!(queue.queue(&close).wait().expect("counts").counts.ready, 0);
    }

    #[test]
    fn an_id_is_the_same_for_all_attempts_and_has_the_step_of_a_timeline() {
        let first = message();
        let again = Message { attempt: 7, ..first.clone() };
        assert_eq!((first.id(), again.id()), ("tw_000000ab_1".to_owned(), "tw_000000ab_1".to_owned()));
    }
}

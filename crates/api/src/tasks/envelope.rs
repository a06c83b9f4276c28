//! The envelope: a task as a webhook or a broker gets it in one body.

use crate::declare::{body, has, instant, key, may, number, or_made, shown, text, word};

use crate::PayloadBody;
use crate::tasks::task::tags;
use crate::text::portable::INTEGER_MAX;
use crate::values::limits::GROUP_BYTES_MAX;
use crate::values::payload::kept_payload;

body! {
    /// A task with its payload, as a target with the body `envelope` gets it.
    pub struct EnvelopeBody: answer "Envelope" {
        /// The queue.
        queue: String = has(text(200, "close"));
        /// The key of the task.
        key: String = has(key("order:1"));
        /// The server's number for the task.
        id: u64 = has(number(1, INTEGER_MAX));
        /// The number of this attempt; 1 for the first one.
        attempt: u32 = has(number(1, u32::MAX.into()));
        /// When the task was due.
        due_at_ms as "due_at": i64 = has(instant());
        /// When this attempt began.
        sent_at_ms as "sent_at": i64 = has(instant());
        /// Words to find the task by.
        tags: Vec<String> = shown(Vec::new(), tags());
        /// The group of the task.
        group: Option<String> = may(word(GROUP_BYTES_MAX, "user:7"));
        /// The payload.
        payload: PayloadBody = or_made(PayloadBody::default, kept_payload());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_has_its_payload_as_json_or_as_base64() {
        let mut envelope = EnvelopeBody {
            queue: "close".into(),
            key: "order:1".into(),
            id: 7,
            attempt: 2,
            due_at_ms: 0,
            sent_at_ms: 1_500,
            tags: Vec::new(),
            group: None,
            payload: PayloadBody::json(br#"{"a":1.0}"#.to_vec()),
        };
        let head = r#"{"queue":"close","key":"order:1","id":7,"attempt":2,"due_at":"1970-01-01T00:00:00.000Z","sent_at":"1970-01-01T00:00:01.500Z","tags":[],"#;
        let written = serde_json::to_string(&envelope).expect("JSON");
        assert_eq!(written, format!(r#"{head}"payload":{{"a":1.0}}}}"#));
        assert_eq!(serde_json::from_str::<EnvelopeBody>(&written).expect("an envelope"), envelope);
        envelope.payload.bytes = vec![0xff];
        let written = serde_json::to_string(&envelope).expect("JSON");
        assert!(
            written.contains(r#""payload_base64":"/w==","content_type":"application/json""#),
            "{written}"
        );
    }
}

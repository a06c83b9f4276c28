//! [`TargetBody`]: the settings of a target.

use std::collections::BTreeMap;

use crate::declare::{
    ValueCodec, body, choice, duration, flag, has, list, nullable, number, object, unless, unless_made, word,
};
use crate::text::bad_request::BadRequest;
use crate::values::retry::RetryBody;

use super::kinds::{self, TargetKind};
use super::names::names;
use super::parts::{AuthBody, BreakerBody, ListEnd, SIGNING_MAX, SigningBody, TargetTlsBody};

/// Maximum number of messages that are under way to a target at one time.
pub const TARGET_CONCURRENCY_MAX: u64 = 10_000;
/// Maximum number of headers that a target adds.
pub const TARGET_HEADERS_MAX: usize = 32;
/// Minimum time for one attempt: 1 s.
pub const TARGET_TIMEOUT_MS_MIN: u64 = 1_000;
/// Maximum time for one attempt: 5 min.
pub const TARGET_TIMEOUT_MS_MAX: u64 = 300_000;
/// Maximum length of a URL, a topic or another name (bytes).
const NAME_BYTES_MAX: usize = 2_048;

body! {
    /// The target of a queue: the place to which the server sends its tasks. A text may have places for values of the task: `{queue}`, `{key}`, `{id}`, `{attempt}`, `{due_at}`, `{group}`, `{tag.0}`; a brace itself is written `{{`.
    ///
    /// The body of `PUT /v1/queues/{q}/target`: `{"kind": "webhook", "url": "https://shop.example/hooks/{queue}"}`. The body replaces the whole
    /// target: a member that is absent or `null` has its default.
    #[derive(Default)]
    pub struct TargetBody: both "Target" {
        /// The kind of the other side.
        kind: TargetKind = has(choice());
        /// `webhook`: the URL. Places for values are allowed in the path and the query.
        url: Option<String> = nullable(word(NAME_BYTES_MAX, "https://shop.example/hooks/{queue}"));
        /// `webhook`: `POST`, `PUT` or `PATCH`. Default: `POST`.
        method: Option<HttpMethod> = nullable(choice());
        /// The form of the body. Default: `payload`; for `beanstalk` and a list of Redis, which have no headers, `envelope`.
        body: Option<ContentForm> = nullable(choice());
        /// Headers that each message gets in addition. Their values may have places for values of the task.
        headers: BTreeMap<String, String> = unless_made(BTreeMap::new, names(TARGET_HEADERS_MAX));
        /// `webhook`: the secrets that sign, the current one first, at most 5. Default: none, so nothing is signed.
        signing: Vec<SigningBody> = unless_made(Vec::new, list(object(), r#"write a list of objects: [{"secret": "whsec_..."}]"#).of(0, SIGNING_MAX).checked(|path, signing| few(path, signing)));
        /// `webhook`: the header `authorization`.
        auth: Option<AuthBody> = nullable(object());
        /// `webhook`: the settings of TLS.
        tls: Option<TargetTlsBody> = nullable(object());
        /// `webhook`: answers after which a task is dead at once. Default: none.
        dead_on: Option<Vec<u16>> = nullable(statuses());
        /// `webhook`: answers after which the target is disabled. Default: 410.
        disable_on: Option<Vec<u16>> = nullable(statuses());
        /// Brokers: the name of the connection in the server's configuration.
        connection: Option<String> = nullable(word(100, "main"));
        /// `kafka` (experimental): the topic.
        topic: Option<String> = nullable(word(NAME_BYTES_MAX, "due"));
        /// `kafka` (experimental): the key of the message. Default: the key of the task; with the order `group`, the group.
        key: Option<String> = nullable(word(NAME_BYTES_MAX, "{key}"));
        /// `amqp`: the exchange.
        exchange: Option<String> = nullable(word(NAME_BYTES_MAX, "orders"));
        /// `amqp`: the routing key. Default: the name of the queue.
        routing_key: Option<String> = nullable(word(NAME_BYTES_MAX, "{queue}"));
        /// `amqp`: whether a message that reaches no queue is a failure. Default: true.
        mandatory: Option<bool> = nullable(flag());
        /// `amqp`: whether the broker keeps the messages on its disk. Default: true.
        persistent: Option<bool> = nullable(flag());
        /// `nats`: the subject.
        subject: Option<String> = nullable(word(NAME_BYTES_MAX, "due.{queue}"));
        /// `nats`: the stream that has to store the message. `redis`: the stream that gets it.
        stream: Option<String> = nullable(word(NAME_BYTES_MAX, "DUE"));
        /// `redis`: the length to which the stream is cut, roughly. Default: it is not cut.
        maxlen: Option<u64> = nullable(number(1, 1_000_000_000));
        /// `redis`: the number of replicas that have to confirm. Default: 0.
        wait: Option<u64> = nullable(number(0, 100));
        /// `redis`: the list that gets the messages.
        list: Option<String> = nullable(word(NAME_BYTES_MAX, "due"));
        /// `redis`: the end of the list. Default: `right`.
        push: Option<ListEnd> = nullable(choice());
        /// `beanstalk`: the tube.
        tube: Option<String> = nullable(word(200, "due"));
        /// `beanstalk`: the priority of the jobs. Default: 1024.
        pri: Option<u32> = nullable(number(0, 4_294_967_295));
        /// `beanstalk`: the time for which a job is reserved, in whole seconds. Default: 60 s.
        ttr_ms as "ttr": Option<u64> = nullable(duration().within(1_000, 86_400_000).like("60s"));
        /// The time for one attempt, 1 s to 5 min. Default: 15 s for a webhook, 10 s for a broker.
        timeout_ms as "timeout": Option<u64> = nullable(duration().within(TARGET_TIMEOUT_MS_MIN, TARGET_TIMEOUT_MS_MAX).like("15s"));
        /// Maximum number of messages that are under way at one time. Default: 8 for a webhook, 512 for a broker.
        concurrency: Option<u64> = nullable(number(1, TARGET_CONCURRENCY_MAX));
        /// The order of the messages. Default: `none`.
        order: Option<TargetOrder> = nullable(choice());
        /// When nothing is sent for a while, because the target fails.
        breaker: Option<BreakerBody> = nullable(object());
        /// The retry policy of tasks that have none, if their queue has none. Default: 16 attempts, exponential from 30 s to 12 h, jitter 0.3.
        retry: Option<RetryBody> = nullable(object());
        /// Whether messages are sent. Default: true.
        enabled: bool = unless(true, flag().null_is(true));
    }
    elsewhere: &[
        ("queue", "it stands in the path: PUT /v1/queues/{q}/target"),
        ("secret", "write it into `signing`: [{\"secret\": \"whsec_...\"}]"),
        ("address", "brokers are named in the server's configuration; write `connection`"),
        ("addresses", "brokers are named in the server's configuration; write `connection`"),
        ("rate", "it is a setting of the queue: PATCH /v1/queues/{q}"),
        ("max_attempts", "it stands in `retry`: `{\"max_attempts\": 5}`"),
    ];
    check: |target: &Self, _| kinds::check(target);
}

impl TargetBody {
    /// Returns the settings of a target of this kind, without any other member.
    #[must_use]
    pub fn of_kind(kind: TargetKind) -> Self {
        Self { kind, enabled: true, ..Self::default() }
    }
}

/// A list of statuses of HTTP.
fn statuses() -> impl ValueCodec<Value = Vec<u16>> {
    list(number(200, 599), "write a list of numbers: [410]").of(0, 50)
}

fn few(path: &str, signing: &[SigningBody]) -> Result<(), BadRequest> {
    if signing.len() <= SIGNING_MAX {
        return Ok(());
    }
    let what = format!("has {} secrets, more than {SIGNING_MAX}", signing.len());
    Err(BadRequest::member(path, what, "leave those out that no receiver needs any more"))
}

choice! {
    /// The method of the requests of a webhook.
    pub enum HttpMethod {
        /// `POST`.
        Post = "POST",
        /// `PUT`.
        Put = "PUT",
        /// `PATCH`.
        Patch = "PATCH",
    }
}

choice! {
    /// The form of the body of a message.
    pub enum ContentForm {
        /// The payload of the task.
        Payload = "payload",
        /// A JSON object with the payload and the facts of the task.
        Envelope = "envelope",
        /// `webhook`: the payload, with the headers of CloudEvents 1.0 in binary mode.
        CloudEvents = "cloudevents",
        /// `amqp`: the payload is a message that the RabbitMQ bridge has packed, and it is published as it was.
        Unpacked = "unpacked",
    }
}

choice! {
    /// The order of the messages.
    pub enum TargetOrder {
        /// Messages are under way side by side, and one that fails comes later.
        None = "none",
        /// At most one message of a group is under way. A message that fails is tried again, and its group waits for it.
        Group = "group",
        /// At most one message of the queue is under way. A message that fails is tried again, and all others wait for it.
        Queue = "queue",
    }
}

#[cfg(test)]
mod tests {
    use super::super::SecretBody;
    use super::*;

    fn refused(text: &str) -> (String, String) {
        let refused = TargetBody::parse(text.as_bytes()).expect_err(text);
        (refused.to_string(), refused.hint)
    }

    #[test]
    fn a_target_is_written_as_it_is_read() {
        for text in [
            r#"{"kind":"webhook","url":"https://a.example/{queue}"}"#,
            concat!(
                r#"{"kind":"webhook","url":"https://a.example/{queue}","method":"PUT","body":"cloudevents","headers":{"shop":"eu"},"#,
                r#""signing":[{"secret":"whsec_AAAA"},{"secret":{"name":"old"},"until":"2030-01-01T00:00:00.000Z"},{"secret":{"set":true,"id":"k2"}}],"#,
                r#""auth":{"basic":{"user":"u","password":{"set":true}}},"tls":{"ca":"shop","min":"1.3"},"dead_on":[400,422],"disable_on":[],"#,
                r#""timeout":"20s","concurrency":64,"order":"group","breaker":{"failures":3,"open":"2s","open_max":"1m"},"#,
                r#""retry":{"max_attempts":5,"backoff":"exponential","base":"1s","max":"10m","jitter":0.5},"enabled":false}"#,
            ),
            r#"{"kind":"kafka","connection":"main","topic":"due","key":"{key}"}"#,
            r#"{"kind":"amqp","connection":"main","exchange":"orders","routing_key":"{tag.0}","mandatory":false,"persistent":true}"#,
            r#"{"kind":"nats","connection":"main","subject":"due.{queue}","stream":"DUE"}"#,
            r#"{"kind":"redis","connection":"main","stream":"due","maxlen":100000,"wait":0}"#,
            r#"{"kind":"redis","connection":"main","list":"due","push":"left"}"#,
            r#"{"kind":"beanstalk","connection":"b1","tube":"due","pri":1024,"ttr":"1m"}"#,
        ] {
            let body = TargetBody::parse(text.as_bytes()).expect(text);
            assert_eq!(String::from_utf8(body.to_json()).expect("UTF-8"), text);
            assert_eq!(serde_json::from_str::<TargetBody>(text).expect(text), body);
        }
    }

    #[test]
    fn members_of_another_kind_and_missing_ones_are_named() {
        let url = r#""kind":"webhook","url":"https://a.example/""#;
        for (text, what) in [
            ("{}".to_owned(), "`kind`: is missing"),
            (r#"{"kind":"webhook"}"#.to_owned(), "`url`: is missing"),
            (r#"{"kind":"fax","url":"x"}"#.to_owned(), "`kind`: `fax` is not known"),
            (format!(r#"{{{url},"topic":"t"}}"#), "`topic`: does not go with the kind `webhook`"),
            (format!(r#"{{{url},"ttr":"60s"}}"#), "`ttr`: does not go with the kind `webhook`"),
            (format!(r#"{{{url},"timeout":"6m"}}"#), "`timeout`: 6m is not from 1s to 5m"),
            (format!(r#"{{{url},"dead_on":[99]}}"#), "`dead_on[0]`: 99 is not from 200 to 599"),
            (format!(r#"{{{url},"auth":{{}}}}"#), "`auth`: has not exactly one of `bearer` and `basic`"),
            (format!(r#"{{{url},"signing":[{{"secret":""}}]}}"#), "`signing[0].secret`: is empty"),
            (format!(r#"{{{url},"signing":[{{"secret":7}}]}}"#), "`signing[0].secret`: is not a secret"),
            (
                format!(r#"{{{url},"signing":[{{"secret":{{"set":false}}}}]}}"#),
                "`signing[0].secret`: is not a secret",
            ),
            (format!(r#"{{{url},"headers":{{"a":1}}}}"#), "`headers`: has a value that is not a string"),
            (
                format!(r#"{{{url},"breaker":{{"open":"2m","open_max":"1m"}}}}"#),
                "`breaker.open_max`: is shorter than `open`",
            ),
            (
                r#"{"kind":"redis","connection":"m"}"#.to_owned(),
                "the body: has not exactly one of `stream` and `list`",
            ),
            (
                r#"{"kind":"redis","connection":"m","list":"l","maxlen":5}"#.to_owned(),
                "`maxlen`: means nothing without `stream`",
            ),
            (r#"{"kind":"nats","connection":"m","subject":"s"}"#.to_owned(), "`stream`: is missing"),
        ] {
            let found = refused(&text).0;
            assert!(found.starts_with(what), "{text}: {found}");
        }
        let six = [r#"{"secret":{"name":"a"}}"#; 6].join(",");
        let found = refused(&format!(r#"{{{url},"signing":[{six}]}}"#)).0;
        assert_eq!(found, "`signing`: has 6 secrets, more than 5");
        assert!(refused(r#"{"kind":"amqp","addresses":["a"]}"#).1.contains("write `connection`"));
    }

    #[test]
    fn no_secret_is_in_a_debug_text() {
        let secret = SecretBody::Text("whsec_hidden".to_owned());
        assert_eq!(format!("{secret:?}"), "Text(..)");
    }
}

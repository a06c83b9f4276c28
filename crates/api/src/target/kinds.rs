//! [`TargetKind`]: the kinds of targets, and which member goes with which.

use crate::declare::choice;
use crate::text::bad_request::BadRequest;

use super::body::TargetBody;

choice! {
    /// The kind of the other side.
    #[derive(Default)]
    pub enum TargetKind {
        /// A receiver of HTTP requests.
        #[default]
        Webhook = "webhook",
        /// A topic of Kafka. Experimental: it has not run against Apache Kafka yet.
        Kafka = "kafka",
        /// An exchange of RabbitMQ.
        Amqp = "amqp",
        /// A stream of NATS JetStream.
        Nats = "nats",
        /// A stream or a list of Redis.
        Redis = "redis",
        /// A tube of beanstalkd.
        Beanstalk = "beanstalk",
    }
}

/// How a member goes with a kind.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Need {
    Must,
    May,
}

use Need::{May, Must};
use TargetKind::{Amqp, Beanstalk, Kafka, Nats, Redis, Webhook};

/// A member that does not go with every kind: its name, the kinds that it goes with, and whether a target has it.
type Member = (&'static str, &'static [(TargetKind, Need)], fn(&TargetBody) -> bool);

/// The members that do not go with every kind.
const MEMBERS: &[Member] = &[
    ("url", &[(Webhook, Must)], |target| target.url.is_some()),
    ("method", &[(Webhook, May)], |target| target.method.is_some()),
    ("signing", &[(Webhook, May)], |target| !target.signing.is_empty()),
    ("auth", &[(Webhook, May)], |target| target.auth.is_some()),
    ("tls", &[(Webhook, May)], |target| target.tls.is_some()),
    ("dead_on", &[(Webhook, May)], |target| target.dead_on.is_some()),
    ("disable_on", &[(Webhook, May)], |target| target.disable_on.is_some()),
    (
        "connection",
        &[(Kafka, Must), (Amqp, Must), (Nats, Must), (Redis, Must), (Beanstalk, Must)],
        |target| target.connection.is_some(),
    ),
    ("headers", &[(Webhook, May), (Kafka, May), (Amqp, May), (Nats, May), (Redis, May)], |target| {
        !target.headers.is_empty()
    }),
    ("topic", &[(Kafka, Must)], |target| target.topic.is_some()),
    ("key", &[(Kafka, May)], |target| target.key.is_some()),
    ("exchange", &[(Amqp, Must)], |target| target.exchange.is_some()),
    ("routing_key", &[(Amqp, May)], |target| target.routing_key.is_some()),
    ("mandatory", &[(Amqp, May)], |target| target.mandatory.is_some()),
    ("persistent", &[(Amqp, May)], |target| target.persistent.is_some()),
    ("subject", &[(Nats, Must)], |target| target.subject.is_some()),
    ("stream", &[(Nats, Must), (Redis, May)], |target| target.stream.is_some()),
    ("maxlen", &[(Redis, May)], |target| target.maxlen.is_some()),
    ("wait", &[(Redis, May)], |target| target.wait.is_some()),
    ("list", &[(Redis, May)], |target| target.list.is_some()),
    ("push", &[(Redis, May)], |target| target.push.is_some()),
    ("tube", &[(Beanstalk, Must)], |target| target.tube.is_some()),
    ("pri", &[(Beanstalk, May)], |target| target.pri.is_some()),
    ("ttr_ms", &[(Beanstalk, May)], |target| target.ttr_ms.is_some()),
];

impl TargetKind {
    /// The broker as its makers call it.
    #[must_use]
    pub fn product(self) -> &'static str {
        match self {
            Webhook => "HTTP",
            Kafka => "Kafka",
            Amqp => "RabbitMQ",
            Nats => "NATS",
            Redis => "Redis",
            Beanstalk => "beanstalkd",
        }
    }

    /// Whether a target of this kind may have a member that does not go with every kind. `member`: the name in JSON.
    #[must_use]
    pub fn takes(self, member: &str) -> bool {
        self.need(member).is_some()
    }

    /// Whether a target of this kind has to have a member that does not go with every kind. `member`: the name in JSON.
    #[must_use]
    pub fn needs(self, member: &str) -> bool {
        self.need(member) == Some(Must)
    }

    fn need(self, member: &str) -> Option<Need> {
        let (_, kinds, _) = MEMBERS.iter().find(|(field, ..)| field.trim_end_matches("_ms") == member)?;
        kinds.iter().find(|(kind, _)| *kind == self).map(|(_, need)| *need)
    }
}

impl TargetBody {
    /// The place that gets the messages: the URL, or the member that names the place in the broker.
    #[must_use]
    pub fn place(&self) -> Option<&str> {
        let place = match self.kind {
            Webhook => &self.url,
            Kafka => &self.topic,
            Amqp => &self.exchange,
            Nats => &self.subject,
            Redis if self.list.is_some() => &self.list,
            Redis => &self.stream,
            Beanstalk => &self.tube,
        };
        place.as_deref()
    }

    /// The member of this name in JSON, if it is one of those that say where in a broker a message goes.
    pub fn place_mut(&mut self, member: &str) -> Option<&mut Option<String>> {
        Some(match member {
            "topic" => &mut self.topic,
            "exchange" => &mut self.exchange,
            "routing_key" => &mut self.routing_key,
            "subject" => &mut self.subject,
            "stream" => &mut self.stream,
            "list" => &mut self.list,
            "tube" => &mut self.tube,
            _ => return None,
        })
    }
}

/// Checks that the members go with the kind.
pub(super) fn check(target: &TargetBody) -> Result<(), BadRequest> {
    let kind = target.kind;
    for (field, kinds, is_there) in MEMBERS {
        let name = field.trim_end_matches("_ms");
        match (kind.need(name), is_there(target)) {
            (None, true) => {
                let words: Vec<_> = kinds.iter().map(|(kind, _)| format!("`{}`", kind.name())).collect();
                let what = format!("does not go with the kind `{}`", kind.name());
                let hint = format!("leave it out; it goes with {}", words.join(", "));
                return Err(BadRequest::member(name, what, hint));
            }
            (Some(Must), false) => {
                let hint = format!("a target of the kind `{}` needs it", kind.name());
                return Err(BadRequest::member(name, "is missing", hint));
            }
            _ => {}
        }
    }
    if kind == Redis && target.stream.is_some() == target.list.is_some() {
        let hint = "write `stream` for XADD, or `list` for RPUSH";
        return Err(BadRequest::body("has not exactly one of `stream` and `list`", hint));
    }
    for (name, is_there, whole) in
        [("maxlen", target.maxlen.is_some(), "stream"), ("push", target.push.is_some(), "list")]
    {
        let has_whole = if whole == "stream" { target.stream.is_some() } else { target.list.is_some() };
        if is_there && !has_whole {
            let what = format!("means nothing without `{whole}`");
            return Err(BadRequest::member(name, what, format!("leave it out, or write `{whole}`")));
        }
    }
    Ok(())
}

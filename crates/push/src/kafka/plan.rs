//! [`KafkaPlan`]: the topic and the key of the records, and their form.

use std::time::Duration;

use krafka::Record;

use crate::broker::{Address, AddressError, Alphabet, Content, ContentError, ContentForm};
use crate::message::Message;
use crate::outcome::Outcome;
use crate::template::{Template, TemplateError};

const TOPIC: Alphabet = Alphabet {
    noun: "topic",
    allows: |c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'),
    words: "letters, digits, '.', '_' and '-'",
    bytes_max: 249,
};

/// The settings of a target in Kafka.
#[derive(Clone, Debug)]
pub struct KafkaPlan {
    topic: Address,
    key: Option<Template>,
    content: Content,
    pub(super) timeout: Duration,
}

/// Why a target in Kafka cannot have these settings.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KafkaPlanError {
    /// The topic is wrong.
    #[error(transparent)]
    Topic(#[from] AddressError),
    /// The topic is a name that Kafka keeps for directories.
    #[error("`{0}` is no topic")]
    Dots(String),
    /// The key is no template.
    #[error("the key: {0}")]
    Key(#[from] TemplateError),
    /// A header is wrong.
    #[error(transparent)]
    Content(#[from] ContentError),
}

impl KafkaPlan {
    /// Returns the settings of a target. `topic`: a template. `key`: a template; records with the same key are in one partition, in their
    /// order, so a target that keeps the order of groups has `{group}`; `None`: the client spreads the records. `timeout`: the time in which the
    /// brokers must answer.
    ///
    /// # Errors
    /// [`KafkaPlanError`].
    pub fn new(
        topic: &str,
        key: Option<&str>,
        form: ContentForm,
        headers: &[(String, String)],
        timeout: Duration,
    ) -> Result<Self, KafkaPlanError> {
        if is_dots(topic) {
            return Err(KafkaPlanError::Dots(topic.to_owned()));
        }
        let topic = Address::parse(topic, TOPIC)?;
        let key = key.map(Template::parse).transpose()?;
        Ok(Self { topic, key, content: Content::new(form, headers)?, timeout })
    }

    /// Returns the record of a message.
    pub(super) fn record(&self, message: &Message) -> Result<Record, Outcome> {
        let topic = self.topic.of(message)?;
        if is_dots(&topic) {
            return Err(Outcome::unfillable(format!("template: the topic would be `{topic}`")));
        }
        let (body, content_type) = self.content.body(message);
        let mut record = Record::new(topic, body);
        if let Some(key) = &self.key {
            let key = key.fill(message, |text, value| text.push_str(value)).map_err(Outcome::unfillable)?;
            record = record.key(key);
        }
        for (name, value) in self.content.headers(message)? {
            record = record.header(name, value);
        }
        Ok(record.header("content-type", content_type))
    }
}

fn is_dots(topic: &str) -> bool {
    matches!(topic, "." | "..")
}

#[cfg(test)]
mod tests {
    use tickwheel_queue::Undeliverable;

    use super::*;
    use crate::message::tests::message;

    fn plan(topic: &str, key: Option<&str>) -> Result<KafkaPlan, KafkaPlanError> {
        KafkaPlan::new(topic, key, ContentForm::Payload, &[], Duration::from_secs(10))
    }

    #[test]
    fn settings_that_cannot_work_are_refused() {
        for topic in [".", ".."] {
            assert_eq!(plan(topic, None).err(), Some(KafkaPlanError::Dots(topic.to_owned())));
        }
        for topic in ["", "a b", "ä", "a/b", &"a".repeat(250), "{nothing}"] {
            assert!(matches!(plan(topic, None), Err(KafkaPlanError::Topic(_))), "{topic}");
        }
        assert!(matches!(plan("due", Some("{nothing}")), Err(KafkaPlanError::Key(_))));
    }

    #[test]
    fn a_record_has_its_topic_and_its_key() {
        let record =
            plan("due.{queue}", Some("{key}")).expect("a plan").record(&message()).expect("a record");
        assert_eq!((record.topic.as_str(), record.key_str()), ("due.close", Some("order:1/ä")));
        let record = plan("due", None).expect("a plan").record(&message()).expect("a record");
        assert_eq!(record.key_str(), None);
        let outcome = plan("due", Some("{group}")).expect("a plan").record(&message()).map(|_| ());
        assert!(matches!(outcome, Err(Outcome::Undeliverable { why: Undeliverable::Template, .. })));
    }
}

//! [`NatsPlan`]: the subject and the stream that get the messages, and their form.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::message::PublishMessage;

use crate::broker::{Address, AddressError, Alphabet, Content, ContentError, ContentForm};
use crate::message::Message;
use crate::outcome::Outcome;

const SUBJECT: Alphabet = Alphabet {
    noun: "subject",
    allows: |c| !c.is_whitespace() && !c.is_control() && c != '*' && c != '>',
    words: "characters other than blanks, '*' and '>', with no dot at an end or beside another dot",
    bytes_max: 512,
};
/// The longest name of a stream that NATS takes (bytes).
const STREAM_BYTES_MAX: usize = 255;

/// The settings of a target in NATS JetStream.
#[derive(Clone, Debug)]
pub struct NatsPlan {
    subject: Address,
    pub(super) stream: String,
    content: Content,
    pub(super) timeout: Duration,
}

/// Why a target in NATS cannot have these settings.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NatsPlanError {
    /// The subject is wrong.
    #[error(transparent)]
    Subject(#[from] AddressError),
    /// The subject has an empty part, or belongs to the server.
    #[error("a subject has no dot at an end or beside another dot, and does not begin with '$'")]
    Dots,
    /// The name of the stream is wrong.
    #[error(
        "`{0}` is no name of a stream; a name has 1 to {STREAM_BYTES_MAX} printable characters without blanks and .*>/\\"
    )]
    Stream(String),
    /// A header is wrong.
    #[error(transparent)]
    Content(#[from] ContentError),
}

impl NatsPlan {
    /// Returns the settings of a target. `subject`: a template. `stream`: the name of the stream that must take the subject. `timeout`: the time
    /// in which the stream must answer.
    ///
    /// # Errors
    /// [`NatsPlanError`].
    pub fn new(
        subject: &str,
        stream: &str,
        form: ContentForm,
        headers: &[(String, String)],
        timeout: Duration,
    ) -> Result<Self, NatsPlanError> {
        let is_name = stream.chars().all(|c| !c.is_whitespace() && !c.is_control() && !".*>/\\".contains(c));
        if !is_name || !(1..=STREAM_BYTES_MAX).contains(&stream.len()) {
            return Err(NatsPlanError::Stream(stream.to_owned()));
        }
        let parsed = Address::parse(subject, SUBJECT)?;
        // A place is never empty, so the text shows an empty part already.
        if !is_whole(subject) {
            return Err(NatsPlanError::Dots);
        }
        Ok(Self {
            subject: parsed,
            stream: stream.to_owned(),
            content: Content::new(form, headers)?,
            timeout,
        })
    }

    /// Returns a message in the form of NATS: the subject, and the rest.
    pub(super) fn message(&self, message: &Message) -> Result<(String, PublishMessage), Outcome> {
        let subject = self.subject.of(message)?;
        if !is_whole(&subject) {
            return Err(Outcome::unfillable(format!(
                "template: the subject would be `{subject}`, which has an empty part or begins with '$'"
            )));
        }
        let (body, content_type) = self.content.body(message);
        let mut headers = HeaderMap::new();
        for (name, value) in self.content.headers(message)? {
            headers.insert(name, value);
        }
        headers.insert("content-type", content_type);
        let published = PublishMessage::build()
            .headers(headers)
            .message_id(message.id())
            .expected_stream(&self.stream)
            .payload(body.into());
        Ok((subject, published))
    }
}

/// Whether no part between the dots is empty, and the subject is none of the server's own.
fn is_whole(subject: &str) -> bool {
    !subject.starts_with('$') && subject.split('.').all(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::message;

    fn plan(subject: &str, stream: &str) -> Result<NatsPlan, NatsPlanError> {
        NatsPlan::new(subject, stream, ContentForm::Payload, &[], Duration::from_secs(10))
    }

    #[test]
    fn settings_that_cannot_work_are_refused() {
        for subject in [".a", "a.", "a..b", "$JS.API", "{queue}..a"] {
            assert_eq!(plan(subject, "DUE").err(), Some(NatsPlanError::Dots), "{subject}");
        }
        for subject in ["", "a b", "a.*", "a.>", "{nothing}"] {
            assert!(matches!(plan(subject, "DUE"), Err(NatsPlanError::Subject(_))), "{subject}");
        }
        for stream in ["", "A.B", "A B", "A*", &"A".repeat(256)] {
            assert_eq!(plan("a", stream).err(), Some(NatsPlanError::Stream(stream.to_owned())));
        }
    }

    #[test]
    fn a_subject_is_filled_and_checked() {
        let subject =
            |text: &str| plan(text, "DUE").expect(text).message(&message()).map(|(subject, _)| subject);
        assert_eq!(subject("due.{queue}.{key}").as_deref(), Ok("due.close.order:1/ä"));
        assert!(subject("due.{group}").is_err(), "the task has no group");
    }
}

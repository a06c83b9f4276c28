//! [`Content`]: the body of a message to a broker, and the headers beside it.

use tickwheel_api::TARGET_HEADERS_MAX;

use crate::message::Message;
use crate::outcome::Outcome;
use crate::template::{Template, TemplateError};
use crate::text::percent_encoded;

/// The form in which a broker gets a task.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum ContentForm {
    /// The body is the payload.
    #[default]
    Payload,
    /// The body is a JSON object with the payload and the facts of the task.
    Envelope,
}

/// The body and the headers of each message of a target.
#[derive(Clone, Debug, Default)]
pub struct Content {
    form: ContentForm,
    headers: Vec<(String, Template)>,
}

/// Why a target cannot have these headers.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ContentError {
    /// There are too many headers.
    #[error("there are {0} headers, more than {TARGET_HEADERS_MAX}")]
    TooManyHeaders(usize),
    /// A name has characters that are not allowed, or Tickwheel sets this header.
    #[error(
        "`{0}` is no name of a header; a name has 1 to 100 letters, digits, '-' and '_', and none that Tickwheel sets"
    )]
    Name(String),
    /// The value of a header is no template, or has a control character.
    #[error("the value of the header `{name}`: {why}")]
    Value {
        /// The name of the header.
        name: String,
        /// The mistake.
        why: String,
    },
}

impl Content {
    /// Returns the content of a target with these headers of its own: names and templates.
    ///
    /// # Errors
    /// [`ContentError`].
    pub fn new(form: ContentForm, headers: &[(String, String)]) -> Result<Self, ContentError> {
        if headers.len() > TARGET_HEADERS_MAX {
            return Err(ContentError::TooManyHeaders(headers.len()));
        }
        let headers = headers.iter().map(|(name, value)| header(name, value)).collect::<Result<_, _>>()?;
        Ok(Self { form, headers })
    }

    /// Returns the body and its content type.
    pub fn body(&self, message: &Message) -> (Vec<u8>, String) {
        match self.form {
            ContentForm::Payload => {
                let (payload, content_type) = message.payload();
                (payload.to_vec(), content_type.to_owned())
            }
            ContentForm::Envelope => (message.envelope(), tickwheel_api::CONTENT_TYPE_JSON.to_owned()),
        }
    }

    /// Returns the headers: the facts of the task, its id as `tickwheel-id`, its group and its tags (percent-encoded, with commas between
    /// them), and the headers of the target's own.
    ///
    /// # Errors
    /// The outcome of a message whose values do not fit into a header.
    pub fn headers(&self, message: &Message) -> Result<Vec<(String, String)>, Outcome> {
        let mut headers = vec![("tickwheel-id".to_owned(), message.id())];
        headers.extend(message.facts().into_iter().map(|(name, value)| (name.to_owned(), value)));
        if let Some(group) = &message.leased.group {
            let mut encoded = String::new();
            percent_encoded(&mut encoded, group.as_str());
            headers.push(("tickwheel-group".to_owned(), encoded));
        }
        if !message.leased.body.tags.is_empty() {
            let mut encoded = String::new();
            for (nth, tag) in message.leased.body.tags.iter().enumerate() {
                encoded.push_str(if nth == 0 { "" } else { "," });
                percent_encoded(&mut encoded, tag.as_str());
            }
            headers.push(("tickwheel-tags".to_owned(), encoded));
        }
        for (name, template) in &self.headers {
            let value =
                template.fill(message, |text, value| text.push_str(value)).map_err(Outcome::unfillable)?;
            if value.chars().any(char::is_control) {
                let why = format!("template: the header `{name}` would have a control character");
                return Err(Outcome::unfillable(why));
            }
            headers.push((name.clone(), value));
        }
        Ok(headers)
    }
}

/// Checks one header of a target.
fn header(name: &str, value: &str) -> Result<(String, Template), ContentError> {
    let lower = name.to_ascii_lowercase();
    let is_ours = ["tickwheel-", "nats-"].iter().any(|prefix| lower.starts_with(prefix))
        || ["traceparent", "tracestate", "content-type"].contains(&lower.as_str());
    let is_name = (1..=100).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if is_ours || !is_name {
        return Err(ContentError::Name(name.to_owned()));
    }
    let bad = |why: String| ContentError::Value { name: name.to_owned(), why };
    let template = Template::parse(value).map_err(|why: TemplateError| bad(why.to_string()))?;
    if value.chars().any(char::is_control) {
        return Err(bad("it has a control character".to_owned()));
    }
    Ok((name.to_owned(), template))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::message;

    fn own(headers: &[(&str, &str)]) -> Result<Content, ContentError> {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Content::new(ContentForm::Payload, &headers)
    }

    #[test]
    fn a_message_has_its_facts_and_the_headers_of_its_target() {
        let headers =
            own(&[("shop", "eu-{queue}")]).expect("headers").headers(&message()).expect("all filled");
        let value =
            |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        assert_eq!(value("tickwheel-id"), Some("tw_000000ab_1"));
        assert_eq!(value("tickwheel-key"), Some("order%3A1%2F%C3%A4"));
        assert_eq!(value("tickwheel-attempt"), Some("1"));
        assert_eq!(value("shop"), Some("eu-close"));
        assert_eq!(value("tickwheel-tags"), None);
    }

    #[test]
    fn headers_that_tickwheel_sets_and_bad_values_are_refused() {
        for name in ["tickwheel-id", "Traceparent", "content-type", "Nats-Msg-Id", "", "a b", "ä"] {
            assert_eq!(own(&[(name, "x")]).err(), Some(ContentError::Name(name.to_owned())));
        }
        for value in ["{nothing}", "a\nb"] {
            assert!(matches!(own(&[("a", value)]), Err(ContentError::Value { .. })), "{value}");
        }
        let many = vec![("a", "b"); 33];
        assert_eq!(own(&many).err(), Some(ContentError::TooManyHeaders(33)));
    }

    #[test]
    fn a_body_is_the_payload_or_the_envelope() {
        let (body, kind) = Content::default().body(&message());
        assert_eq!((body.as_slice(), kind.as_str()), (br#"{"a":1}"#.as_slice(), message().payload().1));
        let (body, kind) = Content::new(ContentForm::Envelope, &[]).expect("no headers").body(&message());
        assert!(String::from_utf8_lossy(&body).contains(r#""queue":"close""#));
        assert_eq!(kind, "application/json");
    }
}

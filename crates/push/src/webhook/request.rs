//! [`RequestPlan`]: the request that a webhook sends for each message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request};
use tickwheel_api::TARGET_HEADERS_MAX;
use tickwheel_queue::Leased;

use super::sign::{self, SigningKey};
use super::url::Url;
use crate::message::Message;
use crate::template::{Template, TemplateError};
use crate::text::rfc3339;

/// The product that requests name.
const AGENT: &str = concat!("tickwheel/", env!("CARGO_PKG_VERSION"));

// A name that is known at compile time is not copied.
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The form in which a webhook gets a task.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum BodyForm {
    /// The body is the payload, with its content type.
    #[default]
    Payload,
    /// The body is a JSON object with the payload and the facts of the task.
    Envelope,
    /// The body is the payload, and the headers are those of CloudEvents 1.0 in binary mode.
    CloudEvents,
}

/// The value of the header `authorization`.
#[derive(Clone, PartialEq, Eq)]
pub enum Auth {
    /// `Bearer` and this token.
    Bearer(String),
    /// `Basic` with this user and password.
    Basic {
        /// The user, without a colon.
        user: String,
        /// The password.
        password: String,
    },
}

impl std::fmt::Debug for Auth {
    /// Shows the kind alone.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bearer(_) => "Bearer(..)",
            Self::Basic { .. } => "Basic(..)",
        })
    }
}

/// The parts of each request of a webhook: method, URL, headers, body and signatures.
#[derive(Debug)]
pub struct RequestPlan {
    method: Method,
    url: Url,
    form: BodyForm,
    headers: Vec<(HeaderName, Template)>,
    authorization: Option<HeaderValue>,
}

/// Why a plan cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The method is none that has a body.
    #[error("the method `{0}` is not POST, PUT or PATCH")]
    Method(String),
    /// There are too many headers.
    #[error("there are {0} headers, more than {TARGET_HEADERS_MAX}")]
    TooManyHeaders(usize),
    /// A header has a name that no header has.
    #[error("`{0}` is no name of a header")]
    Name(String),
    /// A header is one that Tickwheel sets.
    #[error("the header `{0}` is set by Tickwheel{hint}", hint = if .0 == "authorization" { ": write `auth`" } else { "" })]
    Reserved(String),
    /// A header has a value that no header has.
    #[error("the value of the header `{0}` has a character that no header has")]
    Value(String),
    /// The value of a header is no template.
    #[error("the value of the header `{name}`: {why}")]
    Template {
        /// The name of the header.
        name: String,
        /// The mistake in the template.
        why: TemplateError,
    },
    /// The token, the user or the password has a character that no header has, or the user has a colon.
    #[error("`auth` has a character that is not allowed there")]
    Auth,
}

/// A message cannot be sent, because its request cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unsendable(String);

impl RequestPlan {
    /// Makes a plan. `headers`: the names and templates of further headers.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn new(
        method: &str,
        url: Url,
        form: BodyForm,
        headers: &[(String, String)],
        auth: Option<&Auth>,
    ) -> Result<Self, PlanError> {
        let method = match method {
            "POST" => Method::POST,
            "PUT" => Method::PUT,
            "PATCH" => Method::PATCH,
            other => return Err(PlanError::Method(other.to_owned())),
        };
        if headers.len() > TARGET_HEADERS_MAX {
            return Err(PlanError::TooManyHeaders(headers.len()));
        }
        let headers = headers.iter().map(|(name, value)| header(name, value)).collect::<Result<_, _>>()?;
        let authorization = auth.map(authorization).transpose()?;
        Ok(Self { method, url, form, headers, authorization })
    }

    /// Returns the URL.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Makes the request of a message, signed with each of these keys.
    ///
    /// # Errors
    /// [`Unsendable`]: a template cannot be filled with the values of the task, or a value is none of a header.
    pub fn request<'k>(
        &self,
        message: &Message,
        keys: impl IntoIterator<Item = &'k SigningKey>,
    ) -> Result<Request<Full<Bytes>>, Unsendable> {
        let Leased { queue, due_at, .. } = &*message.leased;
        let unfilled = |error: crate::template::Unfilled| Unsendable(error.to_string());
        let (body, content_type) = self.body(message);
        let (id, at_s) = (message.id(), message.sent_at.as_ms().div_euclid(1_000));
        let mut request = Request::builder()
            .method(&self.method)
            .uri(self.url.path_of(message).map_err(unfilled)?)
            .header(HOST, self.url.authority())
            .header(USER_AGENT, AGENT)
            .header(CONTENT_TYPE, content_type)
            .header(WEBHOOK_ID, &id)
            .header(IDEMPOTENCY_KEY, &id)
            .header(WEBHOOK_TIMESTAMP, at_s);
        for (name, value) in message.facts() {
            request = request.header(HeaderName::from_static(name), value);
        }
        let signatures = sign::header(keys, &id, at_s, &body);
        if !signatures.is_empty() {
            request = request.header(WEBHOOK_SIGNATURE, signatures);
        }
        if let Some(value) = &self.authorization {
            request = request.header(AUTHORIZATION, value);
        }
        if self.form == BodyForm::CloudEvents {
            request = request
                .header("ce-specversion", "1.0")
                .header("ce-type", "tickwheel.due")
                .header("ce-id", &id)
                .header("ce-source", format!("/queues/{queue}", queue = queue.as_str()))
                .header("ce-time", rfc3339(due_at.as_ms()));
        }
        for (name, template) in &self.headers {
            let value = template.fill(message, |text, value| text.push_str(value)).map_err(unfilled)?;
            let bad = |_| {
                Unsendable(format!("template: the header `{name}` would have a character that no header has"))
            };
            request = request.header(name, HeaderValue::from_bytes(value.trim().as_bytes()).map_err(bad)?);
        }
        request.body(Full::new(Bytes::from(body))).map_err(|error| Unsendable(format!("template: {error}")))
    }

    /// Returns the body and its content type.
    fn body(&self, message: &Message) -> (Vec<u8>, String) {
        let (payload, content_type) = message.payload();
        if self.form != BodyForm::Envelope {
            let is_known = HeaderValue::from_str(content_type).is_ok() && !content_type.is_empty();
            let content_type = if is_known { content_type } else { tickwheel_api::CONTENT_TYPE_OCTETS };
            return (payload.to_vec(), content_type.to_owned());
        }
        (message.envelope(), tickwheel_api::CONTENT_TYPE_JSON.to_owned())
    }
}

/// Checks one header of a target.
fn header(name: &str, value: &str) -> Result<(HeaderName, Template), PlanError> {
    const SET: [&str; 14] = [
        "host",
        "content-length",
        "content-type",
        "transfer-encoding",
        "connection",
        "te",
        "upgrade",
        "trailer",
        "keep-alive",
        "proxy-connection",
        "expect",
        "idempotency-key",
        "authorization",
        "user-agent",
    ];
    let whole = || name.to_owned();
    let known = HeaderName::from_bytes(name.as_bytes()).map_err(|_| PlanError::Name(whole()))?;
    let is_ours =
        |name: &str| ["webhook-", "tickwheel-", "ce-"].iter().any(|prefix| name.starts_with(prefix));
    if SET.contains(&known.as_str()) || is_ours(known.as_str()) {
        return Err(PlanError::Reserved(known.as_str().to_owned()));
    }
    let template = Template::parse(value).map_err(|why| PlanError::Template { name: whole(), why })?;
    if template.texts().any(|text| HeaderValue::from_bytes(text.as_bytes()).is_err()) {
        return Err(PlanError::Value(whole()));
    }
    Ok((known, template))
}

fn authorization(auth: &Auth) -> Result<HeaderValue, PlanError> {
    let text = match auth {
        Auth::Bearer(token) => format!("Bearer {token}"),
        Auth::Basic { user, .. } if user.contains(':') => return Err(PlanError::Auth),
        Auth::Basic { user, password } => format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))),
    };
    let mut value = HeaderValue::from_str(&text).map_err(|_| PlanError::Auth)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::message;

    fn plan(form: BodyForm, headers: &[(&str, &str)]) -> Result<RequestPlan, PlanError> {
        let url = Url::parse("https://a.example:8443/{queue}").expect("a URL");
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        RequestPlan::new("POST", url, form, &headers, None)
    }

    fn value<'r>(request: &'r Request<Full<Bytes>>, name: &str) -> &'r str {
        request.headers().get(name).map_or("", |value| value.to_str().expect("text"))
    }

    #[test]
    fn a_request_has_the_payload_and_the_facts() {
        let key = SigningKey::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a key");
        let message = message();
        let request =
            plan(BodyForm::Payload, &[("x-shop", "eu-{queue}")]).expect("a plan").request(&message, [&key]);
        let request = request.expect("a request");
        assert_eq!((request.method().as_str(), request.uri().to_string().as_str()), ("POST", "/close"));
        let at_s = message.sent_at.as_ms() / 1_000;
        for (name, wanted) in [
            ("host", "a.example:8443"),
            ("content-type", "application/octet-stream"),
            ("webhook-id", "tw_000000ab_1"),
            ("idempotency-key", "tw_000000ab_1"),
            ("webhook-timestamp", &at_s.to_string()),
            ("webhook-signature", &key.sign("tw_000000ab_1", at_s, br#"{"a":1}"#)),
            ("tickwheel-queue", "close"),
            ("tickwheel-key", "order%3A1%2F%C3%A4"),
            ("tickwheel-attempt", "1"),
            ("tickwheel-last-attempt", "false"),
            ("x-shop", "eu-close"),
            ("ce-id", ""),
        ] {
            assert_eq!(value(&request, name), wanted, "{name}");
        }
    }

    #[test]
    fn without_keys_there_is_no_signature() {
        let request =
            plan(BodyForm::CloudEvents, &[]).expect("a plan").request(&message(), []).expect("a request");
        assert!(!request.headers().contains_key("webhook-signature"));
        for (name, wanted) in
            [("ce-specversion", "1.0"), ("ce-type", "tickwheel.due"), ("ce-source", "/queues/close")]
        {
            assert_eq!(value(&request, name), wanted, "{name}");
        }
    }

    #[test]
    fn an_envelope_is_json() {
        let (body, content_type) = plan(BodyForm::Envelope, &[]).expect("a plan").body(&message());
        let envelope: tickwheel_api::EnvelopeBody = serde_json::from_slice(&body).expect("an envelope");
        assert_eq!((envelope.key.as_str(), content_type.as_str()), ("order:1/ä", "application/json"));
    }

    #[test]
    fn headers_that_tickwheel_sets_and_broken_ones_are_refused() {
        for name in [
            "Host",
            "content-length",
            "Webhook-Id",
            "tickwheel-x",
            "Authorization",
            "te",
            "Upgrade",
            "Idempotency-Key",
        ] {
            assert!(matches!(plan(BodyForm::Payload, &[(name, "x")]), Err(PlanError::Reserved(_))), "{name}");
        }
        assert!(matches!(plan(BodyForm::Payload, &[("a b", "x")]), Err(PlanError::Name(_))));
        assert!(matches!(plan(BodyForm::Payload, &[("a", "x\r\ny: z")]), Err(PlanError::Value(_))));
        assert!(matches!(plan(BodyForm::Payload, &[("a", "{x}")]), Err(PlanError::Template { .. })));
        let unfilled = plan(BodyForm::Payload, &[("a", "{group}")]).expect("a plan").request(&message(), []);
        assert_eq!(unfilled.expect_err("no group").to_string(), "template: the task has no group");
        let auth = Auth::Bearer("a\nb".into());
        let url = Url::parse("https://a.example").expect("a URL");
        assert!(matches!(
            RequestPlan::new("POST", url, BodyForm::Payload, &[], Some(&auth)),
            Err(PlanError::Auth)
        ));
    }
}

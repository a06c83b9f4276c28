//! [`Management`]: the calls to the management API of RabbitMQ that a migration makes.

use std::io::ErrorKind;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tickwheel_api::path::push_segment;
use ureq::Agent;
use ureq::http::{Method, Request, StatusCode};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use super::management_url::ManagementUrl;

/// The longest time for one call. A broker with many bindings takes long for their list.
const CALL_TIME_MAX: Duration = Duration::from_secs(60);
/// The largest answer (bytes): about a million bindings.
const ANSWER_BYTES_MAX: u64 = 256 << 20;
/// The way to an API at an address where something else answers.
const ENABLE: &str = "enable the plugin on the machine of the broker (`rabbitmq-plugins enable rabbitmq_management`), or name another address with --management-url";

/// The questions after an error of TLS.
const TLS: &str = "does the port speak TLS, and does --ca name the authority of its certificate? --management-url names another address, with http:// for one without TLS";

/// The management API of a broker, for one virtual host. Calls block their thread.
pub(crate) struct Management {
    agent: Agent,
    url: ManagementUrl,
    vhost: String,
    user: String,
    /// The header of each call.
    authorization: String,
}

/// An exchange of the broker.
#[derive(Deserialize, Clone, PartialEq, Debug)]
pub(crate) struct Exchange {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) durable: bool,
    pub(crate) auto_delete: bool,
    pub(crate) internal: bool,
    pub(crate) arguments: Map<String, Value>,
}

/// A binding. `source` is the exchange from which it leads.
#[derive(Deserialize, Clone, PartialEq, Debug)]
pub(crate) struct Binding {
    pub(crate) source: String,
    pub(crate) destination: String,
    pub(crate) destination_type: DestinationType,
    pub(crate) routing_key: String,
    pub(crate) arguments: Map<String, Value>,
}

/// The thing to which a binding leads.
#[derive(Deserialize, Copy, Clone, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DestinationType {
    Queue,
    Exchange,
}

impl Binding {
    /// Whether the bindings of two sources are equal but for the source.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        let source = || other.source.clone();
        Self { source: source(), ..self.clone() } == *other
    }
}

impl Management {
    /// Connects to the API, and checks that it takes the user. `roots_pem`: the root certificates to trust, if not those that browsers trust.
    ///
    /// # Errors
    /// There is no such API at the address, or it refuses the user.
    pub(crate) fn open(
        url: ManagementUrl,
        vhost: &str,
        (user, password): (String, String),
        roots_pem: Option<&[u8]>,
    ) -> Result<Self> {
        let mut config = Agent::config_builder()
            .timeout_global(Some(CALL_TIME_MAX))
            .http_status_as_error(false)
            // The password goes to this address only.
            .max_redirects(0)
            .proxy(None);
        if let Some(pem) = roots_pem {
            config = config.tls_config(TlsConfig::builder().root_certs(roots(pem)?).build());
        }
        let authorization = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        let agent = config.build().into();
        let api = Self { agent, url, vhost: vhost.to_owned(), user, authorization };
        api.check()?;
        Ok(api)
    }

    fn check(&self) -> Result<()> {
        let Self { url, user, .. } = self;
        let (status, answer) = self.call(Method::GET, &["whoami"], "", None)?;
        if status == StatusCode::UNAUTHORIZED {
            bail!(
                "the management API at {url} refuses the user `{user}` ({}); check the name and the password, and give the user the tag \
                 `management`",
                reason(status, &answer)
            );
        }
        let is_api = status.is_success() && serde_json::from_slice::<Map<String, Value>>(&answer).is_ok();
        ensure!(is_api, "there is no management API of RabbitMQ at {url} (status {status}); {ENABLE}");
        Ok(())
    }

    /// Returns an exchange; `None`: there is none.
    ///
    /// # Errors
    /// The API refuses the call, or does not answer.
    pub(crate) fn exchange(&self, name: &str) -> Result<Option<Exchange>> {
        let what = || format!("failed to read the exchange `{name}`");
        let path = ["exchanges", &self.vhost, name];
        let columns = "?columns=type,durable,auto_delete,internal,arguments";
        let (status, answer) = self.call(Method::GET, &path, columns, None).with_context(what)?;
        if status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        read(status, &answer).map(Some).with_context(what)
    }

    /// Returns the bindings from an exchange to queues and exchanges.
    ///
    /// # Errors
    /// The API refuses the call, or does not answer.
    pub(crate) fn bindings_from(&self, exchange: &str) -> Result<Vec<Binding>> {
        self.bindings(exchange, "source")
    }

    /// Returns the bindings from other exchanges to an exchange.
    ///
    /// # Errors
    /// The API refuses the call, or does not answer.
    pub(crate) fn bindings_to(&self, exchange: &str) -> Result<Vec<Binding>> {
        self.bindings(exchange, "destination")
    }

    fn bindings(&self, exchange: &str, side: &str) -> Result<Vec<Binding>> {
        let what = || format!("failed to read the bindings of the exchange `{exchange}`");
        let path = ["exchanges", &self.vhost, exchange, "bindings", side];
        let columns = "?columns=source,destination,destination_type,routing_key,arguments";
        let (status, answer) = self.call(Method::GET, &path, columns, None).with_context(what)?;
        read(status, &answer).with_context(what)
    }

    /// Declares a durable exchange. One that is there already stays.
    ///
    /// # Errors
    /// The API refuses the call, or does not answer.
    pub(crate) fn declare(&self, exchange: &str, kind: &str) -> Result<()> {
        let body = json!({ "type": kind, "durable": true });
        self.change(Method::PUT, &["exchanges", &self.vhost, exchange], &body)
    }

    /// Binds the destination of a binding to an exchange. A binding that is there already stays.
    ///
    /// # Errors
    /// The API refuses the call, or does not answer.
    pub(crate) fn bind(&self, exchange: &str, binding: &Binding) -> Result<()> {
        let Binding { destination, destination_type, routing_key, arguments, .. } = binding;
        let letter = match destination_type {
            DestinationType::Queue => "q",
            DestinationType::Exchange => "e",
        };
        let body = json!({ "routing_key": routing_key, "arguments": arguments });
        self.change(Method::POST, &["bindings", &self.vhost, "e", exchange, letter, destination], &body)
    }

    fn change(&self, method: Method, path: &[&str], body: &Value) -> Result<()> {
        let (status, answer) = self.call(method, path, "", Some(body))?;
        if status.is_success() { Ok(()) } else { Err(anyhow!("{}", reason(status, &answer))) }
    }

    /// Makes a call, and returns the status and the body of the answer.
    fn call(
        &self,
        method: Method,
        path: &[&str],
        query: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Vec<u8>)> {
        let mut target = format!("{}/api", self.url);
        for segment in path {
            target.push('/');
            push_segment(&mut target, segment);
        }
        target.push_str(query);
        let request =
            Request::builder().method(method).uri(target).header("authorization", &self.authorization);
        let answered = match body {
            Some(body) => {
                let request = request.header("content-type", "application/json");
                self.agent.run(request.body(body.to_string()).context("failed to make a call")?)
            }
            None => self.agent.run(request.body(()).context("failed to make a call")?),
        };
        let mut answer = answered.map_err(|error| self.no_answer(error))?;
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        Ok((answer.status(), body.map_err(|error| self.no_answer(error))?))
    }

    /// Returns an error of the way to the API, with the questions that an operator asks next.
    fn no_answer(&self, error: ureq::Error) -> anyhow::Error {
        let advice = match &error {
            // An error of TLS may come as one of the stream.
            ureq::Error::Io(io) if io.kind() == ErrorKind::InvalidData => TLS.to_owned(),
            ureq::Error::Tls(_) | ureq::Error::Rustls(_) | ureq::Error::Pem(_) => TLS.to_owned(),
            _ => format!("does the broker run, and is its management plugin enabled? If not, {ENABLE}"),
        };
        anyhow::Error::new(error)
            .context(format!("the management API at {} does not answer; {advice}", self.url))
    }
}

/// Reads an answer.
fn read<T: DeserializeOwned>(status: StatusCode, answer: &[u8]) -> Result<T> {
    ensure!(status.is_success(), "{}", reason(status, answer));
    serde_json::from_slice(answer).context("the answer of the management API has another form")
}

/// Returns the reason of a refusal, in the words of the broker: `{"error":"bad_request","reason":"..."}`.
fn reason(status: StatusCode, answer: &[u8]) -> String {
    let told: Option<Value> = serde_json::from_slice(answer).ok();
    let word = |name: &str| told.as_ref()?.get(name)?.as_str().filter(|word| !word.is_empty());
    match word("reason").or_else(|| word("error")) {
        Some(reason) => format!("status {}: {reason}", status.as_u16()),
        None => format!("status {status}"),
    }
}

/// Reads root certificates.
fn roots(pem: &[u8]) -> Result<RootCerts> {
    let mut roots: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(pem) {
        if let PemItem::Certificate(root) = item.context("failed to take the roots of --ca")? {
            roots.push(root);
        }
    }
    ensure!(!roots.is_empty(), "failed to take the roots of --ca: the file has no certificate");
    Ok(RootCerts::new_with_certs(&roots))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_segment_of_a_path() {
        let mut path = String::new();
        push_segment(&mut path, "/a b.ä%?#~_-");
        assert_eq!(path, "%2Fa%20b.%C3%A4%25%3F%23~_-");
    }

    #[test]
    fn an_api_that_cannot_be_reached_is_named_with_what_to_look_at() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let url = format!("http://127.0.0.1:{port}").parse().expect("a URL");
        let login = ("guest".to_owned(), "hunter2".to_owned());
        let error = Management::open(url, "/", login, None).err().expect("there is no server");
        let told = format!("{error:#}");
        for part in [
            &format!("the management API at http://127.0.0.1:{port} does not answer; does the broker run"),
            "is its management plugin enabled",
            "`rabbitmq-plugins enable rabbitmq_management`",
            "onnection refused",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(!told.contains("hunter2"), "{told}");
    }

    #[test]
    fn roots_are_those_of_the_file() {
        let key = rcgen::KeyPair::generate().expect("a key");
        let root = rcgen::CertificateParams::new(vec!["a.example".to_owned()]).expect("a certificate");
        let pem = root.self_signed(&key).expect("a certificate").pem();
        let two = format!("{pem}\n{pem}");
        let RootCerts::Specific(taken) = roots(two.as_bytes()).expect("roots") else { panic!("other roots") };
        assert_eq!(taken.len(), 2);
        for none in ["", "text", &key.serialize_pem()] {
            assert!(roots(none.as_bytes()).is_err(), "{none}");
        }
    }

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_broker() {
        for (answer, told) in [
            (r#"{"error":"bad_request","reason":"no queue"}"#, "status 400: no queue"),
            (r#"{"error":"bad_request","reason":{"a":1}}"#, "status 400: bad_request"),
            ("<html>", "status 400 Bad Request"),
        ] {
            assert_eq!(reason(StatusCode::BAD_REQUEST, answer.as_bytes()), told);
        }
    }
}

//! [`AmqpConnection`]: the settings of a connection to RabbitMQ, and its opening.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use lapin::auth::AuthProvider;
use lapin::tcp::AsyncTcpStream;
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo, SASLMechanism};
use lapin::{Connection, ConnectionProperties, Error, ErrorKind};
use tokio_rustls::rustls::ClientConfig;

use super::stream::{self, kit};
use crate::broker::{Dial, Dialing, Endpoint, first_open};
use crate::text::in_one_line;
use crate::tls_error;

/// The broker and the client tell each other this often that they are there (s). A side that is silent for twice the time is gone.
const HEARTBEAT_S: u16 = 20;

/// The settings of a connection to RabbitMQ.
#[derive(Clone)]
pub struct AmqpConnection {
    /// The addresses of the broker's nodes. The first that answers is taken.
    pub endpoints: Vec<Endpoint>,
    /// The virtual host. Most brokers have one with the name `/`.
    pub vhost: String,
    /// How the broker knows us.
    pub login: AmqpLogin,
    /// The settings of TLS; `None`: the connection is not encrypted.
    pub tls: Option<Arc<ClientConfig>>,
    /// The name under which the broker lists the connection.
    pub name: String,
}

/// How the broker knows us.
#[derive(Clone)]
pub enum AmqpLogin {
    /// By name and password.
    Password {
        /// The name of the user.
        user: String,
        /// The password.
        password: String,
    },
    /// By the certificate of the client (`EXTERNAL`).
    Certificate,
}

/// Opens connections to RabbitMQ for a [`Link`](crate::broker::Link).
#[derive(Clone)]
pub struct AmqpDial {
    plan: AmqpConnection,
}

impl AmqpDial {
    /// Returns a dial. Opens no connection yet.
    #[must_use]
    pub fn new(plan: AmqpConnection) -> Self {
        Self { plan }
    }

    async fn open(&self) -> Result<Connection, String> {
        first_open(&self.plan.endpoints, async |endpoint| {
            let stream = endpoint.connect(self.plan.tls.as_ref()).await?;
            let (stream, end) = stream::Connection::new(stream);
            let connection =
                self.greet(endpoint, stream).await.map_err(|why| format!("{endpoint}: {why}"))?;
            end.keep();
            Ok(connection)
        })
        .await
    }

    /// Opens the connection of AMQP over a stream.
    async fn greet(&self, endpoint: &Endpoint, stream: stream::Connection) -> Result<Connection, String> {
        let AmqpConnection { vhost, login, tls, name, .. } = &self.plan;
        let (userinfo, mechanism) = match login {
            AmqpLogin::Password { user, password } => {
                (AMQPUserInfo { username: user.clone(), password: password.clone() }, SASLMechanism::Plain)
            }
            AmqpLogin::Certificate => {
                (AMQPUserInfo { username: String::new(), password: String::new() }, SASLMechanism::External)
            }
        };
        let uri = AMQPUri {
            scheme: if tls.is_some() { AMQPScheme::AMQPS } else { AMQPScheme::AMQP },
            authority: AMQPAuthority { userinfo, host: endpoint.host.clone(), port: endpoint.port },
            vhost: vhost.clone(),
            query: AMQPQueryString {
                heartbeat: Some(HEARTBEAT_S),
                auth_mechanism: Some(mechanism),
                ..AMQPQueryString::default()
            },
        };
        let properties = ConnectionProperties::default().with_connection_name(name.as_str().into());
        let properties = match login {
            AmqpLogin::Password { .. } => properties,
            AmqpLogin::Certificate => properties.with_auth_provider(External),
        };
        let stream = Mutex::new(Some(stream));
        let take = async move |_, _| {
            let stream = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
            stream
                .map(AsyncTcpStream::Plain)
                .ok_or_else(|| std::io::Error::from(std::io::ErrorKind::ConnectionAborted).into())
        };
        Connection::connector(uri, kit(), take, properties).await.map_err(|error| greeting(&error))
    }
}

/// The login by the certificate of the client.
struct External;
impl AuthProvider for External {}

impl Dial for AmqpDial {
    type Live = Connection;

    fn dial(&self) -> Dialing<'_, Connection> {
        let open: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(self.open());
        open
    }

    fn is_alive(live: &Connection) -> bool {
        live.status().connected()
    }
}

/// Returns an error of a connection that is being opened. No message is under way yet, so bytes that cannot be read are not from a broker.
fn greeting(error: &Error) -> String {
    match error.kind() {
        ErrorKind::ParsingError(_) => {
            "the other side does not speak AMQP at this port, or wants TLS there".to_owned()
        }
        _ => text_of(error),
    }
}

/// Returns an error for operators: the words of the broker, if they are from the broker.
pub(crate) fn text_of(error: &Error) -> String {
    in_one_line(&match error.kind() {
        ErrorKind::ProtocolError(error) => format!("{} {}", error.get_id(), error.get_message()),
        ErrorKind::IOError(error) => tls_error::in_words(error),
        // The client crate reads no other text, and ends the connection.
        ErrorKind::ParsingError(_) => "the broker sent a frame that cannot be read; the cause may be a message whose routing key, property or name of a header is not UTF-8".to_owned(),
        _ => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// The threads of the client crate in this process.
    #[cfg(target_os = "linux")]
    fn threads() -> usize {
        let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.trim() == "lapin-io-loop").count()
    }

    /// The client crate has a thread for each connection. A server that takes connections and never answers must leave none behind.
    #[cfg(target_os = "linux")]
    #[tokio::test(flavor = "multi_thread")]
    async fn a_server_that_never_answers_leaves_no_thread_behind() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = tokio::spawn(async move {
            let mut streams = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                streams.push(stream);
            }
        });
        let plan = AmqpConnection {
            endpoints: vec![format!("127.0.0.1:{port}").parse().expect("an endpoint")],
            vhost: "/".to_owned(),
            login: AmqpLogin::Certificate,
            tls: None,
            name: "test".to_owned(),
        };
        for _ in 0..3 {
            let dial = AmqpDial::new(plan.clone());
            let waiting = timeout(Duration::from_millis(200), dial.dial()).await;
            assert!(waiting.is_err(), "the server is silent");
        }
        let begun = std::time::Instant::now();
        while threads() > 0 {
            assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "{} threads are left", threads());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        server.abort();
    }
}

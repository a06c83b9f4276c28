//! [`NatsConnection`]: the servers of NATS, and how to log in.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::context::ContextBuilder;
use async_nats::{Client, ConnectOptions, Event, ServerAddr, ServerError};
use tokio::sync::watch;
use tokio_rustls::rustls::ClientConfig;

use super::answer;
use crate::broker::{Dial, Dialing, Endpoint, first_open};

/// The time for one server. The link has a time of its own for all of them.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
/// A server that does not answer two of these pings is gone.
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// The client's own time for an answer. The time-out of the sink is shorter.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(3_600);

/// The servers of NATS, and how to log in. Each server of a cluster will do.
#[derive(Clone)]
pub struct NatsConnection {
    /// The addresses, in the order in which they are tried.
    pub endpoints: Vec<Endpoint>,
    /// The settings of TLS; `None`: without TLS.
    pub tls: Option<Arc<ClientConfig>>,
    /// How to log in.
    pub login: NatsLogin,
    /// The domain of JetStream; `None`: that of the server.
    pub domain: Option<String>,
}

/// How to log in to NATS.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum NatsLogin {
    /// The server wants no login.
    #[default]
    None,
    /// A token.
    Token(String),
    /// A user and the password.
    User(String, String),
}

/// An open connection to a server of NATS. It is not opened again: the link opens another one.
pub struct NatsLive {
    pub(super) context: Context,
    client: Client,
    /// Whether the connection is lost.
    lost: Arc<watch::Sender<bool>>,
    denied: Arc<OnceLock<Arc<str>>>,
}

impl NatsConnection {
    /// Returns servers without TLS that want no login.
    #[must_use]
    pub fn new(endpoints: Vec<Endpoint>) -> Self {
        Self { endpoints, tls: None, login: NatsLogin::None, domain: None }
    }

    async fn open(&self, endpoint: &Endpoint) -> Result<NatsLive, String> {
        let lost = Arc::new(watch::Sender::new(false));
        let denied = Arc::<OnceLock<Arc<str>>>::default();
        let (on_loss, on_denial) = (Arc::clone(&lost), Arc::clone(&denied));
        // The client opens a lost connection again, at least once. Its answers that were awaited would not come any more, so a connection
        // that was lost is lost for us.
        let mut options = ConnectOptions::new()
            .name("tickwheel")
            .connection_timeout(CONNECT_TIMEOUT)
            .ping_interval(PING_INTERVAL)
            .max_reconnects(1)
            .retain_servers_order()
            .ignore_discovered_servers()
            .event_callback(move |event| {
                match event {
                    Event::Disconnected | Event::Closed | Event::LameDuckMode | Event::ClientError(_) => {
                        on_loss.send_replace(true);
                    }
                    Event::ServerError(ServerError::Other(text))
                        if text.to_ascii_lowercase().contains("permissions violation") =>
                    {
                        // The first one stays.
                        let _ = on_denial.set(text.as_str().into());
                    }
                    _ => {}
                }
                std::future::ready(())
            });
        options = match &self.login {
            NatsLogin::None => options,
            NatsLogin::Token(token) => options.token(token.clone()),
            NatsLogin::User(user, password) => options.user_and_password(user.clone(), password.clone()),
        };
        if let Some(tls) = &self.tls {
            options = options.require_tls(true).tls_client_config(ClientConfig::clone(tls));
        }
        let address: ServerAddr =
            endpoint.to_string().parse().map_err(|error| format!("{endpoint}: {error}"))?;
        endpoint.check().await?;
        let client = options
            .connect(address)
            .await
            .map_err(|error| format!("{endpoint}: {}", answer::greeting(&error)))?;
        let context = ContextBuilder::new().timeout(CLIENT_TIMEOUT);
        let context = match &self.domain {
            None => context.build(client.clone()),
            Some(domain) => context.domain(domain).timeout(CLIENT_TIMEOUT).build(client.clone()),
        };
        Ok(NatsLive { context, client, lost, denied })
    }
}

impl NatsLive {
    /// Returns when the connection is lost.
    pub(super) async fn lost(&self) {
        // The sender is a field of this connection, so the wait ends with a loss.
        let _ = self.lost.subscribe().wait_for(|is_lost| *is_lost).await;
    }

    /// Whether the server runs JetStream itself.
    pub(super) fn has_jetstream(&self) -> bool {
        self.client.server_info().jetstream
    }

    /// Returns what the server has said if it denied a message. It does so without naming the message.
    pub(super) fn denied(&self) -> Option<&Arc<str>> {
        self.denied.get()
    }
}

impl Dial for NatsConnection {
    type Live = NatsLive;

    fn dial(&self) -> Dialing<'_, NatsLive> {
        Box::pin(first_open(&self.endpoints, |endpoint| self.open(endpoint)))
    }

    fn is_alive(live: &NatsLive) -> bool {
        !*live.lost.borrow()
    }
}

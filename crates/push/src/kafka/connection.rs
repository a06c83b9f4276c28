//! [`KafkaConnection`]: the brokers of Kafka, and how to log in.

use std::sync::Arc;
use std::time::Duration;

use krafka::Kafka;
use krafka::auth::{AuthConfig, TlsConfig};
use krafka::producer::{Acks, Producer};
use tokio::runtime::Handle;

use super::answer;
use crate::broker::{Dial, Dialing, Endpoint};
use crate::webhook::TlsPlan;

/// The time for the connection to one broker.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
/// The time in which a topic is looked up, and in which a record gets memory.
const BLOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// The brokers of Kafka, and how to log in.
pub struct KafkaConnection {
    /// The addresses of some brokers. These tell the addresses of the others.
    pub endpoints: Vec<Endpoint>,
    /// The certificates of TLS; `None`: without TLS. `only_tls13` has no effect.
    pub tls: Option<TlsPlan>,
    /// How to log in.
    pub login: KafkaLogin,
    /// The time in which the client sends a record again by itself. A broker that restarts faster is not noticed.
    pub delivery_timeout: Duration,
}

/// How to log in to Kafka.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum KafkaLogin {
    /// The brokers want no login.
    #[default]
    None,
    /// SASL PLAIN: a user and the password.
    Plain(String, String),
    /// SASL SCRAM-SHA-256: a user and the password.
    ScramSha256(String, String),
    /// SASL SCRAM-SHA-512: a user and the password.
    ScramSha512(String, String),
}

/// A producer, with its connections to the brokers.
pub struct KafkaLive {
    pub(super) producer: Arc<Producer>,
}

impl KafkaConnection {
    /// Returns brokers without TLS that want no login, and a delivery time of 10 s.
    #[must_use]
    pub fn new(endpoints: Vec<Endpoint>) -> Self {
        Self { endpoints, tls: None, login: KafkaLogin::None, delivery_timeout: Duration::from_secs(10) }
    }

    async fn open(&self) -> Result<KafkaLive, String> {
        let servers = self.checked().await?;
        let failed =
            |error: krafka::KrafkaError| format!("{}: {}", servers.join(","), answer::greeting(&error));
        let kafka = Kafka::builder(servers.join(","))
            .client_id("tickwheel")
            .security(self.security())
            .allow_auto_create_topics(false)
            .connect_timeout(CONNECT_TIMEOUT.min(self.delivery_timeout / 2))
            .request_timeout(self.delivery_timeout / 2)
            .connect()
            .await
            .map_err(failed)?;
        let producer = kafka
            .producer()
            .acks(Acks::All)
            .idempotent(true)
            // Records that come while others are under way are sent together without a wait.
            .linger(Duration::ZERO)
            .delivery_timeout(self.delivery_timeout)
            .max_block(BLOCK_TIMEOUT)
            .metrics_push(false)
            .build()
            .await
            .map_err(failed)?;
        Ok(KafkaLive { producer: Arc::new(producer) })
    }

    /// Returns the addresses whose host may be reached.
    ///
    /// # Errors
    /// There is none; the reasons of all.
    async fn checked(&self) -> Result<Vec<String>, String> {
        // Beside each other, so that a name that is looked up for long does not use up the time of all.
        let checks = self.endpoints.iter().cloned().map(|endpoint| {
            tokio::spawn(async move { endpoint.check().await.map(|()| endpoint.to_string()) })
        });
        let (mut servers, mut reasons) = (Vec::new(), Vec::new());
        for check in checks.collect::<Vec<_>>() {
            match check.await {
                Ok(Ok(server)) => servers.push(server),
                Ok(Err(reason)) => reasons.push(reason),
                Err(error) => reasons.push(error.to_string()),
            }
        }
        if servers.is_empty() && !reasons.is_empty() { Err(reasons.join("; ")) } else { Ok(servers) }
    }

    fn security(&self) -> AuthConfig {
        let login = match &self.login {
            KafkaLogin::None => None,
            KafkaLogin::Plain(user, password) => Some(AuthConfig::sasl_plain(user, password)),
            KafkaLogin::ScramSha256(user, password) => Some(AuthConfig::sasl_scram_sha256(user, password)),
            KafkaLogin::ScramSha512(user, password) => Some(AuthConfig::sasl_scram_sha512(user, password)),
        };
        let tls = self.tls.as_ref().map(|plan| {
            let mut tls = TlsConfig::new();
            if let Some(roots) = &plan.roots_pem {
                tls = tls.with_ca_cert_pem(roots.clone());
            }
            if let Some((chain, key)) = &plan.client_pem {
                tls = tls.with_client_cert_pem(chain.clone(), key.clone());
            }
            tls
        });
        match (login, tls) {
            (None, None) => AuthConfig::plaintext(),
            (None, Some(tls)) => AuthConfig::ssl(tls),
            (Some(login), None) => login,
            (Some(login), Some(tls)) => login.with_tls(tls),
        }
    }
}

impl Drop for KafkaLive {
    fn drop(&mut self) {
        // The producer ends its connections in the background. Without a runtime they are ended already.
        if let Ok(runtime) = Handle::try_current() {
            let producer = Arc::clone(&self.producer);
            runtime.spawn(async move { drop(producer.close().await) });
        }
    }
}

impl Dial for KafkaConnection {
    type Live = KafkaLive;

    fn dial(&self) -> Dialing<'_, KafkaLive> {
        Box::pin(self.open())
    }

    fn is_alive(live: &KafkaLive) -> bool {
        !live.producer.is_closed()
    }
}

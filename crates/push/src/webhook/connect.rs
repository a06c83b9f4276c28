//! [`Connector`]: makes guarded connections to one receiver.
//!
//! ```text
//! name -> one look-up -> the guard drops denied addresses -> TCP to an address that was kept -> TLS by the name
//! ```
//!
//! The address that was checked is the address that is used, so a name that changes its address between check and connection has no effect.
//! No proxy of the environment is used.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_queue::is_lack_of_descriptors;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::answer::Failure;
use super::url::Url;
use crate::guard::{Guard, Host};
use crate::tls_error;
use tickwheel_http::{Connection, Stream};

/// The time for the look-up and the TCP connection together, over all addresses.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time for the TLS handshake.
const TLS_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that gets no descriptor is tried again after this time.
const DESCRIPTOR_PAUSE: Duration = Duration::from_millis(100);
/// At most this many addresses of a name are tried.
const ADDRESSES_MAX: usize = 8;

/// The addresses of a name, on their way.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Looks up the addresses of names. [`SystemResolver`] asks the system; a test may answer by itself.
pub trait Resolve: Send + Sync {
    /// Returns all addresses of a name, in the order in which they are to be tried.
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a>;
}

/// Asks the resolver of the system.
#[derive(Copy, Clone, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        Box::pin(async move {
            // The port is not part of the question.
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Makes guarded connections to the receiver of one URL.
pub(crate) struct Connector {
    is_https: bool,
    host: Host,
    port: u16,
    guard: Arc<Guard>,
    resolver: Arc<dyn Resolve>,
    tls: TlsConnector,
}

impl Connector {
    pub(crate) fn new(
        url: &Url,
        guard: Arc<Guard>,
        resolver: Arc<dyn Resolve>,
        tls: Arc<ClientConfig>,
    ) -> Self {
        let Url { is_https, ref host, port, .. } = *url;
        Self { is_https, host: host.clone(), port, guard, resolver, tls: TlsConnector::from(tls) }
    }

    /// Opens a connection, at the latest at `deadline`.
    pub(crate) async fn connect(&self, deadline: Instant) -> Result<Connection, Failure> {
        let tcp_deadline = deadline.min(Instant::now() + CONNECT_TIMEOUT);
        let late = |_| self.failed("no connection within 5 s");
        let tcp = timeout_at(tcp_deadline, self.connect_tcp(tcp_deadline)).await.map_err(late)??;
        let stream: Box<dyn Stream> = if self.is_https {
            let tls_deadline = deadline.min(Instant::now() + TLS_TIMEOUT);
            let late =
                |_| self.failed("no TLS handshake within 5 s; the other side may not speak TLS at this port");
            timeout_at(tls_deadline, self.handshake(tcp)).await.map_err(late)??
        } else {
            Box::new(tcp)
        };
        Connection::new(stream).await.map_err(|error| self.failed(error))
    }

    async fn connect_tcp(&self, deadline: Instant) -> Result<TcpStream, Failure> {
        let addresses = match &self.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => self
                .resolver
                .resolve(name)
                .await
                .map_err(|error| self.failed(format!("the look-up failed: {error}")))?,
        };
        let kept = self.guard.check(self.is_https, &self.host, self.port, &addresses).map_err(|blocked| {
            match blocked {
                crate::guard::Blocked::NoAddress(_) => self.failed(blocked),
                blocked => Failure::Blocked(blocked.to_string()),
            }
        })?;
        let mut last = None;
        let count = kept.len().min(ADDRESSES_MAX);
        for (nth, address) in kept.into_iter().take(count).enumerate() {
            // An address that does not answer leaves time for the others.
            let share = deadline.saturating_duration_since(Instant::now()) / (count - nth) as u32;
            match timeout(share, connect_to(SocketAddr::new(address, self.port))).await {
                Ok(Ok(tcp)) => {
                    // Without it, the last piece of a request would wait for an acknowledgement of the one before.
                    let _ = tcp.set_nodelay(true);
                    return Ok(tcp);
                }
                Ok(Err(error)) => last = Some(error),
                Err(_) => last = Some(io::Error::new(io::ErrorKind::TimedOut, "the connection timed out")),
            }
        }
        Err(last.map_or_else(|| self.failed("no address"), |error| self.failed(error)))
    }

    async fn handshake(&self, tcp: TcpStream) -> Result<Box<dyn Stream>, Failure> {
        let name = match &self.host {
            Host::Name(name) => ServerName::try_from(name.clone()).map_err(|error| self.failed(error))?,
            Host::Address(address) => ServerName::from(*address),
        };
        match self.tls.connect(name, tcp).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(self.failed(format!("TLS: {}", tls_error::in_words(&error)))),
        }
    }

    fn failed(&self, why: impl fmt::Display) -> Failure {
        Failure::NoConnection(format!("{}:{}: {why}", self.host, self.port))
    }
}

/// Connects to an address. Waits while the process has no descriptor: that says nothing about the receiver.
async fn connect_to(address: SocketAddr) -> io::Result<TcpStream> {
    loop {
        match TcpStream::connect(address).await {
            Err(error) if is_lack_of_descriptors(&error) => sleep(DESCRIPTOR_PAUSE).await,
            connected => return connected,
        }
    }
}

/// The certificates that a webhook trusts and shows.
#[derive(Clone, Default)]
pub struct TlsPlan {
    /// The roots to trust, in PEM, instead of those of Mozilla.
    pub roots_pem: Option<Vec<u8>>,
    /// The certificate chain and the private key of the client, in PEM.
    pub client_pem: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether TLS 1.2 is refused.
    pub only_tls13: bool,
}

impl fmt::Debug for TlsPlan {
    /// Shows no key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsPlan")
            .field("roots_pem", &self.roots_pem.is_some())
            .field("client_pem", &self.client_pem.is_some())
            .field("only_tls13", &self.only_tls13)
            .finish()
    }
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsPlanError {
    /// The text has no certificate that can be a root.
    #[error("there is no certificate in the file")]
    NoRoots,
    /// The certificate or the key of the client cannot be read.
    #[error("the client's certificate or key cannot be read")]
    NoClient,
    /// The certificate and the key do not belong together, or the key has a kind that is not supported.
    #[error("the client's certificate and key cannot be used: {0}")]
    Client(rustls::Error),
}

impl TlsPlan {
    /// Makes the settings of TLS.
    ///
    /// # Errors
    /// [`TlsPlanError`].
    pub fn config(&self) -> Result<Arc<ClientConfig>, TlsPlanError> {
        use rustls::pki_types::pem::PemObject;
        use rustls::pki_types::{CertificateDer, PrivateKeyDer};

        let roots = match &self.roots_pem {
            None => webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect(),
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
                roots.add_parsable_certificates(read.map_err(|_| TlsPlanError::NoRoots)?);
                roots
            }
        };
        if roots.is_empty() {
            return Err(TlsPlanError::NoRoots);
        }
        let versions: &[&rustls::SupportedProtocolVersion] = if self.only_tls13 {
            &[&rustls::version::TLS13]
        } else {
            &[&rustls::version::TLS13, &rustls::version::TLS12]
        };
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(versions)
            .expect("ring has the ciphers of both versions")
            .with_root_certificates(roots);
        let config = match &self.client_pem {
            None => config.with_no_client_auth(),
            Some((chain, key)) => {
                let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
                    .collect::<Result<_, _>>()
                    .map_err(|_| TlsPlanError::NoClient)?;
                let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsPlanError::NoClient)?;
                config.with_client_auth_cert(chain, key).map_err(TlsPlanError::Client)?
            }
        };
        Ok(Arc::new(config))
    }
}

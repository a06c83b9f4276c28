//! How a connection is made: over TCP, TLS or a unix socket, within 5 s.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use crate::ClientError;
use crate::endpoint::Endpoint;
use crate::error::untrusted;
use tickwheel_http::{Connection, Stream};

/// The time limit for reaching a server: 5 s, with the look-up of its name and the handshake. A server that takes longer
/// is down or far away.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens connections to one server.
pub(crate) struct Connector {
    endpoint: Endpoint,
    /// Used with `https` only.
    tls: Option<TlsConnector>,
}

impl Connector {
    /// Trusts the roots of Mozilla, as they were when this program was built.
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        let roots = || webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
        let tls = (endpoint.scheme == "https").then(|| trusting(roots()));
        Self { endpoint, tls }
    }

    /// Trusts these roots instead of the usual ones.
    pub(crate) fn with_roots(endpoint: Endpoint, pem: &[u8]) -> Result<Self, ClientError> {
        if endpoint.socket.is_some() {
            return Err(ClientError::NoTls { address: endpoint.address });
        }
        let mut roots = RootCertStore::empty();
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        roots.add_parsable_certificates(certificates.map_err(|_| ClientError::BadCertificates)?);
        if roots.is_empty() {
            return Err(ClientError::BadCertificates);
        }
        Ok(Self { endpoint, tls: Some(trusting(roots)) })
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Opens a connection. If this fails, the server has received no call.
    pub(crate) async fn connect(&self) -> Result<Connection, ClientError> {
        let stream: Box<dyn Stream> = match &self.endpoint.socket {
            #[cfg(unix)]
            Some(path) => Box::new(
                crate::unix::connect(path, CONNECT_TIMEOUT)
                    .await
                    .map_err(|error| crate::unix::told(&error, &self.endpoint.address, path))?,
            ),
            _ => {
                let late = |_| {
                    let seconds = CONNECT_TIMEOUT.as_secs();
                    let text = format!("there was no connection within {seconds} s");
                    self.unreachable(io::Error::new(io::ErrorKind::TimedOut, text))
                };
                timeout(CONNECT_TIMEOUT, self.connect_tcp()).await.map_err(late)??
            }
        };
        Connection::new(stream).await.map_err(|error| self.unreachable(error))
    }

    /// Connects, and does the TLS handshake if the URL asks for it.
    async fn connect_tcp(&self) -> Result<Box<dyn Stream>, ClientError> {
        let tcp =
            TcpStream::connect(&self.endpoint.address).await.map_err(|error| self.unreachable(error))?;
        tcp.set_nodelay(true).map_err(|error| self.unreachable(error))?;
        let (Some(tls), "https") = (&self.tls, self.endpoint.scheme) else { return Ok(Box::new(tcp)) };
        let name = ServerName::try_from(self.endpoint.name().to_owned());
        let name = name.map_err(|error| self.unreachable(error))?;
        match tls.connect(name, tcp).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(self.no_handshake(error)),
        }
    }

    fn no_handshake(&self, error: io::Error) -> ClientError {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::InvalidCertificate(bad)) => untrusted(self.endpoint.address.clone(), bad),
            Some(rustls::Error::InvalidMessage(_)) => ClientError::NotTls,
            _ => self.unreachable(error),
        }
    }

    pub(crate) fn unreachable(
        &self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> ClientError {
        ClientError::Unreachable { address: self.endpoint.address.clone(), source: source.into() }
    }
}

/// A connector that trusts these roots.
fn trusting(roots: RootCertStore) -> TlsConnector {
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has the ciphers of both versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

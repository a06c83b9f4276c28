//! A front that speaks TLS, before a receiver that does not.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};

/// A certificate that has signed itself, with its key.
pub(crate) struct Identity(rcgen::CertifiedKey<rcgen::KeyPair>);

impl Identity {
    pub(crate) fn new(name: &str) -> Self {
        Self(rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate"))
    }

    /// The certificate as the root that a client trusts.
    pub(crate) fn roots_pem(&self) -> Vec<u8> {
        self.0.cert.pem().into_bytes()
    }

    /// The certificate and its key.
    pub(crate) fn pem(&self) -> (Vec<u8>, Vec<u8>) {
        (self.roots_pem(), self.0.signing_key.serialize_pem().into_bytes())
    }

    /// The settings of a server with this certificate. `client`: the certificate that a client has to show.
    pub(crate) fn server(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        client: Option<&Self>,
    ) -> ServerConfig {
        let provider = Arc::new(default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let config = config.with_protocol_versions(versions).expect("the versions are supported");
        let config = match client {
            None => config.with_no_client_auth(),
            Some(client) => {
                let mut roots = RootCertStore::empty();
                roots.add(client.0.cert.der().clone()).expect("a root");
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                config.with_client_cert_verifier(verifier.build().expect("a verifier"))
            }
        };
        let key = PrivateKeyDer::try_from(self.0.signing_key.serialize_der()).expect("a key");
        config.with_single_cert(vec![self.0.cert.der().clone()], key).expect("a certificate with its key")
    }
}

/// Starts a front before the receiver at this address. Returns its port.
pub(crate) async fn start(receiver: SocketAddr, config: ServerConfig) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut plain = TcpStream::connect(receiver).await.expect("the receiver is there");
                let _ = copy_bidirectional(&mut stream, &mut plain).await;
            });
        }
    });
    port
}

//! TLS: the certificate, and the handshake on a connection.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::base::watched::{Watched, warn_if_others_read};

/// The longest time for a handshake; a client that takes longer is disconnected. The head of a request may take the
/// same time.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// The first byte of each TLS connection. No request begins with it.
const TLS_RECORD: u8 = 0x16;

/// The files of a server's certificate and its key, both in PEM. The server reads them again every two seconds, so
/// that a certificate can be renewed while the server runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The server's certificate, followed by the certificates between it and a root that clients know.
    pub certificates: PathBuf,
    /// The key of the first certificate.
    pub key: PathBuf,
}

/// Why two files are not a certificate with its key. The contents of the files are not shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The contents of a file are wrong.
    #[error("{} {what}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// The mistake.
        what: String,
    },
    /// The key belongs to another certificate.
    #[error("the key in {} is not that of the first certificate in {}", key.display(), certificates.display())]
    Mismatch {
        /// The file of the certificates.
        certificates: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
}

/// Encrypts connections.
#[derive(Clone)]
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    identity: Arc<Watched<Identity>>,
}

/// The result of a handshake.
pub(crate) enum Begun {
    Encrypted(Box<TlsStream<TcpStream>>),
    /// The client speaks plain HTTP, and can be told about TLS.
    Plain(TcpStream),
    /// The client left, took too long, or does not speak TLS.
    Failed(io::Error),
}

/// The certificate and key of the server.
struct Identity {
    key: Arc<CertifiedKey>,
    /// The contents of the files, to see whether they changed.
    read: (Vec<u8>, Vec<u8>),
}

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.read == other.read
    }
}

impl Tls {
    /// Reads the certificate and the key.
    ///
    /// # Errors
    /// [`TlsError`].
    pub(crate) fn open(files: TlsFiles) -> Result<Self, TlsError> {
        warn_if_others_read(&files.key);
        let identity = Watched::open("the certificates", move || Identity::read(&files))?;
        let identity = Arc::new(identity);
        let provider = Arc::new(ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .expect("the provider knows both")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Resolver(Arc::clone(&identity))));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), identity })
    }

    /// The same identity, for a door that admits only clients with a certificate that one of `signers` signed.
    ///
    /// # Errors
    /// [`TlsError`].
    pub(crate) fn for_clients_of(&self, signers: &Path) -> Result<Self, TlsError> {
        let text = bytes(signers)?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&text) {
            let certificate = certificate.map_err(|error| not_pem(signers, &error))?;
            let unusable = |why| wrong(signers, format!("has a certificate that cannot be used: {why}"));
            roots.add(certificate).map_err(unusable)?;
        }
        let provider = Arc::new(ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
        let verifier = verifier.map_err(|_| {
            wrong(signers, "has no certificate; expected a PEM file with `BEGIN CERTIFICATE`")
        })?;
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .expect("the provider knows both")
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(Resolver(Arc::clone(&self.identity))));
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), identity: Arc::clone(&self.identity) })
    }

    /// Reads the files again at intervals, for ever.
    pub(crate) async fn keep_up(self) {
        self.identity.keep_up().await;
    }

    /// Does the handshake, in at most [`HANDSHAKE`].
    pub(crate) async fn begin(&self, socket: TcpStream) -> Begun {
        let begun = timeout(HANDSHAKE, async {
            let mut first = [0];
            if socket.peek(&mut first).await? > 0 && first[0] != TLS_RECORD {
                return Ok(Begun::Plain(socket));
            }
            self.acceptor.accept(socket).await.map(|stream| Begun::Encrypted(Box::new(stream)))
        });
        match begun.await {
            Ok(Ok(begun)) => begun,
            Ok(Err(error)) => Begun::Failed(error),
            Err(_) => Begun::Failed(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl Identity {
    fn read(TlsFiles { certificates, key }: &TlsFiles) -> Result<Self, TlsError> {
        let read = (bytes(certificates)?, bytes(key)?);
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read.0).collect();
        let chain = chain.map_err(|error| not_pem(certificates, &error))?;
        if chain.is_empty() {
            return Err(wrong(
                certificates,
                "has no certificate; expected a PEM file with `BEGIN CERTIFICATE`",
            ));
        }
        let private = PrivateKeyDer::from_pem_slice(&read.1).map_err(|error| match error {
            pem::Error::NoItemsFound => {
                wrong(key, "has no key; expected a PEM file with `BEGIN PRIVATE KEY`, without a password")
            }
            error => not_pem(key, &error),
        })?;
        match CertifiedKey::from_der(chain, private, &ring::default_provider()) {
            Ok(certified) => Ok(Self { key: Arc::new(certified), read }),
            Err(rustls::Error::InconsistentKeys(_)) => {
                Err(TlsError::Mismatch { certificates: certificates.clone(), key: key.clone() })
            }
            Err(rustls::Error::InvalidCertificate(why)) => {
                Err(wrong(certificates, format!("has a first certificate that cannot be used: {why:?}")))
            }
            Err(_) => Err(wrong(key, "has a key of a kind that is not known; RSA, ECDSA and Ed25519 are")),
        }
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
}

fn wrong(path: &Path, what: impl Into<String>) -> TlsError {
    TlsError::Parse { path: path.to_owned(), what: what.into() }
}

/// Our own words for the mistake, because those of the library may show a line of the file.
fn not_pem(path: &Path, error: &pem::Error) -> TlsError {
    let what = match error {
        pem::Error::MissingSectionEnd { .. } => "breaks off: a section has no end",
        _ => "is no PEM: a section is malformed",
    };
    wrong(path, what)
}

/// Gives each client the newest identity.
#[derive(Debug)]
struct Resolver(Arc<Watched<Identity>>);

impl ResolvesServerCert for Resolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.last().key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(certificates: &str, key: &str) -> (tempfile::TempDir, TlsFiles) {
        let directory = tempfile::tempdir().expect("a directory");
        let files = TlsFiles {
            certificates: directory.path().join("cert.pem"),
            key: directory.path().join("key.pem"),
        };
        std::fs::write(&files.certificates, certificates).expect("written");
        std::fs::write(&files.key, key).expect("written");
        (directory, files)
    }

    #[test]
    fn a_mistake_is_named_without_the_secret() {
        let made = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let (one, other) = (made(), made());
        let (certificate, key) = (one.cert.pem(), one.signing_key.serialize_pem());
        let (_directory, good) = files(&certificate, &key);
        assert!(Tls::open(good).is_ok());
        let cut = &key[..key.len() / 2];
        let canary = "-----BEGIN PRIVATE KEY-----\ncanary!\n-----END PRIVATE KEY-----\n";
        for (certificates, key, what) in [
            (&*certificate, "", "key.pem has no key"),
            (&certificate, &*certificate, "key.pem has no key"),
            ("", &key, "cert.pem has no certificate"),
            (&key, &key, "cert.pem has no certificate"),
            (&certificate, cut, "key.pem breaks off"),
            (&certificate, canary, "key.pem is no PEM"),
            (&certificate, &other.signing_key.serialize_pem(), "is not that of the first certificate"),
        ] {
            let (_directory, files) = files(certificates, key);
            let Err(error) = Tls::open(files) else { panic!("{what}: taken") };
            let error = error.to_string();
            assert!(error.contains(what) && !error.contains("canary"), "{what}: {error}");
        }
        let (directory, mut files) = files(&certificate, &key);
        files.key = directory.path().join("no-such-file");
        let Err(TlsError::Read { path, .. }) = Tls::open(files) else { panic!("there is no such file") };
        assert!(path.ends_with("no-such-file"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_client_is_disconnected_after_five_seconds() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let (_directory, files) = files(&made.cert.pem(), &made.signing_key.serialize_pem());
        let tls = Tls::open(files).expect("a certificate");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        for said in [&[][..], &[TLS_RECORD, 3, 1]] {
            let client = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("connected");
            let (socket, _) = listener.accept().await.expect("accepted");
            client.try_write(said).expect("room for three bytes");
            let begun = tokio::time::Instant::now();
            let Begun::Failed(error) = tls.begin(socket).await else { panic!("{said:?}: it began") };
            assert_eq!((error.kind(), begun.elapsed().as_secs()), (io::ErrorKind::TimedOut, 5));
        }
    }
}

//! TLS: how far a server is verified, and the channel binding of its certificate.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};
use sha2::{Digest, Sha256, Sha384, Sha512};

/// The modes of libpq.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum TlsMode {
    /// No TLS.
    Disable,
    /// TLS if the server has it; nothing is verified.
    Prefer,
    /// TLS; nothing is verified, unless roots are given: then as [`Self::VerifyCa`].
    Require,
    /// TLS; a root has signed the certificate, for whatever name.
    VerifyCa,
    /// TLS; a root has signed the certificate for the name of the host.
    VerifyFull,
}

impl TlsMode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

/// The certificates to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Roots {
    /// The roots of Mozilla, as they were when this program was made.
    System,
    /// A file in PEM.
    File(PathBuf),
}

/// The certificate and the key of the client, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// Makes the settings of TLS.
///
/// # Errors
/// A text that names the file and what is wrong with it.
pub(crate) fn config(
    mode: TlsMode,
    roots: Option<&Roots>,
    client: Option<&ClientFiles>,
) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let depth = match (mode, roots) {
        (TlsMode::VerifyFull, _) => Depth::Name,
        (TlsMode::VerifyCa, _) | (TlsMode::Require | TlsMode::Prefer, Some(Roots::File(_))) => {
            Depth::Authority
        }
        (TlsMode::Require | TlsMode::Prefer | TlsMode::Disable, _) => Depth::Nothing,
    };
    let authority = match depth {
        Depth::Nothing => None,
        Depth::Authority | Depth::Name => {
            let store = Arc::new(store(roots.unwrap_or(&Roots::System))?);
            let verifier = WebPkiServerVerifier::builder_with_provider(store, Arc::clone(&provider)).build();
            Some(verifier.map_err(|error| format!("the roots cannot be used: {error}"))?)
        }
    };
    let verifier = Arc::new(Verifier { depth, authority, provider: Arc::clone(&provider) });
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match client {
        None => config.with_no_client_auth(),
        Some(ClientFiles { certificate, key }) => {
            let chain = certificates(certificate)?;
            check_key_mode(key)?;
            let pem = fs::read(key).map_err(|error| format!("sslkey {}: {error}", key.display()))?;
            let private = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| {
                format!("sslkey {}: there is no private key in PEM without a pass phrase", key.display())
            })?;
            config.with_client_auth_cert(chain, private).map_err(|error| {
                format!("sslcert {} and sslkey {}: {error}", certificate.display(), key.display())
            })?
        }
    };
    Ok(Arc::new(config))
}

fn store(roots: &Roots) -> Result<RootCertStore, String> {
    match roots {
        Roots::System => Ok(webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect()),
        Roots::File(path) => {
            let mut store = RootCertStore::empty();
            store.add_parsable_certificates(certificates(path)?);
            if store.is_empty() {
                return Err(format!("{}: no certificate in it can be a root", path.display()));
            }
            Ok(store)
        }
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(format!("{}: there is no certificate in PEM in it", path.display())),
    }
}

/// As libpq: a key belongs to its owner alone; the group may read it if the owner is root.
fn check_key_mode(path: &Path) -> Result<(), String> {
    let metadata = fs::metadata(path).map_err(|error| format!("sslkey {}: {error}", path.display()))?;
    let (mode, forbidden) = (metadata.mode() & 0o777, if metadata.uid() == 0 { 0o037 } else { 0o077 });
    if mode & forbidden == 0 {
        return Ok(());
    }
    Err(format!(
        "sslkey {}: others may read it (mode {mode:o}); `chmod 600` makes it private",
        path.display()
    ))
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Depth {
    Nothing,
    Authority,
    Name,
}

/// Verifies as far as the mode wants.
#[derive(Debug)]
struct Verifier {
    depth: Depth,
    authority: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        match authority.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // The chain is verified before the name.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.depth == Depth::Authority => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Whether an error of TLS means that the configuration is wrong, here or at the server. All else, such as a record that
/// is cut off, may pass.
pub(crate) fn is_refusal(error: &Error) -> bool {
    match error {
        Error::AlertReceived(alert) => !matches!(
            alert,
            AlertDescription::CloseNotify | AlertDescription::InternalError | AlertDescription::UserCanceled
        ),
        Error::InvalidCertificate(_) | Error::NoCertificatesPresented | Error::PeerIncompatible(_) => true,
        _ => false,
    }
}

/// Returns an error of TLS in plain words, with the text of the library behind it.
pub(crate) fn in_words(error: &Error) -> String {
    let words = match error {
        Error::InvalidCertificate(error) => match error {
            CertificateError::UnknownIssuer => {
                "no trusted authority has signed the certificate of the server; `sslrootcert` names another authority"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "the certificate of the server is for another name (the names count that it lists as subjectAltName)"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the certificate of the server has expired"
            }
            _ => "the certificate of the server cannot be used",
        },
        Error::InvalidMessage(_) => "the server does not speak TLS at this port",
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server wants a certificate of the client; `sslcert` and `sslkey` name one"
        }
        Error::AlertReceived(AlertDescription::UnknownCA | AlertDescription::BadCertificate) => {
            "the server does not take the certificate of the client"
        }
        Error::PeerIncompatible(_) | Error::AlertReceived(AlertDescription::ProtocolVersion) => {
            "the server speaks no version of TLS from 1.2 on"
        }
        _ => return format!("TLS: {error}"),
    };
    format!("{words} ({error})")
}

/// Returns the data of `tls-server-end-point` (RFC 5929): the hash of the certificate, by the hash function of its
/// signature. `None`: the signature has no such function, or it is one that is not known here.
pub(crate) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    // Certificate ::= SEQUENCE { tbsCertificate SEQUENCE, signatureAlgorithm SEQUENCE { OBJECT IDENTIFIER ... } ... }
    let (certificate_body, _) = element(0x30, certificate)?;
    let (_, rest) = element(0x30, certificate_body)?;
    let (algorithm, _) = element(0x30, rest)?;
    let (identifier, _) = element(0x06, algorithm)?;
    /// 1.2.840.113549.1.1
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    /// 1.2.840.10045.4.3
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    let (kind, last) = identifier.split_last().map(|(last, kind)| (kind, *last))?;
    match (kind, last) {
        // MD5 and SHA-1 are replaced by SHA-256.
        (RSA, 4 | 5 | 11) | (ECDSA, 2) => Some(Sha256::digest(certificate).to_vec()),
        (RSA, 12) | (ECDSA, 3) => Some(Sha384::digest(certificate).to_vec()),
        (RSA, 13) | (ECDSA, 4) => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}

/// Splits one element of DER with this tag off; returns its contents and the rest.
fn element(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[found, first], rest) = bytes.split_first_chunk::<2>()?;
    if found != tag {
        return None;
    }
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if digits.len() > 4 {
            return None;
        }
        (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
    };
    rest.split_at_checked(length)
}

//! Errors of TLS in plain words: the same sentences for all brokers and for webhooks.

use std::error::Error;
use std::io;
use std::sync::Arc;

use tokio_rustls::rustls::{self, AlertDescription, CertificateError};

use crate::text::in_one_line;

/// Returns an error in one line. If an error of TLS with a common cause is behind it, the cause stands in front in plain words, and the text of
/// the library follows in parentheses.
pub(crate) fn in_words(error: &(dyn Error + 'static)) -> String {
    let text = in_one_line(&error.to_string());
    match cause(error) {
        Some(cause) => format!("{cause} ({text})"),
        None => text,
    }
}

/// Returns the cause of an error of TLS, in words for operators; `None`: there is no such error behind it, or it is a rare one.
pub(crate) fn cause(error: &(dyn Error + 'static)) -> Option<&'static str> {
    // The client crate has no type for this error.
    if error.to_string() == "tls handshake eof" {
        return Some("the other side ended the connection; it may not speak TLS at this port");
    }
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return words(found);
        }
        // The source of an `io::Error` is that of the error in it, and not that error.
        let io = error.downcast_ref::<io::Error>();
        let io = io.or_else(|| error.downcast_ref::<Arc<io::Error>>().map(|error| &**error));
        let inner = io.and_then(|io| io.get_ref()).map(|inner| inner as &(dyn Error + 'static));
        next = inner.or_else(|| error.source());
    }
    None
}

fn words(error: &rustls::Error) -> Option<&'static str> {
    use rustls::Error as Tls;

    Some(match error {
        Tls::InvalidMessage(_) => "the other side does not speak TLS at this port",
        Tls::InvalidCertificate(error) => return certificate(error),
        Tls::PeerIncompatible(_) | Tls::AlertReceived(AlertDescription::ProtocolVersion) => {
            "the other side speaks no version of TLS that is allowed here"
        }
        Tls::AlertReceived(AlertDescription::CertificateRequired) => {
            "the other side wants a certificate of the client; [push.tls] of the configuration names one"
        }
        Tls::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::AccessDenied,
        ) => "the other side does not take the certificate of the client",
        Tls::AlertReceived(AlertDescription::HandshakeFailure) => {
            "the other side refuses TLS as it is offered; it may want a certificate of the client"
        }
        Tls::AlertReceived(AlertDescription::UnrecognisedName) => "the other side has no such name",
        _ => return None,
    })
}

fn certificate(error: &CertificateError) -> Option<&'static str> {
    Some(match error {
        CertificateError::UnknownIssuer => {
            "no trusted authority has signed the certificate of the other side; `ca` of [push.tls] names another authority"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate of the other side is for another name"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the certificate of the other side has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate of the other side is not valid yet, or the clock of this machine is wrong"
        }
        CertificateError::Revoked => "the certificate of the other side is revoked",
        CertificateError::BadSignature => {
            "the certificate of the other side is not signed by the authority that it names"
        }
        // The type of this error is that of another crate.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "the other side shows the certificate of an authority (CA:TRUE); it needs one of its own (CA:FALSE)"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use rustls::{InvalidMessage, OtherError, PeerIncompatible};

    use super::*;

    #[derive(Debug)]
    struct Wrapped(Arc<io::Error>);

    impl std::fmt::Display for Wrapped {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "network: {}", self.0)
        }
    }

    impl Error for Wrapped {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[derive(Debug)]
    struct CaUsedAsEndEntity;

    impl std::fmt::Display for CaUsedAsEndEntity {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "{self:?}")
        }
    }

    impl Error for CaUsedAsEndEntity {}

    fn of_certificate(error: CertificateError) -> rustls::Error {
        rustls::Error::InvalidCertificate(error)
    }

    #[test]
    fn common_causes_stand_in_front_of_the_text_of_the_library() {
        for (error, begin, end) in [
            (
                rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType),
                "the other side does not speak TLS at this port (",
                "InvalidContentType)",
            ),
            (
                of_certificate(CertificateError::UnknownIssuer),
                "no trusted authority has signed the certificate of the other side; `ca` of [push.tls]",
                "UnknownIssuer)",
            ),
            (
                of_certificate(CertificateError::NotValidForName),
                "the certificate of the other side is for another name (",
                ")",
            ),
            (
                of_certificate(CertificateError::Other(OtherError(Arc::new(CaUsedAsEndEntity)))),
                "the other side shows the certificate of an authority (CA:TRUE)",
                "CaUsedAsEndEntity)))",
            ),
            (
                rustls::Error::PeerIncompatible(PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig),
                "the other side speaks no version of TLS that is allowed here (",
                ")",
            ),
            (
                rustls::Error::AlertReceived(AlertDescription::CertificateRequired),
                "the other side wants a certificate of the client",
                "CertificateRequired)",
            ),
            (rustls::Error::DecryptError, "cannot decrypt peer's message", "message"),
        ] {
            let io = io::Error::new(io::ErrorKind::InvalidData, error.clone());
            let told = in_words(&io);
            assert!(told.starts_with(begin) && told.ends_with(end), "{told}");
            assert_eq!(in_words(&error), told);
        }
    }

    #[test]
    fn an_error_of_tls_is_found_behind_other_errors() {
        let tls = rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType);
        let wrapped = Wrapped(Arc::new(io::Error::new(io::ErrorKind::InvalidData, tls)));
        let told = in_words(&wrapped);
        assert!(told.starts_with("the other side does not speak TLS at this port (network: "), "{told}");
        let refused = Wrapped(Arc::new(io::Error::from(io::ErrorKind::ConnectionRefused)));
        assert_eq!(in_words(&refused), "network: connection refused");
    }
}

//! The reasons why a call of the client failed.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};

use thiserror::Error;
use tickwheel_api::{Problem, ProblemKind, shown_bytes};
use tokio_rustls::rustls::CertificateError;

use crate::call::Repeat;

/// The known effect of a failed call: [`ClientError::outcome`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The server has received nothing of the call, so the call had no effect.
    NotSent,
    /// The server has answered. Its problem says whether the call had an effect; with a status below 500 it had none.
    Answered,
    /// The call may have taken effect or not. It was sent and no whole answer came, or the server itself does not know. Check the state
    /// before the call is sent again, or use [`Retries`](crate::Retries), which repeat only what is safe to repeat.
    Unknown,
}

/// Why a call failed. [`outcome`](Self::outcome) says whether the call may have taken effect, and so does each variant.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The URL is not that of a server. Nothing was sent.
    #[error(
        "`{url}` is not the URL of a server: {why}; write for example `http://127.0.0.1:8463` or `unix:/run/tickwheel/http`"
    )]
    BadUrl {
        /// The URL.
        url: String,
        /// The mistake in it.
        why: &'static str,
    },
    /// A text has no certificates. Nothing was sent.
    #[error("there are no certificates in it, or they are malformed; expected PEM with `BEGIN CERTIFICATE`")]
    BadCertificates,
    /// Roots were given for a unix socket, which uses no encryption. Nothing was sent.
    #[error(
        "there is no TLS at {address}, which is a socket of this machine; leave the root certificates out"
    )]
    NoTls {
        /// The `unix:PATH` of the server.
        address: String,
    },
    /// HTTP cannot carry the call: a key or a name is too long for a path, or the token has a byte that is not allowed in a header. Nothing
    /// was sent.
    #[error("the call cannot be sent: {source}; look at its names and at the token")]
    Unsendable {
        /// Why not.
        source: hyper::http::Error,
    },
    /// The system did not allow the blocking client to wait for the network. Nothing was sent.
    #[error("failed to prepare for the network: {source}; close files or threads that are not needed")]
    NoRuntime {
        /// Why not.
        source: io::Error,
    },
    /// The server does not speak TLS. It has received nothing of the call.
    #[error(
        "the answer is not one of a tickwheel server: it does not speak TLS; write http:// in place of https://"
    )]
    NotTls,
    /// The server shows a certificate that cannot be trusted. The call had no effect.
    #[error("the server at {address} cannot be trusted: {why}; {hint}")]
    Untrusted {
        /// The `HOST:PORT` of the server.
        address: String,
        /// Why not.
        why: String,
        /// The hint: how to correct it.
        hint: &'static str,
    },
    /// The server refused the call. The problem's kind says whether the call had an effect; with a status below 500 it had none.
    #[error(transparent)]
    Problem(Box<Problem>),
    /// No connection could be made. The call had no effect.
    #[error(
        "no server answers at {address}: {source}; start one with `tickwheel serve`, or give the address of another"
    )]
    Unreachable {
        /// The `HOST:PORT` that was tried.
        address: String,
        /// Why not.
        source: Box<dyn Error + Send + Sync>,
    },
    /// No connection to a unix socket could be made. The call had no effect.
    #[error("no server answers at {address}: {why}; {hint}")]
    NoSocket {
        /// The `unix:PATH` that was tried.
        address: String,
        /// Why not.
        why: String,
        /// The hint: how to correct it.
        hint: String,
        /// Whether the error stays until a person changes something. In that case the call is not sent again.
        lasting: bool,
    },
    /// The connection broke, or the time ran out, before the whole answer arrived. The call may have taken effect or not.
    #[error(
        "the answer of {address} did not arrive: {source}; the call may have taken effect or not{}",
        advice(*.repeatable)
    )]
    NoAnswer {
        /// The `HOST:PORT` of the server.
        address: String,
        /// The reason.
        source: Box<dyn Error + Send + Sync>,
        /// Whether sending this call twice has the same effect as sending it once.
        repeatable: bool,
    },
    /// There was an answer, but not from a Tickwheel server. The call may have taken effect or not.
    #[error("the answer is not one of a tickwheel server: {what}")]
    BadAnswer {
        /// The HTTP status, if the answer was HTTP.
        status: Option<u16>,
        /// The mistake in it.
        what: String,
    },
}

impl ClientError {
    /// The problem, if the server sent one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem(problem) => Some(problem),
            _ => None,
        }
    }

    /// Whether the call may have had an effect.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Problem(problem) if problem.kind() == Some(ProblemKind::Indeterminate) => Outcome::Unknown,
            Self::Problem(_) => Outcome::Answered,
            Self::NoAnswer { .. } | Self::BadAnswer { .. } => Outcome::Unknown,
            Self::BadUrl { .. }
            | Self::BadCertificates
            | Self::NoTls { .. }
            | Self::Unsendable { .. }
            | Self::NoRuntime { .. }
            | Self::NotTls
            | Self::Untrusted { .. }
            | Self::Unreachable { .. }
            | Self::NoSocket { .. } => Outcome::NotSent,
        }
    }
}

/// The advice if an answer did not arrive.
fn advice(repeatable: bool) -> &'static str {
    if repeatable { ", and may be sent again" } else { "; look before you send it again" }
}

/// Why no whole answer came over a connection. If the system gave the reason, this is the system's text.
pub(crate) fn broken(address: String, repeat: Repeat, error: &hyper::Error) -> ClientError {
    let mut cause: &(dyn Error + 'static) = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let closed =
        |error: &hyper::Error| error.is_incomplete_message() || error.is_closed() || error.is_canceled();
    let source: Box<dyn Error + Send + Sync> = match cause.downcast_ref::<io::Error>() {
        Some(io) if !matches!(io.kind(), ErrorKind::InvalidInput | ErrorKind::InvalidData) => {
            io::Error::new(io.kind(), io.to_string()).into()
        }
        None if cause.downcast_ref().is_some_and(closed) => "the connection was closed".into(),
        _ => return ClientError::BadAnswer { status: None, what: cause.to_string() },
    };
    ClientError::NoAnswer { address, source, repeatable: repeat == Repeat::Safe }
}

/// Says why a certificate is refused, and what to do.
pub(crate) fn untrusted(address: String, error: &CertificateError) -> ClientError {
    use CertificateError as Bad;
    let (why, hint) = match error {
        Bad::Expired | Bad::ExpiredContext { .. } => {
            ("its certificate has expired", "renew it on the server")
        }
        Bad::NotValidYet | Bad::NotValidYetContext { .. } => {
            ("its certificate is not valid yet", "look at the clocks of both machines")
        }
        Bad::NotValidForName | Bad::NotValidForNameContext { .. } => (
            "its certificate is for another name",
            "call it by a name that stands in the certificate as subjectAltName",
        ),
        Bad::UnknownIssuer => {
            ("its certificate comes from a root that is not trusted", "name that root with --ca-file")
        }
        Bad::BadSignature => (
            "its certificate was signed by another root of the same name",
            "name the right one with --ca-file",
        ),
        other => {
            let text = other.to_string();
            if !text.contains("CaUsedAsEndEntity") {
                return ClientError::Untrusted {
                    address,
                    why: text,
                    hint: "give the server another certificate",
                };
            }
            (
                "its certificate is that of an authority (CA:TRUE)",
                "make one for the server, with `-addext basicConstraints=critical,CA:FALSE` and subjectAltName",
            )
        }
    };
    ClientError::Untrusted { address, why: why.to_owned(), hint }
}

/// Reads an answer with a status other than 2xx: the problem in its body, or the fact that there is no problem.
pub(crate) fn refusal(status: u16, body: &[u8]) -> ClientError {
    match serde_json::from_slice::<Problem>(body) {
        Ok(problem) => ClientError::Problem(Box::new(problem)),
        Err(_) => {
            let what = format!("status {status} with the body `{}`", shown_bytes(body));
            ClientError::BadAnswer { status: Some(status), what }
        }
    }
}

/// A text that must not be shown.
#[derive(Clone)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

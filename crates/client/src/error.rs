//! Why a call of the client did not give what was asked for.

use rustls::CertificateError;
use std::error::Error;
use thiserror::Error;
use tickwheel_api::Problem;
use tickwheel_api::shown_bytes;

/// Why a call failed. Whether it may have taken effect differs, and each variant says so.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The URL is not one of a server. Nothing was sent.
    #[error(
        "`{url}` is not the URL of a server: {why}; write for example `http://127.0.0.1:8463` or `unix:/run/tickwheel/http`"
    )]
    BadUrl {
        /// The URL.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A text has no certificates. Nothing was sent.
    #[error(
        "there are no certificates in it, or they are malformed; they stand in PEM, with `BEGIN CERTIFICATE`"
    )]
    BadCertificates,
    /// Roots were given for a unix socket, at which nothing is encrypted. Nothing was sent.
    #[error(
        "there is no TLS at {address}, which is a socket of this machine; leave the root certificates out"
    )]
    NoTls {
        /// The `unix:PATH` of the server.
        address: String,
    },
    /// The server shows a certificate that cannot be trusted. The call had no effect.
    #[error("the server at {address} cannot be trusted: {why}; {hint}")]
    Untrusted {
        /// The `HOST:PORT` of the server.
        address: String,
        /// Why not.
        why: String,
        /// What to do.
        hint: &'static str,
    },
    /// The server refused. The problem's kind says whether the call had an effect; below 500 it had none.
    #[error(transparent)]
    Problem(Box<Problem>),
    /// No connection came about. The call had no effect.
    #[error(
        "no server answers at {address}: {source}; start one with `tickwheel serve`, or give the address of another"
    )]
    Unreachable {
        /// The `HOST:PORT` that was tried.
        address: String,
        /// Why not.
        source: Box<dyn Error + Send + Sync>,
    },
    /// No connection to a unix socket came about. The call had no effect.
    #[error("no server answers at {address}: {why}; {hint}")]
    NoSocket {
        /// The `unix:PATH` that was tried.
        address: String,
        /// Why not.
        why: String,
        /// What to do.
        hint: String,
        /// Whether it stays so until a person changes something. Then the call is not sent again.
        lasting: bool,
    },
    /// The connection broke or the time ran out before the answer was there. The call may have taken effect
    /// or not.
    #[error("the answer of {address} did not arrive: {source}; the call may have taken effect or not")]
    NoAnswer {
        /// The `HOST:PORT` of the server.
        address: String,
        /// What happened.
        source: Box<dyn Error + Send + Sync>,
    },
    /// There was an answer, but not one of a Tickwheel server. The call may have taken effect or not.
    #[error("the answer is not one of a tickwheel server: {what}")]
    BadAnswer {
        /// Its HTTP status, if it was HTTP.
        status: Option<u16>,
        /// What is wrong with it.
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
}

/// What is wrong with a certificate, and what to do.
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

/// What a status outside 2xx means: the problem in the body, or that there is none.
pub(crate) fn refusal(status: u16, body: &[u8]) -> ClientError {
    match serde_json::from_slice::<Problem>(body) {
        Ok(problem) => ClientError::Problem(Box::new(problem)),
        Err(_) => {
            let what = format!("status {status} with the body `{}`", shown_bytes(body));
            ClientError::BadAnswer { status: Some(status), what }
        }
    }
}

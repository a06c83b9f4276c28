//! Why a server does not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use tickwheel_queue::OpenError;

use crate::access::authorizer::TokenFileError;
use crate::listen::socket::ListenAt;
use crate::listen::tls::TlsError;
use crate::service::backups::BackupDirError;

/// Why a server did not start. It completes "failed to start: ...".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address is reachable from other machines, and they are not kept out.
    #[error(
        "other machines can reach {listen}, and there {missing}; give it tokens (--token-file) and TLS (--tls-cert, --tls-key), \
         listen on 127.0.0.1, or take the risk with --insecure"
    )]
    NotLoopback {
        /// The address asked for.
        listen: SocketAddr,
        /// What is not there and has to be: "are no tokens", "is no TLS", or both.
        missing: &'static str,
    },
    /// The place cannot be listened on.
    #[error("cannot listen on {listen}: {source}; {}", listen.way_out(source))]
    Listen {
        /// The place asked for.
        listen: ListenAt,
        /// What the system said.
        source: io::Error,
    },
    /// The token file gives no tokens.
    #[error("cannot take the tokens from {}: {source}", place.display())]
    Tokens {
        /// The file.
        place: PathBuf,
        /// What is wrong with it.
        source: TokenFileError,
    },
    /// The door for clients of beanstalkd is reachable from other machines, and they are not kept out.
    #[error(
        "other machines can reach {listen} by beanstalkd's protocol, and it has no passwords; ask for certificates of clients \
         (--beanstalk-client-ca, with --tls-cert and --tls-key), listen on 127.0.0.1, or take the risk with --insecure"
    )]
    BeanstalkNotLoopback {
        /// The address asked for.
        listen: SocketAddr,
    },
    /// Certificates of clients are asked for where there is no TLS.
    #[error(
        "certificates of clients are asked for (--beanstalk-client-ca), and there is no TLS; add --tls-cert and --tls-key"
    )]
    ClientsWithoutTls,
    /// Certificates of clients are asked for at a path of the file system, where nobody speaks TLS.
    #[error(
        "certificates of clients are asked for (--beanstalk-client-ca) at a path of the file system, where there is no TLS: who may open it gets in; \
         listen on an address, or leave the certificates out"
    )]
    ClientsOfSocket,
    /// A server at a path of the file system has a certificate that nothing shows.
    #[error(
        "there is a certificate (--tls-cert), and at {listen} there is no TLS: who may open it gets in; listen on an address, or leave \
         the certificate out"
    )]
    TlsOfSocket {
        /// The place asked for.
        listen: ListenAt,
    },
    /// A name that no host has.
    #[error(
        "`{name}` is no name of a host: {why}; write it as browsers send it, such as `tasks.example` or `tasks.example:8443`"
    )]
    AllowedHost {
        /// What was asked for.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A namespace that no queue's name can begin with.
    #[error(
        "`{namespace}` is no namespace: {why}; write what stands before the first slash of a queue's name, such as `shop`"
    )]
    Namespace {
        /// What was asked for.
        namespace: String,
        /// What is wrong with it.
        why: String,
    },
    /// The door for clients of beanstalkd cannot be opened.
    #[error(
        "cannot listen on {listen} for clients of beanstalkd: {source}; {}",
        listen.way_out(source)
    )]
    ListenBeanstalk {
        /// The place asked for.
        listen: ListenAt,
        /// What the system said.
        source: io::Error,
    },
    /// The directory of backups cannot be used.
    #[error("cannot keep backups in {}: {source}", place.display())]
    Backups {
        /// The directory asked for.
        place: PathBuf,
        /// What is wrong with it.
        source: BackupDirError,
    },
    /// There is no certificate with its key.
    #[error("cannot speak TLS: {0}")]
    Tls(#[from] TlsError),
    /// The store cannot be opened; another server on the same directory is the usual reason.
    #[error("cannot open {}: {source}", place.display())]
    Open {
        /// The directory, or `memory`.
        place: PathBuf,
        /// What the queue said.
        source: OpenError,
    },
}

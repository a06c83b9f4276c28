//! Why a server does not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use tickwheel_queue::OpenError;

use crate::access::authorizer::TokenFileError;
use crate::listen::socket::ListenAt;
use crate::listen::tls::TlsError;
use crate::service::backups::BackupDirError;
use crate::targets::PushError;

/// Why a server did not start. The text completes "failed to start: ...".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Other computers can reach the address, and tokens or TLS are missing.
    #[error(
        "other machines can reach {listen}, and there {missing}; give it tokens (--token-file) and TLS (--tls-cert, --tls-key), \
         listen on 127.0.0.1, or take the risk with --insecure"
    )]
    NotLoopback {
        /// The requested address.
        listen: SocketAddr,
        /// The missing protection: "are no tokens", "is no TLS", or both.
        missing: &'static str,
    },
    /// The server cannot listen there.
    #[error("cannot listen on {listen}: {source}; {}", listen.way_out(source))]
    Listen {
        /// The requested address or path.
        listen: ListenAt,
        /// The system's error.
        source: io::Error,
    },
    /// The directory of the console has no page.
    #[error(
        "cannot read the console's page {}: {source}; --console-dir takes a directory like `crates/console/assets`",
        place.display()
    )]
    ConsoleDir {
        /// The file of the page.
        place: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The configuration of targets cannot be used.
    #[error(transparent)]
    Push(#[from] PushError),
    /// The token file gives no tokens.
    #[error("cannot take the tokens from {}: {source}", place.display())]
    Tokens {
        /// The file.
        place: PathBuf,
        /// The mistake in the file.
        source: TokenFileError,
    },
    /// Other computers can reach the door for clients of beanstalkd, and it asks for no certificates.
    #[error(
        "other machines can reach {listen} by beanstalkd's protocol, and it has no passwords; ask for certificates of clients \
         (--beanstalk-client-ca, with --tls-cert and --tls-key), listen on 127.0.0.1, or take the risk with --insecure"
    )]
    BeanstalkNotLoopback {
        /// The requested address.
        listen: SocketAddr,
    },
    /// Certificates of clients are required, but there is no TLS.
    #[error(
        "certificates of clients are asked for (--beanstalk-client-ca), and there is no TLS; add --tls-cert and --tls-key"
    )]
    ClientsWithoutTls,
    /// Certificates of clients are required at a path of the file system, where there is no TLS.
    #[error(
        "certificates of clients are asked for (--beanstalk-client-ca) at a path of the file system, where there is no TLS: who may open it gets in; \
         listen on an address, or leave the certificates out"
    )]
    ClientsOfSocket,
    /// A server at a path of the file system has a certificate that no door uses.
    #[error(
        "there is a certificate (--tls-cert), and at {listen} there is no TLS: who may open it gets in; listen on an address, or leave \
         the certificate out"
    )]
    TlsOfSocket {
        /// The requested path.
        listen: ListenAt,
    },
    /// A host name that is not valid.
    #[error(
        "`{name}` is no name of a host: {why}; write it as browsers send it, such as `tasks.example` or `tasks.example:8443`"
    )]
    AllowedHost {
        /// The requested name.
        name: String,
        /// The mistake in the name.
        why: &'static str,
    },
    /// A namespace that no queue's name can begin with.
    #[error(
        "`{namespace}` is no namespace: {why}; write what stands before the first slash of a queue's name, such as `shop`"
    )]
    Namespace {
        /// The requested namespace.
        namespace: String,
        /// Why the namespace is not valid.
        why: String,
    },
    /// The door for clients of beanstalkd cannot listen at this address or path.
    #[error(
        "cannot listen on {listen} for clients of beanstalkd: {source}; {}",
        listen.way_out(source)
    )]
    ListenBeanstalk {
        /// The requested address or path.
        listen: ListenAt,
        /// The system's error.
        source: io::Error,
    },
    /// The directory of backups cannot be used.
    #[error("cannot keep backups in {}: {source}", place.display())]
    Backups {
        /// The requested directory.
        place: PathBuf,
        /// The reason.
        source: BackupDirError,
    },
    /// The certificate and its key cannot be used.
    #[error("cannot speak TLS: {0}")]
    Tls(#[from] TlsError),
    /// The store cannot be opened; another server on the same directory is the usual reason.
    #[error("cannot open {}: {source}", place.display())]
    Open {
        /// The directory, or `memory`.
        place: PathBuf,
        /// The queue's error.
        source: OpenError,
    },
    /// The database cannot be used.
    #[error("cannot use the database: {0}")]
    Database(#[from] tickwheel_postgres::SetupError),
}

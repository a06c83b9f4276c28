//! The configuration of this door.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use tickwheel_queue::QueueName;

use crate::listen::addresses::is_loopback;
use crate::listen::socket::ListenAt;
use crate::start_error::StartError;

/// The default port of the door, which is also beanstalkd's.
pub const BEANSTALK_PORT_DEFAULT: u16 = 11_300;

/// The tube that a connection uses and watches at first.
pub(crate) const DEFAULT: &str = "default";

/// The largest job that the door can be configured for (bytes).
pub const JOB_BYTES_MAX: u32 = 16 << 20;

/// The door for clients of beanstalkd. Their protocol has no tokens: each client may do everything there, in the
/// namespace if there is one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Beanstalk {
    /// The address or path to listen on. Default: `127.0.0.1:11300`.
    pub listen: ListenAt,
    /// The largest job (bytes), at most [`JOB_BYTES_MAX`]; a longer one is answered `JOB_TOO_BIG`. Default: 65,535.
    pub job_bytes_max: u32,
    /// The namespace whose queues are the tubes. Their names begin with it and a slash: tube `close` is queue
    /// `shop/close`. Ids and counts of other queues are hidden. Default: none, so each queue is a tube.
    pub namespace: Option<String>,
    /// A PEM file with the certificates that sign those of clients. The door then speaks TLS, with the certificate of
    /// [`Config::tls`](crate::Config::tls), and admits only clients with a signed certificate. Not for a path of the
    /// file system. Default: none.
    pub client_ca: Option<PathBuf>,
}

impl Default for Beanstalk {
    fn default() -> Self {
        Self {
            listen: ListenAt::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, BEANSTALK_PORT_DEFAULT))),
            job_bytes_max: 65_535,
            namespace: None,
            client_ca: None,
        }
    }
}

impl Beanstalk {
    /// Checks that other computers cannot reach the door without certificates, unless that is allowed. Reads nothing
    /// but this configuration.
    ///
    /// # Errors
    /// [`StartError`], if the door must not open with this configuration.
    pub(crate) fn check(&self, has_tls: bool, insecure: bool) -> Result<(), StartError> {
        if let Some(namespace) = &self.namespace {
            let why = no_namespace(namespace);
            why.map_or(Ok(()), |why| Err(StartError::Namespace { namespace: namespace.clone(), why }))?;
        }
        match self.listen {
            ListenAt::Unix(_) if self.client_ca.is_some() => Err(StartError::ClientsOfSocket),
            _ if self.client_ca.is_some() && !has_tls => Err(StartError::ClientsWithoutTls),
            ListenAt::Tcp(listen) if !insecure && !is_loopback(&listen.ip()) && self.client_ca.is_none() => {
                Err(StartError::BeanstalkNotLoopback { listen })
            }
            ListenAt::Tcp(_) | ListenAt::Unix(_) => Ok(()),
        }
    }
}

/// The longest namespace. It leaves bytes for a slash and the name of the default tube.
const NAMESPACE_BYTES_MAX: usize = QueueName::BYTES_MAX - 1 - DEFAULT.len();

/// Why a namespace cannot have queues; `None`: it can.
fn no_namespace(namespace: &str) -> Option<String> {
    if !(1..=NAMESPACE_BYTES_MAX).contains(&namespace.len()) {
        return Some(format!(
            "it has {} bytes, and a namespace has 1 to {NAMESPACE_BYTES_MAX}",
            namespace.len()
        ));
    }
    if namespace.contains('/') {
        return Some("it has a slash".to_owned());
    }
    QueueName::new(namespace).err().map(|error| error.to_string())
}

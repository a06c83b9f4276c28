//! What may be chosen about this door.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use tickwheel_queue::QueueName;

use super::desk::DEFAULT;
use crate::listen::addresses::is_loopback;
use crate::listen::socket::ListenAt;
use crate::start_error::StartError;

/// The port of the door for clients of beanstalkd, unless it is configured: the port of beanstalkd itself.
pub const BEANSTALK_PORT_DEFAULT: u16 = 11_300;

/// A job of that door has at most 16 MiB, whatever is configured.
pub const JOB_BYTES_MAX: u32 = 16 << 20;

/// The door for clients of beanstalkd. Their protocol has no tokens: each client that comes in may do everything there, in the namespace if there is one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Beanstalk {
    /// Where it is. Default: `127.0.0.1:11300`.
    pub listen: ListenAt,
    /// Bytes that a job may have, at most [`JOB_BYTES_MAX`]; a longer job is answered `JOB_TOO_BIG`. Default: 65,535.
    pub job_bytes_max: u32,
    /// The tubes are the queues of this namespace, whose names begin with it and a slash: tube `close` is queue `shop/close`. Ids and figures
    /// of others are absent. Default: none, and each queue is a tube.
    pub namespace: Option<String>,
    /// A PEM file with the certificates of those who sign for clients: it is spoken over TLS then, with the certificate of
    /// [`Config::tls`](crate::Config::tls), and only with clients that have one. Not at a path of the file system. Default: none.
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
    /// Whether others than this machine can reach the door, and are not kept out. Looks at nothing but this.
    ///
    /// # Errors
    /// [`StartError`], for a door that cannot be opened like that.
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

/// A namespace leaves room for a slash and the name of the tube that is always there.
const NAMESPACE_BYTES_MAX: usize = QueueName::BYTES_MAX - 1 - DEFAULT.len();

/// Why no queue of a namespace can be named; `None`: one can.
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

//! [`Endpoint`]: the host and the port of a broker.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_http::Stream;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::link::DIAL_TIMEOUT;
use crate::guard::{metadata, plain};
use crate::tls_error;

/// The longest time for the connection to one endpoint, with its TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);

/// Opens a connection to the first endpoint at which `open` succeeds. Each has its share of the time that is left of a link's time, so that one
/// that takes connections and says nothing does not keep the next one from being tried.
///
/// # Errors
/// The reasons of all endpoints.
pub(crate) async fn first_open<'a, L, O: Future<Output = Result<L, String>>>(
    endpoints: &'a [Endpoint],
    open: impl Fn(&'a Endpoint) -> O,
) -> Result<L, String> {
    let deadline = Instant::now() + DIAL_TIMEOUT.mul_f64(0.9);
    let mut reasons = Vec::new();
    for (nth, endpoint) in endpoints.iter().enumerate() {
        let left = u32::try_from(endpoints.len() - nth).unwrap_or(u32::MAX);
        let share = deadline.saturating_duration_since(Instant::now()) / left;
        match timeout(share, open(endpoint)).await {
            Ok(Ok(live)) => return Ok(live),
            Ok(Err(reason)) => reasons.push(reason),
            Err(_) => reasons.push(format!("{endpoint}: no answer within {} s", share.as_secs_f32())),
        }
    }
    Err(if reasons.is_empty() { "no address is set".to_owned() } else { reasons.join("; ") })
}

/// The host and the port of a broker: `redis.example:6379` or `[::1]:6379`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Endpoint {
    /// The name or the address, without brackets.
    pub host: String,
    /// The port, never 0.
    pub port: u16,
}

/// The text is no endpoint.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no host with a port, such as `broker.example:6379` or `[::1]:6379`")]
pub struct EndpointError(String);

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let bad = || EndpointError(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
        let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|port| *port > 0 && is_number).ok_or_else(bad)?;
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(inner) if inner.parse::<std::net::Ipv6Addr>().is_ok() => inner,
            Some(_) => return Err(bad()),
            None => host,
        };
        let is_v6 = host.parse::<std::net::Ipv6Addr>().is_ok() && text.starts_with('[');
        let is_name =
            !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
        if !is_v6 && !is_name {
            return Err(bad());
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// An open connection, over TLS or not.
pub type Way = Box<dyn Stream>;

impl Endpoint {
    /// Opens a connection, over TLS if there are settings of TLS.
    ///
    /// # Errors
    /// The reason, which begins with the endpoint.
    pub async fn connect(&self, tls: Option<&Arc<ClientConfig>>) -> Result<Way, String> {
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        let connected = match timeout_at(deadline, self.connect_tcp()).await {
            Ok(Ok(tcp)) => match tls {
                None => return Ok(Box::new(tcp)),
                Some(tls) => timeout_at(deadline, self.handshake(tls, tcp)).await.unwrap_or_else(|_| {
                    Err("TLS: the other side does not answer the handshake; it may not speak TLS at this port".to_owned())
                }),
            },
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs())),
        };
        connected.map_err(|error| format!("{self}: {error}"))
    }

    async fn connect_tcp(&self) -> io::Result<TcpStream> {
        // The connection goes to an address that was checked here: a second look-up could lead elsewhere.
        let (mut open, mut denied) = (Vec::new(), Vec::new());
        for address in lookup_host((self.host.as_str(), self.port)).await? {
            match self.denied(address.ip()) {
                None => open.push(address),
                Some(why) => denied.push(why),
            }
        }
        if open.is_empty() && !denied.is_empty() {
            return Err(io::Error::other(denied.join("; ")));
        }
        let tcp = TcpStream::connect(&open[..]).await?;
        // Without it, a small message would wait for the acknowledgement of the one before.
        let _ = tcp.set_nodelay(true);
        Ok(tcp)
    }

    /// Looks the host up, for a client that makes its connections itself. It looks the name up once more, so this check is weaker than that of
    /// [`connect`](Self::connect).
    ///
    /// # Errors
    /// The host has no address within 2 s, or leads to the metadata of a cloud. The reason begins with the endpoint.
    pub(crate) async fn check(&self) -> Result<(), String> {
        let look_up = lookup_host((self.host.as_str(), self.port));
        let why = match timeout(CONNECT_TIMEOUT / 2, look_up).await {
            Ok(Ok(mut found)) => found.find_map(|address| self.denied(address.ip())),
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no address within {} s", (CONNECT_TIMEOUT / 2).as_secs())),
        };
        why.map_or(Ok(()), |why| Err(format!("{self}: {why}")))
    }

    /// Returns why this address may not be reached. Only its own address opens the metadata of a cloud: a name could be made to lead there.
    fn denied(&self, address: IpAddr) -> Option<String> {
        let what = metadata(address)?;
        let is_own = self.host.parse().is_ok_and(|host: IpAddr| plain(host) == plain(address));
        let own = SocketAddr::new(plain(address), self.port);
        (!is_own).then(|| {
            format!("blocked address: {} is {address} ({what}); write {own} if that is meant", self.host)
        })
    }

    async fn handshake(&self, tls: &Arc<ClientConfig>, tcp: TcpStream) -> Result<Way, String> {
        let name = ServerName::try_from(self.host.clone()).map_err(|error| format!("TLS: {error}"))?;
        let stream = TlsConnector::from(Arc::clone(tls)).connect(name, tcp).await;
        Ok(Box::new(stream.map_err(|error| format!("TLS: {}", tls_error::in_words(&error)))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_endpoint_that_says_nothing_does_not_keep_the_next_from_being_tried() {
        let three: Vec<Endpoint> = ["a:1", "b:1", "c:1"].map(|text| text.parse().expect(text)).into();
        let open = |endpoint: &Endpoint| {
            let host = endpoint.host.clone();
            async move {
                match host.as_str() {
                    "a" => std::future::pending().await,
                    "b" => Err("b:1: refused".to_owned()),
                    _ => Ok(host),
                }
            }
        };
        let opened = timeout(DIAL_TIMEOUT, first_open(&three, open)).await.expect("in the time of a link");
        assert_eq!(opened.as_deref(), Ok("c"));
        let opened =
            timeout(DIAL_TIMEOUT, first_open(&three[..2], open)).await.expect("in the time of a link");
        assert_eq!(opened, Err("a:1: no answer within 4.5 s; b:1: refused".to_owned()));
        assert_eq!(first_open(&[], open).await, Err("no address is set".to_owned()));
    }

    #[test]
    fn only_its_own_address_opens_the_metadata_of_a_cloud() {
        let denied = |endpoint: &str, address: &str| {
            let endpoint: Endpoint = endpoint.parse().expect(endpoint);
            endpoint.denied(address.parse().expect(address))
        };
        for (address, host) in [
            ("169.254.169.254", "broker.example"),
            ("100.100.100.200", "broker.example"),
            ("fe80::1", "broker.example"),
            ("64:ff9b::a9fe:a9fe", "broker.example"),
            // The system's look-up reads these as addresses.
            ("169.254.169.254", "2852039166"),
            ("169.254.169.254", "0xa9.254.169.254"),
            ("169.254.169.254", "169.254.169.253"),
        ] {
            let why = denied(&format!("{host}:9092"), address).expect(host);
            assert!(why.starts_with(&format!("blocked address: {host} is {address} (")), "{why}");
        }
        assert_eq!(denied("169.254.169.254:80", "169.254.169.254"), None);
        assert_eq!(denied("169.254.169.254:80", "::ffff:169.254.169.254"), None);
        assert_eq!(denied("[fe80::1]:80", "fe80::1"), None);
        for address in ["10.0.0.1", "127.0.0.1", "93.184.216.34"] {
            assert_eq!(denied("broker.example:9092", address), None, "{address}");
        }
    }

    #[tokio::test]
    async fn a_host_that_leads_to_the_metadata_of_a_cloud_is_not_connected_to() {
        let endpoint: Endpoint = "2852039166:80".parse().expect("an endpoint");
        let Err(why) = endpoint.connect(None).await else { panic!("it was connected to") };
        let begin = "2852039166:80: blocked address: 2852039166 is 169.254.169.254 (";
        assert!(why.starts_with(begin), "{why}");
        assert_eq!(endpoint.check().await, Err(why));
    }

    #[test]
    fn an_endpoint_is_read_as_it_is_written() {
        for text in ["broker.example:6379", "127.0.0.1:1", "[::1]:65535", "my_redis:6379"] {
            assert_eq!(text.parse::<Endpoint>().expect(text).to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in
            ["", ":1", "a", "a:", "a:0", "a:65536", "a:+1", "::1:5", "[a]:1", "a b:1", "redis://a:1", "u@a:1"]
        {
            assert_eq!(text.parse::<Endpoint>(), Err(EndpointError(text.to_owned())), "{text}");
        }
    }
}

//! The reasons why a connection cannot be opened, in the words of an operator.
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::kit::tls_front::{self, Identity};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use tickwheel_push::amqp::{AmqpConnection, AmqpDial, AmqpLogin};
use tickwheel_push::beanstalk::BeanstalkConnection;
use tickwheel_push::broker::{Dial, Endpoint};
use tickwheel_push::kafka::KafkaConnection;
use tickwheel_push::nats::NatsConnection;
use tickwheel_push::redis::RedisConnection;
use tickwheel_push::webhook::TlsPlan;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::version::TLS13;

/// A server of HTTP, which answers what it cannot read with 400. Returns its address.
async fn http() -> SocketAddr {
    serve(async |mut stream| {
        let mut request = [0; 1_024];
        if stream.read(&mut request).await.is_ok_and(|bytes| bytes > 0) {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n").await;
            let _ = stream.shutdown().await;
            // A close with unread bytes would reset the connection.
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    })
    .await
}

/// A server that closes each connection at its first byte. Returns its address.
async fn closing() -> SocketAddr {
    serve(async |mut stream| {
        let _ = stream.read(&mut [0; 1_024]).await;
    })
    .await
}

async fn serve<S: Future<Output = ()> + Send + 'static>(
    each: impl Fn(TcpStream) -> S + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(each(stream));
        }
    });
    address
}

/// Returns the reasons of all kinds of brokers at this endpoint, each with its kind. beanstalkd is tried over TLS only, because without it nothing
/// is said before the first job.
async fn reasons(endpoint: &Endpoint, tls: Option<&TlsPlan>) -> Vec<(&'static str, String)> {
    let endpoints = || vec![endpoint.clone()];
    let config = || tls.map(|tls| tls.config().expect("TLS"));
    let amqp = AmqpDial::new(AmqpConnection {
        endpoints: endpoints(),
        vhost: "/".to_owned(),
        login: AmqpLogin::Password { user: "guest".to_owned(), password: "guest".to_owned() },
        tls: config(),
        name: "test".to_owned(),
    });
    let kafka = KafkaConnection {
        tls: tls.cloned(),
        delivery_timeout: Duration::from_secs(2),
        ..KafkaConnection::new(endpoints())
    };
    let nats = NatsConnection { tls: config(), ..NatsConnection::new(endpoints()) };
    let redis = RedisConnection { tls: config(), ..RedisConnection::new(endpoints()) };
    let mut reasons = vec![
        ("amqp", amqp.dial().await.err()),
        ("kafka", kafka.dial().await.err()),
        ("nats", nats.dial().await.err()),
        ("redis", redis.dial().await.err()),
    ];
    if tls.is_some() {
        let beanstalk = BeanstalkConnection { endpoint: endpoint.clone(), tls: config() };
        reasons.push(("beanstalk", beanstalk.dial().await.err()));
    }
    reasons
        .into_iter()
        .map(|(kind, reason)| (kind, reason.unwrap_or_else(|| panic!("{kind}: no error"))))
        .collect()
}

fn assert_begins(reasons: Vec<(&'static str, String)>, endpoint: &Endpoint, begin: impl Fn(&str) -> String) {
    for (kind, reason) in reasons {
        let begin = format!("{endpoint}: {}", begin(kind));
        assert!(reason.starts_with(&begin), "{kind}: {reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_of_another_protocol_is_told() {
    let endpoint = http().await.to_string().parse().expect("an endpoint");
    let foreign = |kind: &str| {
        let words = match kind {
            "amqp" => "the other side does not speak AMQP at this port, or wants TLS there",
            "kafka" => {
                "the other side does not speak the protocol of Kafka at this port, or wants TLS there ("
            }
            "nats" => "no greeting of NATS in time; the other side may be no NATS at this port (",
            _ => "the other side does not speak the protocol of Redis at this port, or wants TLS there (",
        };
        words.to_owned()
    };
    assert_begins(reasons(&endpoint, None).await, &endpoint, foreign);
    let ours = Identity::new("localhost");
    let port = tls_front::start(http().await, ours.server(&[&TLS13], None)).await;
    let endpoint = format!("localhost:{port}").parse().expect("an endpoint");
    assert_begins(reasons(&endpoint, None).await, &endpoint, foreign);
}

/// Kafka begins with its own client, and has the sentence without the word in front. NATS waits for a greeting before TLS begins, and these
/// ports send none; the file `nats.rs` has its test of TLS.
fn over_tls(words: &str) -> impl Fn(&str) -> String {
    move |kind| match kind {
        "kafka" => words.to_owned(),
        "nats" => "no greeting of NATS".to_owned(),
        _ => format!("TLS: {words}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_without_tls_is_told() {
    let endpoint = http().await.to_string().parse().expect("an endpoint");
    let words = over_tls("the other side does not speak TLS at this port (");
    assert_begins(reasons(&endpoint, Some(&TlsPlan::default())).await, &endpoint, words);
    let endpoint: Endpoint = closing().await.to_string().parse().expect("an endpoint");
    let reason = endpoint.connect(Some(&TlsPlan::default().config().expect("TLS"))).await.err();
    let ended = "TLS: the other side ended the connection; it may not speak TLS at this port (";
    assert!(reason.as_ref().is_some_and(|reason| reason.contains(ended)), "{reason:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_is_refused_is_told() {
    let ours = Identity::new("localhost");
    let port = tls_front::start(http().await, ours.server(&[&TLS13], None)).await;
    let endpoint = format!("localhost:{port}").parse().expect("an endpoint");
    let unknown = over_tls("no trusted authority has signed the certificate of the other side; `ca`");
    assert_begins(reasons(&endpoint, Some(&TlsPlan::default())).await, &endpoint, unknown);
    let endpoint = format!("127.0.0.1:{port}").parse().expect("an endpoint");
    let trusting = TlsPlan { roots_pem: Some(ours.roots_pem()), ..TlsPlan::default() };
    let other = over_tls("the certificate of the other side is for another name (");
    assert_begins(reasons(&endpoint, Some(&trusting)).await, &endpoint, other);
}

/// A certificate that signs itself is often one of an authority, as `openssl req -x509` makes it.
#[tokio::test]
async fn a_server_with_the_certificate_of_an_authority_is_told() {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a certificate");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let cert = params.self_signed(&key).expect("a certificate");
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("ring has the ciphers")
        .with_no_client_auth()
        .with_single_cert(
            vec![cert.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).expect("a key"),
        )
        .expect("a certificate with its key");
    let port = tls_front::start(http().await, config).await;
    let endpoint: Endpoint = format!("localhost:{port}").parse().expect("an endpoint");
    let trusting = TlsPlan { roots_pem: Some(cert.pem().into_bytes()), ..TlsPlan::default() };
    let reason = endpoint.connect(Some(&trusting.config().expect("TLS"))).await.err();
    let shows =
        "TLS: the other side shows the certificate of an authority (CA:TRUE); it needs one of its own";
    assert!(reason.as_ref().is_some_and(|reason| reason.contains(shows)), "{reason:?}");
}

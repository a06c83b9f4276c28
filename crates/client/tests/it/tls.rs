//! Whom the client trusts.

use std::sync::Arc;

use rcgen::generate_simple_self_signed;
use tickwheel_client::{Client, ClientError, Outcome};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A server for `localhost`, its port, and its root in PEM.
async fn server() -> (u16, String) {
    let made = generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let root = made.cert.pem();
    let certificate = CertificateDer::from_pem_slice(root.as_bytes()).expect("PEM");
    let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes()).expect("PEM");
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("both versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("its key");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let accepted = acceptor.accept(stream);
            tokio::spawn(async move {
                // A client leaves if it does not trust the server.
                let Ok(mut stream) = accepted.await else { return };
                let mut request = [0; 4_096];
                while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n{\"queues\":[]}";
                    stream.write_all(answer.as_bytes()).await.expect("the client reads");
                }
            });
        }
    });
    (port, root)
}

#[tokio::test]
async fn a_certificate_is_trusted_by_its_root_and_for_its_name_only() {
    let (port, root) = server().await;
    let client = |host: &str| Client::new(&format!("https://{host}:{port}")).expect("a URL");
    let trusting = client("localhost").with_roots(root.as_bytes()).expect("roots");
    for _ in 0..2 {
        assert_eq!(trusting.queues().await.expect("queues"), []);
    }
    let other_name = client("127.0.0.1").with_roots(root.as_bytes()).expect("roots");
    for (stranger, why) in
        [(client("localhost"), "root that is not trusted"), (other_name, "for another name")]
    {
        let error = stranger.queues().await.expect_err("it is not trusted");
        assert!(matches!(error, ClientError::Untrusted { .. }), "{error:?}");
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(error.outcome(), Outcome::NotSent);
    }
    for not_roots in ["", "no PEM", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"] {
        let error = client("localhost").with_roots(not_roots.as_bytes()).expect_err("no roots");
        assert!(matches!(error, ClientError::BadCertificates), "{not_roots:?}: {error:?}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_told_so() {
    let peer = crate::peer::Peer::new().await;
    let client = Client::new(&format!("https://{}", peer.address())).expect("a URL");
    let server = async {
        let mut line = peer.accept().await;
        line.say("HTTP/1.1 400 Bad Request\r\n\r\n").await;
        line
    };
    let (_line, answer) = tokio::join!(server, client.queues());
    let error = answer.expect_err("no TLS");
    let told = "the answer is not one of a tickwheel server: it does not speak TLS; write http:// in place of https://";
    assert_eq!((error.to_string().as_str(), error.outcome()), (told, Outcome::NotSent));
}

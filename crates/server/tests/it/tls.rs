//! TLS: its versions, and the answers to clients without it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{
    ClientConfig, ClientConnection, ProtocolVersion, RootCertStore, StreamOwned, SupportedProtocolVersion,
};
use tickwheel_server::{Config, StartError, TlsFiles, Tokens};

use crate::served::{Served, virtual_memory};

/// A certificate for localhost that is its own root.
pub(crate) fn certificate(directory: &Path) -> (TlsFiles, RootCertStore) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let files = TlsFiles { certificates: directory.join("cert.pem"), key: directory.join("key.pem") };
    std::fs::write(&files.certificates, made.cert.pem()).expect("written");
    std::fs::write(&files.key, made.signing_key.serialize_pem()).expect("written");
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    (files, roots)
}

/// Sends a request over this version of TLS, and returns the negotiated version and the whole answer.
fn ask(
    addr: SocketAddr,
    roots: &RootCertStore,
    version: &'static SupportedProtocolVersion,
) -> (ProtocolVersion, String) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .expect("a version")
        .with_root_certificates(roots.clone())
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let socket = TcpStream::connect(addr).expect("connected");
    socket.set_read_timeout(Some(tickwheel_testing::HANG_TIME)).expect("set");
    let mut stream =
        StreamOwned::new(ClientConnection::new(Arc::new(config), name).expect("a client"), socket);
    stream
        .write_all(b"GET /v1/queues HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer that ends as TLS ends");
    (stream.conn.protocol_version().expect("shaken"), answer)
}

#[test]
fn both_versions_of_tls_are_spoken_and_plain_http_is_told_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let (files, roots) = certificate(directory.path());
    let served = Served::start(Config { tls: Some(files), ..virtual_memory() }).expect("started");
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let (spoken, answer) = ask(served.addr, &roots, version);
        assert_eq!(spoken, version.version);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
    let plain = served.call("GET", "/v1/queues", "");
    plain.assert_problem(426, "needs-tls", "the request is plain HTTP");
}

#[test]
fn other_computers_are_served_only_with_tokens_and_tls() {
    let directory = tempfile::tempdir().expect("a directory");
    let (files, roots) = certificate(directory.path());
    let open = || Config { listen: "0.0.0.0:0".parse().expect("an address"), ..virtual_memory() };
    let tokens = || Tokens::parse("a-token-of-more-than-22-bytes").expect("a token");
    for (config, what) in [
        (Config { tls: Some(files.clone()), ..open() }, "there are no tokens: every client"),
        (Config { tokens: tokens(), ..open() }, "there is no TLS: calls and their tokens"),
        (open(), "there are no tokens and no TLS"),
    ] {
        match Served::start(config) {
            Err(error @ StartError::NotLoopback { .. }) => {
                assert!(error.to_string().contains(what), "{error}")
            }
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("{what}: started"),
        }
    }
    let served =
        Served::start(Config { tls: Some(files), tokens: tokens(), ..open() }).expect("both are there");
    let (_, answer) = ask(([127, 0, 0, 1], served.addr.port()).into(), &roots, &rustls::version::TLS13);
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
}

#[test]
fn invalid_certificate_files_are_refused_at_the_start() {
    let files = TlsFiles { certificates: "no-such-file".into(), key: "no-such-file".into() };
    let Err(error) = Served::start(Config { tls: Some(files), ..virtual_memory() }) else {
        panic!("started")
    };
    assert!(matches!(error, StartError::Tls(_)), "{error:?}");
    assert!(error.to_string().starts_with("cannot speak TLS: cannot read no-such-file: "), "{error}");
}

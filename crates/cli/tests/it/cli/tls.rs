//! A server over TLS, and commands that trust it or refuse it.

use std::path::Path;
use std::time::Instant;

use crate::cli::run::run;
use crate::server::Server;

/// Writes a self-signed certificate for localhost and returns it in PEM.
fn renew(directory: &Path) -> String {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(directory.join("key.pem"), made.signing_key.serialize_pem()).expect("written");
    std::fs::write(directory.join("cert.pem"), made.cert.pem()).expect("written");
    made.cert.pem()
}

#[test]
fn a_certificate_is_trusted_by_its_root_and_renewed_while_the_server_runs() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    let first = renew(directory.path());
    std::fs::write(at("root.pem"), &first).expect("written");
    let server = Server::start(&[
        "--memory",
        "--listen",
        "127.0.0.1:0",
        "--tls-cert",
        &at("cert.pem"),
        "--tls-key",
        &at("key.pem"),
    ]);
    let url = server.url.replace("127.0.0.1", "localhost");
    let asked = |url: &str, root: Option<&str>| {
        let mut words = vec!["put", "close", "order:1", "--in", "30m", "--server", url];
        words.extend(root.into_iter().flat_map(|root| ["--ca-file", root]));
        run(&words)
    };
    let trusted = asked(&url, Some(&at("root.pem")));
    assert_eq!(trusted.code, 0, "{}", trusted.err);
    let stranger = asked(&url, None);
    assert!(stranger.code == 1 && stranger.err.contains("cannot be trusted"), "{}", stranger.err);
    assert!(stranger.err.contains("--ca-file"), "{}", stranger.err);
    let other_name = asked(&server.url, Some(&at("root.pem")));
    assert!(other_name.err.contains("is for another name"), "{}", other_name.err);
    let plain = asked(&url.replace("https", "http"), None);
    assert!(plain.code == 1 && plain.err.contains("write https://"), "{}", plain.err);
    let no_roots = asked(&url, Some(&at("key.pem")));
    assert!(no_roots.err.contains("there are no certificates in it"), "{}", no_roots.err);

    std::fs::write(at("root.pem"), renew(directory.path())).expect("written");
    let begun = Instant::now();
    loop {
        let renewed = asked(&url, Some(&at("root.pem")));
        if renewed.code == 0 {
            break;
        }
        assert!(renewed.err.contains("cannot be trusted"), "{}", renewed.err);
        assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "the new certificate is never shown");
    }
    let before = asked(&url, Some(&at("root.pem")));
    assert_eq!(before.code, 0, "{}", before.err);
}

#[test]
fn https_to_a_plain_server_is_told_so() {
    let server = Server::start(&["--memory", "--listen", "127.0.0.1:0"]);
    let ran = run(&["ls", "close", "--server", &server.url.replace("http", "https")]);
    assert!(ran.code == 1 && ran.err.contains("write http:// in place of https://"), "{}", ran.err);
}

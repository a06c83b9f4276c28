//! Sessions: authentication, TLS, several hosts.

use std::net::TcpListener;
use std::time::Duration;

use super::super::connection::Connection;
use super::super::environment::Environment;
use super::super::error::{HostError, OpenError};
use super::super::pipeline::Pipeline;
use super::super::transport::now;
use super::super::url::DatabaseUrl;
use super::server::{Server, limit, open};

/// Returns the value of a query of one text.
fn ask(connection: &mut Connection, sql: &str) -> String {
    let mut pipeline = Pipeline::new();
    pipeline.text(sql.to_owned());
    let results = connection.run(&pipeline, limit()).unwrap();
    results[0].rows[0].get::<&str>(0).unwrap().to_owned()
}

fn refused(url: &str) -> HostError {
    match open(url).map(|_| ()) {
        Err(OpenError::Refused(errors)) => errors[0].clone(),
        other => panic!("{url}: {other:?}"),
    }
}

fn unreachable(url: &str) -> Vec<HostError> {
    match open(url).map(|_| ()) {
        Err(OpenError::Unreachable(errors)) => errors,
        other => panic!("{url}: {other:?}"),
    }
}

#[test]
fn every_kind_of_authentication_opens_a_session() {
    let Some(server) = Server::shared() else { return };
    let verified = format!("sslmode=verify-full&sslrootcert={}", server.path("ca.crt").display());
    let urls = [
        server.url("trusted", "127.0.0.1", ""),
        server.url("clear:secret", "127.0.0.1", ""),
        server.url("md5:secret", "127.0.0.1", ""),
        server.url("scram:secret", "127.0.0.1", ""),
        server.url("clear:secret", "localhost", &verified),
        server.url("md5:secret", "localhost", &verified),
        server.url("scram:secret", "localhost", &verified),
        server.socket_url("admin", "postgres"),
        server.socket_url("clear:secret", "postgres"),
        server.socket_url("scram:secret", "postgres"),
    ];
    for url in urls {
        let mut connection =
            server.open(&url).unwrap_or_else(|error| panic!("{url}: {error}; {}", server.log()));
        let user = url.split_once("://").unwrap().1.split([':', '@']).next().unwrap();
        assert_eq!(ask(&mut connection, "SELECT current_user::text"), user);
        assert_eq!(ask(&mut connection, "SHOW application_name"), "wire tests");
        assert_eq!(ask(&mut connection, "SHOW idle_in_transaction_session_timeout"), "1min");
        assert_eq!(
            ask(&mut connection, "SELECT pg_backend_pid()::text"),
            connection.backend_pid().to_string()
        );
        let tls = ask(&mut connection, "SELECT ssl::text FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
        assert_eq!(tls, connection.is_tls().to_string());
        assert_eq!(connection.is_tls(), url.contains("verify-full"));
        assert!(connection.parameter("server_version").is_some());
        assert!(connection.peer().ends_with(&format!(":{}", server.port)), "{}", connection.peer());
    }
}

#[test]
fn a_wrong_configuration_is_refused() {
    let Some(server) = Server::shared() else { return };
    let code = |url: &str| refused(url).code;
    for user in ["scram", "md5", "clear"] {
        let url = server.url(&format!("{user}:wrong"), "127.0.0.1", "");
        assert_eq!(code(&url).as_deref(), Some("28P01"), "{user}");
        let none = refused(&server.url(user, "127.0.0.1", ""));
        assert!(none.why.contains("asks for a password"), "{none}");
    }
    assert_eq!(code(&server.url("stranger", "127.0.0.1", "")).as_deref(), Some("28000"));
    assert_eq!(code(&server.socket_url("admin", "nothing")).as_deref(), Some("3D000"));
    let url = DatabaseUrl::parse(&server.url("trusted", "127.0.0.1", ""), &Environment::default()).unwrap();
    let opened =
        Connection::open(&url, "wire tests", &[("no_such_setting", "1")], now() + Duration::from_secs(60));
    assert!(matches!(opened.map(|_| ()), Err(OpenError::Refused(_))));
}

#[test]
fn tls_is_verified_as_far_as_the_mode_says() {
    let Some(server) = Server::shared() else { return };
    let (good, bad) = (server.path("ca.crt"), server.path("other.crt"));
    let (good, bad) = (good.display(), bad.display());
    let url = |host: &str, parameters: &str| server.url("trusted", host, parameters);
    for (host, parameters) in [
        ("localhost", format!("sslmode=verify-full&sslrootcert={good}")),
        ("localhost", format!("sslmode=verify-ca&sslrootcert={good}")),
        // The certificate is for `localhost`.
        ("127.0.0.1", format!("sslmode=verify-ca&sslrootcert={good}")),
        ("127.0.0.1", format!("sslmode=require&sslrootcert={good}")),
        ("127.0.0.1", "sslmode=require".to_owned()),
        ("127.0.0.1", "sslmode=prefer".to_owned()),
    ] {
        let connection =
            server.open(&url(host, &parameters)).unwrap_or_else(|error| panic!("{parameters}: {error}"));
        assert!(connection.is_tls(), "{parameters}");
    }
    for (host, parameters, why) in [
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={good}"), "for another name"),
        ("localhost", format!("sslmode=verify-full&sslrootcert={bad}"), "no trusted authority"),
        ("localhost", format!("sslmode=verify-ca&sslrootcert={bad}"), "no trusted authority"),
        ("localhost", format!("sslmode=require&sslrootcert={bad}"), "no trusted authority"),
        ("localhost", "sslmode=verify-full".to_owned(), "no trusted authority"),
        ("localhost", "sslmode=verify-full&sslrootcert=/nothing".to_owned(), "/nothing"),
    ] {
        let error = refused(&url(host, &parameters));
        assert!(error.why.contains(why), "{parameters}: {error}");
    }
    // As libpq: `prefer` goes on without TLS where the rules of the server want none.
    let connection = server.open(&server.url("plain", "127.0.0.1", "sslmode=prefer")).unwrap();
    assert!(!connection.is_tls());
}

#[test]
fn a_certificate_of_the_client_opens_a_session() {
    let Some(server) = Server::shared() else { return };
    let path = |name: &str| server.path(name).display().to_string();
    let certificate = format!("sslcert={}&sslkey={}", path("client.crt"), path("client.key"));
    let root = format!("sslmode=verify-full&sslrootcert={}", path("ca.crt"));
    let connection =
        server.open(&server.url("certified", "localhost", &format!("{root}&{certificate}"))).unwrap();
    assert!(connection.is_tls());
    let error = refused(&server.url("certified", "localhost", &root));
    assert!(error.why.contains("certificate"), "{error}");
}

#[test]
fn the_next_host_is_tried() {
    let Some(server) = Server::shared() else { return };
    // A port without a listener, and one that never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_port = silent.local_addr().unwrap().port();
    let gone_port = tickwheel_testing::free_port();
    // The limit is one of each host, so the last one has to answer in it, too.
    let url = format!(
        "postgres://trusted@127.0.0.1:{gone_port},127.0.0.1:{silent_port},127.0.0.1:{}/postgres?connect_timeout=5",
        server.port
    );
    assert_eq!(open(&url).unwrap().peer(), format!("127.0.0.1:{}", server.port));
    let url = format!(
        "postgres://trusted@127.0.0.1:{gone_port},127.0.0.1:{silent_port}/postgres?connect_timeout=1"
    );
    let errors = unreachable(&url);
    assert_eq!(errors.len(), 2);
    assert!(errors[0].why.contains("refused"), "{}", errors[0]);
    assert!(errors[1].why.contains("no answer in time"), "{}", errors[1]);
    // A host that refuses is not the last word while another one is away.
    let url = format!("postgres://stranger@127.0.0.1:{gone_port},127.0.0.1:{}/postgres", server.port);
    assert_eq!(unreachable(&url)[1].code.as_deref(), Some("28000"));
}

#[test]
fn a_database_that_is_read_only_is_left_alone() {
    let Some(server) = Server::shared() else { return };
    let mut admin = server.open(&server.socket_url("admin", "postgres")).unwrap();
    admin.simple("CREATE DATABASE frozen", limit()).unwrap();
    admin.simple("ALTER DATABASE frozen SET default_transaction_read_only = on", limit()).unwrap();
    let url = server.socket_url("admin", "frozen");
    assert!(unreachable(&url)[0].why.contains("read-only"));
    open(&format!("{url}?target_session_attrs=any")).unwrap();
}

#[test]
fn a_server_that_is_full_may_have_room_later() {
    let Some(server) = Server::shared() else { return };
    let mut admin = server.open(&server.socket_url("admin", "postgres")).unwrap();
    admin.simple("CREATE ROLE narrow LOGIN CONNECTION LIMIT 0", limit()).unwrap();
    admin.simple("CREATE DATABASE narrow CONNECTION LIMIT 0", limit()).unwrap();
    let url = server.url("trusted", "127.0.0.1", "").replace("/postgres?", "/narrow?");
    assert_eq!(unreachable(&url)[0].code.as_deref(), Some("53300"));
}

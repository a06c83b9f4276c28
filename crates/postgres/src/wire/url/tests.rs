//! URLs with all their parts, wrong ones, and the passwords that no text shows.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;

fn parse(text: &str) -> Result<DatabaseUrl, UrlError> {
    DatabaseUrl::parse(text, &Environment::default())
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

fn shown(url: &DatabaseUrl) -> Vec<String> {
    url.hosts().iter().map(ToString::to_string).collect()
}

#[test]
fn a_url_has_all_its_parts() {
    let url =
        parse("postgres://me:s%40%3A%2fcret@h1:5432,h2:5433,[::1],10.0.0.1:1/work%20db?sslmode=require")
            .unwrap();
    assert_eq!(shown(&url), ["h1:5432", "h2:5433", "[::1]:5432", "10.0.0.1:1"]);
    assert_eq!((url.user(), url.database()), ("me", "work db"));
    assert_eq!(url.password(&url.hosts()[0]).unwrap().as_deref(), Some("s@:/cret"));
    assert_eq!(url.tls_mode(&url.hosts()[0]), TlsMode::Require);
    assert_eq!(url.attrs(), SessionAttrs::ReadWrite);

    let url = parse("postgresql://me@/?target_session_attrs=any").unwrap();
    assert_eq!(shown(&url), ["localhost:5432"]);
    assert_eq!((url.user(), url.database()), ("me", "me"));
    assert_eq!(url.password(&url.hosts()[0]).unwrap(), None);
    assert_eq!(url.attrs(), SessionAttrs::Any);
}

#[test]
fn another_database_takes_the_place_of_the_one_in_the_url() {
    for (text, expected) in [
        ("postgres://me@h/shop", "postgres://me@h/my%20db"),
        ("postgres://me:a%40b@h1:1,h2", "postgres://me:a%40b@h1:1,h2/my%20db"),
        ("postgresql:///?host=/run&dbname=shop&user=me", "postgresql:///my%20db?host=/run&user=me"),
        ("postgres://me@h/shop?%64bname=shop", ""),
        ("postgres://me@h?dbname=shop&sslmode=disable", "postgres://me@h/my%20db?sslmode=disable"),
        ("postgres://me@h?db%6eame=shop", "postgres://me@h/my%20db"),
    ] {
        let changed = DatabaseUrl::with_database(text, "my db");
        if expected.is_empty() {
            assert!(changed.unwrap_err().to_string().contains("`dbname` is said twice"));
            continue;
        }
        let changed = changed.unwrap();
        assert_eq!(changed, expected);
        let url = DatabaseUrl::parse(
            &changed,
            &Environment { database: Some("other".to_owned()), ..Environment::default() },
        );
        assert_eq!((url.unwrap().database(), text.contains("me")), ("my db", true));
    }
    assert!(DatabaseUrl::with_database("mysql://h/shop", "other").is_err());
}

#[test]
fn a_message_has_no_password_of_a_url() {
    for (text, expected) in [
        ("postgres://me@h/shop?sslmode=disable", "postgres://me@h/shop?sslmode=disable"),
        ("postgres://me:canary@h/shop", "postgres://me:***@h/shop"),
        ("postgres://me:can@ary/x?y@h/shop", "postgres://***"),
        ("postgres://h/shop?user=me&password=can@ary", "postgres://***"),
        ("postgres://h:5432/shop?password=can@ary", "postgres://***"),
        ("postgres://h/shop?user=me&password=canary", "postgres://h/shop?user=me&password=***"),
        ("postgres://h/shop?p%61ssword=canary", "postgres://h/shop?p%61ssword=***"),
        ("me:canary", "***"),
    ] {
        assert_eq!(DatabaseUrl::without_password(text), expected);
    }
}

#[test]
fn a_host_may_be_the_directory_of_a_socket() {
    for text in [
        "postgres://me@%2Fvar%2Frun%2Fpostgresql:5433/work",
        "postgres://me@/work?host=/var/run/postgresql&port=5433",
        "postgres:///work?user=me&host=%2fvar%2frun%2fpostgresql&port=5433",
    ] {
        let url = parse(text).unwrap();
        let host = &url.hosts()[0];
        assert_eq!(host.socket().unwrap(), Path::new("/var/run/postgresql/.s.PGSQL.5433"), "{text}");
        assert!(host.is_local());
    }
}

#[test]
fn parameters_may_stand_for_parts_of_the_url() {
    let url = parse("postgres://?host=h1,h2&port=7&user=me&password=secret&dbname=work").unwrap();
    assert_eq!(shown(&url), ["h1:7", "h2:7"]);
    assert_eq!(url.password(&url.hosts()[1]).unwrap().as_deref(), Some("secret"));
    let url = parse(
        "postgres://me@h?connect_timeout=3&keepalives_idle=7&keepalives_interval=8&keepalives_count=9\
         &tcp_user_timeout=1500&sslcert=/c&sslkey=/k&sslrootcert=/r",
    )
    .unwrap();
    assert_eq!(url.connect_timeout(), Some(Duration::from_secs(3)));
    let keepalives = Keepalives {
        idle: Duration::from_secs(7),
        interval: Duration::from_secs(8),
        count: 9,
        user_timeout: Some(Duration::from_millis(1500)),
    };
    assert_eq!(*url.keepalives(), keepalives);
    assert_eq!(url.roots(), Some(&Roots::File("/r".into())));
    assert_eq!(url.client_files(), Some(&ClientFiles { certificate: "/c".into(), key: "/k".into() }));
    assert_eq!(
        parse("postgres://me@h?connect_timeout=0&tcp_user_timeout=0").unwrap().connect_timeout(),
        None
    );
    assert_eq!(parse("postgres://me@h?sslrootcert=system").unwrap().roots(), Some(&Roots::System));
}

#[test]
fn tls_is_the_default_away_from_this_machine() {
    let hosts = "localhost,127.0.0.1,[::1],%2Frun,db1,10.0.0.1";
    let url = parse(&format!("postgres://me@{hosts}")).unwrap();
    let modes: Vec<_> = url.hosts().iter().map(|host| url.tls_mode(host)).collect();
    use TlsMode::{Disable, VerifyFull};
    assert_eq!(modes, [Disable, Disable, Disable, Disable, VerifyFull, VerifyFull]);
    // The given mode counts, but a Unix socket has no TLS.
    let url = parse("postgres://me@localhost,%2Frun,db1?sslmode=verify-ca&sslrootcert=/r").unwrap();
    let modes: Vec<_> = url.hosts().iter().map(|host| url.tls_mode(host)).collect();
    assert_eq!(modes, [TlsMode::VerifyCa, Disable, TlsMode::VerifyCa]);
}

#[test]
fn an_error_says_what_to_change() {
    let unknown = error("postgres://me@h?sslmod=disable");
    assert!(unknown.contains("`sslmod` is unknown") && unknown.contains("sslmode, sslrootcert"), "{unknown}");
    assert!(error("postgres://me@h?application_name=x").contains("set by the program"));
    assert!(error("mysql://me@h").contains("postgres://"));
    assert!(error("postgres://h").contains("PGUSER"));
    assert!(
        error("postgres://me@h?sslmode=allow").contains("disable, prefer, require, verify-ca, verify-full")
    );
    assert!(error("postgres://me@h?user=you").contains("`user` is said twice"));
    assert!(error("postgres://me@h?sslkey=/k").contains("go together"));
    assert!(error("postgres://me@h1,h2,h3?port=1,2").contains("3 hosts and 2 ports"));
    assert!(error("postgres://me@h?sslmode=require&sslrootcert=system").contains("too weak"));
    assert!(error("postgres://me@h?target_session_attrs=standby").contains("`any` or `read-write`"));
    assert!(error("postgres://me@h?connect_timeout=soon").contains("connect_timeout=soon"));
    assert!(error("postgres://me@h?keepalives_count=0").contains("at least 1"));
    assert!(error("postgres://me@h?keepalives_idle").contains("no value"));
    for text in ["postgres://me@h:0", "postgres://me@h:70000", "postgres://me@h:x"] {
        assert!(error(text).contains("from 1 to 65535"), "{text}");
    }
    for text in ["postgres://m%e@h", "postgres://m%zz@h", "postgres://m%ff@h", "postgres://m%2"] {
        assert!(error(text).contains('%'), "{text}");
    }
    assert!(error("postgres://m%00@h").contains("NUL"));
    for text in ["postgres://me@[h]", "postgres://me@a b", "postgres://me@::1"] {
        parse(text).unwrap_err();
    }
}

#[test]
fn a_password_is_never_shown() {
    let url = parse("postgres://me:secret@db1:7/work?sslmode=disable").unwrap();
    assert_eq!(url.to_string(), "postgres://me:***@db1:7/work?sslmode=disable");
    assert!(!format!("{url:?}").contains("secret"), "{url:?}");
    // Characters that should be encoded put a part of the password elsewhere.
    for text in [
        "postgres://me:secret/secret@h/d",
        "postgres://me:1/secret@h/d",
        "postgres://me:a?secret@h/d",
        "postgres://me:a?secret=1@h/d",
        "postgres://me:a#secret@h:secret/d",
        "postgres://me:%secret@h/d",
    ] {
        let environment = Environment { user: Some("me".into()), ..Environment::default() };
        let parsed = DatabaseUrl::parse(text, &environment);
        let shown = parsed.map(|url| format!("{url} {url:?}")).unwrap_or_else(|error| error.to_string());
        assert!(!shown.contains("secret"), "{text}: {shown}");
    }
}

#[test]
fn the_environment_fills_the_gaps() {
    let environment = Environment {
        user: Some("me".into()),
        password: Some("secret".into()),
        database: Some("work".into()),
        host: Some("db1,db2".into()),
        port: Some("6000".into()),
        sslmode: Some("verify-ca".into()),
        sslrootcert: Some("/r".into()),
        ..Environment::default()
    };
    let url = DatabaseUrl::parse("postgres://", &environment).unwrap();
    assert_eq!(shown(&url), ["db1:6000", "db2:6000"]);
    assert_eq!((url.user(), url.database()), ("me", "work"));
    assert_eq!(url.password(&url.hosts()[0]).unwrap().as_deref(), Some("secret"));
    assert_eq!(url.tls_mode(&url.hosts()[0]), TlsMode::VerifyCa);
    assert_eq!(url.roots(), Some(&Roots::File("/r".into())));
    let url = DatabaseUrl::parse("postgres://you:x@h:1/d?sslmode=disable", &environment).unwrap();
    assert_eq!(url.to_string(), "postgres://you:***@h:1/d?sslmode=disable");
}

#[test]
fn the_password_of_a_file_is_read_each_time() {
    let home = tempfile::tempdir().unwrap();
    let environment = Environment { home: Some(home.path().into()), ..Environment::default() };
    let url = DatabaseUrl::parse("postgres://me@db1", &environment).unwrap();
    assert_eq!(url.password(&url.hosts()[0]).unwrap(), None);
    let path = home.path().join(".pgpass");
    fs::write(&path, "db1:5432:me:me:first\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(url.password(&url.hosts()[0]).unwrap().as_deref(), Some("first"));
    fs::write(&path, "db1:5432:me:me:second\n").unwrap();
    assert_eq!(url.password(&url.hosts()[0]).unwrap().as_deref(), Some("second"));

    fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).unwrap();
    assert!(url.password(&url.hosts()[0]).unwrap_err().contains("chmod 600"));
    let why = DatabaseUrl::parse("postgres://me@db1", &environment).unwrap_err().to_string();
    assert!(why.contains("others may read it"), "{why}");
    // A password that is said needs no file.
    DatabaseUrl::parse("postgres://me:x@db1", &environment).unwrap();

    let absent = format!("postgres://me@db1?passfile={}", home.path().join("none").display());
    assert!(error(&absent).contains("there is no file of passwords"));
    let said = Environment { passfile: Some(home.path().join("none")), ..Environment::default() };
    DatabaseUrl::parse("postgres://me@db1", &said).unwrap_err();
}

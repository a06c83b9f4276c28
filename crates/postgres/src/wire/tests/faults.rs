//! Servers that break off, hang, or say anything: never a panic, never a wait beyond the deadline.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use postgres_protocol::message::backend::Message;
use proptest::prelude::*;
use tickwheel_testing::HANG_TIME;

use super::super::answer::{Answer, Plan};
use super::super::connection::Connection;
use super::super::environment::Environment;
use super::super::error::{OpenError, RunError};
use super::super::message::{self, MESSAGE_BYTES_MAX};
use super::super::pipeline::Pipeline;
use super::super::row::{self, Row};
use super::super::socket::Socket;
use super::super::startup::{Login, StartError};
use super::super::transport::{Transport, now};
use super::super::url::DatabaseUrl;
use super::server::{Server, limit};

/// A proxy that ends each connection after a given number of bytes.
struct Proxy {
    port: u16,
    /// The bytes that may pass from the server to the client.
    left: Arc<AtomicUsize>,
    /// The bytes that may pass from the client to the server.
    left_up: Arc<AtomicUsize>,
    /// The bytes that have passed from the server to the client.
    passed: Arc<AtomicUsize>,
}

impl Proxy {
    fn start(server_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let left = Arc::new(AtomicUsize::new(usize::MAX));
        let left_up = Arc::new(AtomicUsize::new(usize::MAX));
        let passed = Arc::new(AtomicUsize::new(0));
        let shared = (Arc::clone(&left), Arc::clone(&left_up), Arc::clone(&passed));
        // The thread ends with the process: it waits for connections that do not come.
        thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                let server = TcpStream::connect(("127.0.0.1", server_port)).unwrap();
                let left = (shared.0.load(Ordering::SeqCst), shared.1.load(Ordering::SeqCst));
                carry(client, server, left, &shared.2);
            }
        });
        Self { port, left, left_up, passed }
    }
}

fn carry(client: TcpStream, server: TcpStream, (mut left, left_up): (usize, usize), passed: &AtomicUsize) {
    let (from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let up = thread::spawn(move || {
        let copied = std::io::copy(&mut (&from).take(left_up as u64), &mut to);
        if copied.is_ok_and(|count| count == left_up as u64) {
            // The client first: a server whose client leaves in the middle of SCRAM says that the password is wrong.
            let _ = from.shutdown(Shutdown::Both);
        }
        let _ = to.shutdown(Shutdown::Write);
    });
    let (mut from, mut to) = (server, client);
    let mut bytes = [0; 4096];
    while left > 0 {
        let wanted = left.min(bytes.len());
        let Ok(count @ 1..) = from.read(&mut bytes[..wanted]) else { break };
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
        passed.fetch_add(count, Ordering::SeqCst);
        left -= count;
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
    let _ = up.join();
}

/// One short exchange. Returns whether it came to its end.
fn exchange(port: u16, parameters: &str) -> bool {
    let url = format!("postgres://scram:secret@localhost:{port}/postgres?{parameters}");
    let url = DatabaseUrl::parse(&url, &Environment::default()).unwrap();
    let start = now();
    let opened = Connection::open(&url, "wire tests", &[], start + HANG_TIME);
    let mut connection = match opened {
        Ok(connection) => connection,
        Err(error) => {
            // A certificate that is cut off is no wrong certificate.
            assert!(matches!(error, OpenError::Unreachable(_)), "{error}");
            return false;
        }
    };
    let mut pipeline = Pipeline::new();
    pipeline.text("BEGIN").kept("SELECT $1::text, 7", vec!["hello".into()]).text("COMMIT");
    let ran = connection.run(&pipeline, Some(now() + HANG_TIME));
    assert!(now() - start < HANG_TIME, "a connection that ended was waited for");
    match ran {
        Ok(results) => {
            assert_eq!(results[1].rows[0].get::<&str>(0), Ok("hello"));
            assert_eq!(results[2].tag, "COMMIT");
            true
        }
        Err(RunError::Lost { .. }) => {
            assert!(connection.is_lost());
            false
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_connection_may_be_cut_at_any_byte() {
    let Some(server) = Server::shared() else { return };
    let tls = format!("sslmode=verify-full&sslrootcert={}", server.path("ca.crt").display());
    // TLS is slower and its messages are longer, so not each of its bytes is a cut.
    for (parameters, step) in [("", 1), (tls.as_str(), 37)] {
        let proxy = Proxy::start(server.port);
        assert!(exchange(proxy.port, parameters));
        let passed = proxy.passed.load(Ordering::SeqCst);
        assert!(passed > 300, "{passed} bytes");
        let mut ended = 0;
        for cut in (1..passed).step_by(step) {
            proxy.left.store(cut, Ordering::SeqCst);
            ended += usize::from(exchange(proxy.port, parameters));
        }
        // Every byte is needed; only TLS has a goodbye at its end.
        assert!(ended == 0 || (step > 1 && ended <= 2), "{ended} of {passed} cuts did no harm");
        proxy.left.store(usize::MAX, Ordering::SeqCst);
        let cut_up = (1..).step_by(step).find(|cut| {
            proxy.left_up.store(*cut, Ordering::SeqCst);
            exchange(proxy.port, parameters)
        });
        assert!(cut_up.is_some_and(|cut| cut > 200), "the server had enough after {cut_up:?} bytes");
    }
}

/// A connection whose server says these bytes and closes; or stays silent, if `is_open`.
fn started(bytes: &[u8], is_open: bool, limit: Duration) -> (Result<Connection, StartError>, UnixStream) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.write_all(bytes).unwrap();
    if !is_open {
        theirs.shutdown(Shutdown::Write).unwrap();
    }
    let login = Login {
        user: "me",
        password: Some("secret"),
        database: "work",
        application_name: "wire tests",
        settings: &[],
        is_private: false,
    };
    let transport = Transport::new(Socket::Unix(ours));
    (Connection::start(transport, "peer".to_owned(), &login, now() + limit), theirs)
}

fn said(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![tag];
    message.put_u32(body.len() as u32 + 4);
    message.extend_from_slice(body);
    message
}

/// A server that reads one packet of each connection, says its words, and waits for the end. Returns its port.
fn scripted(words: Vec<Vec<u8>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for words in words {
            let (mut client, _) = listener.accept().unwrap();
            let _ = client.read(&mut [0; 1024]);
            let _ = client.write_all(&words);
            let _ = std::io::copy(&mut client, &mut std::io::sink());
        }
    });
    port
}

fn open_at(port: u16, parameters: &str) -> Result<Connection, OpenError> {
    let url = format!("postgres://me@127.0.0.1:{port}/work?{parameters}");
    let url = DatabaseUrl::parse(&url, &Environment::default()).unwrap();
    Connection::open(&url, "wire tests", &[], now() + HANG_TIME)
}

fn setting(name: &str, value: &str) -> Vec<u8> {
    said(b'S', format!("{name}\0{value}\0").as_bytes())
}

#[test]
fn a_standby_is_passed_over() {
    let with =
        |settings: &[Vec<u8>]| [said(b'R', &[0, 0, 0, 0]), settings.concat(), said(b'Z', b"I")].concat();
    let standby = with(&[setting("in_hot_standby", "on"), setting("default_transaction_read_only", "off")]);
    let primary = with(&[setting("in_hot_standby", "off"), setting("default_transaction_read_only", "off")]);
    let port = scripted(vec![standby.clone(), standby, primary]);
    let Err(OpenError::Unreachable(errors)) = open_at(port, "").map(|_| ()) else {
        panic!("a standby was taken")
    };
    assert!(errors[0].why.contains("standby"), "{}", errors[0]);
    open_at(port, "target_session_attrs=any").unwrap();
    open_at(port, "").unwrap();

    // A server that does not report is asked; this one says yes.
    let column = b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x10\0\x01\xff\xff\xff\xff\0\0".to_vec();
    let mut answers = vec![said(b'1', b""), said(b't', &[0, 0]), said(b'T', &column), said(b'2', b"")];
    answers.extend([said(b'D', &[0, 1, 0, 0, 0, 1, 1]), said(b'C', b"SELECT 1\0"), said(b'Z', b"I")]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let hello = with(&[]);
    let server = thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let _ = client.read(&mut [0; 1024]).unwrap();
        client.write_all(&hello).unwrap();
        let _ = client.read(&mut [0; 1024]).unwrap();
        client.write_all(&answers.concat()).unwrap();
        let _ = std::io::copy(&mut client, &mut std::io::sink());
    });
    let Err(OpenError::Unreachable(errors)) = open_at(port, "").map(|_| ()) else {
        panic!("a standby was taken")
    };
    assert!(errors[0].why.contains("standby"), "{}", errors[0]);
    server.join().unwrap();
}

#[test]
fn a_server_that_starts_up_is_tried_later() {
    for (code, is_refused) in
        [("57P03", false), ("53300", false), ("XX000", false), ("28P01", true), ("3D000", true)]
    {
        let port = scripted(vec![said(b'E', format!("SFATAL\0VFATAL\0C{code}\0Mno\0\0").as_bytes())]);
        match open_at(port, "").map(|_| ()) {
            Err(OpenError::Refused(errors)) if is_refused => {
                assert_eq!(errors[0].code.as_deref(), Some(code))
            }
            Err(OpenError::Unreachable(errors)) if !is_refused => {
                assert_eq!(errors[0].code.as_deref(), Some(code));
            }
            other => panic!("{code}: {other:?}"),
        }
    }
}

#[test]
fn a_server_without_tls_is_refused_with_a_hint() {
    let port = scripted(vec![b"N".to_vec(), b"N".to_vec(), [b"N".to_vec(), welcome()].concat()]);
    for mode in ["verify-full", "require"] {
        match open_at(port, &format!("sslmode={mode}")).map(|_| ()) {
            Err(OpenError::Refused(errors)) => {
                assert!(errors[0].why.contains("sslmode=disable"), "{}", errors[0])
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(!open_at(port, "sslmode=prefer&target_session_attrs=any").unwrap().is_tls());
    // Bytes behind the `S` belong to TLS: a message that a man in the middle puts there is no message.
    let injected = [b"S".to_vec(), welcome()].concat();
    let port = scripted(vec![injected.clone(), injected]);
    for mode in ["verify-full", "require"] {
        open_at(port, &format!("sslmode={mode}&target_session_attrs=any")).map(|_| ()).unwrap_err();
    }
}

/// The words of a server that lets everybody in.
fn welcome() -> Vec<u8> {
    let parts = [
        said(b'R', &[0, 0, 0, 0]),
        said(b'S', b"server_version\x0015.0\0"),
        said(b'K', &[0, 0, 0, 7, 0, 0, 0, 8]),
        said(b'Z', b"I"),
    ];
    parts.concat()
}

#[test]
fn a_password_in_clear_text_is_not_sent_where_others_read() {
    let (started, mut server) = started(&said(b'R', &[0, 0, 0, 3]), true, HANG_TIME);
    let Err(StartError::Refused(why)) = started else { panic!("it was sent") };
    assert!(why.contains("clear text"), "{why}");
    let mut sent = Vec::new();
    server.read_to_end(&mut sent).unwrap();
    assert!(!sent.windows(6).any(|window| window == b"secret"));
}

#[test]
fn a_server_that_skips_its_proof_is_not_trusted() {
    let asks = said(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0");
    let (started, _server) = started(&[asks, welcome()].concat(), true, HANG_TIME);
    let error = started.map(|_| ()).unwrap_err();
    assert!(
        matches!(&error, StartError::Transport(error) if error.to_string().contains("AuthenticationOk")),
        "{error:?}"
    );
}

#[test]
fn a_silent_server_is_left_at_the_deadline() {
    let start = now();
    for bytes in [&b""[..], &said(b'R', &[0, 0, 0, 0]), &welcome()[..20]] {
        let (started, _server) = started(bytes, true, Duration::from_millis(50));
        let error = started.map(|_| ()).unwrap_err();
        assert!(
            matches!(&error, StartError::Transport(error) if error.to_string().contains("in time")),
            "{error:?}"
        );
    }
    assert!(now() - start < HANG_TIME);
}

#[test]
fn a_length_is_only_a_claim() {
    let mut bytes = BytesMut::from(&[b'D', 0x7f, 0xff, 0xff, 0xff][..]);
    assert!(message::take(&mut bytes, MESSAGE_BYTES_MAX).is_err());
    let mut bytes = BytesMut::from(&[b'D', 0x3f, 0xff, 0xff, 0xff][..]);
    assert!(message::take(&mut bytes, MESSAGE_BYTES_MAX).unwrap().is_none());
    assert!(bytes.capacity() < 4096, "{} bytes are reserved", bytes.capacity());
}

/// Bytes that are more often a message than chance would have it.
fn server_bytes() -> impl Strategy<Value = Vec<u8>> {
    let body = prop::collection::vec(prop_oneof![Just(0_u8), Just(1), any::<u8>()], 0..40);
    let tag = prop::sample::select(&b"12AcCDEGHIKnNRsStTZdv"[..]);
    let piece = prop_oneof![
        6 => (tag, body.clone()).prop_map(|(tag, body)| said(tag, &body)),
        1 => Just(said(b'R', &[0, 0, 0, 0])),
        1 => Just(said(b'1', b"")),
        1 => Just(said(b't', &[0, 0])),
        1 => Just(said(b'n', b"")),
        1 => Just(said(b'2', b"")),
        1 => Just(said(b'C', b"SELECT 1\0")),
        1 => Just(said(b'Z', b"I")),
        1 => Just(said(b'E', b"VERROR\0C23505\0Mno\0\0")),
        1 => body,
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_server_may_say_anything_to_a_login(bytes in server_bytes()) {
        let _ = started(&bytes, false, HANG_TIME);
    }

    #[test]
    fn a_server_may_say_anything_to_a_pipeline(bytes in server_bytes()) {
        let (started, mut server) = started(&[welcome(), bytes].concat(), false, HANG_TIME);
        // The server has spoken before it was asked, so the first check may find it.
        if let Ok(mut connection) = started {
            let mut pipeline = Pipeline::new();
            pipeline.text("BEGIN").kept("SELECT $1", vec![7.into()]).kept("SELECT $1", vec![8.into()]);
            let ran = connection.run(&pipeline, limit());
            prop_assert!(ran.is_err());
            let _ = connection.simple("SELECT 1", limit());
        }
        let _ = server.write_all(b"end");
    }

    #[test]
    fn an_answer_may_be_anything(bytes in server_bytes()) {
        let mut bytes = BytesMut::from(&bytes[..]);
        let mut answer = Answer::new(vec![Plan::Parsed, Plan::Shared(0), Plan::Known(Arc::new([])), Plan::Parsed]);
        while let Ok(Some(message)) = message::take(&mut bytes, MESSAGE_BYTES_MAX) {
            match answer.take(message) {
                Ok(None) => {}
                Ok(Some(transaction)) => {
                    let _ = answer.complete(transaction);
                    break;
                }
                Err(_) => break,
            }
        }
    }

    #[test]
    fn a_value_may_be_anything(oid in prop::sample::select(&[16_u32, 17, 20, 21, 23, 25, 1000, 1001, 1005, 1007, 1009, 1016][..]), value in prop::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(23), any::<u8>()], 0..60)) {
        let mut columns = vec![0, 1, b'a', 0, 0, 0, 0, 0, 0, 0];
        columns.put_u32(oid);
        columns.extend_from_slice(&[0; 8]);
        let mut bytes = BytesMut::from(&said(b'T', &columns)[..]);
        let Ok(Some(Message::RowDescription(body))) = message::take(&mut bytes, MESSAGE_BYTES_MAX) else { panic!("columns") };
        let columns = row::columns(&body).unwrap();
        let mut data = vec![0, 1];
        data.put_u32(value.len() as u32);
        data.extend_from_slice(&value);
        let mut bytes = BytesMut::from(&said(b'D', &data)[..]);
        let Ok(Some(Message::DataRow(body))) = message::take(&mut bytes, MESSAGE_BYTES_MAX) else { panic!("a row") };
        let row = Row::new(&columns, &body).unwrap();
        let _ = row.get::<bool>(0);
        let _ = row.get::<i16>(0);
        let _ = row.get::<i64>(0);
        let _ = row.get::<&str>(0);
        let _ = row.get::<Vec<bool>>(0);
        let _ = row.get::<Vec<i16>>(0);
        let _ = row.get::<Vec<Option<i32>>>(0);
        let _ = row.get::<Vec<i64>>(0);
        let _ = row.get::<Vec<Option<&str>>>(0);
        let _ = row.get::<Vec<&[u8]>>(0);
    }

    #[test]
    fn a_certificate_may_be_anything(bytes in prop::collection::vec(prop_oneof![Just(0x30_u8), Just(0x06), Just(2), any::<u8>()], 0..60)) {
        let _ = super::super::tls::end_point(&bytes);
    }
}

//! The door for clients of beanstalkd: who is admitted, and how connections end.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::json;
use tickwheel_queue::{QueueName, Router};
use tickwheel_server::{Beanstalk, Config, Limits, ListenAt, StartError, Store, TlsFiles};

use crate::served::{Served, on_any_port, shards, until, virtual_memory};

/// The configuration of a door at any port.
fn door() -> Beanstalk {
    Beanstalk { listen: ListenAt::Tcp("127.0.0.1:0".parse().expect("an address")), ..Beanstalk::default() }
}

fn with(door: Beanstalk) -> Config {
    Config { beanstalk: Some(door), ..virtual_memory() }
}

fn connect(served: &Served) -> TcpStream {
    let Some(ListenAt::Tcp(address)) = served.beanstalk else { panic!("no door: {:?}", served.beanstalk) };
    let socket = TcpStream::connect(address).expect("connected");
    socket.set_read_timeout(Some(tickwheel_testing::HANG_TIME)).expect("set");
    socket
}

/// Sends `said`, and compares the next bytes with `wanted`. In both texts `#2` is the id of the second task of the shard that has the tube
/// `default`, and `#2@a` that of the shard that has the tube `a`.
#[track_caller]
fn ask(mut socket: impl Read + Write, said: &str, wanted: &str) {
    socket.write_all(with_ids(said).as_bytes()).expect("said");
    hear(socket, wanted);
}

/// The text with numbers in the place of `#2` and `#2@a`.
fn with_ids(text: &str) -> String {
    let mut parts = text.split('#');
    let mut with = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let ends = |at: &str| at.find(char::is_whitespace).unwrap_or(at.len());
        let (name, rest) = part.split_at(ends(part));
        let (place, tube) = name.split_once('@').unwrap_or((name, "default"));
        with += &id(tube, place.parse().expect("a place"));
        with += rest;
    }
    with
}

/// The id of a task of a tube that is the `place`th of its shard.
fn id(tube: &str, place: u32) -> String {
    let router = Router::new(shards()).expect("a number of shards");
    let first = router.of_queue(&QueueName::new(tube).expect("a name")).number();
    // No task has the id 0.
    let first = if first == 0 { shards() } else { first };
    (first + (place - 1) * shards()).to_string()
}

#[track_caller]
fn hear(mut socket: impl Read, wanted: &str) {
    let wanted = &with_ids(wanted);
    let mut heard = vec![0; wanted.len()];
    socket.read_exact(&mut heard).expect("an answer");
    assert_eq!(String::from_utf8_lossy(&heard), *wanted);
}

/// All bytes until the server closes.
fn rest(mut socket: impl Read) -> String {
    let mut heard = Vec::new();
    socket.read_to_end(&mut heard).expect("an end");
    String::from_utf8(heard).expect("text")
}

/// A bug that was found: the door itself uses `default`, so HTTP listed it although no client had used the server.
#[test]
fn unused_tubes_are_not_listed_as_queues_and_emptied_tubes_not_as_tubes() {
    let served = Served::start(with(door())).expect("started");
    let client = connect(&served);
    ask(&client, "use a\r\nlist-tubes\r\n", "USING a\r\nOK 18\r\n---\n- a\n- default\n\r\n");
    assert_eq!(served.expect(200, "GET", "/v1/queues", "")["queues"], json!([]));
    ask(&client, "put 0 0 1 1\r\nx\r\ndelete #1@a\r\nuse b\r\n", "INSERTED #1@a\r\nDELETED\r\nUSING b\r\n");
    ask(&client, "list-tubes\r\n", "OK 18\r\n---\n- b\n- default\n\r\n");
    let all = served.expect(200, "GET", "/v1/queues", "");
    assert_eq!((&all["queues"][0]["queue"], all["queues"].as_array().map(Vec::len)), (&json!("a"), Some(1)));
    ask(&client, "stats-tube a\r\n", "NOT_FOUND\r\n");
}

#[test]
fn a_client_is_a_worker_by_its_address() {
    let served = Served::start(with(door())).expect("started");
    let client = connect(&served);
    ask(&client, "put 0 0 9 1\r\nx\r\nput 0 100 9 1\r\ny\r\n", "INSERTED #1\r\nINSERTED #2\r\n");
    ask(&client, "reserve\r\nreserve-job #2\r\n", "RESERVED #1 1\r\nx\r\nRESERVED #2 1\r\ny\r\n");
    let page = served.expect(200, "GET", "/v1/leases?worker=127.0.0.1", "");
    let keys = page["leases"].as_array().expect("a list").iter().map(|lease| &lease["key"]);
    assert_eq!(keys.collect::<Vec<_>>(), [&id("default", 1), &id("default", 2)]);
}

#[test]
fn both_doors_share_the_limit_of_connections() {
    let served = Served::start(Config { connections_max: 2, ..with(door()) }).expect("started");
    let mut worker = connect(&served);
    ask(&worker, "use a\r\n", "USING a\r\n");
    let mut http = served.connect();
    // A batch is under way until its body ends.
    let head = format!(
        "POST /v1/queues/q/batch HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
        served.addr
    );
    http.send(head.as_bytes());
    assert_eq!(http.head().status, 200);
    served.call("GET", "/v1/queues", "").assert_problem(429, "busy", "the third, over HTTP");
    assert_eq!(rest(connect(&served)), "", "the third of beanstalkd's protocol is closed");
    ask(&worker, "use b\r\n", "USING b\r\n");
    worker.write_all(b"quit\r\n").expect("said");
    assert_eq!(rest(&worker), "");
    until("there is a place again", || served.call("GET", "/v1/queues", "").status == 200);
}

#[test]
fn a_server_that_drains_says_so_and_still_takes_workers() {
    let served = Served::start(with(door())).expect("started");
    let client = connect(&served);
    ask(&client, "put 0 0 60 1\r\na\r\n", "INSERTED #1\r\n");
    assert_eq!(served.expect(200, "GET", "/readyz", "")["draining"], false);
    served.drain.begin();
    ask(&client, "put 0 0 60 1\r\nb\r\n", "DRAINING\r\n");
    served.call("POST", "/v1/queues/a/tasks", "").assert_problem(503, "server-draining", "a new start");
    let ready = served.expect(200, "GET", "/readyz", "");
    assert_eq!((&ready["ready"], &ready["draining"]), (&json!(true), &json!(true)), "{ready}");
    assert_eq!(served.lease("default", 1)[0]["key"], *id("default", 1));
    assert_eq!(served.metric("tickwheel_beanstalk_refused_total{answer=\"DRAINING\"}"), 1.0);
    served.expect(200, "POST", "/v1/resume", "");
    ask(&client, "put 0 0 60 1\r\nc\r\n", "INSERTED #2\r\n");
}

#[test]
fn a_tube_that_drains_kicks_no_buried_job() {
    let served = Served::start(with(door())).expect("started");
    let client = connect(&served);
    ask(&client, "put 0 0 60 1\r\na\r\nreserve\r\n", "INSERTED #1\r\nRESERVED #1 1\r\na\r\n");
    ask(&client, "bury #1 0\r\nput 0 60 60 1\r\nb\r\n", "BURIED\r\nINSERTED #2\r\n");
    served.expect(200, "POST", "/v1/queues/default/drain", "");
    ask(&client, "kick 5\r\nkick-job #1\r\nreserve-job #1\r\n", "DRAINING\r\nDRAINING\r\nDRAINING\r\n");
    ask(&client, "kick-job #2\r\n", "KICKED\r\n");
    served.expect(200, "POST", "/v1/queues/default/resume", "");
    ask(&client, "kick 5\r\n", "KICKED 1\r\n");
}

#[test]
fn refusals_are_in_the_metrics() {
    let served = Served::start(with(door())).expect("started");
    let client = connect(&served);
    let said = "use a\r\nput 0 0 1 x\r\nwhat\r\nput 0 0 60 70000\r\n";
    ask(&client, said, "USING a\r\nBAD_FORMAT\r\nUNKNOWN_COMMAND\r\n");
    let page = |name: &str| served.metric(name);
    assert_eq!(page("tickwheel_beanstalk_connections"), 1.0);
    assert_eq!(page("tickwheel_beanstalk_commands_total{verb=\"use\"}"), 1.0);
    assert_eq!(page("tickwheel_beanstalk_refused_total{answer=\"BAD_FORMAT\"}"), 1.0);
    assert_eq!(page("tickwheel_beanstalk_refused_total{answer=\"UNKNOWN_COMMAND\"}"), 1.0);
    let mut big = vec![b'x'; 70_000];
    big.extend_from_slice(b"\r\n");
    (&client).write_all(&big).expect("said");
    hear(&client, "JOB_TOO_BIG\r\n");
    assert_eq!(page("tickwheel_beanstalk_refused_total{answer=\"JOB_TOO_BIG\"}"), 1.0);
}

#[test]
fn an_invalid_namespace_is_refused_with_the_reason() {
    let why = |namespace: &str| {
        let door = Beanstalk { namespace: Some(namespace.to_owned()), ..door() };
        with(door).check().map_err(|error| error.to_string())
    };
    assert_eq!(why(&"n".repeat(192)), Ok(()));
    for (namespace, expected) in [
        ("", "it has 0 bytes, and a namespace has 1 to 192"),
        (&"n".repeat(193), "it has 193 bytes, and a namespace has 1 to 192"),
        ("a/b", "it has a slash"),
        ("a b", "' ' at byte 1"),
    ] {
        let told = why(namespace).expect_err(namespace);
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn a_path_asks_for_no_certificate() {
    let listen = ListenAt::Unix("/nowhere/door".into());
    let door = Beanstalk { listen, client_ca: Some("clients.pem".into()), ..door() };
    let tls = Some(TlsFiles { certificates: "a".into(), key: "b".into() });
    let refused = Config { tls, ..with(door) }.check();
    assert!(matches!(refused, Err(StartError::ClientsOfSocket)), "{refused:?}");
}

#[test]
fn a_page_in_a_browser_puts_no_jobs() {
    let served = Served::start(with(door())).expect("started");
    for first in ["POST / HTTP/1.1", "Host: 127.0.0.1:11300"] {
        let client = connect(&served);
        let said = format!("{first}\r\nput 0 0 10 4\r\nevil\r\n");
        (&client).write_all(said.as_bytes()).expect("said");
        let mut heard = Vec::new();
        // The server does not read the rest of the input, so the end may be a reset.
        let _reset = (&client).read_to_end(&mut heard);
        assert_eq!(String::from_utf8_lossy(&heard), "UNKNOWN_COMMAND\r\n");
    }
    ask(&connect(&served), "peek-ready\r\n", "NOT_FOUND\r\n");
}

#[test]
fn a_namespace_includes_the_counts_of_removed_tubes() {
    let served =
        Served::start(with(Beanstalk { namespace: Some("shop".to_owned()), ..door() })).expect("started");
    let client = connect(&served);
    ask(
        &client,
        "use t\r\nput 0 0 10 1\r\na\r\ndelete #1@shop/t\r\nuse default\r\n",
        "USING t\r\nINSERTED #1@shop/t\r\nDELETED\r\nUSING default\r\n",
    );
    served.expect(404, "GET", &format!("/v1/queues/shop%2Ft/tasks/{}", id("shop/t", 1)), "");
    (&client).write_all(b"stats\r\nquit\r\n").expect("said");
    let told = rest(&client);
    assert!(told.contains("\ntotal-jobs: 1\n") && told.contains("\ncurrent-tubes: 1\n"), "{told}");
}

/// A buried job whose key belongs to another task cannot be kicked, but it still counts as buried.
#[test]
fn a_kick_never_takes_delayed_jobs_while_others_are_buried() {
    let served = Served::start(with(door())).expect("started");
    let client = connect(&served);
    ask(
        &client,
        "put-key r 0 0 60 1\r\na\r\nreserve\r\nbury #1 0\r\n",
        "INSERTED #1\r\nRESERVED #1 1\r\na\r\nBURIED\r\n",
    );
    ask(&client, "put-key r 0 1h 60 1\r\nb\r\n", "INSERTED #2\r\n");
    ask(&client, "kick 5\r\nkick-job #1\r\n", "KICKED 0\r\nNOT_FOUND\r\n");
    ask(&client, "delete #1\r\nkick 5\r\n", "DELETED\r\nKICKED 1\r\n");
}

#[test]
fn the_lateness_of_deliveries_is_in_the_metrics() {
    let served = Served::start(with(door())).expect("started");
    let (worker, client) = (connect(&served), connect(&served));
    (&worker).write_all(b"reserve\r\n").expect("said");
    served.await_waiting(1.0);
    ask(&client, "put 0 1 10 1\r\na\r\n", "INSERTED #1\r\n");
    served.advance("1s");
    hear(&worker, "RESERVED #1 1\r\na\r\n");
    assert_eq!(served.metric("tickwheel_delivery_lateness_seconds_count"), 1.0);
}

/// A certificate authority for tests.
struct Signer {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Signer {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("signed").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// The TLS configuration of a worker that trusts the server. `signer` signs its certificate; `None`: it has none.
    fn worker(signer: Option<&Self>, roots: &RootCertStore) -> Arc<ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots.clone());
        Arc::new(match signer {
            None => config.with_no_client_auth(),
            Some(signer) => {
                let key = KeyPair::generate().expect("a key");
                let params = CertificateParams::new(["worker".to_owned()]).expect("a name");
                let certificate = params.signed_by(&key, &signer.issuer).expect("signed");
                let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
                config.with_client_auth_cert(vec![certificate.der().clone()], key).expect("it fits")
            }
        })
    }
}

#[test]
fn only_clients_with_a_certificate_of_the_right_signer_get_in() {
    let directory = tempfile::tempdir().expect("a directory");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let tls =
        TlsFiles { certificates: directory.path().join("cert.pem"), key: directory.path().join("key.pem") };
    std::fs::write(&tls.certificates, made.cert.pem()).expect("written");
    std::fs::write(&tls.key, made.signing_key.serialize_pem()).expect("written");
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    let (ours, strangers) = (Signer::new(), Signer::new());
    let signers = directory.path().join("clients.pem");
    std::fs::write(&signers, &ours.pem).expect("written");
    let of = |client_ca: &Path| Beanstalk { client_ca: Some(client_ca.to_owned()), ..door() };
    // A port that other computers can reach needs certificates.
    let listen = ListenAt::Tcp("0.0.0.0:0".parse().expect("an address"));
    let open = Beanstalk { listen: listen.clone(), ..door() };
    assert!(matches!(with(open).check(), Err(StartError::BeanstalkNotLoopback { .. })));
    assert!(matches!(with(of(&signers)).check(), Err(StartError::ClientsWithoutTls)));
    let closed = Beanstalk { listen, ..of(&signers) };
    Config { tls: Some(tls.clone()), ..with(closed) }.check().expect("they are kept out");
    let Err(error) = Served::start(Config { tls: Some(tls.clone()), ..with(of(&tls.key)) }) else {
        panic!("started with a key in place of certificates")
    };
    assert!(error.to_string().contains("has no certificate"), "{error}");

    let served = Served::start(Config { tls: Some(tls), ..with(of(&signers)) }).expect("started");
    let name = || ServerName::try_from("localhost").expect("a name");
    let come = |config| {
        let connection = ClientConnection::new(config, name()).expect("a client");
        StreamOwned::new(connection, connect(&served))
    };
    let mut worker = come(Signer::worker(Some(&ours), &roots));
    ask(&mut worker, "put 0 0 60 2\r\nhi\r\nreserve\r\n", "INSERTED #1\r\nRESERVED #1 2\r\nhi\r\n");
    for stranger in [Some(&strangers), None] {
        let mut stranger = come(Signer::worker(stranger, &roots));
        // In TLS 1.3 the client's part of the handshake ends before the server has checked its certificate.
        let _sent = stranger.write_all(b"use a\r\n");
        let mut heard = Vec::new();
        let error = stranger.read_to_end(&mut heard).expect_err("turned away");
        assert!(heard.is_empty() && error.to_string().contains("received fatal alert"), "{error}");
    }
    let mut plain = connect(&served);
    plain.write_all(b"use a\r\n").expect("said");
    let mut heard = Vec::new();
    // The server does not read the input, so the end may be a reset.
    let ended = plain.read_to_end(&mut heard);
    assert!(ended.is_ok() || ended.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
    assert!(heard.is_empty(), "who speaks no TLS is let go");
    ask(&mut worker, "delete #1\r\n", "DELETED\r\n");
}

#[test]
fn a_socket_belongs_to_one_server_and_is_removed_with_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("door");
    let at = || with(Beanstalk { listen: ListenAt::Unix(path.clone()), ..door() });
    // A socket that a killed server left is replaced.
    drop(std::os::unix::net::UnixListener::bind(&path).expect("bound"));
    let served = Served::start(at()).expect("started");
    let socket = UnixStream::connect(&path).expect("connected");
    ask(&socket, "put 0 0 60 2\r\nhi\r\n", "INSERTED #1\r\n");
    match Served::start(at()) {
        Err(error @ StartError::ListenBeanstalk { .. }) => {
            assert!(error.to_string().contains(&format!("unix:{}", path.display())), "{error}");
        }
        Err(error) => panic!("{error:?}"),
        Ok(_) => panic!("two servers at one socket"),
    }
    ask(&socket, "reserve\r\n", "RESERVED #1 2\r\nhi\r\n");
    served.stop();
    assert_eq!(rest(&socket), "");
    assert!(!path.exists(), "the next one makes its own");
    // A file that is no socket is not replaced.
    std::fs::write(&path, "kept").expect("written");
    assert!(matches!(Served::start(at()), Err(StartError::ListenBeanstalk { .. })));
    assert_eq!(std::fs::read_to_string(&path).expect("read"), "kept");
}

#[test]
fn after_a_stop_answered_puts_remain_and_reserved_jobs_are_ready() {
    let directory = tempfile::tempdir().expect("a directory");
    let config =
        || Config { beanstalk: Some(door()), ..on_any_port(Store::Dir(directory.path().to_owned())) };
    let mut served = Served::start(config()).expect("started");
    let (holder, mut waiting) = (connect(&served), connect(&served));
    ask(&holder, "put 0 0 60 4\r\nheld\r\nreserve\r\n", "INSERTED #1\r\nRESERVED #1 4\r\nheld\r\n");
    // One client waits, one is in the middle of a body, and one sends many commands.
    waiting.write_all(b"use nowhere\r\nwatch nowhere\r\nignore default\r\nreserve\r\n").expect("said");
    hear(&waiting, "USING nowhere\r\nWATCHING 2\r\nWATCHING 1\r\n");
    let mut half = connect(&served);
    half.write_all(b"use half\r\nput 0 0 60 100\r\nhalf of").expect("said");
    hear(&half, "USING half\r\n");
    let busy = connect(&served);
    let mut speaker = busy.try_clone().expect("another handle");
    let said = std::thread::spawn(move || {
        // The client sends until its connection ends.
        while speaker.write_all("put 9 0 60 3\r\nxyz\r\n".repeat(100).as_bytes()).is_ok() {}
    });
    hear(&busy, "INSERTED #2\r\n");
    served.tell_to_stop();
    let mut heard = Vec::new();
    // The end may be a reset, because the server does not read the last commands.
    let _reset = (&busy).read_to_end(&mut heard);
    said.join().expect("no panic");
    let mut heard = String::from_utf8(heard).expect("text");
    // A reset may have cut the last line.
    heard.truncate(heard.rfind('\n').map_or(0, |ends| ends + 1));
    assert_eq!(rest(&waiting), "", "nothing is said to who waits: what it watches has nothing");
    assert_eq!(rest(&half), "");
    assert_eq!(rest(&holder), "");
    served.stop();

    let served = Served::start(config()).expect("started again");
    let worker = connect(&served);
    // The job was reserved when the server stopped. That is no attempt, and the job comes first again.
    let task = served.expect(200, "GET", &format!("/v1/queues/default/tasks/{}", id("default", 1)), "");
    assert_eq!((&task["state"], &task["attempt"]), (&json!("ready"), &json!(0)), "{task}");
    ask(&worker, "reserve\r\n", "RESERVED #1 4\r\nheld\r\n");
    let answered: Vec<&str> = heard.lines().filter_map(|line| line.strip_prefix("INSERTED ")).collect();
    for id in answered {
        ask(&worker, &format!("peek {id}\r\n"), &format!("FOUND {id} 3\r\nxyz\r\n"));
    }
    ask(&worker, "use half\r\npeek-ready\r\n", "USING half\r\nNOT_FOUND\r\n");
}

#[test]
fn the_jobs_of_a_broken_connection_go_to_others() {
    let served = Served::start(with(door())).expect("started");
    let mut dying = connect(&served);
    let puts: String = (0..100).map(|n| format!("put {n} 0 60 3\r\nxyz\r\n")).collect();
    dying
        .write_all(format!("{puts}{}reserve-batch 20 5\r\n", "reserve\r\n".repeat(30)).as_bytes())
        .expect("said");
    hear(&dying, "INSERTED #1\r\n");
    drop(dying);
    // All jobs were also ready before the first reserve, so the count alone proves too little.
    until("it is gone", || served.metric("tickwheel_beanstalk_connections") == 0.0);
    until("all jobs are ready", || served.expect(200, "GET", "/v1/queues/default", "")["ready"] == 100);
    let worker = connect(&served);
    // Commands before the end are carried out, and reserved jobs go back, in their old order.
    for id in (1..=100).map(|place| id("default", place)) {
        ask(&worker, "reserve\r\n", &format!("RESERVED {id} 3\r\nxyz\r\n"));
        ask(&worker, &format!("delete {id}\r\n"), "DELETED\r\n");
    }
    ask(&worker, "reserve-with-timeout 0\r\n", "TIMED_OUT\r\n");
}

#[test]
fn a_delete_of_a_revoked_job_does_not_delete_its_successor() {
    let served = Served::start(with(door())).expect("started");
    let worker = connect(&served);
    served.expect(201, "PUT", "/v1/queues/q/tasks/k", r#"{"payload":1}"#);
    ask(&worker, "watch q\r\nreserve\r\n", "WATCHING 2\r\nRESERVED #1@q 1\r\n1\r\n");
    served.expect(200, "DELETE", "/v1/queues/q/tasks/k?revoke=true", "");
    served.expect(201, "PUT", "/v1/queues/q/tasks/k", r#"{"payload":2}"#);
    ask(
        &worker,
        "delete #1@q\r\ntouch #1@q\r\nrelease #1@q 0 0\r\n",
        "NOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\n",
    );
    let kept = served.expect(200, "GET", "/v1/queues/q/tasks/k", "");
    assert_eq!((&kept["payload"], &kept["state"]), (&json!(2), &json!("ready")));
}

#[test]
fn a_task_without_a_ttr_has_that_of_its_queue() {
    let served = Served::start(with(door())).expect("started");
    served.expect(201, "PUT", "/v1/queues/default/tasks/k", "{}");
    served.expect(200, "PUT", "/v1/queues/default", r#"{"default_lease":"10m"}"#);
    let mut worker = connect(&served);
    ask(&worker, "put 0 0 7 1\r\nx\r\n", "INSERTED #2\r\n");
    worker.write_all(with_ids("stats-job #1\r\nstats-job #2\r\nquit\r\n").as_bytes()).expect("said");
    let heard = rest(&worker);
    assert!(heard.contains("\nttr: 600\n") && heard.contains("\nttr: 7\n"), "{heard}");
}

#[test]
fn a_worker_watches_many_tubes_and_the_most_urgent_job_comes_first() {
    let served = Served::start(with(door())).expect("started");
    let worker = connect(&served);
    for n in 1..1_000 {
        ask(&worker, &format!("watch t{n}\r\n"), &format!("WATCHING {}\r\n", n + 1));
    }
    ask(&worker, "watch one-more\r\n", "OUT_OF_MEMORY\r\n");
    ask(&worker, "watch t7\r\n", "WATCHING 1000\r\n");
    let put = [(999, 5), (1, 7), (500, 0)].map(|(n, priority)| {
        ask(&worker, &format!("use t{n}\r\n"), &format!("USING t{n}\r\n"));
        worker_put(&worker, priority, n)
    });
    for (id, body) in [(&put[2], "500"), (&put[0], "999"), (&put[1], "001")] {
        ask(&worker, "reserve\r\n", &format!("RESERVED {id} 3\r\n{body}\r\n"));
    }
}

/// Puts a job, and returns its id.
fn worker_put(mut worker: &TcpStream, priority: u32, n: u32) -> String {
    worker.write_all(format!("put {priority} 0 60 3\r\n{n:03}\r\n").as_bytes()).expect("said");
    let mut heard = String::new();
    BufReader::with_capacity(1, worker).read_line(&mut heard).expect("an answer");
    heard.strip_prefix("INSERTED ").unwrap_or_else(|| panic!("{heard}")).trim().to_owned()
}

/// A bug that was found: 100 connections that each watched 990 tubes took 116 MB.
#[test]
fn watched_tubes_have_a_budget() {
    let limits = Limits { watched_bytes: 4 * 1_300, ..Limits::default() };
    let served = Served::start(Config { limits, ..with(door()) }).expect("started");
    let one = connect(&served);
    ask(
        &one,
        "watch a\r\nwatch b\r\nwatch a\r\nignore b\r\n",
        "WATCHING 2\r\nOUT_OF_MEMORY\r\nWATCHING 2\r\nWATCHING 2\r\n",
    );
    ask(&one, "ignore a\r\nwatch b\r\n", "WATCHING 1\r\nWATCHING 2\r\n");
    ask(&one, "ignore default\r\nwatch default\r\n", "WATCHING 1\r\nWATCHING 2\r\n");
    let others = [(); 3].map(|()| connect(&served));
    for other in &others {
        ask(other, "watch c\r\n", "WATCHING 2\r\n");
    }
    let last = connect(&served);
    ask(
        &last,
        "watch c\r\nput 0 0 60 2\r\nhi\r\nreserve\r\n",
        "OUT_OF_MEMORY\r\nINSERTED #1\r\nRESERVED #1 2\r\nhi\r\n",
    );
    drop(one);
    until("what it watched is given back", || {
        (&last).write_all(b"watch c\r\n").expect("said");
        let mut line = String::new();
        BufReader::with_capacity(1, &last).read_line(&mut line).expect("an answer");
        line == "WATCHING 2\r\n"
    });
}

//! Webhooks against a receiver that answers as the test wants: what arrives, and what becomes of the task.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tickwheel_push::dispatch::{BreakerPlan, Plan};
use tickwheel_push::guard::Guard;
use tickwheel_push::webhook::{
    AnswerRules, BodyForm, RequestPlan, Resolve, Resolving, SigningKey, SystemResolver, TlsPlan, Url,
    Webhook, WebhookPlan,
};
use tickwheel_push::{Push, Target, TargetState};
use tickwheel_queue::{Death, Get, Key, Lease, ListQueues, Put, Queue, QueueName, Retry, TaskView};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::version::{TLS12, TLS13};

use crate::kit::tls_front::{self, Identity};
use crate::kit::until_or;

/// How the receiver treats the next request.
#[derive(Clone)]
enum Treat {
    /// Answers with this text, and keeps the connection.
    Answer(&'static str),
    /// Answers, and closes the connection afterwards, without saying so.
    AnswerAndClose(&'static str),
    /// Closes the connection after the whole request, without an answer.
    Hang,
    /// Sends the first text, and then the second one for ever.
    Endless(&'static str, &'static str),
    /// Reads the request, and never answers.
    Silent,
}

const OK: Treat = Treat::Answer("HTTP/1.1 204 No Content\r\n\r\n");

/// A receiver of webhooks on loopback.
struct Receiver {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    treats: Arc<Mutex<VecDeque<Treat>>>,
}

impl Receiver {
    /// Treats the first requests as the list says, and answers 204 to all others.
    async fn start(treats: impl IntoIterator<Item = Treat>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let treats = Arc::new(Mutex::new(treats.into_iter().collect::<VecDeque<_>>()));
        let (seen, plan) = (Arc::clone(&requests), Arc::clone(&treats));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&seen), Arc::clone(&plan)));
            }
        });
        Self { address, requests, treats }
    }

    fn url(&self) -> String {
        format!("http://{}/hook/{{key}}", self.address)
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no panic").clone()
    }
}

async fn serve(mut stream: TcpStream, seen: Arc<Mutex<Vec<String>>>, treats: Arc<Mutex<VecDeque<Treat>>>) {
    loop {
        let Some(request) = read_request(&mut stream).await else { return };
        seen.lock().expect("no panic").push(request);
        let treat = treats.lock().expect("no panic").pop_front().unwrap_or(OK);
        match treat {
            Treat::Answer(text) => {
                if stream.write_all(text.as_bytes()).await.is_err() {
                    return;
                }
            }
            Treat::AnswerAndClose(text) => {
                let _ = stream.write_all(text.as_bytes()).await;
                return;
            }
            Treat::Hang => return,
            Treat::Endless(first, piece) => {
                let _ = stream.write_all(first.as_bytes()).await;
                let pieces = piece.repeat(4_096_usize.div_ceil(piece.len()));
                while stream.write_all(pieces.as_bytes()).await.is_ok() {}
                return;
            }
            Treat::Silent => {
                let mut rest = [0; 1];
                let _ = stream.read(&mut rest).await;
                return;
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4_096];
        let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().expect("a length")) {
                return Some(text);
            }
        }
    }
}

/// A queue with a webhook.
struct Pushed {
    queue: Queue,
    name: QueueName,
    push: Push,
}

struct Options {
    url: String,
    places: Vec<String>,
    rules: AnswerRules,
    timeout: Duration,
    signers: Vec<String>,
    resolver: Arc<dyn Resolve>,
    tls: TlsPlan,
}

impl Options {
    fn of(url: String) -> Self {
        Self {
            url,
            places: vec!["127.0.0.1".to_owned()],
            rules: AnswerRules::default(),
            timeout: Duration::from_secs(5),
            signers: Vec::new(),
            resolver: Arc::new(SystemResolver),
            tls: TlsPlan::default(),
        }
    }

    fn start(self) -> Pushed {
        let queue = Queue::options().open_memory().expect("a queue");
        let name = QueueName::new("close").expect("a name");
        let url = Url::parse(&self.url).expect("a URL");
        let places = self.places.iter().map(|place| place.parse().expect("a place")).collect();
        let webhook = Webhook::new(WebhookPlan {
            request: RequestPlan::new("POST", url, BodyForm::Payload, &[], None).expect("a plan"),
            signers: self.signers.iter().map(|key| SigningKey::parse(key).expect("a key").into()).collect(),
            rules: self.rules,
            timeout: self.timeout,
            connections_kept: 8,
            guard: Arc::new(Guard::new(places)),
            resolver: self.resolver,
            tls: self.tls.config().expect("TLS"),
        });
        let (push, _) = Push::new(&queue);
        let breaker = BreakerPlan { failures: 5, open_ms: 20, open_max_ms: 40 };
        let plan = Plan { timeout_ms: self.timeout.as_millis() as u64, breaker, ..Plan::default() };
        push.set(&name, Target { plan, ..Target::new(Arc::new(webhook)) });
        Pushed { queue, name, push }
    }
}

impl Pushed {
    fn put(&self, key: &str) {
        let mut put = Put::new(&self.name, Key::new(key).expect("a key")).payload(br#"{"a":1}"#.to_vec());
        put.terms.retry = Some(Retry { max_attempts: Some(3), backoff: None });
        self.queue.put(put).wait().expect("a put");
    }

    fn task(&self, key: &str) -> Option<TaskView> {
        let key = Key::new(key).expect("a key");
        self.queue.get(Get { queue: self.name.clone(), key }).wait().ok()
    }

    async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let told = || format!("{what}: {:?}", self.push.view(&self.name));
        until_or(told, || holds(self)).await;
    }

    async fn until_acked(&self, key: &str) {
        self.until("acked", |pushed| pushed.task(key).is_none()).await;
    }

    fn count(&self, outcome: &str) -> u64 {
        let view = self.push.view(&self.name).expect("a target");
        let mut outcomes = view.figures.outcomes();
        outcomes.find(|(name, _)| *name == outcome).expect("an outcome").1
    }
}

#[tokio::test]
async fn a_task_is_sent_signed_and_acked() {
    let receiver = Receiver::start([]).await;
    let key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned();
    let pushed = Options { signers: vec![key.clone()], ..Options::of(receiver.url()) }.start();
    pushed.put("order:1");
    pushed.until_acked("order:1").await;
    let [request] = &receiver.requests()[..] else { panic!("one request") };
    let value = |name: &str| {
        let line = request.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")[..]));
        line.unwrap_or_else(|| panic!("{name} is missing in {request}")).to_owned()
    };
    assert!(request.starts_with("POST /hook/order%3A1 HTTP/1.1\r\n"), "{request}");
    let id = format!("tw_{:08x}_1", pushed.queue.instance());
    assert_eq!((value("webhook-id"), value("idempotency-key")), (id.clone(), id.clone()));
    let at_s = value("webhook-timestamp").parse().expect("seconds");
    let signature = SigningKey::parse(&key).expect("a key").sign(&id, at_s, br#"{"a":1}"#);
    assert_eq!(value("webhook-signature"), signature);
    assert_eq!((value("tickwheel-attempt"), value("tickwheel-last-attempt")), ("1".into(), "false".into()));
    assert!(request.ends_with("\r\n\r\n{\"a\":1}"), "{request}");
}

#[tokio::test]
async fn a_task_that_fails_is_tried_as_often_as_its_policy_says() {
    let error = Treat::Answer("HTTP/1.1 500 Internal Server Error\r\ncontent-length: 5\r\n\r\nno db");
    let receiver = Receiver::start([error.clone(), error.clone(), error]).await;
    let pushed = Options::of(receiver.url()).start();
    pushed.put("order:1");
    pushed.until("dead", |pushed| pushed.task("order:1").is_some_and(|task| task.extra.dead.is_some())).await;
    let task = pushed.task("order:1").expect("a dead task");
    assert_eq!(task.extra.dead.map(|dead| dead.why), Some(Death::MaxAttempts));
    let last: Vec<bool> =
        receiver.requests().iter().map(|request| request.contains("tickwheel-last-attempt: true")).collect();
    assert_eq!(last, [false, false, true], "the receiver is told which attempt is the last one");
    let attempts = pushed.push.view(&pushed.name).expect("a target").attempts.newest(10);
    let shown: Vec<_> =
        attempts.iter().map(|attempt| (attempt.attempt, attempt.status, attempt.reason.as_deref())).collect();
    assert_eq!(shown[0], (3, Some(500), Some("http 500: no db")));
    assert_eq!(attempts[0].answer, b"no db");
}

/// An outage of the target uses up no attempt: the task would be dead after three.
#[tokio::test]
async fn an_outage_uses_up_no_attempt() {
    let busy = Treat::Answer("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n");
    let receiver = Receiver::start(std::iter::repeat_n(busy, 12)).await;
    let pushed = Options::of(receiver.url()).start();
    pushed.put("order:1");
    pushed.until_acked("order:1").await;
    assert_eq!((pushed.count("given_back"), pushed.count("acked"), pushed.count("failed")), (12, 1, 0));
    assert!(receiver.requests().iter().all(|request| request.contains("tickwheel-attempt: 1\r\n")));
}

#[tokio::test]
async fn a_refused_connection_uses_up_no_attempt_and_the_target_comes_back() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let pushed = Options::of(format!("http://{address}/")).start();
    pushed.put("order:1");
    pushed.until("five refusals", |pushed| pushed.count("given_back") >= 8).await;
    let task = pushed.task("order:1").expect("it is live");
    assert_eq!((task.extra.tally.leases, task.extra.dead.is_some()), (0, false));
    let listener = TcpListener::bind(address).await.expect("the same port");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, Arc::default(), Arc::default()));
        }
    });
    pushed.until_acked("order:1").await;
}

/// A load balancer without a machine behind it closes each connection. A task that crashes the receiver looks the same, but then an empty
/// connection stays open.
#[tokio::test]
async fn a_target_that_closes_all_connections_is_down_and_a_crash_is_the_tasks_fault() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    let pushed = Options::of(format!("http://{address}/")).start();
    pushed.put("order:1");
    pushed.until("resets", |pushed| pushed.count("given_back") >= 8).await;
    assert_eq!(
        (pushed.count("failed"), pushed.task("order:1").expect("it is live").extra.tally.leases),
        (0, 0)
    );

    let receiver = Receiver::start([Treat::Hang]).await;
    let pushed = Options::of(receiver.url()).start();
    pushed.put("order:2");
    pushed.until_acked("order:2").await;
    assert_eq!((pushed.count("failed"), pushed.count("given_back")), (1, 0));
}

#[tokio::test]
async fn a_receiver_that_is_gone_disables_the_target_until_an_operator_resumes_it() {
    let gone = Treat::Answer("HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n");
    let receiver = Receiver::start([gone]).await;
    let pushed = Options::of(receiver.url()).start();
    pushed.put("order:1");
    let is_disabled = |pushed: &Pushed| {
        pushed.push.view(&pushed.name).is_some_and(|view| view.state == TargetState::Disabled)
    };
    pushed.until("disabled", is_disabled).await;
    let view = pushed.push.view(&pushed.name).expect("a target");
    assert_eq!(view.reason.as_deref(), Some("http 410"));
    assert_eq!(pushed.task("order:1").expect("it is live").extra.tally.leases, 0);
    assert_eq!(receiver.requests().len(), 1);
    assert!(pushed.push.resume(&pushed.name));
    pushed.until_acked("order:1").await;
}

#[tokio::test]
async fn a_refused_task_is_dead_at_once() {
    let refused = Treat::Answer("HTTP/1.1 422 Unprocessable Content\r\ncontent-length: 0\r\n\r\n");
    let receiver = Receiver::start([refused]).await;
    let rules = AnswerRules { dead_on: vec![422], ..AnswerRules::default() };
    let pushed = Options { rules, ..Options::of(receiver.url()) }.start();
    pushed.put("order:1");
    pushed.until("dead", |pushed| pushed.task("order:1").is_some_and(|task| task.extra.dead.is_some())).await;
    assert_eq!(pushed.task("order:1").expect("dead").extra.dead.map(|dead| dead.why), Some(Death::Refused));
}

#[tokio::test]
async fn a_redirect_is_a_failure_and_is_not_followed() {
    let other = Receiver::start([]).await;
    let text: &'static str = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{}/\r\ncontent-length: 0\r\n\r\n",
        other.address
    )
    .leak();
    let metadata = Treat::Answer(
        "HTTP/1.1 302 Found\r\nlocation: //169.254.169.254/latest\r\ncontent-length: 0\r\n\r\n",
    );
    let receiver = Receiver::start([Treat::Answer(text), metadata]).await;
    let pushed = Options::of(receiver.url()).start();
    pushed.put("order:1");
    pushed.until_acked("order:1").await;
    assert_eq!((pushed.count("failed"), pushed.count("acked")), (2, 1));
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn an_endless_answer_and_none_at_all_end_in_time() {
    let endless = Treat::Endless("HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n", "x");
    let receiver = Receiver::start([endless, Treat::Silent]).await;
    let pushed = Options { timeout: Duration::from_secs(2), ..Options::of(receiver.url()) }.start();
    pushed.put("order:1");
    pushed.until_acked("order:1").await;
    pushed.put("order:2");
    pushed.until_acked("order:2").await;
    assert_eq!(pushed.count("acked"), 2);
    let attempts = pushed.push.view(&pushed.name).expect("a target").attempts.newest(10);
    assert!(attempts.iter().any(|attempt| attempt.reason.as_deref() == Some("no answer within 2s")));
}

/// A few informational answers (1xx) before an answer are passed over. Without an end of them, each connection kept a thread busy until its time
/// was over.
#[tokio::test]
async fn informational_answers_without_an_end_are_a_failure_of_the_target() {
    const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";
    let hints = format!("HTTP/1.1 103 Early Hints\r\nlink: {}\r\n\r\n", "x".repeat(20_000)).leak();
    let few = format!("{}HTTP/1.1 204 No Content\r\n\r\n", CONTINUE.repeat(8)).leak();
    let floods = [Treat::Endless("", CONTINUE), Treat::Endless("", hints), Treat::Answer(few)];
    let receiver = Receiver::start(floods).await;
    let pushed = Options { timeout: tickwheel_testing::HANG_TIME, ..Options::of(receiver.url()) }.start();
    pushed.put("order:1");
    pushed.until_acked("order:1").await;
    assert_eq!((pushed.count("given_back"), pushed.count("failed"), pushed.count("acked")), (2, 0, 1));
    let view = pushed.push.view(&pushed.name).expect("a target");
    let reasons: Vec<_> = view.attempts.newest(10).into_iter().filter_map(|attempt| attempt.reason).collect();
    assert_eq!(reasons.len(), 2);
    assert!(
        reasons
            .iter()
            .all(|reason| reason.contains("informational answers (1xx) came, and no answer after them")),
        "{reasons:?}"
    );
}

/// A receiver may close a connection that waits for the next request at any time.
#[tokio::test]
async fn a_kept_connection_that_was_closed_costs_no_attempt() {
    let close = Treat::AnswerAndClose("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let receiver = Receiver::start(std::iter::repeat_n(close, 20)).await;
    let pushed = Options::of(receiver.url()).start();
    for n in 0..20 {
        pushed.put(&format!("order:{n}"));
        pushed.until_acked(&format!("order:{n}")).await;
    }
    assert_eq!((pushed.count("acked"), pushed.count("failed"), pushed.count("given_back")), (20, 0, 0));
}

/// A name whose addresses are others at each look-up. The last answer is repeated.
struct Rebinding(Mutex<Vec<&'static [[u8; 4]]>>);

impl Resolve for Rebinding {
    fn resolve<'a>(&'a self, _: &'a str) -> Resolving<'a> {
        let mut left = self.0.lock().expect("no panic");
        let addresses = if left.len() > 1 { left.remove(0) } else { left[0] };
        Box::pin(async move { Ok(addresses.iter().map(|bytes| IpAddr::from(*bytes)).collect()) })
    }
}

/// A listener at another address of loopback, which counts its connections.
async fn listener_beside(receiver: &Receiver) -> (SocketAddr, Arc<AtomicUsize>) {
    let at = SocketAddr::new([127, 0, 0, 2].into(), receiver.address.port());
    let listener = TcpListener::bind(at).await.expect("all of 127/8 is this machine");
    let count = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            drop(stream);
        }
    });
    (at, count)
}

/// A bug that was found: with a target, `tickwheel_waiting_leases` was never 0, so it did not show that all workers were gone.
#[tokio::test]
async fn the_call_of_a_target_is_not_counted_with_the_workers_that_wait() {
    let receiver = Receiver::start([]).await;
    let pushed = Options::of(receiver.url()).start();
    let waiting = |pushed: &Pushed| pushed.queue.queue(&pushed.name).wait().expect("a queue").waiting;
    let counted =
        |pushed: &Pushed| pushed.queue.stats(ListQueues::default()).wait().expect("figures").waiting;
    pushed.until("the target waits", |pushed| waiting(pushed) == 1).await;
    assert_eq!(counted(&pushed), 0);
    let _worker = pushed.queue.lease(Lease::new(&pushed.name), Duration::MAX);
    pushed.until("a worker waits, too", |pushed| waiting(pushed) == 2).await;
    assert_eq!(counted(&pushed), 1);
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_checked_at_each_connection() {
    let close = Treat::AnswerAndClose("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
    let receiver = Receiver::start([close]).await;
    let (_, denied) = listener_beside(&receiver).await;
    let resolver = Arc::new(Rebinding(Mutex::new(vec![&[[127, 0, 0, 1]], &[[127, 0, 0, 2]]])));
    let place = format!("127.0.0.1:{}", receiver.address.port());
    let url = format!("http://hooks.example:{}/", receiver.address.port());
    let pushed = Options { places: vec![place], resolver, ..Options::of(url) }.start();
    pushed.put("order:1");
    pushed.until_acked("order:1").await;
    // The first connection is closed, so that the second one has a look-up of its own.
    pushed.put("order:2");
    pushed.until("blocked", |pushed| pushed.count("blocked") >= 3).await;
    assert_eq!((receiver.requests().len(), denied.load(Ordering::SeqCst)), (1, 0));
}

#[tokio::test]
async fn a_denied_address_beside_an_allowed_one_is_never_called() {
    let receiver = Receiver::start([]).await;
    let (_, denied) = listener_beside(&receiver).await;
    let both: &[[u8; 4]] = &[[127, 0, 0, 2], [127, 0, 0, 1]];
    let resolver = Arc::new(Rebinding(Mutex::new(vec![both])));
    let place = format!("127.0.0.1:{}", receiver.address.port());
    let url = format!("http://hooks.example:{}/", receiver.address.port());
    let pushed = Options { places: vec![place], resolver, ..Options::of(url) }.start();
    pushed.put("order:1");
    pushed.until_acked("order:1").await;
    assert_eq!((receiver.requests().len(), denied.load(Ordering::SeqCst)), (1, 0));
}

/// Puts a task to a receiver over TLS, and returns the target when the task is acked or given back.
async fn over_tls(front: ServerConfig, tls: TlsPlan) -> Pushed {
    let receiver = Receiver::start([]).await;
    let port = tls_front::start(receiver.address, front).await;
    let url = format!("https://127.0.0.1:{port}/");
    let pushed = Options { tls, ..Options::of(url) }.start();
    pushed.put("order:1");
    pushed.until("tried", |pushed| pushed.count("acked") + pushed.count("given_back") > 0).await;
    assert_eq!(pushed.count("failed"), 0, "TLS is never the fault of a task");
    assert_eq!(receiver.requests().is_empty(), pushed.count("acked") == 0);
    pushed
}

fn reason(pushed: &Pushed) -> String {
    pushed.push.view(&pushed.name).and_then(|view| view.reason).expect("a reason").to_string()
}

#[tokio::test]
async fn a_receiver_is_known_by_its_certificate() {
    let ours = Identity::new("127.0.0.1");
    let trusting = |roots: &Identity| TlsPlan { roots_pem: Some(roots.roots_pem()), ..TlsPlan::default() };
    let pushed = over_tls(ours.server(&[&TLS13, &TLS12], None), trusting(&ours)).await;
    assert_eq!(pushed.count("acked"), 1);
    // A certificate of another authority, of the web's authorities, and of another name.
    let pushed = over_tls(ours.server(&[&TLS13], None), trusting(&Identity::new("127.0.0.1"))).await;
    assert!(reason(&pushed).contains("TLS: the certificate of the other side is not"), "{}", reason(&pushed));
    let pushed = over_tls(ours.server(&[&TLS13], None), TlsPlan::default()).await;
    assert!(
        reason(&pushed).contains("TLS: no trusted authority has signed the certificate"),
        "{}",
        reason(&pushed)
    );
    let other = Identity::new("hooks.example");
    let pushed = over_tls(other.server(&[&TLS13], None), trusting(&other)).await;
    assert!(
        reason(&pushed).contains("TLS: the certificate of the other side is for another name"),
        "{}",
        reason(&pushed)
    );
}

#[tokio::test]
async fn a_certificate_of_the_client_and_the_lowest_version_count() {
    let (ours, client) = (Identity::new("127.0.0.1"), Identity::new("tickwheel"));
    let roots_pem = Some(ours.roots_pem());
    let shown =
        TlsPlan { roots_pem: roots_pem.clone(), client_pem: Some(client.pem()), ..TlsPlan::default() };
    let none = TlsPlan { roots_pem: roots_pem.clone(), ..TlsPlan::default() };
    let asking = || ours.server(&[&TLS13, &TLS12], Some(&client));
    assert_eq!(over_tls(asking(), shown).await.count("acked"), 1);
    assert_eq!(over_tls(asking(), none).await.count("acked"), 0);
    let new = || TlsPlan { roots_pem: roots_pem.clone(), only_tls13: true, ..TlsPlan::default() };
    assert_eq!(over_tls(ours.server(&[&TLS12], None), new()).await.count("acked"), 0);
    assert_eq!(over_tls(ours.server(&[&TLS13], None), new()).await.count("acked"), 1);
}

#[tokio::test]
async fn a_name_that_leads_into_the_own_network_is_blocked_at_each_connection() {
    let receiver = Receiver::start([]).await;
    let port = receiver.address.port();
    let resolver = Arc::new(Rebinding(Mutex::new(vec![&[[127, 0, 0, 1]]])));
    let url = format!("https://hooks.example:{port}/");
    let pushed = Options { places: Vec::new(), resolver, ..Options::of(url) }.start();
    pushed.put("order:1");
    // More often than the task may be tried.
    pushed.until("blocked", |pushed| pushed.count("blocked") >= 5).await;
    let task = pushed.task("order:1").expect("it waits");
    assert!(task.extra.dead.is_none() && task.extra.failures.is_empty(), "{task:?}");
    assert!(receiver.requests().is_empty());
    let view = pushed.push.view(&pushed.name).expect("a target");
    assert!(matches!(view.state, TargetState::Open | TargetState::HalfOpen), "{view:?}");
    let reason = view.reason.expect("a reason");
    assert!(reason.starts_with("blocked address: hooks.example is 127.0.0.1 (this machine)"), "{reason}");
}

#[tokio::test]
async fn a_changed_target_and_a_stop_settle_what_is_under_way() {
    let receiver = Receiver::start([Treat::Silent]).await;
    let pushed = Options { timeout: Duration::from_millis(300), ..Options::of(receiver.url()) }.start();
    pushed.put("order:1");
    pushed.until("sent", |_| receiver.requests().len() == 1).await;
    pushed.push.stop(Duration::from_secs(60)).await;
    assert!(pushed.push.view(&pushed.name).is_none());
    let task = pushed.task("order:1").expect("it is live");
    assert!(task.extra.tally.leases <= 1 && task.extra.dead.is_none());
    assert!(receiver.treats.lock().expect("no panic").is_empty());
    assert_eq!(receiver.requests().len(), 1, "nothing is sent after a stop");
}

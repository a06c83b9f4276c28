//! The service and the listener give the third door rights, quotas, a drain, metrics and limits. The door has no code
//! of its own for them.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::door::Resp;
use crate::access::tokens::Tokens;
use crate::config::{Config, Store};
use crate::doors::plans::plans;
use crate::listen::socket::ListenAt;
use crate::server::Server;
use crate::service::drain::Drain;

const TOKENS: &str = "producer rights=produce scope=shop/\nworker rights=consume scope=shop/\nadmin\n";

struct Served {
    http: String,
    resp: String,
    drain: Drain,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
}

impl Served {
    async fn start(change: impl FnOnce(Config) -> Config) -> Self {
        let anywhere = || "127.0.0.1:0".parse::<ListenAt>().expect("an address");
        let tokens = Tokens::parse(TOKENS).expect("tokens");
        let config = change(Config { listen: anywhere(), tokens, ..Config::new(Store::Memory) });
        let mut plans = plans(&config);
        plans.push(Box::new(Resp::at(anywhere())));
        let server = Server::with_doors(config, plans).await.expect("it starts");
        let (stop, stopped) = oneshot::channel();
        let place = |name| server.door(name).expect("it is open").to_string();
        let (http, resp, drain) = (place("http"), place("resp"), server.drain());
        let running = tokio::spawn(server.run(async move { drop(stopped.await) }));
        Self { http, resp, drain, stop: Some(stop), running }
    }

    async fn client(&self) -> Client {
        Client(BufReader::new(TcpStream::connect(&self.resp).await.expect("connected")))
    }

    async fn stop(mut self) {
        drop(self.stop.take());
        self.running.await.expect("it stops");
    }

    async fn metric(&self, name: &str) -> String {
        let mut http = TcpStream::connect(&self.http).await.expect("connected");
        let head = format!(
            "GET /metrics HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer admin\r\nConnection: close\r\n\r\n",
            self.http
        );
        http.write_all(head.as_bytes()).await.expect("sent");
        let mut page = String::new();
        http.read_to_string(&mut page).await.expect("answered");
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} on the page: {page}")).to_owned()
    }
}

struct Client(BufReader<TcpStream>);

impl Client {
    /// Sends a line and returns this many lines of the reply.
    async fn ask(&mut self, line: &str, lines: usize) -> Vec<String> {
        self.0.write_all(format!("{line}\r\n").as_bytes()).await.expect("sent");
        let mut reply = Vec::new();
        for _ in 0..lines {
            let mut text = String::new();
            self.0.read_line(&mut text).await.expect("answered");
            reply.push(text.trim_end().to_owned());
        }
        reply
    }

    async fn with_token(mut self, token: &str) -> Self {
        assert_eq!(self.ask(&format!("AUTH {token}"), 1).await, ["+OK"]);
        self
    }
}

#[tokio::test]
async fn a_task_goes_through_the_third_door_and_its_delivery_is_counted() {
    let served = Served::start(|config| config).await;
    let mut worker = served.client().await.with_token("worker").await;
    assert_eq!(worker.ask("PING", 1).await, ["+PONG"]);
    assert_eq!(worker.ask("GETJOB shop/close 0", 1).await, ["*-1"]);
    // The worker waits before the task exists, so that its delivery has a lateness.
    let waits = tokio::spawn(async move {
        let reply = worker.ask("GETJOB shop/close 60000", 7).await;
        (worker, reply)
    });
    let mut producer = served.client().await.with_token("producer").await;
    assert_eq!(producer.ask("ADDJOB shop/close order-7 hello 5", 2).await[0], "$1");
    let (mut worker, reply) = waits.await.expect("it gets the task");
    assert_eq!((reply[0].as_str(), reply[2].as_str(), reply[6].as_str()), ("*3", "order-7", "hello"));
    let ack = format!("ACKJOB shop/close {}", reply[4]);
    assert_eq!(worker.ask(&ack, 1).await, [":1"]);
    assert_eq!(served.metric("tickwheel_delivery_lateness_seconds_count").await, "1");
    assert_eq!(served.metric("tickwheel_resp_commands_total").await, "7");
    served.stop().await;
}

#[tokio::test]
async fn rights_scopes_quotas_and_a_drain_hold_at_the_third_door() {
    let limited = |config: Config| {
        let tokens = Tokens::parse(&format!("{TOKENS}slow rate=1/1h\n")).expect("tokens");
        Config { tokens, ..config }
    };
    let served = Served::start(limited).await;
    let mut nobody = served.client().await;
    let said = nobody.ask("ADDJOB shop/close a b 0", 1).await;
    assert!(said[0].starts_with("-ERR") && said[0].contains("token"), "{said:?}");
    let mut worker = served.client().await.with_token("worker").await;
    assert!(worker.ask("ADDJOB shop/close a b 0", 1).await[0].contains("produce"));
    assert!(worker.ask("GETJOB bank/close 0", 1).await[0].starts_with("-ERR"));
    let mut admin = served.client().await.with_token("admin").await;
    assert!(admin.ask("ADDJOB $jobs a b 0", 1).await[0].starts_with("-ERR"), "the server's own queue");
    let mut slow = served.client().await.with_token("slow").await;
    assert_eq!(slow.ask("ADDJOB shop/close a b 0", 2).await[0], "$1");
    assert!(slow.ask("ADDJOB shop/close a b 0", 1).await[0].contains("used up"));
    served.drain.begin();
    let said = admin.ask("ADDJOB shop/close c d 0", 1).await;
    assert!(said[0].starts_with("-ERR"), "{said:?}");
    served.drain.end();
    assert_eq!(admin.ask("ADDJOB shop/close c d 0", 2).await[0], "$1");
    assert_eq!(served.metric("tickwheel_refused_total{problem=\"server-draining\"}").await, "1");
    served.stop().await;
}

#[tokio::test]
async fn the_listener_keeps_its_limits_and_ends_its_waits() {
    let served = Served::start(|config| Config { connections_max: 1, ..config }).await;
    let mut worker = served.client().await.with_token("worker").await;
    let mut second = served.client().await;
    let mut told = String::new();
    second.0.read_to_string(&mut told).await.expect("told, and closed");
    assert!(told.starts_with("-ERR") && told.contains("--max-connections"), "{told:?}");
    let waits = tokio::spawn(async move { worker.ask("GETJOB shop/close 3600000", 1).await });
    while served.metric("tickwheel_waiting_leases").await != "1" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    served.stop().await;
    assert_eq!(waits.await.expect("answered"), ["*-1"], "a stop ends the wait");
}

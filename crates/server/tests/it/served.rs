//! A server on its own thread.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Instant;

use serde_json::Value;
use tickwheel_server::{Config, Drain, ListenAt, Server, StartError, Store};
use tokio::sync::oneshot;

use crate::databases;
use crate::raw::{Connection, Reply};

/// A running server. Dropping it stops the server.
pub(crate) struct Served {
    pub(crate) addr: SocketAddr,
    /// The address of the door for clients of beanstalkd.
    pub(crate) beanstalk: Option<ListenAt>,
    pub(crate) drain: Drain,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A configuration with a virtual clock, tasks in memory, and any free port.
pub(crate) fn virtual_memory() -> Config {
    Config { virtual_clock: true, ..on_any_port(Store::Memory) }
}

pub(crate) fn on_any_port(store: Store) -> Config {
    Config { listen: "127.0.0.1:0".parse().expect("an address"), ..Config::new(store) }
}

/// The number of shards of the servers of this run: that of the variable `TICKWHEEL_TEST_SHARDS`, or one.
pub(crate) fn shards() -> u32 {
    let set = std::env::var("TICKWHEEL_TEST_SHARDS").ok();
    set.map_or(1, |number| number.parse().expect("TICKWHEEL_TEST_SHARDS is a number"))
}

impl Served {
    pub(crate) fn memory() -> Self {
        Self::start(virtual_memory()).expect("started")
    }

    pub(crate) fn start(config: Config) -> Result<Self, StartError> {
        let config = databases::moved(Config { shards: config.shards.or(Some(shards())), ..config });
        let (started, when_started) = mpsc::channel();
        let (stop, when_stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                match Server::bind(config).await {
                    Ok(server) => {
                        let addr = match server.local_addr() {
                            ListenAt::Tcp(addr) => *addr,
                            // No test connects to this address.
                            ListenAt::Unix(_) => SocketAddr::from(([127, 0, 0, 1], 1)),
                        };
                        started
                            .send(Ok((addr, server.door("beanstalk").cloned(), server.drain())))
                            .expect("the test waits for it");
                        server.run(async { drop(when_stopped.await) }).await;
                    }
                    Err(error) => started.send(Err(error)).expect("the test waits for it"),
                }
            });
        });
        let (addr, beanstalk, drain) = when_started.recv().expect("the server's thread has not panicked")?;
        Ok(Self { addr, beanstalk, drain, stop: Some(stop), thread: Some(thread) })
    }

    /// Tells the server to stop, without waiting.
    pub(crate) fn tell_to_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Stops the server and waits for its end.
    pub(crate) fn stop(mut self) {
        self.tell_to_stop();
        self.join();
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server stopped without a panic");
        }
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::to(self.addr)
    }

    /// Sends one request on a new connection.
    pub(crate) fn call(&self, method: &str, target: &str, body: &str) -> Reply {
        self.call_with(method, target, &[], body)
    }

    pub(crate) fn call_with(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let mut connection = self.connect();
        connection.request(method, target, headers, body.as_bytes());
        connection.reply()
    }

    /// Sends a request whose answer must have this status.
    pub(crate) fn expect(&self, status: u16, method: &str, target: &str, body: &str) -> Value {
        let reply = self.call(method, target, body);
        assert_eq!(reply.status, status, "{method} {target} {body}: {}", reply.text());
        reply.json()
    }

    /// Moves the virtual clock.
    pub(crate) fn advance(&self, by: &str) -> Value {
        self.expect(200, "POST", "/v1/clock/advance", &format!(r#"{{"by":"{by}"}}"#))
    }

    /// Leases up to `max` ready tasks of a queue.
    pub(crate) fn lease(&self, queue: &str, max: usize) -> Vec<Value> {
        let answer =
            self.expect(200, "POST", &format!("/v1/queues/{queue}/lease"), &format!(r#"{{"max":{max}}}"#));
        answer["tasks"].as_array().expect("an array").clone()
    }

    /// Calls `verb` with tokens, and returns the results.
    pub(crate) fn say(&self, queue: &str, verb: &str, tokens: &[&Value]) -> Vec<String> {
        let body = serde_json::json!({ "tokens": tokens }).to_string();
        let answer = self.expect(200, "POST", &format!("/v1/queues/{queue}/{verb}"), &body);
        let results = answer["results"].as_array().expect("an array");
        results.iter().map(|result| result.as_str().expect("a string").to_owned()).collect()
    }

    /// The counts `[scheduled, ready, leased]` of a queue.
    pub(crate) fn counts(&self, queue: &str) -> [u64; 3] {
        let counts = self.expect(200, "GET", &format!("/v1/queues/{queue}"), "");
        ["scheduled", "ready", "leased"].map(|state| counts[state].as_u64().expect("a count"))
    }

    /// The value of a metric without labels.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let page = self.call("GET", "/metrics", "").text();
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().expect("a number")
    }

    /// Scrapes until this number of lease calls wait. The server has no event for it.
    pub(crate) fn await_waiting(&self, count: f64) {
        until("as many leases wait", || self.metric("tickwheel_waiting_leases") == count);
    }
}

/// Repeats a check until it is true.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "it never came true that {what}");
        // A spinning thread would take a processor from the server that it waits for.
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.tell_to_stop();
        if !std::thread::panicking() {
            self.join();
        }
    }
}

//! The sink of beanstalkd, against a real beanstalkd.
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::kit::{Broker, Pushed, find};
use serde_json::Value;
use tickwheel_push::TargetState;
use tickwheel_push::beanstalk::{BeanstalkConnection, BeanstalkPlan, BeanstalkSink};
use tickwheel_push::broker::{ContentForm, Link};
use tickwheel_queue::Death;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Starts a beanstalkd that writes each job to its disk before it answers; `None`: it is not installed.
fn start() -> Option<Broker> {
    let program = find("beanstalkd", "TICKWHEEL_BEANSTALKD")?;
    Some(Broker::start(&program, |port, directory: &Path| {
        let directory = directory.to_str().expect("a path of text");
        let port = port.to_string();
        ["-l", "127.0.0.1", "-p", &port, "-b", directory, "-f", "0"].map(str::to_owned).to_vec()
    }))
}

fn link(broker: &Broker) -> Arc<Link<BeanstalkConnection>> {
    let endpoint = broker.address().parse().expect("an endpoint");
    Arc::new(Link::new(BeanstalkConnection { endpoint, tls: None }))
}

fn plan(tube: &str, form: Option<ContentForm>, timeout: Duration) -> BeanstalkPlan {
    BeanstalkPlan::new(tube, 7, 90, form, timeout).expect("a plan")
}

fn pushed(broker: &Broker) -> Pushed {
    Pushed::start(BeanstalkSink::new(link(broker), plan("due", None, TIMEOUT)))
}

/// A plain client.
struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(broker: &Broker, tube: &str) -> Self {
        let mut client = Self(BufReader::new(TcpStream::connect(broker.address()).expect("a connection")));
        assert_eq!(client.ask(&format!("watch {tube}")), "WATCHING 2");
        client
    }

    fn ask(&mut self, command: &str) -> String {
        self.0.get_mut().write_all(format!("{command}\r\n").as_bytes()).expect("written");
        let mut line = String::new();
        self.0.read_line(&mut line).expect("an answer");
        line.trim_end().to_owned()
    }

    fn body(&mut self, bytes: &str) -> Vec<u8> {
        let mut body = vec![0; bytes.parse::<usize>().expect("a length") + 2];
        self.0.read_exact(&mut body).expect("a body");
        body.truncate(body.len() - 2);
        body
    }

    /// Takes all ready jobs: their ids and bodies.
    fn take_all(&mut self) -> Vec<(String, Vec<u8>)> {
        let mut jobs = Vec::new();
        loop {
            let answer = self.ask("reserve-with-timeout 0");
            match answer.split(' ').collect::<Vec<_>>()[..] {
                ["RESERVED", id, bytes] => jobs.push((id.to_owned(), self.body(bytes))),
                ["TIMED_OUT"] => return jobs,
                _ => panic!("{answer}"),
            }
        }
    }
}

#[tokio::test]
async fn a_job_has_all_facts_of_its_task_and_the_terms_of_its_target() {
    let Some(broker) = start() else { return };
    let pushed = pushed(&broker);
    pushed.put("order:1/ä");
    pushed.until("acked", |pushed| pushed.count("acked") == 1).await;
    let mut client = Client::connect(&broker, "due");
    let [(id, body)] = &client.take_all()[..] else { panic!("one job") };
    let body: Value = serde_json::from_slice(body).expect("JSON");
    assert_eq!((&body["queue"], &body["key"]), (&"close".into(), &"order:1/ä".into()));
    assert_eq!((&body["attempt"], &body["id"]), (&1.into(), &1.into()));
    assert_eq!(body["payload_base64"], "eyJhIjoxfQ==", "{body}");
    let stats = client.ask(&format!("stats-job {id}"));
    let stats = client.body(stats.strip_prefix("OK ").expect("figures"));
    let stats = String::from_utf8(stats).expect("text");
    assert!(stats.contains("\npri: 7\n") && stats.contains("\nttr: 90\n"), "{stats}");
}

#[tokio::test]
async fn a_payload_arrives_byte_by_byte() {
    let Some(broker) = start() else { return };
    let plan = plan("due", Some(ContentForm::Payload), TIMEOUT);
    let pushed = Pushed::start(BeanstalkSink::new(link(&broker), plan));
    pushed.put_payload("order:1", b"\x00\r\nput 1 0 1 0\r\n\r\n\xff".to_vec());
    pushed.put_payload("order:2", Vec::new());
    pushed.until("acked", |pushed| pushed.count("acked") == 2).await;
    let bodies: Vec<_> =
        Client::connect(&broker, "due").take_all().into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, [b"\x00\r\nput 1 0 1 0\r\n\r\n\xff".to_vec(), Vec::new()]);
}

/// Two targets share one connection, on which the tube changes between the puts.
#[tokio::test]
async fn each_job_is_in_the_tube_of_its_target() {
    let Some(broker) = start() else { return };
    let link = link(&broker);
    let targets = ["a", "b"].map(|tube| {
        Pushed::start(BeanstalkSink::new(Arc::clone(&link), plan(tube, Some(ContentForm::Payload), TIMEOUT)))
    });
    for n in 0..100 {
        for (pushed, tube) in targets.iter().zip(["a", "b"]) {
            pushed.put_payload(&format!("order:{n}"), tube.as_bytes().to_vec());
        }
    }
    for (pushed, tube) in targets.iter().zip(["a", "b"]) {
        pushed.until("acked", |pushed| pushed.count("acked") == 100).await;
        let jobs = Client::connect(&broker, tube).take_all();
        assert_eq!(jobs.len(), 100);
        assert!(jobs.iter().all(|(_, body)| body == tube.as_bytes()));
    }
}

/// A frozen server has messages under way when it is killed. Each is given back and sent again.
#[tokio::test]
async fn a_killed_server_loses_nothing_and_uses_up_no_attempt() {
    let Some(mut broker) = start() else { return };
    let pushed = pushed(&broker);
    pushed.put_many(0..100);
    pushed.until("begun", |pushed| pushed.count("acked") >= 20).await;
    broker.signal("-STOP");
    pushed.put_many(100..200);
    pushed.until("under way", |pushed| pushed.view().in_flight > 1).await;
    broker.kill();
    pushed.until("down", |pushed| pushed.view().state == TargetState::Open).await;
    broker.start_again();
    pushed.until("all acked", |pushed| pushed.are_gone(0..200)).await;
    assert!(pushed.count("given_back") > 1);
    pushed.assert_no_attempt_is_used_up();
    let keys: BTreeSet<String> = Client::connect(&broker, "due")
        .take_all()
        .iter()
        .map(|(_, body)| serde_json::from_slice::<Value>(body).expect("JSON")["key"].to_string())
        .collect();
    assert_eq!(keys.len(), 200, "each acked task is in the tube");
}

#[tokio::test]
async fn a_server_that_does_not_answer_uses_up_no_attempt() {
    let Some(broker) = start() else { return };
    let plan = plan("due", None, Duration::from_millis(300));
    let pushed = Pushed::start(BeanstalkSink::new(link(&broker), plan));
    broker.signal("-STOP");
    pushed.put("order:1");
    pushed.until("given back", |pushed| pushed.count("given_back") > 0).await;
    pushed.assert_no_attempt_is_used_up();
    broker.signal("-CONT");
    pushed.until("acked", |pushed| pushed.count("acked") == 1).await;
}

#[tokio::test]
async fn a_server_that_drains_uses_up_no_attempt() {
    let Some(mut broker) = start() else { return };
    let pushed = pushed(&broker);
    broker.signal("-USR1");
    pushed.put("order:1");
    pushed.until("given back", |pushed| pushed.count("given_back") >= 6).await;
    assert_eq!(pushed.last_reason(), "DRAINING: the server takes no new jobs");
    pushed.assert_no_attempt_is_used_up();
    broker.kill();
    broker.start_again();
    pushed.until("acked", |pushed| pushed.count("acked") == 1).await;
    pushed.assert_no_attempt_is_used_up();
}

#[tokio::test]
async fn a_payload_that_is_too_large_is_dead_at_once_and_others_arrive() {
    let Some(broker) = start() else { return };
    let pushed = pushed(&broker);
    pushed.put_payload("large", vec![b'x'; 65_536]);
    pushed.put_many(0..20);
    pushed.until("all others acked", |pushed| pushed.count("acked") == 20).await;
    pushed.until("dead", |pushed| pushed.death("large").is_some()).await;
    assert_eq!((pushed.death("large"), pushed.count("given_back")), (Some(Death::TooLarge), 0));
}

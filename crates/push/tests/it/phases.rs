//! Each broker is killed at each phase of a delivery: before each piece of the talk between the sink and the broker, from the first bytes of the
//! connection to the confirm. No phase loses the message or uses up an attempt.
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use crate::kit::{Broker, From, Phases, Pushed, find, until};
use async_nats::jetstream;
use krafka::Kafka;
use krafka::admin::{CreateTopicsOptions, NewTopic};
use lapin::options::QueueDeclareOptions;
use lapin::types::{AMQPValue, FieldTable};
use tickwheel_push::Sink;
use tickwheel_push::amqp::{AmqpConnection, AmqpDial, AmqpForm, AmqpPlan, AmqpSink};
use tickwheel_push::beanstalk::{BeanstalkConnection, BeanstalkPlan, BeanstalkSink};
use tickwheel_push::broker::{ContentForm, Endpoint, Link};
use tickwheel_push::kafka::{KafkaConnection, KafkaPlan, KafkaSink};
use tickwheel_push::nats::{NatsConnection, NatsPlan, NatsSink};
use tickwheel_push::redis::{RedisConnection, RedisPlan, RedisSink, Structure};

const TIMEOUT: Duration = Duration::from_secs(10);

/// Sends a message, and kills the broker as soon as the sink or the broker has sent piece `nth`. The message has to arrive. Returns the side
/// whose piece was lost; `None`: the message was confirmed before there was such a piece.
async fn kill_at(
    nth: usize,
    phases: Phases,
    sink: impl Sink + 'static,
    kill_and_start_again: impl AsyncFnOnce(&Phases),
) -> Option<From> {
    phases.count_from_now();
    let pushed = Pushed::start(sink);
    pushed.put("order:1");
    let mut stopped = None;
    until("the talk stops or ends", || {
        stopped = phases.stopped();
        stopped.is_some() || pushed.are_gone(1..2)
    })
    .await;
    if stopped.is_some() {
        kill_and_start_again(&phases).await;
    }
    pushed.until("acked", |pushed| pushed.are_gone(1..2)).await;
    assert_eq!(pushed.count("acked"), 1, "piece {nth}");
    pushed.assert_no_attempt_is_used_up();
    stopped
}

/// Kills the broker at each phase in turn. Returns the sides whose pieces were lost.
async fn kill_at_each<S: Sink + 'static>(broker: &mut Broker, sink: impl Fn(Endpoint) -> S) -> Vec<From> {
    let mut lost = Vec::new();
    loop {
        let phases = Phases::start(broker.address(), lost.len());
        let sink = sink(endpoint(&phases));
        let kill = async |phases: &Phases| {
            broker.kill();
            phases.go_on();
            broker.start_again();
        };
        let Some(from) = kill_at(lost.len(), phases, sink, kill).await else { return lost };
        lost.push(from);
    }
}

fn endpoint(phases: &Phases) -> Endpoint {
    phases.address().parse().expect("an endpoint")
}

/// Says which phases were reached. A talk of fewer pieces was no talk.
#[expect(clippy::print_stderr, reason = "the counts are for the reader of the test")]
fn report(broker: &str, lost: &[From], least: usize) {
    eprintln!("{broker}: killed before {} pieces: {lost:?}", lost.len());
    assert!(lost.len() >= least && lost.contains(&From::Server) && lost.contains(&From::Client), "{lost:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn redis() {
    let Some(program) = find("redis-server", "TICKWHEEL_REDIS_SERVER") else { return };
    let mut broker = Broker::start(&program, |port, directory| {
        let (port, directory) = (port.to_string(), directory.to_str().expect("a path of text").to_owned());
        let args = ["--port", &port, "--bind", "127.0.0.1", "--dir", &directory];
        let durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
        args.iter().chain(&durable).map(|arg| (*arg).to_owned()).collect()
    });
    let lost = kill_at_each(&mut broker, |endpoint| {
        let structure = Structure::Stream { key: "due".to_owned(), maxlen: None };
        let plan = RedisPlan::new(structure, None, &[], 0, TIMEOUT).expect("a plan");
        RedisSink::new(Arc::new(Link::new(RedisConnection::new(vec![endpoint]))), plan)
    })
    .await;
    report("Redis", &lost, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn nats() {
    let Some(program) = find("nats-server", "TICKWHEEL_NATS_SERVER") else { return };
    let mut broker = Broker::start(&program, |port, directory| {
        let (port, directory) = (port.to_string(), directory.to_str().expect("a path of text").to_owned());
        ["-js", "-a", "127.0.0.1", "-p", &port, "-sd", &directory].map(str::to_owned).to_vec()
    });
    let client = async_nats::connect(broker.address()).await.expect("a connection");
    let (name, subjects) = ("DUE".to_owned(), vec!["due.>".to_owned()]);
    let config = jetstream::stream::Config { name, subjects, ..Default::default() };
    jetstream::new(client).create_stream(config).await.expect("a stream");
    let lost = kill_at_each(&mut broker, |endpoint| {
        let plan = NatsPlan::new("due.{queue}", "DUE", ContentForm::Payload, &[], TIMEOUT).expect("a plan");
        NatsSink::new(Arc::new(Link::new(NatsConnection::new(vec![endpoint]))), plan)
    })
    .await;
    report("NATS", &lost, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn beanstalkd() {
    let Some(program) = find("beanstalkd", "TICKWHEEL_BEANSTALKD") else { return };
    let mut broker = Broker::start(&program, |port, directory| {
        let (port, directory) = (port.to_string(), directory.to_str().expect("a path of text").to_owned());
        ["-l", "127.0.0.1", "-p", &port, "-b", &directory, "-f", "0"].map(str::to_owned).to_vec()
    });
    let lost = kill_at_each(&mut broker, |endpoint| {
        let plan = BeanstalkPlan::new("due", 7, 90, None, TIMEOUT).expect("a plan");
        BeanstalkSink::new(Arc::new(Link::new(BeanstalkConnection { endpoint, tls: None })), plan)
    })
    .await;
    report("beanstalkd", &lost, 2);
}

/// The broker keeps its records in memory, so its topic is made anew after each kill.
#[tokio::test(flavor = "multi_thread")]
async fn kafka() {
    let Some(program) = find("tansu", "TICKWHEEL_TANSU") else { return };
    let mut lost = Vec::new();
    loop {
        // The broker tells its clients the address of the proxy.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let advertised = format!("tcp://{}", listener.local_addr().expect("an address"));
        let mut broker = Broker::start(&program, |port, _| {
            let url = format!("tcp://127.0.0.1:{port}");
            let args = ["broker", "--listener-url", &url, "--advertised-listener-url", &advertised];
            args.iter().chain(&["--storage-engine", "memory://tansu/"]).map(|arg| (*arg).to_owned()).collect()
        });
        let phases = Phases::start_on(listener, broker.address(), lost.len());
        make_topic(&broker).await;
        let endpoints = vec![endpoint(&phases)];
        let connection =
            KafkaConnection { delivery_timeout: Duration::from_secs(2), ..KafkaConnection::new(endpoints) };
        let plan = KafkaPlan::new("due", None, ContentForm::Payload, &[], TIMEOUT).expect("a plan");
        let sink = KafkaSink::new(Arc::new(Link::new(connection)), plan);
        let kill = async |phases: &Phases| {
            broker.kill();
            phases.go_on();
            broker.start_again();
            make_topic(&broker).await;
        };
        let Some(from) = kill_at(lost.len(), phases, sink, kill).await else { break };
        lost.push(from);
    }
    report("Kafka", &lost, 6);
}

async fn make_topic(broker: &Broker) {
    let kafka = Kafka::builder(broker.address()).connect().await.expect("a connection");
    let topic = NewTopic::new("due", 1, 1).expect("a topic");
    let made = kafka.admin().create_topics([topic], CreateTopicsOptions::default()).await.expect("an answer");
    made["due"].as_ref().expect("a topic");
}

/// RabbitMQ takes seconds to start. So it is killed at each third phase only, unless the run is long.
///
/// The queue is a quorum queue. On a busy computer, RabbitMQ before 3.11 may forget at its start that a classic durable queue is there, and
/// returns each message as unroutable: <https://github.com/rabbitmq/rabbitmq-server/pull/4563>.
#[tokio::test(flavor = "multi_thread")]
async fn rabbitmq() {
    let Some(broker) = crate::rabbit::Broker::start() else { return };
    let step = if tickwheel_testing::is_long() { 1 } else { 3 };
    {
        let client = broker.client().await;
        let channel = client.create_channel().await.expect("a channel");
        let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        let mut arguments = FieldTable::default();
        arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
        channel.queue_declare("due".into(), options, arguments).await.expect("a queue");
    }
    broker.keep_queues();
    let mut lost = Vec::new();
    for nth in (0..).step_by(step) {
        let phases = Phases::start(format!("127.0.0.1:{}", broker.port()), nth);
        let connection = AmqpConnection { endpoints: vec![endpoint(&phases)], ..broker.plan("guest") };
        let plan = AmqpPlan::new("", "due", AmqpForm::Payload, &[]).expect("a plan");
        let sink = AmqpSink::new(Arc::new(Link::new(AmqpDial::new(connection))), plan);
        let kill = async |phases: &Phases| {
            broker.kill();
            phases.go_on();
            broker.run();
        };
        let Some(from) = kill_at(nth, phases, sink, kill).await else { break };
        lost.push(from);
    }
    eprintln!("RabbitMQ: killed before {} pieces: {lost:?}", lost.len());
    assert!(lost.len() >= 3, "{lost:?}");
}

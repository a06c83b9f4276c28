//! Pushes orders into a tube of beanstalkd when they are due, and reserves and deletes them as a worker does.
//!
//! ```sh
//! beanstalkd -l 127.0.0.1 -p 11300 &
//! cargo run -p tickwheel-examples --bin push_beanstalkd
//! ```
//!
//! The argument is the address of another server: `-- 127.0.0.1:11301`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tickwheel_examples::broker::Broker;
use tickwheel_examples::pushed_orders::{Arrival, PushedOrders};
use tickwheel_push::beanstalk::{BeanstalkConnection, BeanstalkPlan, BeanstalkSink};
use tickwheel_push::broker::Link;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

#[tokio::main]
async fn main() -> Result<()> {
    let broker = Broker::named("127.0.0.1:11300", "beanstalkd -l 127.0.0.1 -p 11300 &");
    let orders = PushedOrders::open()?;
    let tube = orders.place();

    let mut worker = broker.reached(Worker::of_tube(&broker.address, &tube)).await?;

    let link = Arc::new(Link::new(BeanstalkConnection { endpoint: broker.endpoint()?, tls: None }));
    let (priority, ttr_s) = (1_024, 60);
    let plan = BeanstalkPlan::new(&tube, priority, ttr_s, None, Duration::from_secs(10))?;
    orders
        .follow(BeanstalkSink::new(link, plan), async || {
            let job = worker.take().await?;
            // A job has no headers, so its body is an envelope with the facts of the task.
            let job: Value = serde_json::from_slice(&job).context("a job without an envelope")?;
            Ok(Arrival { id: job["id"].to_string(), payload: job["payload"].to_string().into_bytes() })
        })
        .await
}

/// A connection that speaks the protocol of beanstalkd.
struct Worker(BufReader<TcpStream>);

impl Worker {
    /// Connects to a server, and watches a tube.
    async fn of_tube(address: &str, tube: &str) -> Result<Self> {
        let mut worker = Self(BufReader::new(TcpStream::connect(address).await?));
        let watched = worker.ask(&format!("watch {tube}")).await?;
        ensure!(watched == "WATCHING 2", "the server answers {watched:?}");
        Ok(worker)
    }

    /// Sends a command, and returns the line that answers it.
    async fn ask(&mut self, command: &str) -> Result<String> {
        self.0.write_all(format!("{command}\r\n").as_bytes()).await?;
        let mut line = String::new();
        ensure!(self.0.read_line(&mut line).await? > 0, "the server has closed the connection");
        Ok(line.trim_end().to_owned())
    }

    /// Waits for a job, deletes it, and returns its body.
    async fn take(&mut self) -> Result<Vec<u8>> {
        let reserved = self.ask("reserve").await?;
        let ["RESERVED", id, bytes] = reserved.split(' ').collect::<Vec<_>>()[..] else {
            bail!("the server answers {reserved:?}")
        };
        let bytes: usize = bytes.parse()?;
        // The end of the line comes behind the body.
        let mut body = vec![0; bytes + 2];
        self.0.read_exact(&mut body).await?;
        body.truncate(bytes);
        let deleted = self.ask(&format!("delete {id}")).await?;
        ensure!(deleted == "DELETED", "the server answers {deleted:?}");
        Ok(body)
    }
}

//! Pushes orders into a stream of Redis when they are due, and reads them as a group of consumers does.
//!
//! ```sh
//! redis-server --port 6379 &
//! cargo run -p tickwheel-examples --bin push_redis
//! ```
//!
//! The argument is the address of another server: `-- 127.0.0.1:6380`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use redis::{AsyncConnectionConfig, Client, cmd};
use tickwheel_examples::broker::Broker;
use tickwheel_examples::pushed_orders::{Arrival, PushedOrders};
use tickwheel_push::broker::Link;
use tickwheel_push::redis::{RedisConnection, RedisPlan, RedisSink, Structure};

/// The answer to `XREADGROUP`: streams, each with its entries, each with its fields.
type Streams = Vec<(String, Vec<(String, HashMap<String, Vec<u8>>)>)>;

/// The group of consumers.
const GROUP: &str = "shop";

#[tokio::main]
async fn main() -> Result<()> {
    let broker = Broker::named("127.0.0.1:6379", "redis-server --port 6379 &");
    let orders = PushedOrders::open()?;
    let stream = orders.place();

    let client = Client::open(format!("redis://{}/", broker.address))?;
    // The server answers when there is an entry.
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let connection = client.get_multiplexed_async_connection_with_config(&config);
    let consumer = broker.reached(connection).await?;
    let mut group = cmd("XGROUP");
    group.arg("CREATE").arg(&stream).arg(GROUP).arg("$").arg("MKSTREAM");
    group.query_async::<()>(&mut consumer.clone()).await.context("make the group of consumers")?;

    let link = Arc::new(Link::new(RedisConnection::new(vec![broker.endpoint()?])));
    let structure = Structure::Stream { key: stream.clone(), maxlen: None };
    let plan = RedisPlan::new(structure, None, &[], 0, Duration::from_secs(10))?;
    orders
        .follow(RedisSink::new(link, plan), async || {
            let mut read = cmd("XREADGROUP");
            read.arg("GROUP").arg(GROUP).arg("worker-1").arg("COUNT").arg(1).arg("BLOCK").arg(0);
            read.arg("STREAMS").arg(&stream).arg(">");
            let mut streams: Streams = read.query_async(&mut consumer.clone()).await?;
            let (_, mut entries) = streams.pop().context("an answer without a stream")?;
            let (entry, mut fields) = entries.pop().context("an answer without an entry")?;
            let mut ack = cmd("XACK");
            ack.arg(&stream).arg(GROUP).arg(&entry).query_async::<()>(&mut consumer.clone()).await?;
            let mut field = |name: &str| fields.remove(name).with_context(|| format!("no field `{name}`"));
            Ok(Arrival { id: String::from_utf8(field("id")?)?, payload: field("payload")? })
        })
        .await?;

    cmd("DEL").arg(&stream).query_async::<()>(&mut consumer.clone()).await.context("remove the stream")
}

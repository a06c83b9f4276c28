//! Orders in PostgreSQL: an order and its close are put in one transaction, so that both exist, or neither.
//!
//! ```sh
//! createdb shop
//! cargo run -p tickwheel-examples --bin orders_in_postgres -- postgres://postgres@127.0.0.1/shop
//! ```
//!
//! The example runs a server in this process, which makes the tables of Tickwheel in the database. It makes a table `orders`, too.

use std::io::Write;

use anyhow::{Context, Result, ensure};
use postgres::NoTls;
use tickwheel_api::{LeaseBody, TokenResult};
use tickwheel_client::blocking::Client;
use tickwheel_server::{Config, PostgresPlan, Server, Store};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

fn main() -> Result<()> {
    let url =
        std::env::args().nth(1).context("name a database, such as postgres://postgres@127.0.0.1/shop")?;
    let runtime = Runtime::new()?;
    let plan = PostgresPlan { url: url.clone(), node: "example".to_owned(), migrate: true };
    let config = Config { listen: "127.0.0.1:0".parse()?, ..Config::new(Store::Postgres(plan)) };
    let server = runtime.block_on(Server::bind(config))?;
    let client = Client::new(&format!("http://{}", server.local_addr()))?;
    let (stop, stopped) = oneshot::channel::<()>();
    let running = runtime.spawn(server.run(async { drop(stopped.await) }));

    let told = run(&url, &client);

    drop(stop);
    runtime.block_on(running).context("the server panicked")?;
    told
}

fn run(url: &str, client: &Client) -> Result<()> {
    let mut database = postgres::Client::connect(url, NoTls).context("connect to the database")?;
    database.batch_execute(
        "CREATE TABLE IF NOT EXISTS orders (id int8 PRIMARY KEY, state text NOT NULL);
         CREATE SEQUENCE IF NOT EXISTS order_ids",
    )?;
    let [paid, unpaid, undone] = [(); 3].map(|()| next_order(&mut database));
    let (paid, unpaid, undone) = (paid?, unpaid?, undone?);

    place(&mut database, paid)?;
    ensure!(pay(&mut database, paid)?, "the order is not closed yet");
    place(&mut database, unpaid)?;
    // A transaction that is not committed leaves neither an order nor its close.
    let mut transaction = database.transaction()?;
    place_within(&mut transaction, undone)?;
    drop(transaction);

    // A worker waits for what is due. The paid order and the undone one have no close.
    let tasks = client.lease("close", &LeaseBody { wait_ms: 20_000, max: 10, ..LeaseBody::default() })?;
    let [task] = tasks.as_slice() else { anyhow::bail!("one task is due, not {}", tasks.len()) };
    ensure!(task.key == format!("order:{unpaid}"), "{} is due", task.key);
    close(&mut database, unpaid)?;
    // The ack follows the commit: a worker that crashes between them gets the task again, and `close` may run twice.
    ensure!(
        client.ack("close", vec![task.token.clone()])? == [TokenResult::Acked],
        "the lease holds for 30 s"
    );

    for order in [paid, unpaid, undone] {
        let row = database.query_opt("SELECT state FROM orders WHERE id = $1", &[&order])?;
        let state = row.map_or_else(|| "not there".to_owned(), |row| row.get(0));
        writeln!(std::io::stdout(), "order {order} is {state}").context("write to stdout")?;
    }
    let counts = client.queue("close")?.counts;
    ensure!(counts.scheduled + counts.ready + counts.leased == 0, "a close is left: {counts:?}");
    Ok(())
}

/// Places an order that is closed unless it is paid before.
fn place(database: &mut postgres::Client, order: i64) -> Result<(), postgres::Error> {
    let mut transaction = database.transaction()?;
    place_within(&mut transaction, order)?;
    transaction.commit()
}

fn place_within(transaction: &mut postgres::Transaction<'_>, order: i64) -> Result<(), postgres::Error> {
    transaction.execute("INSERT INTO orders (id, state) VALUES ($1, 'unpaid')", &[&order])?;
    transaction.execute(
        "SELECT tickwheel.put('close', $1, now() + interval '1 s', jsonb_build_object('order', $2::int8))",
        &[&format!("order:{order}"), &order],
    )?;
    Ok(())
}

/// Notes that an order is paid, and cancels its close. `false`: the order was closed before.
fn pay(database: &mut postgres::Client, order: i64) -> Result<bool, postgres::Error> {
    let mut transaction = database.transaction()?;
    let paid = "UPDATE orders SET state = 'paid' WHERE id = $1 AND state = 'unpaid'";
    let is_paid = transaction.execute(paid, &[&order])? == 1;
    transaction.execute("SELECT tickwheel.cancel('close', $1)", &[&format!("order:{order}")])?;
    transaction.commit()?;
    Ok(is_paid)
}

/// Closes an order that was not paid. A second call for the same order changes nothing.
fn close(database: &mut postgres::Client, order: i64) -> Result<(), postgres::Error> {
    let closed = "UPDATE orders SET state = 'closed' WHERE id = $1 AND state = 'unpaid'";
    database.execute(closed, &[&order]).map(drop)
}

fn next_order(database: &mut postgres::Client) -> Result<i64, postgres::Error> {
    Ok(database.query_one("SELECT nextval('order_ids')", &[])?.get(0))
}

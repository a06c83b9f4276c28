//! The examples of `docs/cluster.md`: a task that exists exactly when the user's own transaction commits. They run as they stand on the page.

use std::path::Path;
use std::process::{Command, Output};

use tickwheel_client::ClientError;
use tickwheel_client::blocking::Client;

use crate::kit;
use crate::postgres::words::{succeeds, told};
use crate::server::Server;

/// The text of the blocks of this language on the page, in their order.
fn blocks(language: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cluster.md");
    let page = std::fs::read_to_string(path).expect("the page");
    let begin = format!("```{language}\n");
    let parts = page.split(&begin).skip(1);
    parts.map(|part| part.split("```").next().expect("an end").to_owned()).collect()
}

/// The command of Python with psycopg; `None`: it is not installed.
fn psycopg() -> Option<Command> {
    let python = || Command::new("python3");
    if python().args(["-c", "import psycopg"]).output().is_ok_and(|output| output.status.success()) {
        return Some(python());
    }
    tickwheel_testing::missing("python3 with psycopg", "pip install 'psycopg[binary]'");
    None
}

/// A shop with its program, its database and a server, set up as on the page.
struct Shop {
    postgres: kit::Server,
    server: Server,
}

impl Shop {
    /// Starts PostgreSQL with a database `shop`, and a server that may make no tables.
    fn open() -> Option<Self> {
        let postgres = kit::Server::start()?;
        postgres.psql("CREATE DATABASE shop");
        let shop = postgres.database_named("shop");
        let sql = succeeds(&["cluster", "sql"]).stdout;
        shop.psql(&String::from_utf8(sql).expect("SQL"));
        shop.psql(
            "CREATE TABLE orders (id int8 PRIMARY KEY, state text NOT NULL);
             CREATE ROLE shop LOGIN;
             GRANT SELECT, INSERT, UPDATE ON orders TO shop;
             GRANT tickwheel_put TO shop",
        );
        let url = shop.url_as("tickwheel");
        let words = ["--listen", "127.0.0.1:0", "--postgres", &url, "--node", "a", "--migrate", "off"];
        let server = Server::start(&words);
        Some(Self { postgres, server })
    }

    /// Runs SQL as the role of the program.
    fn psql(&self, sql: &str) -> String {
        self.postgres.database_named("shop").psql_as("shop", sql)
    }

    /// The payload of the task of an order, once the server has read its inbox; `None`: there is no task.
    fn payload(&self, order: i64) -> Option<String> {
        let shop = self.postgres.database_named("shop");
        kit::until("the inbox is read", || shop.psql("SELECT count(*) FROM tickwheel.inbox") == "0");
        let client = Client::new(&self.server.url).expect("a URL");
        match client.get("close", &format!("order:{order}")) {
            Ok(task) => Some(String::from_utf8(task.payload?.bytes).expect("JSON")),
            Err(ClientError::Problem(problem)) if problem.status == 404 => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn state(&self, order: i64) -> String {
        self.psql(&format!("SELECT state FROM orders WHERE id = {order}"))
    }

    /// Runs a program as the role of the shop.
    fn runs(&self, mut python: Command, program: &str) -> Output {
        python.args(["-c", program]).env("PGHOST", "127.0.0.1").env("PGUSER", "shop");
        python.env("PGPORT", self.postgres.port().to_string()).output().expect("python runs")
    }
}

#[test]
fn the_statements_of_the_page_put_and_cancel_within_a_transaction() {
    let Some(shop) = Shop::open() else { return };
    let [put, cancel, again] = blocks("sql").try_into().expect("three blocks");
    shop.psql(&put.replace("COMMIT;", "ROLLBACK;"));
    assert_eq!((shop.state(17), shop.payload(17)), (String::new(), None));
    shop.psql(&put);
    assert_eq!(
        (shop.state(17), shop.payload(17)),
        ("unpaid".to_owned(), Some(r#"{"order": 17}"#.to_owned()))
    );
    let database = shop.postgres.database_named("shop");
    database.psql(
        r#"INSERT INTO tickwheel.inbox_refused (id, shard, op, queue, key, due_at, payload, content_type, put_at, reason)
        VALUES (39, tickwheel.shard_of('close'), 1, 'close', 'order:18', 4102444800000, '{"order": 18}', 'application/json', 1, 'a worker had it')"#,
    );
    database.psql(&again);
    assert_eq!(shop.payload(18), Some(r#"{"order": 18}"#.to_owned()));
    assert_eq!(database.psql("SELECT count(*) FROM tickwheel.inbox_refused"), "0");
    shop.psql(&cancel);
    assert_eq!(shop.payload(17), None);
}

#[test]
fn the_program_in_python_of_the_page_puts_within_a_transaction() {
    let (Some(python), Some(shop)) = (psycopg(), Shop::open()) else { return };
    let [program] = blocks("python").try_into().expect("one block");
    let output = shop.runs(python, &program);
    assert!(output.status.success(), "{}", told(&output));
    assert_eq!(
        (shop.state(18), shop.payload(18)),
        ("unpaid".to_owned(), Some(r#"{"order": 18}"#.to_owned()))
    );

    // The last statement of the block is in the transaction, so an exception behind it takes both back.
    let fails = format!("{}    raise SystemExit(3)\n", program.replace("order = 18", "order = 19"));
    let output = shop.runs(psycopg().expect("it was there"), &fails);
    assert_eq!(output.status.code(), Some(3), "{}", told(&output));
    assert_eq!((shop.state(19), shop.payload(19)), (String::new(), None));
}

/// The example in Rust is a program of `examples`, whose own test runs it. The page shows a part of it, with a longer time.
#[test]
fn the_program_in_rust_of_the_page_is_that_of_the_example() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/src/bin/orders_in_postgres.rs");
    let example = std::fs::read_to_string(path).expect("the example").replace("'1 s'", "'30 min'");
    let [block] = blocks("rust").try_into().expect("one block");
    for function in block.split("\n\n") {
        assert!(example.contains(function.trim_end()), "the example does not have\n{function}");
    }
}

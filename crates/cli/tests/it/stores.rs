//! Moves the servers of a test run into PostgreSQL, so that the same tests show the same behaviour there.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};

use crate::kit;

/// Returns true if the servers of this run keep their tasks in databases, and says that the test is left out and why.
pub(crate) fn is_left_out(why: &str) -> bool {
    if is_postgres() {
        kit::report(&format!("LEFT OUT on PostgreSQL: {why}"));
    }
    is_postgres()
}

/// Returns the options of `serve` with a database in the place of the directory or the memory, if the variable `TICKWHEEL_TEST_POSTGRES` is
/// set. The same directory leads to the same database again.
pub(crate) fn moved(options: &[&str]) -> Vec<String> {
    static DATABASES: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
    let mut options: Vec<String> = options.iter().map(ToString::to_string).collect();
    if !is_postgres() {
        return options;
    }
    let place = options.iter().position(|option| option == "--data" || option == "--memory");
    let Some(place) = place else { return options };
    let url = match options.remove(place).as_str() {
        "--data" => {
            let directory = options.remove(place);
            let mut databases = DATABASES.lock().unwrap_or_else(PoisonError::into_inner);
            databases.entry(directory).or_insert_with(database).clone()
        }
        _ => database(),
    };
    options.splice(place..place, ["--postgres".to_owned(), url]);
    if !options.iter().any(|option| option == "--shards") {
        options.extend(["--shards".to_owned(), "1".to_owned()]);
    }
    options
}

/// Waits until a server at this address has the shards of its database. A server on a directory has them when it listens. After a kill this
/// takes a lease (5 s).
pub(crate) fn until_served(address: &str) {
    if is_postgres() {
        kit::until("the server has the shards", || is_ready(address).unwrap_or(false));
    }
}

fn is_ready(address: &str) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.split(' ').nth(1) == Some("200"))
}

/// Whether the servers of this run keep their tasks in databases.
pub(crate) fn is_postgres() -> bool {
    std::env::var_os("TICKWHEEL_TEST_POSTGRES").is_some()
}

/// Makes a database and returns its URL.
fn database() -> String {
    kit::shared().expect("TICKWHEEL_TEST_POSTGRES needs PostgreSQL").database().url()
}

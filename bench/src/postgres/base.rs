//! [`Base`]: a database for one measurement.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;

use super::link::Link;
use super::server::Server;

static MADE: AtomicU64 = AtomicU64::new(0);

/// An empty database, so that no measurement finds the rows, the dead rows or the vacuum of another one. Dropping the value drops it.
pub(super) struct Base {
    pub(super) url: String,
    name: String,
    server_url: String,
}

impl Base {
    pub(super) fn make(server: &Server) -> anyhow::Result<Self> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("tickwheel_bench_{}_{number}", std::process::id());
        let url = with_database(&server.url, &name).with_context(|| format!("{} is no URL", server.url))?;
        Link::open(&server.url)?
            .script(&format!("CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0"))?;
        Ok(Self { url, name, server_url: server.url.clone() })
    }

    /// Writes all that is in memory to the disk, so that a measurement does not pay for what was before it.
    pub(super) fn settle(&self) -> anyhow::Result<()> {
        Link::open(&self.url)?.script("CHECKPOINT")
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        let dropped = Link::open(&self.server_url)
            .and_then(|mut link| link.script(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name)));
        if let Err(error) = dropped {
            eprintln!("the database {} is still there: {error:#}", self.name);
        }
    }
}

/// Returns the URL with another database.
fn with_database(url: &str, name: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let (place, options) =
        rest.split_once('?').map_or((rest, String::new()), |(place, options)| (place, format!("?{options}")));
    let host = place.split_once('/').map_or(place, |(host, _)| host);
    Some(format!("{scheme}://{host}/{name}{options}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_gets_another_database() {
        for (url, expected) in [
            ("postgres://a@b:1/c", "postgres://a@b:1/x"),
            ("postgres://a@b", "postgres://a@b/x"),
            ("postgres://a:p@b,c/d?sslmode=disable", "postgres://a:p@b,c/x?sslmode=disable"),
            ("postgres://b?host=/run", "postgres://b/x?host=/run"),
        ] {
            assert_eq!(with_database(url, "x").as_deref(), Some(expected));
        }
        assert_eq!(with_database("b/c", "x"), None);
    }
}

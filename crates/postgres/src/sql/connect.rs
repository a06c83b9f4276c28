//! [`Postgres`]: makes sessions with one PostgreSQL, and checks each of them.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use super::link::{Link, after, row};
use super::nodes::{TIMELINE, application_name};
use super::session::PostgresSession;
use super::setup_error::SetupError;
use crate::database::{ConnectFailure, Database, Failure};
use crate::wire::{Connection, DatabaseUrl, Environment, HostError, OpenError, Pipeline, StepResult};

/// The time for a connection, over all hosts of the URL.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const CHECK_LIMIT: Duration = Duration::from_secs(10);
/// PostgreSQL 14.
const OLDEST_VERSION: i32 = 140_000;

/// The settings of every session. They come with the connection, so settings of the role or of the database do not replace them.
const SETTINGS: [(&str, &str); 19] = [
    // An answer to a commit means that the commit is durable, whatever the role says.
    ("synchronous_commit", "on"),
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "off"),
    ("lock_timeout", "1s"),
    // A statement that is cut short has an unknown outcome, and a wait for a standby must not be cut short.
    ("statement_timeout", "0"),
    // A machine that vanished in the middle of a transaction holds no lock for longer than this.
    ("idle_in_transaction_session_timeout", "5s"),
    // A session waits for work without limit.
    ("idle_session_timeout", "0"),
    // A path that names another schema before this one would replace functions of the statements.
    ("search_path", "pg_catalog"),
    // A session whose machine vanished ends, although it waits for the next message of a flight. Until then it holds the lock of a shard.
    ("tcp_keepalives_idle", "5"),
    ("tcp_keepalives_interval", "2"),
    ("tcp_keepalives_count", "3"),
    ("tcp_user_timeout", "5s"),
    ("client_connection_check_interval", "1s"),
    // The statements look up few rows by an index. If the statistics are of a time when the table was small, the planner would read the
    // whole table for each row: a deletion of 1,000 tasks took 9.7 s instead of 2.1 ms.
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
    // Plans each kept statement once. By default the planner makes a new plan for each look-up of keys, because it expects more keys if it does
    // not see them. That takes seven times as long as the look-up of one key (0.23 ms, 0.03 ms). With the switches above, the values of kept
    // statements change no plan. The statement whose plan depends on its values says so itself.
    ("plan_cache_mode", "force_generic_plan"),
];

const SERVER: &str = "\
SELECT current_setting('fsync'), current_setting('full_page_writes'), pg_is_in_recovery(), pg_backend_pid(),
    current_setting('server_version_num')::int4, (pg_control_system()).system_identifier";

const SYSTEM: &str = "SELECT identity, system FROM tickwheel.cluster";

/// One PostgreSQL server, or a primary and its standbys.
#[derive(Debug)]
pub struct Postgres {
    url: DatabaseUrl,
    identity: Mutex<Option<String>>,
    /// The highest failover number (timeline) that was seen. A server with a lower one is an old primary.
    timeline: Mutex<i64>,
}

impl Postgres {
    /// Reads the URL of a database. What the URL does not say comes from the environment of the process, as with `psql`.
    ///
    /// # Errors
    /// The URL is wrong.
    pub fn at(url: &str) -> Result<Self, SetupError> {
        let url = DatabaseUrl::parse(url, &Environment::of_the_process())
            .map_err(|error| SetupError::Url(error.to_string()))?;
        Ok(Self { url, identity: Mutex::new(None), timeline: Mutex::new(0) })
    }

    /// Returns the URL, complete with what the environment says.
    pub(super) fn url(&self) -> &DatabaseUrl {
        &self.url
    }

    /// Notes the identity of the data. A session with another data set is refused from now on.
    pub(super) fn is_of(&self, identity: &str) {
        *self.identity.lock().unwrap_or_else(PoisonError::into_inner) = Some(identity.to_owned());
    }

    /// Opens a connection to a server that passes its check.
    pub(super) fn open(&self, application: &str) -> Result<Link, ConnectFailure> {
        self.open_if(application, |_| Ok(()))
    }

    /// Opens a connection to the first host that passes the check of the server, and this one. An old primary that is back may be the first
    /// host of the URL, and the present one the second.
    fn open_if(
        &self,
        application: &str,
        mut check: impl FnMut(&mut Link) -> Result<(), ConnectFailure>,
    ) -> Result<Link, ConnectFailure> {
        let accept = |connection: Connection| {
            let peer = connection.peer().to_owned();
            let mut link = Link::new(connection);
            let checked = self.check_server(&mut link).and_then(|()| check(&mut link));
            checked.map(|()| link).map_err(|failure| {
                let is_refused = matches!(failure, ConnectFailure::Refused(_));
                HostError { peer, why: failure.to_string(), code: None, is_refused }
            })
        };
        Connection::open_first(&self.url, application, &SETTINGS, after(CONNECT_LIMIT), accept).map_err(
            |error| match error {
                OpenError::Refused(_) => ConnectFailure::Refused(error.to_string()),
                OpenError::Unreachable(_) => ConnectFailure::Unreachable(error.to_string()),
            },
        )
    }

    fn check_server(&self, link: &mut Link) -> Result<(), ConnectFailure> {
        let results = ask(link, &[SERVER])?;
        let server = row(&results, 0, 0).map_err(unreachable)?;
        let text = |index| server.get::<&str>(index).map_err(|error| unreachable(error.into()));
        for (index, setting) in [(0, "fsync"), (1, "full_page_writes")] {
            if text(index)? != "on" {
                return Err(ConnectFailure::Refused(format!(
                    "it runs with {setting} = off, so a crash may lose what it has acknowledged; switch {setting} on"
                )));
            }
        }
        let number = |index| server.get::<i32>(index).map_err(|error| unreachable(error.into()));
        if server.get::<bool>(2).map_err(|error| unreachable(error.into()))? {
            return Err(ConnectFailure::Unreachable("it is a standby".to_owned()));
        }
        if number(3)? != link.connection().backend_pid() {
            return Err(ConnectFailure::Refused(
                "it is a pooler that gives each transaction another session; give the address of the database itself"
                    .to_owned(),
            ));
        }
        if number(4)? < OLDEST_VERSION {
            let version = link.connection().parameter("server_version").unwrap_or("an old version");
            return Err(ConnectFailure::Refused(format!(
                "it is PostgreSQL {version}; Tickwheel needs 14 or later"
            )));
        }
        Ok(())
    }

    /// Checks that the data are the same as earlier, and that no later primary is known.
    fn check_data(&self, link: &mut Link) -> Result<(), ConnectFailure> {
        let results = ask(link, &[SYSTEM, TIMELINE, SERVER])?;
        let Some(cluster) = results[0].rows.first() else {
            return Err(ConnectFailure::Refused("it has no data of Tickwheel any more".to_owned()));
        };
        let system = cluster.get::<i64>(1).map_err(|error| unreachable(error.into()))?;
        let own = row(&results, 2, 0).and_then(|row| Ok(row.get::<i64>(5)?)).map_err(unreachable)?;
        if system != own {
            return Err(ConnectFailure::Refused(
                "it is not the database server on which these tables were made: they came from a dump. If the other server is gone for \
                 good, `tickwheel cluster adopt` makes them usable"
                    .to_owned(),
            ));
        }
        let identity = cluster.get::<&str>(0).map_err(|error| unreachable(error.into()))?;
        let known = self.identity.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.as_deref()
            && known != identity
        {
            return Err(ConnectFailure::Refused(format!(
                "it has the data set {identity}, and this process serves {known}"
            )));
        }
        let timeline: i64 = row(&results, 1, 0).and_then(|row| Ok(row.get(0)?)).map_err(unreachable)?;
        let mut highest = self.timeline.lock().unwrap_or_else(PoisonError::into_inner);
        if timeline < *highest {
            return Err(ConnectFailure::Unreachable(format!(
                "it has the timeline {timeline}, and {} was seen: it is the old primary of an earlier fail-over",
                *highest
            )));
        }
        *highest = timeline;
        Ok(())
    }
}

impl Database for Postgres {
    type Session = PostgresSession;

    fn connect(&self, incarnation: &str) -> Result<PostgresSession, ConnectFailure> {
        let link = self.open_if(&application_name(incarnation), |link| self.check_data(link))?;
        Ok(PostgresSession::new(link))
    }
}

fn ask(link: &mut Link, statements: &[&'static str]) -> Result<Vec<StepResult>, ConnectFailure> {
    let mut pipeline = Pipeline::new();
    for sql in statements {
        pipeline.kept(sql, Vec::new());
    }
    link.run(&pipeline, Some(CHECK_LIMIT)).map_err(unreachable)
}

/// A server that does not answer the questions at the beginning may do so later.
fn unreachable(failure: Failure) -> ConnectFailure {
    match failure {
        Failure::Refused { why, again: false } => ConnectFailure::Refused(why),
        Failure::Refused { why, again: true } | Failure::Gone { why } => ConnectFailure::Unreachable(why),
    }
}

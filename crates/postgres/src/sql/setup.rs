//! Makes the tables, and reads the properties of the data set.

use std::fmt::Write;
use std::time::{Duration, Instant};

use tickwheel_engine::{SHARDS_MAX, Timestamp};

use super::commit::BEGIN;
use super::connect::Postgres;
use super::link::{Link, foreign, row};
use super::nodes::timeline;
use super::setup_error::{FORMAT, SetupError};
use crate::database::Failure;
use crate::wire::{Param, Pipeline};

const SCHEMA: &str = include_str!("schema.sql");
const ROLES: &str = include_str!("roles.sql");
/// The newest kind of record that this program writes.
const FEATURE: i32 = 1;
/// The number of the lock that keeps two processes from making the tables at the same time: the letters `tickwhee`.
const SETUP_LOCK: i64 = 0x7469_636b_7768_6565;
const LIMIT: Duration = Duration::from_secs(60);
/// The longest wait for that lock. A process that makes the tables has it for less than a second, but any role may take it.
const LOCK_LIMIT: &str = "SET LOCAL lock_timeout = '10s'";
/// The name of the sessions that make the tables.
const APPLICATION: &str = "tickwheel";

/// A look at the tables of the catalogue, because `to_regclass` may answer from a cache: a process that waited for another one that made the tables would
/// not see them.
const EXISTS: &str = "\
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'tickwheel' AND c.relname = 'cluster'
)";

/// The code of the error after a wait for a lock that was too long.
const LOCK_TIMEOUT: &str = " 55P03: ";

const LOCK_HOLDER: &str = "\
SELECT CASE WHEN l.pid IS NULL THEN 'a prepared transaction has it; ROLLBACK PREPARED ends it, and pg_prepared_xacts has its name'
    ELSE format('the session %s of the role %s (%s) has it; SELECT pg_terminate_backend(%s) ends that session',
        l.pid, coalesce(a.usename::text, 'unknown'), coalesce(nullif(a.application_name, ''), 'no name'), l.pid) END
FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND l.classid::int8 << 32 | l.objid::int8 = $1
    AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
LIMIT 1";

const CLUSTER: &str = "SELECT identity, shards, lease_ms, format, clock FROM tickwheel.cluster";

const SECRET: &str = "SELECT secret FROM tickwheel.shard WHERE shard = 0";

const LAST_WALL: &str = "\
SELECT greatest(0, (SELECT max(wall) FROM tickwheel.batch), (SELECT max(wall) FROM tickwheel.rollup))";

const BEATS: &str = "SELECT node, beat, name, address FROM tickwheel.node WHERE NOT ended ORDER BY node";

/// All earlier nodes are over. The unknown failover number (`timeline`) makes each shard go on with higher numbers when it is taken.
const ADOPT: &str = "\
WITH ended AS (UPDATE tickwheel.node SET ended = true WHERE NOT ended),
    freed AS (UPDATE tickwheel.shard SET owner = NULL, timeline = -1, epoch = epoch + 1)
UPDATE tickwheel.cluster SET system = (pg_control_system()).system_identifier, adoptions = adoptions + 1, adopted_at = clock_timestamp()";

const MAKE_CLUSTER: &str = "\
INSERT INTO tickwheel.cluster (identity, shards, lease_ms, format, feature, clock) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT DO NOTHING";

const MAKE_SHARDS: &str = concat!(
    "INSERT INTO tickwheel.shard (shard, epoch, timeline, secret) SELECT s.shard, 0, ",
    timeline!(),
    ", s.secret FROM unnest($1::int4[], $2::bytea[]) s(shard, secret) \
     WHERE EXISTS (SELECT FROM tickwheel.cluster WHERE identity = $3)"
);

/// The wishes of a process about the data set. A data set that is there has its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The number of shards; `None`: the number that the data set has, or 64 if it is new.
    pub shards: Option<u32>,
    /// The kind of clock.
    pub clock: ClusterClock,
    /// How long the heartbeat of a process must stand still before another process takes its shards (ms). Only for a new data set.
    pub lease_ms: u32,
    /// Whether the tables are made or brought to the present format if needed. Otherwise an administrator does that.
    pub migrates: bool,
}

/// The kind of clock of a data set.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ClusterClock {
    /// The clock of the database.
    Real,
    /// A clock that stands still until a call moves it.
    Virtual,
}

impl ClusterClock {
    fn word(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Virtual => "virtual",
        }
    }
}

/// The properties of a data set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cluster {
    /// 16 hexadecimal digits that never change.
    pub identity: String,
    /// The number of shards.
    pub shards: u32,
    /// How long the heartbeat of a process must stand still before another process takes its shards (ms).
    pub lease_ms: u32,
    /// The secret of the first shard.
    pub secret: [u8; 16],
    /// The latest wall clock in the records.
    pub last_wall: Timestamp,
}

/// Returns the statements that make the tables and the roles, for an administrator.
#[must_use]
pub fn statements() -> String {
    format!("BEGIN;\n\n{SCHEMA}\nCOMMIT;\n\nBEGIN;\n\n{ROLES}\nCOMMIT;\n")
}

impl Postgres {
    /// Makes the tables and the data set, if they are missing, and returns the properties of the data set.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn prepare(&self, plan: &Plan) -> Result<Cluster, SetupError> {
        if let Some(wanted) = plan.shards
            && !(1..=SHARDS_MAX).contains(&wanted)
        {
            return Err(SetupError::ShardsRange(wanted));
        }
        let mut link = self.open(APPLICATION)?;
        let cluster = match read(&mut link, plan)? {
            Some(cluster) => cluster,
            None => {
                make(&mut link, plan)?;
                read(&mut link, plan)?
                    .ok_or_else(|| foreign("the data set that was just made is not there"))?
            }
        };
        self.is_of(&cluster.identity);
        Ok(cluster)
    }
}

/// The identity and the size of a data set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// 16 hexadecimal digits that never change.
    pub identity: String,
    /// The number of shards.
    pub shards: u32,
    /// How long the heartbeat of a process must stand still before another process takes its shards (ms).
    pub lease_ms: u32,
}

impl Postgres {
    /// Returns the data set in the database; `None`: there is none.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn look(&self) -> Result<Option<Found>, SetupError> {
        let mut link = self.open(APPLICATION)?;
        if !has_tables(&mut link)? {
            return Ok(None);
        }
        let mut pipeline = Pipeline::new();
        pipeline.kept(CLUSTER, Vec::new());
        let results = link.run(&pipeline, Some(LIMIT))?;
        let Some(found) = results[0].rows.first() else { return Ok(None) };
        let identity = found.get::<&str>(0).map_err(Failure::from)?.to_owned();
        let number = |index| found.get::<i32>(index).map(i32::cast_unsigned).map_err(Failure::from);
        Ok(Some(Found { identity, shards: number(1)?, lease_ms: number(2)? }))
    }

    /// Watches the heartbeats of all processes for 1.2 times the lease of the data set, and ends at the first one that moves. Returns the process that
    /// works with the data set, as its name and its address; `None`: none does. Returns at once if no process is known.
    ///
    /// # Errors
    /// [`SetupError`].
    #[expect(clippy::disallowed_methods, reason = "an operator waits for the beats in real time")]
    pub fn watch_beats(&self, lease_ms: u32) -> Result<Option<(String, String)>, SetupError> {
        let mut link = self.open(APPLICATION)?;
        let before = beats(&mut link)?;
        if before.is_empty() {
            return Ok(None);
        }
        let lease = Duration::from_millis(lease_ms.into());
        let begun = Instant::now();
        loop {
            let is_last = begun.elapsed() >= lease * 6 / 5;
            // A process that has begun since then works, too.
            let moved = beats(&mut link)?.into_iter().find(|now| !before.contains(now));
            if let Some(Beating { name, address, .. }) = moved {
                return Ok(Some((name, address)));
            }
            if is_last {
                return Ok(None);
            }
            std::thread::sleep(lease / 20);
        }
    }

    /// Makes a data set usable that came from a dump, or was restored to an earlier time: the numbers of all shards go on higher, and no
    /// earlier nodes is known any more.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn adopt(&self) -> Result<(), SetupError> {
        let mut link = self.open(APPLICATION)?;
        let mut pipeline = Pipeline::new();
        pipeline.text(BEGIN);
        pipeline.text("SET LOCAL lock_timeout = '60s'");
        pipeline.kept(ADOPT, Vec::new());
        link.commit(&mut pipeline)?;
        Ok(())
    }
}

/// A process that has not ended, and its heartbeat.
#[derive(PartialEq, Eq)]
struct Beating {
    node: String,
    beat: i64,
    name: String,
    address: String,
}

fn beats(link: &mut Link) -> Result<Vec<Beating>, SetupError> {
    let mut pipeline = Pipeline::new();
    pipeline.kept(BEATS, Vec::new());
    let results = link.run(&pipeline, Some(LIMIT))?;
    let mut found = Vec::new();
    for row in &results[0].rows {
        let text = |index| row.get::<&str>(index).map(str::to_owned).map_err(Failure::from);
        let beat = row.get::<i64>(1).map_err(Failure::from)?;
        found.push(Beating { node: text(0)?, beat, name: text(2)?, address: text(3)? });
    }
    Ok(found)
}

/// Reads the data set, and compares it with the plan; `None`: it is not there.
fn read(link: &mut Link, plan: &Plan) -> Result<Option<Cluster>, SetupError> {
    if !has_tables(link)? {
        return Ok(None);
    }
    let mut pipeline = Pipeline::new();
    for sql in [CLUSTER, SECRET, LAST_WALL] {
        pipeline.kept(sql, Vec::new());
    }
    let results = link.run(&pipeline, Some(LIMIT))?;
    let Some(found) = results[0].rows.first() else { return Ok(None) };
    let number = |index| found.get::<i32>(index).map_err(Failure::from);
    let format = number(3)?;
    if format > FORMAT {
        return Err(SetupError::Later { found: format });
    }
    let shards = number(1)?.cast_unsigned();
    if let Some(wanted) = plan.shards
        && wanted != shards
    {
        return Err(SetupError::Shards { found: shards, wanted });
    }
    let clock: &str = found.get(4).map_err(Failure::from)?;
    if clock != plan.clock.word() {
        let advice = match plan.clock {
            ClusterClock::Virtual => "start without --virtual-clock, or with another database",
            ClusterClock::Real => "start with --virtual-clock, or with another database",
        };
        return Err(SetupError::Clock { found: clock.to_owned(), advice });
    }
    let identity = found.get::<&str>(0).map_err(Failure::from)?.to_owned();
    let secret: &[u8] = row(&results, 1, 0)?.get(0).map_err(Failure::from)?;
    let secret = secret.try_into().map_err(|_| foreign("a secret has not 16 bytes"))?;
    let last_wall: i64 = row(&results, 2, 0)?.get(0).map_err(Failure::from)?;
    Ok(Some(Cluster {
        identity,
        shards,
        lease_ms: number(2)?.cast_unsigned(),
        secret,
        last_wall: Timestamp::from_ms(last_wall).unwrap_or(Timestamp::EPOCH),
    }))
}

fn has_tables(link: &mut Link) -> Result<bool, SetupError> {
    let mut pipeline = Pipeline::new();
    pipeline.kept(EXISTS, Vec::new());
    let results = link.run(&pipeline, Some(LIMIT))?;
    Ok(row(&results, 0, 0)?.get(0).map_err(Failure::from)?)
}

/// Makes the tables, if they are missing, and the rows of the data set. A process that does the same at the same time waits, and then finds
/// them.
fn make(link: &mut Link, plan: &Plan) -> Result<(), SetupError> {
    let shards = plan.shards.unwrap_or(SHARDS_DEFAULT);
    let mut begin = Pipeline::new();
    begin.text(BEGIN);
    begin.text(LOCK_LIMIT);
    begin.kept("SELECT pg_advisory_xact_lock($1)", vec![Param::Int8(SETUP_LOCK)]);
    link.run(&begin, Some(LIMIT)).map_err(|failure| not_locked(link, failure))?;
    if !has_tables(link)? {
        if !plan.migrates {
            return Err(SetupError::NoTables);
        }
        link.script(SCHEMA, LIMIT).map_err(may_not_make)?;
    }
    let identity = hex(&random::<8>()?);
    let secrets: Vec<[u8; 16]> = (0..shards).map(|_| random()).collect::<Result<_, _>>()?;
    let mut end = Pipeline::new();
    end.kept(
        MAKE_CLUSTER,
        vec![
            Param::Text(identity.as_str().into()),
            Param::Int4(shards.cast_signed()),
            Param::Int4(plan.lease_ms.cast_signed()),
            Param::Int4(FORMAT),
            Param::Int4(FEATURE),
            Param::Text(plan.clock.word().into()),
        ],
    );
    end.kept(
        MAKE_SHARDS,
        vec![
            Param::Int4s((0..shards.cast_signed()).collect()),
            Param::Byteas(secrets.iter().map(|secret| &secret[..]).collect()),
            Param::Text(identity.as_str().into()),
        ],
    );
    link.commit(&mut end)?;
    Ok(())
}

/// Names the session that has the lock, if the wait for it was too long.
fn not_locked(link: &mut Link, failure: Failure) -> SetupError {
    if !matches!(&failure, Failure::Refused { why, .. } if why.contains(LOCK_TIMEOUT)) {
        return failure.into();
    }
    match lock_holder(link) {
        Ok(Some(holder)) => SetupError::Locked { holder },
        Ok(None) | Err(_) => failure.into(),
    }
}

fn lock_holder(link: &mut Link) -> Result<Option<String>, Failure> {
    let mut pipeline = Pipeline::new();
    pipeline.text("ROLLBACK");
    pipeline.kept(LOCK_HOLDER, vec![Param::Int8(SETUP_LOCK)]);
    let results = link.run(&pipeline, Some(LIMIT))?;
    Ok(results[1].rows.first().map(|row| row.get::<&str>(0).map(str::to_owned)).transpose()?)
}

/// A role that only reads and writes may not make the tables.
fn may_not_make(failure: Failure) -> SetupError {
    match failure {
        Failure::Refused { why, again: _ } => SetupError::NotMade(why),
        other => other.into(),
    }
}

/// The number of shards of a new data set, if it is not said.
pub const SHARDS_DEFAULT: u32 = 64;

pub(crate) fn random<const N: usize>() -> Result<[u8; N], SetupError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| SetupError::Random(error.to_string()))?;
    Ok(bytes)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _never_fails = write!(text, "{byte:02x}");
        text
    })
}

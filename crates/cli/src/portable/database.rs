//! Access to a data set in PostgreSQL without a server.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tickwheel_postgres::{ClusterClock, Found, Postgres, PostgresOptions, SetupError, without_password};
use tickwheel_queue::{Options, Queue, Timestamp};

use super::directory::Clock;
use crate::output::say;

/// The name of this process among those that share the database. A server that waits shows it.
const NAME: &str = "tickwheel import or export";
/// A server that was killed lets go of its shards after its lease. The rest is for the beats, on a slow machine, too.
const LEASES: u32 = 2;
/// A server that has the shards is named after this time of waiting.
const SAID_AFTER: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(20);

/// Opens the queue of a data set, with the kind of clock that the data set was made with. Fails if a server uses the database, because the
/// server has the shards.
///
/// # Errors
/// The database has no data set, or cannot be opened.
pub(crate) fn open(url: &str) -> Result<Queue> {
    let shown = without_password(url);
    let Some(found) = look(url)? else {
        bail!("{shown} has no tables of Tickwheel; is it the right database?")
    };
    take(url, found, Clock::Real)
}

/// Opens the queue of a data set like [`open`]. A data set that is missing is made with this clock and this number of shards.
///
/// # Errors
/// The database cannot be opened, or has another number of shards than was asked for.
pub(crate) fn open_or_make(url: &str, clock: Clock, shards: Option<u32>) -> Result<Queue> {
    let shown = without_password(url);
    if let Some(found) = look(url)? {
        if let Some(wanted) = shards.filter(|wanted| *wanted != found.shards) {
            let error = SetupError::Shards { found: found.shards, wanted };
            return Err(error).with_context(|| format!("failed to open {shown}"));
        }
        return take(url, found, clock);
    }
    let made = prepare(url, clock, shards).with_context(|| format!("failed to make the tables in {shown}"));
    made.and_then(|found| take(url, found, clock))
}

fn look(url: &str) -> Result<Option<Found>> {
    let found = Postgres::at(url).and_then(|postgres| postgres.look());
    found.with_context(|| format!("failed to open {}", without_password(url)))
}

fn prepare(url: &str, clock: Clock, shards: Option<u32>) -> Result<Found, SetupError> {
    let usual = PostgresOptions::new(url).plan;
    let postgres = Postgres::at(url)?;
    postgres.prepare(&tickwheel_postgres::Plan { shards, clock: kind_of(clock), ..usual })?;
    postgres.look()?.ok_or(SetupError::NoTables)
}

/// Takes the shards of a data set that is there.
fn take(url: &str, found: Found, clock: Clock) -> Result<Queue> {
    let shown = without_password(url);
    let by = |clock: Clock| {
        let usual = PostgresOptions::new(url);
        let plan = tickwheel_postgres::Plan { clock: kind_of(clock), migrates: false, ..usual.plan };
        // This process takes rows of the inbox while it has the shards.
        let payload_check = |content_type: &str, payload: &[u8]| {
            tickwheel_api::check_payload(content_type, payload).map_err(|refusal| refusal.to_string())
        };
        let shards = PostgresOptions { plan, name: NAME.to_owned(), payload_check, ..usual }.connect();
        shards.map(|shards| (shards, clock))
    };
    let other = if clock == Clock::Real { Clock::Virtual } else { Clock::Real };
    let connected = match by(clock) {
        Err(SetupError::Clock { .. }) => by(other),
        connected => connected,
    };
    let (shards, clock) = connected.with_context(|| format!("failed to open {shown}"))?;
    let options = match clock {
        Clock::Real => Queue::options(),
        // The database has the time of its virtual clock.
        Clock::Virtual => Options::virtual_clock_at(Queue::options(), Timestamp::EPOCH),
    };
    let queue = options.open_shards(shards).with_context(|| format!("failed to open {shown}"))?;
    let opened = wait_for_shards(&queue, &shown, Duration::from_millis(found.lease_ms.into()) * LEASES);
    if let Err(error) = opened {
        queue.close();
        return Err(error);
    }
    Ok(queue)
}

/// Waits until this process has all shards.
fn wait_for_shards(queue: &Queue, shown: &str, limit: Duration) -> Result<()> {
    let begun = Instant::now();
    let mut is_said = false;
    loop {
        let health = queue.health();
        if health.ready {
            return Ok(());
        }
        let why = health.waits_for.as_deref().unwrap_or("its shards are not read yet");
        // Reading may take long, and goes on by itself. Another process does not give its shards away.
        if health.waits_for.is_some() && begun.elapsed() > limit {
            bail!(
                "{shown} is in use: {why}; stop that server, or go through it with --server instead of --postgres"
            );
        }
        if !is_said && begun.elapsed() > SAID_AFTER {
            say(&format!("waiting for {shown}: {why}"));
            is_said = true;
        }
        thread::sleep(LOOK);
    }
}

fn kind_of(clock: Clock) -> ClusterClock {
    match clock {
        Clock::Real => ClusterClock::Real,
        Clock::Virtual => ClusterClock::Virtual,
    }
}

//! Heartbeats, and the ends of incarnations.

use std::time::Duration;

use super::link::{Link, no_warning, row};
use crate::database::{Failure, Heartbeat, NodeEntry};
use crate::wire::{Param, Pipeline};

/// A heartbeat whose answer takes longer than this is of no use.
const BEAT_LIMIT: Duration = Duration::from_millis(1_500);
/// The entry of a process waits this long for the standby, so that the log can say what is missing. No shard is taken before.
const JOIN_LIMIT: Duration = Duration::from_secs(10);
const END_LIMIT: Duration = Duration::from_secs(2);
/// The newest kind of record that this program reads.
const READS: i32 = 1;

/// The failover number of the database (PostgreSQL calls it the timeline), as an expression: the first 8 digits of the name of a log file.
macro_rules! timeline {
    () => {
        "('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int8"
    };
}
pub(super) use timeline;

pub(super) const TIMELINE: &str = concat!("SELECT ", timeline!());

/// The rows of incarnations that have ended long ago are of no use. A shard still names its last owner.
const FORGET: &str = "\
DELETE FROM tickwheel.node n WHERE ended AND started_at < now() - interval '1 day'
    AND NOT EXISTS (SELECT FROM tickwheel.shard s WHERE s.owner = n.node)";

const JOIN: &str = "\
INSERT INTO tickwheel.node (node, name, address, version, reads) VALUES ($1, $2, $3, $4, $5)";

const BEAT: &str = "\
UPDATE tickwheel.node SET beat = beat + 1 WHERE node = $1 AND NOT ended
RETURNING floor(extract(epoch FROM clock_timestamp()) * 1000000)::int8";

/// Both times are of the clock of the database.
const ADOPTED: &str = "\
SELECT coalesce(c.adopted_at >= n.started_at, false) FROM tickwheel.cluster c, tickwheel.node n WHERE n.node = $1";

const OTHERS: &str = "SELECT node, beat FROM tickwheel.node WHERE NOT ended AND node <> $1 ORDER BY node";

/// The row lock waits for a heartbeat in flight. A takeover that only read the row would win beside it.
const END: &str = "UPDATE tickwheel.node SET ended = true WHERE node = $1 AND beat = $2 AND NOT ended";

const LEAVE: &str = "UPDATE tickwheel.node SET ended = true WHERE node = $1";

const HAS_ENDED: &str = "SELECT coalesce((SELECT ended FROM tickwheel.node WHERE node = $1), true)";

/// The backend of a machine that is silent may hold locks for hours. This call does not wait for their ends, because this process has to
/// beat meanwhile; an acquisition waits for the lock of its shard.
const TERMINATE: &str = "\
SELECT count(*) FROM (
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE usename = current_user AND application_name = $1 AND pid <> pg_backend_pid()
) AS terminated";

/// Returns the name by which the sessions of an incarnation are known.
pub(super) fn application_name(incarnation: &str) -> String {
    format!("tickwheel/{incarnation}")
}

pub(super) fn join(link: &mut Link, node: &NodeEntry) -> Result<(), Failure> {
    let NodeEntry { incarnation, name, address, version } = node;
    let mut pipeline = Pipeline::new();
    pipeline.text("BEGIN");
    pipeline.kept(FORGET, Vec::new());
    let texts = [incarnation, name, address, version].map(|text| Param::Text(text.as_str().into()));
    pipeline.kept(JOIN, texts.into_iter().chain([Param::Int4(READS)]).collect());
    // The next try has another name, so an unknown outcome does no harm.
    link.commit_within(&mut pipeline, JOIN_LIMIT).map(drop).map_err(|failure| match failure {
        Failure::Gone { why } => Failure::Gone {
            why: format!("{why} (if synchronous_standby_names is set, each commit waits for the standby)"),
        },
        refused @ Failure::Refused { .. } => refused,
    })
}

pub(super) fn heartbeat(link: &mut Link, incarnation: &str) -> Result<Heartbeat, Failure> {
    let mut pipeline = Pipeline::new();
    // Without BEGIN, all steps are one transaction, which ends with the pipeline. Its answer comes after the commit.
    pipeline.kept(BEAT, vec![Param::Text(incarnation.into())]);
    pipeline.kept(OTHERS, vec![Param::Text(incarnation.into())]);
    pipeline.kept(TIMELINE, Vec::new());
    let results = link.run(&pipeline, Some(BEAT_LIMIT))?;
    // An administrator who cancels the wait for a standby makes the database report success with a warning.
    no_warning(&results)?;
    let wall_us: Option<i64> = match results[0].rows.first() {
        Some(row) => Some(row.get(0)?),
        None => None,
    };
    let mut others = Vec::new();
    for row in &results[1].rows {
        others.push((row.get::<&str>(0)?.to_owned(), row.get(1)?));
    }
    let timeline = row(&results, 2, 0)?.get(0)?;
    let adopted = wall_us.is_none() && was_adopted(link, incarnation)?;
    Ok(Heartbeat { wall_ns: wall_us.map(|us| i128::from(us) * 1_000), adopted, failover: timeline, others })
}

fn was_adopted(link: &mut Link, incarnation: &str) -> Result<bool, Failure> {
    let mut pipeline = Pipeline::new();
    pipeline.kept(ADOPTED, vec![Param::Text(incarnation.into())]);
    let results = link.run(&pipeline, Some(BEAT_LIMIT))?;
    // The row of the incarnation may be gone.
    Ok(results[0].rows.first().map(|row| row.get(0)).transpose()?.unwrap_or(false))
}

pub(super) fn leave(link: &mut Link, incarnation: &str) -> Result<(), Failure> {
    let mut pipeline = Pipeline::new();
    pipeline.kept(LEAVE, vec![Param::Text(incarnation.into())]);
    link.run(&pipeline, Some(BEAT_LIMIT)).map(drop)
}

pub(super) fn end(link: &mut Link, incarnation: &str, beat: i64) -> Result<bool, Failure> {
    let mut pipeline = Pipeline::new();
    pipeline.kept(END, vec![Param::Text(incarnation.into()), Param::Int8(beat)]);
    pipeline.kept(HAS_ENDED, vec![Param::Text(incarnation.into())]);
    let results = link.run(&pipeline, Some(END_LIMIT))?;
    let has_ended: bool = row(&results, 1, 0)?.get(0)?;
    if has_ended {
        let mut pipeline = Pipeline::new();
        pipeline.kept(TERMINATE, vec![Param::Text(application_name(incarnation).into())]);
        link.run(&pipeline, Some(END_LIMIT))?;
    }
    Ok(has_ended)
}

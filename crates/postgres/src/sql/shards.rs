//! Takes, resolves, rolls up and releases shards.
//!
//! One process has all shards. Without this rule, two processes that begin to ask at the same time could share the shards for good, and neither
//! would ever be ready. The first acquisition of a process holds a lock. A process that has a shard needs no lock for the others, because no other
//! process can take one.

use std::time::Duration;

use super::commit::BEGIN;
use super::link::{Link, foreign, row};
use super::nodes::TIMELINE;
use crate::database::{
    Acquire, Acquisition, BatchRow, Claim, Doubt, Failure, Holder, Resolution, Rollup, Snapshot,
};
use crate::wire::{Param, Pipeline, Row, StepResult};

const READ_LIMIT: Duration = Duration::from_secs(30);
/// The epoch rises by this much for each fail-over since: the epochs in between may have been given out and lost.
const STEP_AFTER_LOSS: i64 = 1_024;

/// The number of the lock that keeps two processes from acquiring shards at the same time: the letters `tickwhet`.
const TAKE_LOCK: i64 = 0x7469_636b_7768_6574;

/// The epoch of the shard, a living process that has this shard or another one, and whether the asking process has a shard.
const HOLDER: &str = "\
SELECT s.epoch, s.timeline, s.secret, n.node, n.name, n.address, EXISTS (SELECT FROM tickwheel.shard m WHERE m.owner = $2)
FROM tickwheel.shard s LEFT JOIN LATERAL (
    SELECT n.node, n.name, n.address FROM tickwheel.shard o JOIN tickwheel.node n ON n.node = o.owner
    WHERE NOT n.ended AND n.node <> $2 ORDER BY o.shard <> s.shard, o.shard LIMIT 1
) n ON true
WHERE s.shard = $1";

const TAKE: &str = "\
UPDATE tickwheel.shard SET owner = $2, epoch = epoch + $4, timeline = $5
WHERE shard = $1 AND epoch = $3
    AND NOT EXISTS (
        SELECT FROM tickwheel.shard o JOIN tickwheel.node n ON n.node = o.owner WHERE NOT n.ended AND n.node <> $2
    )
    AND EXISTS (SELECT FROM tickwheel.node n WHERE n.node = $2 AND NOT n.ended)
RETURNING epoch";

const NEWEST_FOLD: &str = "\
SELECT no, seq, wall, counters, counts FROM tickwheel.rollup WHERE shard = $1 ORDER BY no DESC LIMIT 1";

const BATCHES: &str = "\
SELECT no, seq, wall, counters, counts, ended, failovers_passed FROM tickwheel.batch
WHERE shard = $1 AND no > coalesce((SELECT max(no) FROM tickwheel.rollup WHERE shard = $1), 0) ORDER BY no";

const RULES: &str = "SELECT record FROM tickwheel.rule WHERE shard = $1 ORDER BY kind, queue, name";

const LEASED: &str =
    "SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM tickwheel.task WHERE shard = $1 AND leased";

/// The batch of an acquisition. No commit of an earlier owner has its number, so none can follow unnoticed.
const BATCH_OF_TAKING: &str = "\
INSERT INTO tickwheel.batch (shard, no, epoch, seq, wall, failovers_passed)
SELECT $1, l.no + 1, s.epoch, l.seq, greatest(l.wall, $3), $4
FROM tickwheel.shard s CROSS JOIN LATERAL (
    SELECT no, seq, wall FROM tickwheel.batch WHERE shard = $1
    UNION ALL SELECT no, seq, wall FROM tickwheel.rollup WHERE shard = $1
    UNION ALL SELECT 0, 0, 0
    ORDER BY no DESC LIMIT 1
) l
WHERE s.shard = $1 AND s.owner = $2 AND s.epoch = $5 RETURNING no";

const LOCK: &str = "SELECT shard FROM tickwheel.shard WHERE shard = $1 AND epoch = $2 FOR NO KEY UPDATE";

const NUMBERS: &str = "\
SELECT EXISTS (SELECT FROM tickwheel.batch WHERE shard = $1 AND no = $2),
    EXISTS (SELECT FROM tickwheel.batch WHERE shard = $1 AND no = $2 - 1)";

/// The wait of this row for the standby covers the batch before it.
const COVER: &str = "\
INSERT INTO tickwheel.batch (shard, no, epoch, seq, wall)
SELECT b.shard, b.no + 1, b.epoch, b.seq, b.wall FROM tickwheel.batch b JOIN tickwheel.shard s ON s.shard = b.shard AND s.epoch = $2
WHERE b.shard = $1 AND b.no = $3 ON CONFLICT DO NOTHING";

const LAST: &str = "SELECT max(no) FROM tickwheel.batch WHERE shard = $1";

const RELEASE: &str = "UPDATE tickwheel.shard SET owner = NULL WHERE shard = $1 AND epoch = $2";

/// After a fail-over, the batch of the rollup may be lost. The rollup has what it changed, so the rollup is not made then, and nothing is removed.
const ROLL_UP: &str = "\
INSERT INTO tickwheel.rollup (shard, no, epoch, seq, wall, counters, counts, ended)
SELECT s.shard, $3, s.epoch, $4, $5, $6, $7, $8
FROM tickwheel.shard s JOIN tickwheel.batch b ON b.shard = s.shard AND b.no = $3
WHERE s.shard = $1 AND s.epoch = $2 ON CONFLICT DO NOTHING";

/// The rollup before has removed the batches before it, so the walk begins there. While a snapshot is held open, the dead rows of all of them are
/// still in the index.
const FORGET_BATCHES: &str = "\
DELETE FROM tickwheel.batch b USING tickwheel.shard s
WHERE s.shard = $1 AND s.epoch = $2 AND b.shard = s.shard AND b.no < $3
    AND b.no >= coalesce((SELECT max(f.no) FROM tickwheel.rollup f WHERE f.shard = $1 AND f.no < $3), 0)
    AND EXISTS (SELECT FROM tickwheel.rollup n WHERE n.shard = $1 AND n.no = $3)";

/// Only the newest rollup needs the numbers of tasks.
const FORGET_COUNTS: &str = "\
UPDATE tickwheel.rollup f SET counts = NULL FROM tickwheel.shard s
WHERE s.shard = $1 AND s.epoch = $2 AND f.shard = s.shard AND f.no < $3 AND f.counts IS NOT NULL
    AND EXISTS (SELECT FROM tickwheel.rollup n WHERE n.shard = $1 AND n.no = $3)";

const FORGET_FOLDS: &str = "\
DELETE FROM tickwheel.rollup f USING tickwheel.shard s
WHERE s.shard = $1 AND s.epoch = $2 AND f.shard = s.shard AND f.no < $3
    AND EXISTS (SELECT FROM tickwheel.rollup n WHERE n.shard = $1 AND n.no = $3)";

pub(super) fn acquire(link: &mut Link, wanted: &Acquire) -> Result<Acquisition, Failure> {
    let shard = Param::Int4(wanted.shard.cast_signed());
    let me = Param::Text(wanted.incarnation.as_str().into());
    let mut pipeline = Pipeline::new();
    pipeline.kept(HOLDER, vec![shard.clone(), me.clone()]);
    pipeline.kept(TIMELINE, Vec::new());
    let results = link.run(&pipeline, Some(READ_LIMIT))?;
    let Some(found) = results[0].rows.first() else {
        return Err(foreign(&format!("there is no shard {}", wanted.shard)));
    };
    if let Some(holder) = holder(found)? {
        return Ok(Acquisition::Held(holder));
    }
    let (epoch, before, has_shards): (i64, i64, bool) = (found.get(0)?, found.get(1)?, found.get(6)?);
    let secret =
        <[u8; 16]>::try_from(found.get::<&[u8]>(2)?).map_err(|_| foreign("the secret has not 16 bytes"))?;
    let timeline: i64 = row(&results, 1, 0)?.get(0)?;
    let failovers_passed = timeline.saturating_sub(before).max(0);
    if failovers_passed > 0 && wanted.after_loss != Some(timeline) {
        return Ok(Acquisition::TooSoon);
    }
    let step = STEP_AFTER_LOSS.saturating_mul(failovers_passed).max(1);

    let mut pipeline = Pipeline::new();
    pipeline.text(BEGIN);
    // The lock has a statement of its own: the next statement then has a newer snapshot, in which all earlier acquisitions are.
    let lock = if has_shards { "SELECT" } else { "SELECT pg_advisory_xact_lock($1)" };
    pipeline.kept(lock, if has_shards { Vec::new() } else { vec![Param::Int8(TAKE_LOCK)] });
    let claim = vec![shard.clone(), me.clone(), Param::Int8(epoch), Param::Int8(step), Param::Int8(timeline)];
    pipeline.kept(TAKE, claim);
    for sql in [NEWEST_FOLD, BATCHES, RULES, LEASED] {
        pipeline.kept(sql, vec![shard.clone()]);
    }
    pipeline.kept(
        BATCH_OF_TAKING,
        vec![shard, me, Param::Int8(wanted.wall), Param::Int8(failovers_passed), Param::Int8(epoch + step)],
    );
    let results = link.commit(&mut pipeline)?;
    let results = &results[2..];
    let Some(taken) = results[0].rows.first() else {
        // Another process was faster. The next try learns its name.
        return Err(Failure::Refused {
            why: "another process took shards at the same time".to_owned(),
            again: true,
        });
    };
    let snapshot = snapshot(taken.get(0)?, secret, failovers_passed, results)?;
    Ok(Acquisition::Acquired(Box::new(snapshot)))
}

fn holder(row: &Row) -> Result<Option<Holder>, Failure> {
    let Some(incarnation) = row.get::<Option<&str>>(3)? else { return Ok(None) };
    let text = |index| -> Result<String, Failure> {
        Ok(row.get::<Option<&str>>(index)?.unwrap_or_default().to_owned())
    };
    Ok(Some(Holder { incarnation: incarnation.to_owned(), name: text(4)?, address: text(5)? }))
}

fn snapshot(
    epoch: i64,
    secret: [u8; 16],
    failovers_passed: i64,
    results: &[StepResult],
) -> Result<Snapshot, Failure> {
    let rollup = match results[1].rows.first() {
        Some(row) => Some(batch_row(row, false)?),
        None => None,
    };
    let mut batches: Vec<BatchRow> =
        results[2].rows.iter().map(|row| batch_row(row, true)).collect::<Result<_, _>>()?;
    let mut rules = Vec::with_capacity(results[3].rows.len());
    for row in &results[3].rows {
        rules.push(row.get::<&[u8]>(0)?.to_vec());
    }
    let leased = row(results, 4, 0)?.get(0)?;
    let last = batches.last().or(rollup.as_ref());
    let (seq, wall) = last.map_or((0, 0), |last| (last.seq, last.wall));
    let no = row(results, 5, 0)?.get(0)?;
    // The row of the acquisition has the wall clock of this owner, which tells it nothing new.
    batches.push(BatchRow {
        no,
        seq,
        wall,
        counters: None,
        counts: Vec::new(),
        ended: Vec::new(),
        failovers_passed,
    });
    Ok(Snapshot { epoch, secret, rollup, batches, rules, leased })
}

fn batch_row(row: &Row, is_batch: bool) -> Result<BatchRow, Failure> {
    let bytes = |index| -> Result<Option<Vec<u8>>, Failure> {
        Ok(row.get::<Option<&[u8]>>(index)?.map(<[u8]>::to_vec))
    };
    Ok(BatchRow {
        no: row.get(0)?,
        seq: row.get(1)?,
        wall: row.get(2)?,
        counters: bytes(3)?,
        counts: bytes(4)?.unwrap_or_default(),
        ended: if is_batch { bytes(5)?.unwrap_or_default() } else { Vec::new() },
        failovers_passed: if is_batch { row.get(6)? } else { 0 },
    })
}

pub(super) fn resolve(link: &mut Link, doubt: &Doubt) -> Result<Resolution, Failure> {
    let Doubt { claim, no } = *doubt;
    let [shard, epoch] = params(claim);
    let mut pipeline = Pipeline::new();
    pipeline.text(BEGIN);
    // The lock waits for a transaction that still commits. Only a later statement sees what that transaction did.
    pipeline.kept(LOCK, vec![shard.clone(), epoch.clone()]);
    pipeline.kept(NUMBERS, vec![shard.clone(), Param::Int8(no)]);
    pipeline.kept(COVER, vec![shard.clone(), epoch, Param::Int8(no)]);
    pipeline.kept(LAST, vec![shard]);
    let results = link.commit(&mut pipeline)?;
    if results[1].rows.is_empty() {
        return Ok(Resolution::Moved);
    }
    let numbers = row(&results, 2, 0)?;
    Ok(match (numbers.get(0)?, numbers.get(1)?) {
        (true, _) => Resolution::Done { last: row(&results, 4, 0)?.get(0)? },
        (false, true) => Resolution::Absent,
        (false, false) => Resolution::Lost,
    })
}

pub(super) fn release(link: &mut Link, claim: Claim) -> Result<(), Failure> {
    let mut pipeline = Pipeline::new();
    pipeline.text(BEGIN);
    pipeline.kept(RELEASE, params(claim).to_vec());
    link.commit(&mut pipeline).map(drop)
}

pub(super) fn roll_up(link: &mut Link, rollup: &Rollup) -> Result<(), Failure> {
    let Rollup { claim, no, seq, wall, counters, counts, ended, replaces_history } = rollup;
    let [shard, epoch] = params(*claim);
    let at = || vec![shard.clone(), epoch.clone(), Param::Int8(*no)];
    let mut pipeline = Pipeline::new();
    pipeline.text(BEGIN);
    pipeline.kept(LOCK, vec![shard.clone(), epoch.clone()]);
    let mut row = at();
    row.extend([Param::Int8(*seq), Param::Int8(*wall)]);
    row.extend([&counters[..], counts, ended].map(|bytes| Param::Bytea(bytes.into())));
    pipeline.kept(ROLL_UP, row);
    pipeline.kept(FORGET_BATCHES, at());
    pipeline.kept(if *replaces_history { FORGET_FOLDS } else { FORGET_COUNTS }, at());
    link.commit(&mut pipeline).map(drop)
}

fn params<'a>(claim: Claim) -> [Param<'a>; 2] {
    [Param::Int4(claim.shard.cast_signed()), Param::Int8(claim.epoch)]
}

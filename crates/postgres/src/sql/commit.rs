//! Commits batches of several shards in one transaction.

use super::link::{Link, row};
use crate::database::{Failure, PutRow, ShardBatch};
use crate::wire::{Param, Pipeline, oid};

/// The transaction is explicit: with a default of SERIALIZABLE, a fence that waits for a lock would end in an error.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// Locks the shards whose epochs stand, in the order of their numbers, and writes their batches. A shard whose number is there already, or
/// whose number before is missing, drops out alone. The later statements change only the shards that are left, which `tickwheel.mine` names.
const FENCE: &str = "\
WITH mine AS MATERIALIZED (
    SELECT s.shard FROM tickwheel.shard s JOIN unnest($1::int4[], $2::int8[]) v(shard, epoch) ON s.shard = v.shard AND s.epoch = v.epoch
    ORDER BY s.shard FOR NO KEY UPDATE OF s
), done AS (
    INSERT INTO tickwheel.batch (shard, no, epoch, seq, wall, counters, counts, ended)
    SELECT v.shard, v.no, v.epoch, v.seq, v.wall, v.counters, v.counts, v.ended
    FROM unnest($1::int4[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::bytea[], $7::bytea[], $8::bytea[])
        v(shard, epoch, no, seq, wall, counters, counts, ended)
    JOIN mine USING (shard) JOIN tickwheel.batch p ON p.shard = v.shard AND p.no = v.no - 1
    ON CONFLICT DO NOTHING RETURNING shard
)
SELECT set_config('tickwheel.mine', coalesce(array_agg(shard), '{}')::text, true), coalesce(array_agg(shard), '{}') FROM done";

/// The same as [`FENCE`] for one shard, which most commits have while the load is low. The database takes arrays apart for each commit, so this
/// makes one put a tenth faster.
const FENCE_ONE: &str = "\
WITH mine AS MATERIALIZED (
    SELECT s.shard FROM tickwheel.shard s WHERE s.shard = $1 AND s.epoch = $2 FOR NO KEY UPDATE OF s
), done AS (
    INSERT INTO tickwheel.batch (shard, no, epoch, seq, wall, counters, counts, ended)
    SELECT mine.shard, $3, $2, $4, $5, $6, $7, $8 FROM mine JOIN tickwheel.batch p ON p.shard = mine.shard AND p.no = $3 - 1
    ON CONFLICT DO NOTHING RETURNING shard
)
SELECT set_config('tickwheel.mine', coalesce(array_agg(shard), '{}')::text, true), coalesce(array_agg(shard), '{}') FROM done";

/// An id names its shard. With a join in the place of `ANY`, the planner may begin with the table, because it expects next to nothing there, and
/// walk through all dead rows.
const END: &str = "\
DELETE FROM tickwheel.task t WHERE t.id = ANY ($1::int8[]) AND t.shard + 0 = ANY ((SELECT current_setting('tickwheel.mine')::int4[])::int4[])";

/// A key that changes hands has to be free before its next task is written: a unique index is checked row by row.
const LOSE_KEY: &str = "\
UPDATE tickwheel.task t SET key = NULL
WHERE t.id = ANY ($1::int8[]) AND t.key IS NOT NULL AND t.shard + 0 = ANY ((SELECT current_setting('tickwheel.mine')::int4[])::int4[])";

/// The body is not named, so it is neither sent nor stored again. The places of the rows are looked up first, with a `LIMIT` each, so that the planner
/// cannot begin with the table. The lock on the shards keeps the rows where they are.
const CHANGE: &str = "\
UPDATE tickwheel.task t
SET key = u.key, due_at = u.due_at, put_seq = u.put_seq, seq = u.seq, dead = u.dead, leased = u.leased, record = u.record
FROM unnest($1::int4[], $2::int8[], $3::text[], $4::text[], $5::int8[], $6::int8[], $7::int8[], $8::bool[], $9::bool[], $10::bytea[])
    u(shard, id, queue, key, due_at, put_seq, seq, dead, leased, record)
CROSS JOIN LATERAL (SELECT k.ctid AS place FROM tickwheel.task k WHERE k.id = u.id AND k.shard + 0 = u.shard LIMIT 1) k
WHERE t.ctid = k.place AND t.seq < u.seq AND u.shard = ANY ((SELECT current_setting('tickwheel.mine')::int4[])::int4[])";

/// Inserts new tasks that nothing has changed since their put. A statement that may meet a row writes an intention and a confirmation for each
/// one. A row that is not there needs neither: the fence lets no batch in twice, and an error here would show that it did. New tasks that were
/// changed in the same batch go to [`PUT`], which would hide such an error. Each column is an array more to be taken apart.
const INSERT: &str = "\
INSERT INTO tickwheel.task (shard, id, queue, key, due_at, put_seq, seq, dead, leased, record, body)
SELECT u.shard, u.id, u.queue, u.key, u.due_at, u.seq, u.seq, false, false, u.record, u.body
FROM unnest($1::int4[], $2::int8[], $3::text[], $4::text[], $5::int8[], $6::int8[], $7::bytea[], $8::bytea[])
    u(shard, id, queue, key, due_at, seq, record, body)
WHERE u.shard = ANY ((SELECT current_setting('tickwheel.mine')::int4[])::int4[])";

/// The same as [`INSERT`] for one task.
const INSERT_ONE: &str = "\
INSERT INTO tickwheel.task (shard, id, queue, key, due_at, put_seq, seq, dead, leased, record, body)
SELECT $1, $2, $3, $4, $5, $6, $6, false, false, $7, $8
WHERE $1 = ANY ((SELECT current_setting('tickwheel.mine')::int4[])::int4[])";

const PUT: &str = "\
INSERT INTO tickwheel.task (shard, id, queue, key, due_at, put_seq, seq, dead, leased, record, body)
SELECT u.shard, u.id, u.queue, u.key, u.due_at, u.put_seq, u.seq, u.dead, u.leased, u.record, u.body
FROM unnest($1::int4[], $2::int8[], $3::text[], $4::text[], $5::int8[], $6::int8[], $7::int8[], $8::bool[], $9::bool[], $10::bytea[], $11::bytea[])
    u(shard, id, queue, key, due_at, put_seq, seq, dead, leased, record, body)
WHERE u.shard = ANY ((SELECT current_setting('tickwheel.mine')::int4[])::int4[])
ON CONFLICT (id) DO UPDATE SET
    key = excluded.key, due_at = excluded.due_at, put_seq = excluded.put_seq, seq = excluded.seq, dead = excluded.dead,
    leased = excluded.leased, record = excluded.record, body = excluded.body
WHERE task.seq < excluded.seq";

/// A row of the inbox is gone exactly if the batch that has its effect is there.
const TAKE_ROWS: &str = "\
DELETE FROM tickwheel.inbox i WHERE i.id = ANY ($1::int8[]) AND i.shard + 0 = ANY ((SELECT current_setting('tickwheel.mine')::int4[])::int4[])";

const REMOVE_RULE: &str = "\
DELETE FROM tickwheel.rule r USING unnest($1::int4[], $2::int2[], $3::text[], $4::text[]) u(shard, kind, queue, name)
WHERE r.shard = u.shard AND r.kind = u.kind AND r.queue = u.queue AND r.name = u.name
    AND u.shard = ANY ((SELECT current_setting('tickwheel.mine')::int4[])::int4[])";

const SET_RULE: &str = "\
INSERT INTO tickwheel.rule (shard, kind, queue, name, record)
SELECT u.shard, u.kind, u.queue, u.name, u.record
FROM unnest($1::int4[], $2::int2[], $3::text[], $4::text[], $5::bytea[]) u(shard, kind, queue, name, record)
WHERE u.shard = ANY ((SELECT current_setting('tickwheel.mine')::int4[])::int4[])
ON CONFLICT (shard, kind, queue, name) DO UPDATE SET record = excluded.record";

/// Commits the batches. Returns the shards that took part.
///
/// # Errors
/// [`Failure`].
pub(super) fn commit(link: &mut Link, batches: &[&ShardBatch]) -> Result<Vec<u32>, Failure> {
    let mut pipeline = Pipeline::new();
    pipeline.text(BEGIN);
    match batches {
        [batch] => pipeline.kept(FENCE_ONE, fence_one(batch)),
        _ => pipeline.kept(FENCE, fence(batches)),
    };
    let ids = |of: fn(&ShardBatch) -> &Vec<i64>| -> Vec<i64> {
        batches.iter().flat_map(|batch| of(batch)).copied().collect()
    };
    let (ends, keyless, taken) =
        (ids(|batch| &batch.ends), ids(|batch| &batch.keyless), ids(|batch| &batch.taken));
    for (sql, ids) in [(END, ends), (LOSE_KEY, keyless), (TAKE_ROWS, taken)] {
        if !ids.is_empty() {
            pipeline.kept(sql, vec![Param::Int8s(ids.into())]);
        }
    }
    let puts = || batches.iter().flat_map(|batch| batch.puts.iter().map(|put| (shard(batch), put)));
    let known: Vec<_> = puts().filter(|(_, put)| put.body.is_none()).collect();
    if !known.is_empty() {
        pipeline.kept(CHANGE, columns(&known));
    }
    for (sql, is_fresh) in [(PUT, false), (INSERT, true)] {
        let whole = puts().filter(|(_, put)| put.body.is_some() && self::is_fresh(put) == is_fresh);
        let whole: Vec<_> = whole.collect();
        if let ([(shard, put)], true) = (&whole[..], is_fresh) {
            pipeline.kept(INSERT_ONE, insert_one(*shard, put));
            continue;
        }
        if whole.is_empty() {
            continue;
        }
        let mut params = if is_fresh { fresh_columns(&whole) } else { columns(&whole) };
        let bodies = whole.iter().map(|(_, put)| put.body.as_deref().unwrap_or_default());
        params.push(Param::Byteas(bodies.collect::<Vec<&[u8]>>().into()));
        pipeline.kept(sql, params);
    }
    add_rules(&mut pipeline, batches);
    let results = link.commit(&mut pipeline)?;
    // The commit is done, so an answer that cannot be read leaves its outcome open.
    let took_part = row(&results, 1, 0).and_then(|row| Ok(row.get::<Vec<i32>>(1)?));
    let took_part = took_part.map_err(|failure| Failure::Gone { why: format!("{failure:?}") })?;
    Ok(took_part.into_iter().map(i32::cast_unsigned).collect())
}

fn shard(batch: &ShardBatch) -> i32 {
    batch.claim.shard.cast_signed()
}

fn fence<'a>(batches: &[&'a ShardBatch]) -> Vec<Param<'a>> {
    let numbers = |of: fn(&ShardBatch) -> i64| Param::Int8s(batches.iter().map(|batch| of(batch)).collect());
    let bytes = |of: fn(&ShardBatch) -> &[u8]| {
        let all = batches.iter().map(|batch| Some(of(batch)).filter(|bytes| !bytes.is_empty()));
        Param::OptionalByteas(all.collect())
    };
    vec![
        Param::Int4s(batches.iter().map(|batch| shard(batch)).collect()),
        numbers(|batch| batch.claim.epoch),
        numbers(|batch| batch.no),
        numbers(|batch| batch.seq),
        numbers(|batch| batch.wall),
        bytes(|batch| batch.counters.as_ref().map_or(&[], |bytes| &bytes[..])),
        bytes(|batch| &batch.counts),
        bytes(|batch| &batch.ended),
    ]
}

fn fence_one(batch: &ShardBatch) -> Vec<Param<'_>> {
    vec![
        Param::Int4(shard(batch)),
        Param::Int8(batch.claim.epoch),
        Param::Int8(batch.no),
        Param::Int8(batch.seq),
        Param::Int8(batch.wall),
        bytes_or_null(batch.counters.as_ref().map_or(&[], |bytes| &bytes[..])),
        bytes_or_null(&batch.counts),
        bytes_or_null(&batch.ended),
    ]
}

fn bytes_or_null(bytes: &[u8]) -> Param<'_> {
    if bytes.is_empty() { Param::Null(oid::BYTEA) } else { Param::Bytea(bytes.into()) }
}

fn insert_one(shard: i32, put: &PutRow) -> Vec<Param<'_>> {
    vec![
        Param::Int4(shard),
        Param::Int8(put.id),
        Param::Text(put.queue.as_str().into()),
        put.key.as_ref().map_or(Param::Null(oid::TEXT), |key| Param::Text(key.as_str().into())),
        Param::Int8(put.due_at),
        Param::Int8(put.seq),
        Param::Bytea(put.record[..].into()),
        Param::Bytea(put.body.as_deref().unwrap_or_default().into()),
    ]
}

/// Whether the task is new, and nothing has changed it since its put.
fn is_fresh(put: &PutRow) -> bool {
    put.is_new && put.put_seq == put.seq && !put.dead && !put.leased
}

fn columns<'a>(puts: &[(i32, &'a PutRow)]) -> Vec<Param<'a>> {
    let flags = |of: fn(&PutRow) -> bool| Param::Bools(puts.iter().map(|(_, put)| of(put)).collect());
    let mut params = Vec::from(names(puts));
    params.extend([
        numbers(puts, |put| put.due_at),
        numbers(puts, |put| put.put_seq),
        numbers(puts, |put| put.seq),
        flags(|put| put.dead),
        flags(|put| put.leased),
        records(puts),
    ]);
    params
}

fn fresh_columns<'a>(puts: &[(i32, &'a PutRow)]) -> Vec<Param<'a>> {
    let mut params = Vec::from(names(puts));
    params.extend([numbers(puts, |put| put.due_at), numbers(puts, |put| put.seq), records(puts)]);
    params
}

/// Returns the shards, the ids, the queues and the keys.
fn names<'a>(puts: &[(i32, &'a PutRow)]) -> [Param<'a>; 4] {
    let keys = puts.iter().map(|(_, put)| put.key.as_ref().map(tickwheel_engine::Key::as_str));
    [
        Param::Int4s(puts.iter().map(|(shard, _)| *shard).collect()),
        numbers(puts, |put| put.id),
        Param::Texts(puts.iter().map(|(_, put)| put.queue.as_str()).collect()),
        Param::OptionalTexts(keys.collect()),
    ]
}

fn numbers<'a>(puts: &[(i32, &'a PutRow)], of: fn(&PutRow) -> i64) -> Param<'a> {
    Param::Int8s(puts.iter().map(|(_, put)| of(put)).collect())
}

fn records<'a>(puts: &[(i32, &'a PutRow)]) -> Param<'a> {
    Param::Byteas(puts.iter().map(|(_, put)| &put.record[..]).collect())
}

fn add_rules<'a>(pipeline: &mut Pipeline<'a>, batches: &[&'a ShardBatch]) {
    for (sql, is_set) in [(REMOVE_RULE, false), (SET_RULE, true)] {
        let rules = batches.iter().flat_map(|batch| batch.rules.iter().map(|rule| (shard(batch), rule)));
        let rules: Vec<_> = rules.filter(|(_, rule)| rule.record.is_some() == is_set).collect();
        if rules.is_empty() {
            continue;
        }
        let mut params = vec![
            Param::Int4s(rules.iter().map(|(shard, _)| *shard).collect()),
            Param::Int2s(rules.iter().map(|(_, rule)| rule.kind).collect()),
            Param::Texts(rules.iter().map(|(_, rule)| rule.queue.as_str()).collect()),
            Param::Texts(rules.iter().map(|(_, rule)| rule.name.as_str()).collect()),
        ];
        if is_set {
            params.push(Param::Byteas(rules.iter().filter_map(|(_, rule)| rule.record.as_deref()).collect()));
        }
        pipeline.kept(sql, params);
    }
}

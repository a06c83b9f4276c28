//! Reads the inbox, and moves the rows that were refused.

use std::collections::BTreeMap;
use std::time::Duration;

use super::commit::BEGIN;
use super::link::Link;
use crate::database::{Claim, Failure, InboxEntry, InboxPage, PAYLOAD_BYTES_MAX, Refusal};
use crate::wire::{Param, Pipeline, Row};

const READ_LIMIT: Duration = Duration::from_secs(30);
/// A page of a shard ends with the row with which its payloads have this many bytes.
const BYTES_MAX: i64 = 1 << 20;

/// Each shard has a limit of its own, and its rows come from the index by shard and id. With `shard = ANY (...) ORDER BY id`, one shard with
/// many rows would take the place of all others, and all rows of all shards would be sorted.
///
/// The length of a payload is known without reading it. One that is too long is not read at all. The ids after `NOT IN` come as rows, because
/// PostgreSQL hashes these; a parameter after `<> ALL` would be compared one by one.
const READ: &str = "\
SELECT v.shard, v.epoch, r.id, r.op, r.queue, r.key, r.due_at, r.payload, r.bytes, r.content_type, r.put_at
FROM unnest($1::int4[], $2::int8[]) v(shard, epoch) JOIN tickwheel.shard s ON s.shard = v.shard AND s.epoch = v.epoch
CROSS JOIN LATERAL (
    SELECT o.*, sum(o.bytes) OVER (ORDER BY o.id) - o.bytes AS before FROM (
        SELECT i.id, i.op, i.queue, i.key, i.due_at, CASE WHEN octet_length(i.payload) <= $4 THEN i.payload END AS payload,
            coalesce(octet_length(i.payload), 0)::int8 AS bytes, i.content_type, i.put_at
        FROM tickwheel.inbox i WHERE i.shard = v.shard AND i.id NOT IN (SELECT unnest($6::int8[])) ORDER BY i.id LIMIT $3
    ) o
) r
WHERE r.before < $5";

/// An id is used once only, unless a row was made by hand. Then the newer row replaces the older one.
const MOVE: &str = "\
WITH mine AS MATERIALIZED (
    SELECT s.shard FROM tickwheel.shard s
    WHERE EXISTS (SELECT FROM unnest($1::int4[], $2::int8[]) v(shard, epoch) WHERE v.shard = s.shard AND v.epoch = s.epoch)
    ORDER BY s.shard FOR NO KEY UPDATE
), refused AS (
    SELECT u.* FROM unnest($1::int4[], $3::int8[], $4::text[]) u(shard, id, reason) JOIN mine USING (shard)
), gone AS (
    DELETE FROM tickwheel.inbox i USING refused u WHERE i.shard = u.shard AND i.id = u.id RETURNING i.*, u.reason
)
INSERT INTO tickwheel.inbox_refused (id, shard, op, queue, key, due_at, payload, content_type, put_at, reason)
SELECT id, shard, op, queue, key, due_at, payload, content_type, put_at, reason FROM gone
ON CONFLICT (id) DO UPDATE SET
    shard = excluded.shard, op = excluded.op, queue = excluded.queue, key = excluded.key, due_at = excluded.due_at,
    payload = excluded.payload, content_type = excluded.content_type, put_at = excluded.put_at, reason = excluded.reason,
    refused_at = excluded.refused_at";

pub(super) fn read(
    link: &mut Link,
    claims: &[Claim],
    rows_max: usize,
    but: &[i64],
) -> Result<Vec<InboxPage>, Failure> {
    let mut pipeline = Pipeline::new();
    pipeline.kept(
        READ,
        vec![
            Param::Int4s(claims.iter().map(|claim| claim.shard.cast_signed()).collect()),
            Param::Int8s(claims.iter().map(|claim| claim.epoch).collect()),
            Param::Int8(i64::try_from(rows_max).unwrap_or(i64::MAX)),
            Param::Int4(PAYLOAD_BYTES_MAX.cast_signed()),
            Param::Int8(BYTES_MAX),
            Param::Int8s(but.into()),
        ],
    );
    let results = link.run(&pipeline, Some(READ_LIMIT))?;
    let mut pages: BTreeMap<(u32, i64), Vec<InboxEntry>> = BTreeMap::new();
    for row in &results[0].rows {
        let (shard, epoch): (i32, i64) = (row.get(0)?, row.get(1)?);
        pages.entry((shard.cast_unsigned(), epoch)).or_default().push(entry(row)?);
    }
    let pages = pages.into_iter().map(|((shard, epoch), mut entries)| {
        entries.sort_unstable_by_key(|entry| entry.id);
        let bytes: u64 = entries.iter().map(|entry| entry.payload_bytes).sum();
        let more = entries.len() >= rows_max || bytes >= BYTES_MAX.cast_unsigned();
        InboxPage { claim: Claim { shard, epoch }, entries, more }
    });
    Ok(pages.collect())
}

fn entry(row: &Row) -> Result<InboxEntry, Failure> {
    Ok(InboxEntry {
        id: row.get(2)?,
        op: row.get(3)?,
        queue: row.get::<&str>(4)?.to_owned(),
        key: row.get::<&str>(5)?.to_owned(),
        due_at: row.get(6)?,
        payload: row.get::<Option<&[u8]>>(7)?.map(<[u8]>::to_vec),
        payload_bytes: row.get::<i64>(8)?.cast_unsigned(),
        content_type: row.get::<Option<&str>>(9)?.map(str::to_owned),
        put_at: row.get(10)?,
    })
}

pub(super) fn refuse(link: &mut Link, refusals: &[Refusal]) -> Result<(), Failure> {
    let mut pipeline = Pipeline::new();
    pipeline.text(BEGIN);
    pipeline.kept(
        MOVE,
        vec![
            Param::Int4s(refusals.iter().map(|refusal| refusal.claim.shard.cast_signed()).collect()),
            Param::Int8s(refusals.iter().map(|refusal| refusal.claim.epoch).collect()),
            Param::Int8s(refusals.iter().map(|refusal| refusal.row).collect()),
            Param::Texts(refusals.iter().map(|refusal| refusal.why.as_str()).collect()),
        ],
    );
    link.commit(&mut pipeline).map(drop)
}

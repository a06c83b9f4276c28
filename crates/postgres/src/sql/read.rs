//! Reads of one shard. Each is one statement, so it is one snapshot, which has the epoch and the last number of the shard, too.

use std::time::Duration;

use tickwheel_engine::{DueHistogram, DueKey, Filter, QueueName, Seq, Timestamp, Wanted};

use super::link::{Link, foreign, row};
use crate::database::{Failure, KeyRow, LIST_LIMIT, Read, ReadResult, Rows, TaskRow};
use crate::wire::{Param, Pipeline, Row};

const READ_LIMIT: Duration = Duration::from_secs(30);
/// A part of a count looks at this many tasks.
const COUNTED_MAX: i64 = 16_384;

/// Each answer has at least one row, which has the epoch and the last number. `MATERIALIZED`, because the database would look for the last
/// number once for each row of the answer otherwise, which took longer than the rows.
macro_rules! seen {
    ($rows:expr, $columns:literal) => {
        concat!(
            "WITH at AS MATERIALIZED (SELECT s.epoch, (SELECT max(no) FROM tickwheel.batch b WHERE b.shard = s.shard) AS no \
             FROM tickwheel.shard s WHERE s.shard = $1) SELECT at.epoch, at.no, ",
            $columns,
            " FROM at LEFT JOIN LATERAL (",
            $rows,
            ") t ON true"
        )
    };
}

/// The unique index finds a key. A dead task that has lost its key is found by its id only.
///
/// A `LIMIT` keeps the planner from turning the look-up around. Before the first ANALYZE it expects two tasks in a shard, and a plain join then
/// compared each of 1,000 keys with all tasks of the shard: 95 ms in the place of 2 ms with 2,000 tasks, and more with each task.
const FIND: &str = seen!(
    "SELECT w.place, k.record, k.body FROM unnest($2::int4[], $3::text[], $4::text[]) w(place, queue, key) CROSS JOIN LATERAL (\
         SELECT record, body FROM tickwheel.task WHERE queue = w.queue AND key = w.key AND shard + 0 = $1 LIMIT 1) k \
     UNION ALL SELECT w.place, k.record, k.body FROM unnest($5::int4[], $6::int8[]) w(place, id) CROSS JOIN LATERAL (\
         SELECT record, body FROM tickwheel.task WHERE id = w.id AND shard + 0 = $1 LIMIT 1) k",
    "t.place, t.record, t.body"
);

/// The first of these tasks whose bodies together have at most about 4 MiB, and the number of all. A page is in the memory of the reader as
/// a whole, and 1,000 bodies may have 1 GB. The length of a body is known without the body, also where the database keeps it apart.
macro_rules! page {
    ($tasks:literal) => {
        seen!(concat!(
            "SELECT due_at, put_seq, record, body, found FROM (\
                 SELECT l.*, count(*) OVER () AS found, sum(octet_length(l.body)) OVER (\
                     ORDER BY l.due_at, l.put_seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before FROM (",
            $tasks,
            ") l) p WHERE coalesce(bytes_before, 0) < 4194304"
        ), "t.record, t.body, t.due_at, t.put_seq, t.found")
    };
}

const SCAN_DUE: &str = page!(
    "SELECT due_at, put_seq, record, body FROM tickwheel.task k \
     WHERE k.shard = $1 AND (k.due_at, k.put_seq) > ($2, $3) AND k.due_at <= $4 ORDER BY k.due_at, k.put_seq LIMIT $5"
);

/// Dead tasks have an index of their own. For others the database chooses between the tasks of the queue and all tasks in the order of time,
/// by the number of each. So the statement has its values when it is planned, and [`WITH_VALUES`] runs before it.
const SCAN_FILTER: &str = page!(
    "SELECT due_at, put_seq, record, body FROM tickwheel.task k \
     WHERE k.shard = $1 AND k.queue = $6 AND k.dead = $7 AND (k.due_at, k.put_seq) > ($2, $3) AND k.due_at <= $4 \
     ORDER BY k.due_at, k.put_seq LIMIT $5"
);

/// The statements after it in the flight are planned with their values. The setting of the session comes back with the end of the flight.
const WITH_VALUES: &str = "SELECT set_config('plan_cache_mode', 'force_custom_plan', true)";

/// Counts up to the due time of the last task that is read, so that all tasks of one instant are counted together.
const COUNT: &str = seen!(
    "WITH edge AS (SELECT (SELECT due_at FROM tickwheel.task WHERE shard = $1 AND due_at > $2 AND due_at <= $3 \
         ORDER BY due_at, put_seq OFFSET $4 LIMIT 1) AS at) \
     SELECT due_at, count(*) FILTER (WHERE NOT dead AND ($5::text IS NULL OR queue = $5)) AS tasks, min(edge.at) AS edge \
     FROM tickwheel.task, edge WHERE shard = $1 AND due_at > $2 AND due_at <= coalesce(edge.at, $3) GROUP BY due_at ORDER BY due_at",
    "t.due_at, t.tasks, t.edge"
);

const HISTORY: &str =
    seen!("SELECT no, ended FROM tickwheel.rollup f WHERE f.shard = $1 ORDER BY no", "t.no, t.ended");

/// Each queue is a part of the unique index.
const KEYS: &str = seen!(
    "SELECT w.queue, k.key, k.id FROM unnest($2::text[], $3::text[]) w(queue, after) CROSS JOIN LATERAL (\
         SELECT key, id FROM tickwheel.task WHERE queue = w.queue AND key > w.after AND shard + 0 = $1 ORDER BY key LIMIT $4) k",
    "t.queue, t.key, t.id"
);

pub(super) fn read(link: &mut Link, shard: u32, read: &Read) -> Result<ReadResult, Failure> {
    let number = shard.cast_signed();
    match read {
        Read::Find(wanted) => find(link, number, wanted),
        Read::ScanDue { after, until, max } => scan(link, number, *after, *until, *max, None),
        Read::ScanFilter { filter, after, max } => {
            let from = DueKey { due_at: filter.due_from, put_seq: Seq::ZERO };
            scan(link, number, (*after).max(from), filter.due_to, *max, Some(filter))
        }
        Read::Count(histogram) => count(link, number, histogram),
        Read::History => history(link, number),
        Read::Keys { of, max } => keys(link, number, of, *max),
    }
}

/// Runs the statements and returns the rows of the last one, with the epoch and the last number.
fn ask(link: &mut Link, pipeline: &Pipeline<'_>, limit: Duration) -> Result<(i64, i64, Vec<Row>), Failure> {
    // A read changes nothing, so a lost answer is no doubt. The session is over all the same.
    let mut results = link.run(pipeline, Some(limit))?;
    let first = row(&results, pipeline.len() - 1, 0)?;
    let (epoch, no) = (first.get(0)?, first.get::<Option<i64>>(1)?.unwrap_or(0));
    Ok((epoch, no, results.pop().map(|last| last.rows).unwrap_or_default()))
}

fn find(link: &mut Link, shard: i32, wanted: &[Wanted]) -> Result<ReadResult, Failure> {
    let mut keys = (Vec::new(), Vec::new(), Vec::new());
    let mut ids = (Vec::new(), Vec::new());
    for (place, wanted) in (0..).zip(wanted) {
        match wanted {
            Wanted::Key(queue, key) => {
                keys.0.push(place);
                keys.1.push(queue.as_str());
                keys.2.push(key.as_str());
            }
            // No task has an id of 2^63 or more.
            Wanted::Id(id) => {
                if let Ok(id) = i64::try_from(*id) {
                    ids.0.push(place);
                    ids.1.push(id);
                }
            }
        }
    }
    let mut pipeline = Pipeline::new();
    pipeline.kept(
        FIND,
        vec![
            Param::Int4(shard),
            Param::Int4s(keys.0.into()),
            Param::Texts(keys.1.into()),
            Param::Texts(keys.2.into()),
            Param::Int4s(ids.0.into()),
            Param::Int8s(ids.1.into()),
        ],
    );
    let (epoch, no, rows) = ask(link, &pipeline, READ_LIMIT)?;
    let mut found = vec![None; wanted.len()];
    for row in &rows {
        if let Some(place) = row.get::<Option<i32>>(2)? {
            let place = usize::try_from(place).ok().and_then(|place| found.get_mut(place));
            *place.ok_or_else(|| foreign("a place that was not asked for"))? = Some(task(row, 3)?);
        }
    }
    Ok(ReadResult { epoch, no, rows: Rows::Found(found) })
}

fn task(row: &Row, at: usize) -> Result<TaskRow, Failure> {
    Ok(TaskRow { record: row.get::<&[u8]>(at)?.to_vec(), body: row.get::<&[u8]>(at + 1)?.to_vec() })
}

fn scan(
    link: &mut Link,
    shard: i32,
    after: DueKey,
    until: Timestamp,
    max: usize,
    filter: Option<&Filter>,
) -> Result<ReadResult, Failure> {
    let max = max.max(1);
    let one_more = i64::try_from(max).unwrap_or(i64::MAX).saturating_add(1);
    let mut params = vec![
        Param::Int4(shard),
        Param::Int8(after.due_at.as_ms()),
        Param::Int8(i64::try_from(after.put_seq.0).unwrap_or(i64::MAX)),
        Param::Int8(until.as_ms()),
        Param::Int8(one_more),
    ];
    let mut pipeline = Pipeline::new();
    match filter {
        None => pipeline.kept(SCAN_DUE, params),
        Some(filter) => {
            params.extend([Param::Text(filter.queue.as_str().into()), Param::Bool(filter.dead)]);
            // Planned for each call, because the best way depends on the queue.
            pipeline.text(WITH_VALUES).once(SCAN_FILTER, params)
        }
    };
    let limit = if filter.is_some() { LIST_LIMIT } else { READ_LIMIT };
    let (epoch, no, rows) = ask(link, &pipeline, limit)?;
    let (mut tasks, mut found) = (Vec::with_capacity(rows.len()), 0);
    for row in &rows {
        if row.get::<Option<&[u8]>>(2)?.is_some() {
            let place: (i64, i64) = (row.get(4)?, row.get(5)?);
            tasks.push((place, task(row, 2)?));
            found = row.get(6)?;
        }
    }
    // The outer statement promises no order.
    tasks.sort_by_key(|(place, _)| *place);
    tasks.truncate(max);
    let more = i64::try_from(tasks.len()).is_ok_and(|count| count < found);
    let tasks = tasks.into_iter().map(|(_, task)| task).collect();
    Ok(ReadResult { epoch, no, rows: Rows::Page { tasks, more } })
}

fn count(link: &mut Link, shard: i32, histogram: &DueHistogram) -> Result<ReadResult, Failure> {
    // Tasks due at the place of the start itself are before it.
    let after = histogram.start();
    let after_ms = if after.put_seq == Seq::ZERO { after.due_at.as_ms() - 1 } else { after.due_at.as_ms() };
    let queue = histogram.queue.as_ref().map(QueueName::as_str);
    let mut pipeline = Pipeline::new();
    pipeline.kept(
        COUNT,
        vec![
            Param::Int4(shard),
            Param::Int8(after_ms),
            Param::Int8(histogram.end().as_ms()),
            Param::Int8(COUNTED_MAX - 1),
            queue.map_or(Param::Null(crate::wire::oid::TEXT), |queue| Param::Text(queue.into())),
        ],
    );
    let (epoch, no, rows) = ask(link, &pipeline, LIST_LIMIT)?;
    let mut dues: Vec<(i64, u64)> = Vec::with_capacity(rows.len());
    let mut counted = None;
    for row in &rows {
        if let Some(due_at) = row.get::<Option<i64>>(2)? {
            dues.push((due_at, row.get::<i64>(3)?.cast_unsigned()));
            counted = row.get(4)?;
        }
    }
    dues.sort_unstable();
    Ok(ReadResult { epoch, no, rows: Rows::Dues { dues, counted } })
}

fn history(link: &mut Link, shard: i32) -> Result<ReadResult, Failure> {
    let mut pipeline = Pipeline::new();
    pipeline.kept(HISTORY, vec![Param::Int4(shard)]);
    let (epoch, no, rows) = ask(link, &pipeline, READ_LIMIT)?;
    let mut rollups = Vec::with_capacity(rows.len());
    for row in &rows {
        if let Some(no) = row.get::<Option<i64>>(2)? {
            rollups.push((no, row.get::<&[u8]>(3)?.to_vec()));
        }
    }
    rollups.sort_by_key(|(no, _)| *no);
    Ok(ReadResult { epoch, no, rows: Rows::History(rollups) })
}

fn keys(link: &mut Link, shard: i32, of: &[(QueueName, String)], max: usize) -> Result<ReadResult, Failure> {
    let queues: Vec<&str> = of.iter().map(|(queue, _)| queue.as_str()).collect();
    let afters: Vec<&str> = of.iter().map(|(_, after)| after.as_str()).collect();
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let mut pipeline = Pipeline::new();
    pipeline.kept(
        KEYS,
        vec![Param::Int4(shard), Param::Texts(queues.into()), Param::Texts(afters.into()), Param::Int8(max)],
    );
    let (epoch, no, rows) = ask(link, &pipeline, LIST_LIMIT)?;
    let mut keys = Vec::with_capacity(rows.len());
    for row in &rows {
        if let Some(queue) = row.get::<Option<&str>>(2)? {
            let (queue, key) = (queue.to_owned(), row.get::<&str>(3)?.to_owned());
            keys.push(KeyRow { queue, key, id: row.get(4)? });
        }
    }
    Ok(ReadResult { epoch, no, rows: Rows::Keys(keys) })
}

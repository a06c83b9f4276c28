//! The least that the database has to do: the same rows in a table like ours, and no engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::{Context, ensure};
use tickwheel_postgres::{Postgres, PostgresOptions};
use tokio_postgres::Statement;

use super::base::Base;
use super::link::Link;
use super::server::Server;
use super::subject::{Subject, Worker, Workers};
use crate::embedded::{Load, Task};

/// A table with the columns, the indexes and the storage parameters of ours, and the rows that a fence locks.
const TABLES: &str = "\
CREATE SCHEMA raw;
CREATE TABLE raw.task (LIKE tickwheel.task INCLUDING ALL);
DO $$ BEGIN
    EXECUTE (SELECT format('ALTER TABLE raw.task SET (%s)', array_to_string(reloptions, ', '))
        FROM pg_class WHERE oid = 'tickwheel.task'::regclass);
END $$;
CREATE TABLE raw.shard (shard int4 PRIMARY KEY, epoch int8 NOT NULL);
INSERT INTO raw.shard SELECT shard, 1 FROM generate_series(0, 1023) shard";

/// The plans of our own sessions.
const PLANS: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; SET plan_cache_mode = force_generic_plan";

/// The fence and the rows in one statement, which is a transaction of its own: one round trip.
const PUT: &str = "\
WITH mine AS MATERIALIZED (SELECT shard FROM raw.shard WHERE shard = $1 AND epoch = 1 FOR NO KEY UPDATE)
INSERT INTO raw.task (shard, id, queue, key, due_at, put_seq, seq, dead, leased, record, body)
SELECT m.shard, u.id, $2, u.key, u.due_at, u.id, u.id, false, false, u.record, u.body
FROM mine m, unnest($3::int8[], $4::text[], $5::int8[], $6::bytea[], $7::bytea[]) u(id, key, due_at, record, body)";

const PUT_ONE: &str = "\
INSERT INTO raw.task (shard, id, queue, key, due_at, put_seq, seq, dead, leased, record, body)
VALUES ($1, $2, $3, $4, $5, $2, $2, false, false, $6, $7)";

/// Claims and deletes in one statement. A task whose worker dies is lost, so no queue can do less.
const TAKE: &str = "\
DELETE FROM raw.task WHERE id = ANY (ARRAY(
    SELECT id FROM raw.task WHERE shard = $1 AND due_at <= $2 ORDER BY due_at, put_seq LIMIT $3 FOR UPDATE SKIP LOCKED))
RETURNING id, key, record, body";

/// A table like ours, and connections.
pub(super) struct Raw {
    base: Base,
    connections: usize,
    bytes: (usize, usize),
    next_id: Arc<AtomicI64>,
}

impl Raw {
    /// Makes the table. `bytes`: those of the record and of the body of a task.
    pub(super) fn open(server: &Server, connections: usize, bytes: (usize, usize)) -> anyhow::Result<Self> {
        let base = Base::make(server)?;
        let options = PostgresOptions::new(&base.url);
        Postgres::at(&base.url)?.prepare(&options.plan).context("make the tables")?;
        Link::open(&base.url)?.script(TABLES)?;
        Ok(Self { base, connections, bytes, next_id: Arc::new(AtomicI64::new(1)) })
    }
}

impl Subject for Raw {
    fn base(&self) -> &Base {
        &self.base
    }

    fn table(&self) -> &'static str {
        "raw.task"
    }

    fn workers(&self, load: &Load) -> anyhow::Result<Workers> {
        let worker = |nth| -> anyhow::Result<(Box<dyn Worker>, Vec<usize>)> {
            let mut link = Link::open(&self.base.url)?;
            link.script(PLANS)?;
            let worker = Connected {
                put: link.prepare(PUT)?,
                put_one: link.prepare(PUT_ONE)?,
                take: link.prepare(TAKE)?,
                link,
                names: load.queues.iter().map(ToString::to_string).collect(),
                record: vec![b'r'; self.bytes.0],
                body: self.bytes.1,
                next_id: Arc::clone(&self.next_id),
            };
            Ok((Box::new(worker), (0..load.queues.len()).skip(nth).step_by(self.connections).collect()))
        };
        (0..self.connections.min(load.queues.len())).map(worker).collect()
    }
}

struct Connected {
    link: Link,
    put: Statement,
    put_one: Statement,
    take: Statement,
    names: Vec<String>,
    record: Vec<u8>,
    /// The bytes of a body: the payload, and what our body has beside it.
    body: usize,
    next_id: Arc<AtomicI64>,
}

impl Connected {
    fn body(&self, task: &Task) -> Vec<u8> {
        let mut body = task.payload.clone().into_bytes();
        body.resize(self.body, b'b');
        body
    }
}

/// Each queue has a shard of its own, so that no connection waits for another one.
fn shard(queue: usize) -> i32 {
    i32::try_from(queue).unwrap_or(0)
}

impl Worker for Connected {
    fn put(&mut self, queue: usize, tasks: Vec<Task>) -> anyhow::Result<()> {
        let count = i64::try_from(tasks.len())?;
        let first = self.next_id.fetch_add(count, Ordering::Relaxed);
        let ids: Vec<i64> = (first..first + count).collect();
        let bodies: Vec<Vec<u8>> = tasks.iter().map(|task| self.body(task)).collect();
        let bodies: Vec<&[u8]> = bodies.iter().map(|body| &body[..]).collect();
        let records = vec![&self.record[..]; tasks.len()];
        let keys: Vec<&str> = tasks.iter().map(|task| task.key.as_str()).collect();
        let dues: Vec<i64> = tasks.iter().map(|task| task.due_at).collect();
        let put = self.link.execute(
            &self.put,
            &[&shard(queue), &self.names[queue], &ids, &keys, &dues, &records, &bodies],
        )?;
        ensure!(put == tasks.len() as u64, "{put} of {count} rows were written");
        Ok(())
    }

    fn put_one(&mut self, queue: usize, task: Task) -> anyhow::Result<()> {
        let (id, body) = (self.next_id.fetch_add(1, Ordering::Relaxed), self.body(&task));
        let put = self.link.execute(
            &self.put_one,
            &[&shard(queue), &id, &self.names[queue], &task.key, &task.due_at, &self.record, &body],
        )?;
        ensure!(put == 1, "{put} rows were written");
        Ok(())
    }

    fn take(&mut self, queue: usize, max: u64) -> anyhow::Result<u64> {
        let rows = self.link.query(&self.take, &[&shard(queue), &i64::MAX, &max.cast_signed()])?;
        ensure!(!rows.is_empty(), "no task is ready");
        Ok(rows.len() as u64)
    }
}

//! The peer's way: one table of jobs in plain SQL, as River and Graphile Worker have it.

use anyhow::ensure;
use tokio_postgres::Statement;

use super::base::Base;
use super::link::Link;
use super::server::Server;
use super::subject::{Subject, Worker, Workers};
use crate::embedded::{Load, Task};

/// The columns of a job in River, and the index by which its clients fetch. River has further indexes, for its lists; without them a job
/// costs less.
const TABLES: &str = "\
CREATE SCHEMA peer;
CREATE TYPE peer.job_state AS ENUM ('available', 'cancelled', 'completed', 'discarded', 'retryable', 'running', 'scheduled');
CREATE TABLE peer.job (
    id bigserial PRIMARY KEY,
    state peer.job_state NOT NULL DEFAULT 'available',
    attempt smallint NOT NULL DEFAULT 0,
    max_attempts smallint NOT NULL,
    attempted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    finalized_at timestamptz,
    scheduled_at timestamptz NOT NULL DEFAULT now(),
    priority smallint NOT NULL DEFAULT 1,
    args jsonb NOT NULL,
    attempted_by text[],
    errors jsonb[],
    kind text NOT NULL,
    metadata jsonb NOT NULL DEFAULT '{}',
    queue text NOT NULL DEFAULT 'default',
    tags varchar(255)[] NOT NULL DEFAULT '{}'
);
CREATE INDEX job_fetch ON peer.job (state, queue, priority, scheduled_at, id)";

/// A job that is not due yet has the state `scheduled`. A process of the peer's makes it `available` later, by another change of the row,
/// which is not measured here.
const PUT: &str = "\
INSERT INTO peer.job (state, queue, kind, max_attempts, scheduled_at, args)
SELECT (CASE WHEN u.at > now() THEN 'scheduled' ELSE 'available' END)::peer.job_state, $1, 'bench', 25, u.at, u.args::jsonb
FROM unnest($2::timestamptz[], $3::text[]) u(at, args)";

const FETCH: &str = "\
WITH locked AS (
    SELECT id FROM peer.job WHERE state = 'available' AND queue = $1 AND scheduled_at <= now()
    ORDER BY priority, scheduled_at, id LIMIT $2 FOR UPDATE SKIP LOCKED
)
UPDATE peer.job j SET state = 'running', attempt = j.attempt + 1, attempted_at = now(), attempted_by = array_append(j.attempted_by, 'worker-1')
FROM locked WHERE j.id = locked.id
RETURNING j.id, j.args::text, j.attempt, j.kind, j.priority, j.scheduled_at";

const DELETE: &str = "DELETE FROM peer.job WHERE id = ANY ($1::int8[]) AND state = 'running'";

/// The table of jobs, and connections.
pub(super) struct Peer {
    base: Base,
    connections: usize,
}

impl Peer {
    pub(super) fn open(server: &Server, connections: usize) -> anyhow::Result<Self> {
        let base = Base::make(server)?;
        Link::open(&base.url)?.script(TABLES)?;
        Ok(Self { base, connections })
    }
}

impl Subject for Peer {
    fn base(&self) -> &Base {
        &self.base
    }

    fn table(&self) -> &'static str {
        "peer.job"
    }

    fn workers(&self, load: &Load) -> anyhow::Result<Workers> {
        let worker = |nth| -> anyhow::Result<(Box<dyn Worker>, Vec<usize>)> {
            let mut link = Link::open(&self.base.url)?;
            let worker = Connected {
                put: link.prepare(PUT)?,
                fetch: link.prepare(FETCH)?,
                delete: link.prepare(DELETE)?,
                link,
                names: load.queues.iter().map(ToString::to_string).collect(),
            };
            Ok((Box::new(worker), (0..load.queues.len()).skip(nth).step_by(self.connections).collect()))
        };
        (0..self.connections.min(load.queues.len())).map(worker).collect()
    }
}

struct Connected {
    link: Link,
    put: Statement,
    fetch: Statement,
    delete: Statement,
    names: Vec<String>,
}

impl Worker for Connected {
    fn put(&mut self, queue: usize, tasks: Vec<Task>) -> anyhow::Result<()> {
        let dues: Vec<_> = tasks.iter().map(Task::due).collect();
        let payloads: Vec<&str> = tasks.iter().map(|task| task.payload.as_str()).collect();
        let put = self.link.execute(&self.put, &[&self.names[queue], &dues, &payloads])?;
        ensure!(put == tasks.len() as u64, "{put} of {} rows were written", tasks.len());
        Ok(())
    }

    fn put_one(&mut self, queue: usize, task: Task) -> anyhow::Result<()> {
        self.put(queue, vec![task])
    }

    fn take(&mut self, queue: usize, max: u64) -> anyhow::Result<u64> {
        let jobs = self.link.query(&self.fetch, &[&self.names[queue], &max.cast_signed()])?;
        ensure!(!jobs.is_empty(), "no job is available");
        let ids: Vec<i64> = jobs.iter().map(|job| job.get(0)).collect();
        let deleted = self.link.execute(&self.delete, &[&ids])?;
        ensure!(deleted == ids.len() as u64, "{deleted} of {} jobs were deleted", ids.len());
        Ok(deleted)
    }
}

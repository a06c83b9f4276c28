//! The peer: fjall, a store of sorted trees with a journal, and the least that makes a store of tasks of it.
//!
//! One tree holds the tasks under (due, seq), big-endian, so that a scan gives them in due order. Another holds each task's place
//! under its queue and key. A commit is one atomic batch with a sync of the journal.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use tickwheel_engine::DueKey;
use tickwheel_engine::Seq;
use tickwheel_queue::{Key, Timestamp};

use super::record::{QUEUE, Record, number};
use super::subject::{End, Keeper, Pending};

pub(crate) struct Peer {
    database: Database,
    tasks: Keyspace,
    index: Keyspace,
    seq: u64,
}

/// A change, encoded but for the seq.
pub(crate) enum Change {
    Put { due_at: Timestamp, index_key: Vec<u8>, value: Vec<u8> },
    End { place: DueKey, index_key: Vec<u8> },
}

/// Its default is 32 MiB. A machine that holds ten million tasks has more.
const CACHE_BYTES: u64 = 256 << 20;
const QUIET: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(120);

impl Peer {
    /// Puts one task in a batch of its own. `seq` is nobody else's.
    pub(crate) fn put_alone(&self, seq: u64, record: Record) -> anyhow::Result<()> {
        let place = place_key(DueKey { due_at: record.due_at, put_seq: Seq(self.seq + seq) });
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        batch.insert(&self.tasks, place, encode(&record));
        batch.insert(&self.index, index_key(&record.key), place);
        Ok(batch.commit()?)
    }
}

fn scan(tasks: &Keyspace, after: DueKey, until: Timestamp, max: usize) -> anyhow::Result<Vec<Pending>> {
    let from = place_key(DueKey { put_seq: Seq(after.put_seq.0 + 1), ..after });
    let to = place_key(DueKey { due_at: until, put_seq: Seq(u64::MAX) });
    let found = tasks.range(from..=to).take(max);
    found
        .map(|item| {
            let (key, value) = item.into_inner()?;
            decode(&key, &value).context("a task that is none")
        })
        .collect()
}

impl Keeper for Peer {
    type Change = Change;

    fn open(dir: &Path, wall: Timestamp) -> anyhow::Result<Self> {
        let database = Database::builder(dir).cache_size(CACHE_BYTES).open()?;
        let tasks = database.keyspace("tasks", KeyspaceCreateOptions::default)?;
        let index = database.keyspace("index", KeyspaceCreateOptions::default)?;
        // Beyond all of an earlier opening, without writing it down.
        let seq = wall.as_tick() << 20;
        Ok(Self { database, tasks, index, seq })
    }

    fn put(record: Record) -> Change {
        let value = encode(&record);
        Change::Put { due_at: record.due_at, index_key: index_key(&record.key), value }
    }

    fn end(&self, pending: Pending, _end: End, _at: Timestamp) -> Change {
        Change::End { place: pending.place, index_key: index_key(&pending.key) }
    }

    fn commit(&mut self, _wall: Timestamp, changes: Vec<Change>) -> anyhow::Result<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for change in changes {
            self.seq += 1;
            match change {
                Change::Put { due_at, index_key, value } => {
                    let place = place_key(DueKey { due_at, put_seq: Seq(self.seq) });
                    batch.insert(&self.tasks, place, value);
                    batch.insert(&self.index, index_key, place);
                }
                Change::End { place, index_key } => {
                    batch.remove(&self.tasks, place_key(place));
                    batch.remove(&self.index, index_key);
                }
            }
        }
        Ok(batch.commit()?)
    }

    fn page(&mut self, after: DueKey, until: Timestamp, max: usize) -> anyhow::Result<Vec<Pending>> {
        scan(&self.tasks, after, until, max)
    }

    fn commit_and_page(
        &mut self,
        wall: Timestamp,
        changes: Vec<Change>,
        (after, until, max): (DueKey, Timestamp, usize),
    ) -> anyhow::Result<Vec<Pending>> {
        let tasks = self.tasks.clone();
        thread::scope(|scope| {
            let page = scope.spawn(move || scan(&tasks, after, until, max));
            self.commit(wall, changes)?;
            page.join().map_err(|_| anyhow!("the thread that scans panicked"))?
        })
    }

    fn get(&mut self, keys: &[Key]) -> anyhow::Result<Vec<Option<Pending>>> {
        let find = |key: &Key| {
            let Some(place) = self.index.get(index_key(key))? else { return Ok(None) };
            let value = self.tasks.get(&place)?.context("a place without a task")?;
            decode(&place, &value).context("a task that is none").map(Some)
        };
        keys.iter().map(find).collect()
    }

    fn rest(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let mut quiet = begun;
        while quiet.elapsed() < QUIET && begun.elapsed() < PATIENCE {
            if self.database.outstanding_flushes() > 0 || self.database.active_compactions() > 0 {
                quiet = Instant::now();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn close(self) -> anyhow::Result<()> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }
}

const PLACE_BYTES: usize = 16;

fn place_key(place: DueKey) -> [u8; PLACE_BYTES] {
    let mut key = [0; PLACE_BYTES];
    key[..8].copy_from_slice(&place.due_at.as_tick().to_be_bytes());
    key[8..].copy_from_slice(&place.put_seq.0.to_be_bytes());
    key
}

fn index_key(key: &Key) -> Vec<u8> {
    [QUEUE.as_bytes(), b"\0", key.as_str().as_bytes()].concat()
}

/// What a task has besides its place: two numbers, and then texts, each with its length before it but for the last.
fn encode(record: &Record) -> Vec<u8> {
    let Record { id, queue, key, due_at: _, put_at, body } = record;
    let mut value = Vec::with_capacity(64 + body.payload.len());
    value.extend_from_slice(&id.to_be_bytes());
    value.extend_from_slice(&put_at.as_tick().to_be_bytes());
    for text in [key.as_str(), queue.as_str(), &body.content_type] {
        value.extend_from_slice(&(text.len() as u16).to_be_bytes());
        value.extend_from_slice(text.as_bytes());
    }
    value.extend_from_slice(&body.payload);
    value
}

/// A value with its place. What nobody asks for is skipped.
fn decode(place: &[u8], value: &[u8]) -> Option<Pending> {
    let (due_at, put_seq) = (u64_of(place)?, u64_of(place.get(8..)?)?);
    let due_at = Timestamp::from_ms(i64::try_from(due_at).ok()?)?;
    let id = u64_of(value)?;
    let (key, rest) = text(value.get(16..)?)?;
    let (_queue, rest) = text(rest)?;
    let (_content_type, payload) = text(rest)?;
    let key = Key::new(std::str::from_utf8(key).ok()?).ok()?;
    Some(Pending { place: DueKey { due_at, put_seq: Seq(put_seq) }, id, key, number: number(payload) })
}

fn u64_of(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(*bytes.first_chunk()?))
}

/// A text, and what comes after it.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u16::from_be_bytes(*bytes.first_chunk()?);
    bytes[2..].split_at_checked(length.into())
}

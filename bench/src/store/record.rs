//! [`Record`]: a task to put, made from its number, so that nobody has to remember ten million of them.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tickwheel_engine::{Body, LeaseNo, Seq, Task};
use tickwheel_queue::{Key, PRIORITY_DEFAULT, QueueName, Timestamp};

use crate::random::Random;

pub(crate) const PAYLOAD_BYTES: usize = 200;
pub(crate) const HOUR_MS: u64 = 3_600_000;
/// The first task is due so far ahead: none is near when it is put.
pub(crate) const AHEAD_MS: u64 = 2 * HOUR_MS;
/// The others are due within so long after the first, evenly.
pub(crate) const SPREAD_MS: u64 = 30 * 24 * HOUR_MS;

/// What a task is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// A name of its owner's choosing, of 18 bytes.
    Own,
    /// Its id in decimal, as the server makes it for a client that gives none.
    Server,
}

/// A task before it is put.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) id: u64,
    pub(crate) queue: QueueName,
    pub(crate) key: Key,
    pub(crate) due_at: Timestamp,
    pub(crate) put_at: Timestamp,
    pub(crate) body: Arc<Body>,
}

/// All records of a run.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    keys: Keys,
    queue: QueueName,
    content_type: Arc<str>,
}

impl Records {
    /// Those with such keys.
    pub(crate) fn new(keys: Keys) -> anyhow::Result<Self> {
        let content_type = "application/octet-stream".into();
        Ok(Self { keys, queue: QueueName::new(QUEUE)?, content_type })
    }

    /// What number `n` is called.
    pub(crate) fn key(&self, n: u64) -> anyhow::Result<Key> {
        Ok(match self.keys {
            Keys::Own => Key::new(&format!("order-{n:012}"))?,
            Keys::Server => Key::from_id(id(n)),
        })
    }

    /// Number `n`, put at `put_at` and due at least two hours later.
    pub(crate) fn get(&self, n: u64, put_at: Timestamp) -> anyhow::Result<Record> {
        let body =
            Body { payload: payload(n), content_type: Arc::clone(&self.content_type), ..Body::default() };
        Ok(Record {
            id: id(n),
            queue: self.queue.clone(),
            key: self.key(n)?,
            due_at: put_at.saturating_plus_ms(AHEAD_MS + Random::new(n).below(SPREAD_MS)),
            put_at,
            body: Arc::new(body),
        })
    }
}

impl Record {
    /// As the engine hands it to the store. The change is not numbered yet.
    pub(crate) fn task(self) -> Task {
        let Self { id, queue, key, due_at, put_at, body } = self;
        Task {
            id,
            queue,
            key,
            seq: Seq::ZERO,
            put_seq: Seq::ZERO,
            version: Seq::ZERO,
            due_at,
            put_at,
            priority: PRIORITY_DEFAULT,
            attempts: 0,
            lease_fence: LeaseNo(0),
            revoked: None,
            lease: None,
            body,
            extra: None,
        }
    }

    /// The size that written bytes are divided by: payload, key, queue and content type, a byte of length before each (two
    /// before the payload), a tag before each of the last two; and the six numbers of a task in as few bytes of seven bits as they
    /// take, where all three changes are `seq`.
    pub(crate) fn bytes(&self, seq: u64) -> u64 {
        let texts = [self.queue.as_str(), self.key.as_str(), &self.body.content_type];
        let texts: usize = texts.iter().map(|text| 1 + text.len()).sum();
        let numbers = [self.id, seq, seq, seq, self.due_at.as_tick(), self.put_at.as_tick()];
        let numbers: u64 = numbers.map(varint_bytes).iter().sum();
        let payload = self.body.payload.len() as u64;
        texts as u64 + numbers + 2 + varint_bytes(payload) + payload
    }
}

pub(crate) const QUEUE: &str = "bench";

/// Number 0 has the id 1.
const fn id(n: u64) -> u64 {
    n + 1
}

/// The number, and then bytes that nothing compresses.
pub(crate) fn payload(n: u64) -> Vec<u8> {
    let mut payload = n.to_le_bytes().to_vec();
    let mut random = Random::new(!n);
    while payload.len() < PAYLOAD_BYTES {
        payload.extend_from_slice(&random.bits().to_le_bytes());
    }
    payload
}

/// The number that a payload was made from; `u64::MAX` if it was not.
pub(crate) fn number(payload: &[u8]) -> u64 {
    payload.first_chunk().map_or(u64::MAX, |number| u64::from_le_bytes(*number))
}

/// The wall clock.
pub(crate) fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::EPOCH.saturating_plus_ms(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn varint_bytes(value: u64) -> u64 {
    u64::from((64 - value.max(1).leading_zeros()).div_ceil(7))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_known_by_its_number_again() {
        let records = Records::new(Keys::Own).expect("a queue");
        for n in [0, 1, 999_999_999] {
            let put_at = wall();
            let record = records.get(n, put_at).expect("a key");
            assert_eq!((number(&record.body.payload), record.body.payload.len()), (n, PAYLOAD_BYTES));
            assert_eq!(record.key.as_str().len(), 18);
            let ahead = record.due_at.ms_since(put_at);
            assert_eq!(records.get(n, put_at).expect("a key").due_at, record.due_at);
            assert!((AHEAD_MS..AHEAD_MS + SPREAD_MS).contains(&ahead), "{ahead}");
            let server = Records { keys: Keys::Server, ..records.clone() };
            assert_eq!(server.key(n).expect("a key").as_str(), (n + 1).to_string());
        }
        assert_eq!(number(b"short"), u64::MAX);
    }

    #[test]
    fn the_size_of_a_record_is_that_of_its_parts() {
        let record = Records::new(Keys::Own).expect("a queue").get(126, wall()).expect("a key");
        // Texts 6 + 19 + 25, numbers 1 + 3 x 2 + 6 + 6, tags and length 4, payload 200.
        assert_eq!(record.bytes(128), 50 + 19 + 4 + 200);
        assert_eq!([0, 127, 128, u64::MAX].map(varint_bytes), [1, 1, 2, 10]);
    }
}

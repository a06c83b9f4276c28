//! The saved index of one run.

use tickwheel_engine::{DueKey, QueueName, Seq};

use crate::codec::{DecodeError, Names, Reader, put_bytes, put_varint, timestamp};
use crate::index::KeyHash;
use crate::layout::{le_u32, le_u64};

/// Some neighbouring records of a run, which are read together.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    /// The offset of the block's first byte, from the beginning of the run (bytes).
    pub(crate) at: u32,
    /// How many records the block has. In memory: how many of them are live.
    pub(crate) records: u32,
    /// The due key of the block's first record.
    pub(crate) first: DueKey,
}

/// The facts about one record that the footer has.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    pub(crate) key: KeyHash,
    /// The offset of the record's first byte, from the beginning of the run (bytes).
    pub(crate) at: u32,
    /// The index of the record's queue in the footer's queues.
    pub(crate) queue: u32,
    /// Whether the task has a lease that a stop wrote down.
    pub(crate) leased: bool,
    /// Whether the task is dead.
    pub(crate) dead: bool,
}

/// Bytes of an entry in a file.
const ENTRY_BYTES: usize = 24;
const LEASED: u32 = 1 << 31;
const DEAD: u32 = 1 << 30;

/// The footer of a run. An opening reads the footer and no record.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Footer {
    /// The blocks, in the order of their due keys.
    pub(crate) blocks: Vec<Block>,
    pub(crate) queues: Vec<QueueName>,
    /// The entries, in the order of their due keys.
    pub(crate) entries: Vec<Entry>,
    /// The due key of the last record.
    pub(crate) last: Option<DueKey>,
}

impl Footer {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let Self { blocks, queues, entries, last } = self;
        put_varint(out, queues.len() as u64);
        for queue in queues {
            put_bytes(out, queue.as_str().as_bytes());
        }
        put_place(out, last.unwrap_or(DueKey::START));
        put_varint(out, blocks.len() as u64);
        for Block { at, records, first } in blocks {
            put_varint(out, u64::from(*at));
            put_varint(out, u64::from(*records));
            put_place(out, *first);
        }
        for Entry { id, key, at, queue, leased, dead } in entries {
            let queue = queue | if *leased { LEASED } else { 0 } | if *dead { DEAD } else { 0 };
            out.extend_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&key.0.to_le_bytes());
            out.extend_from_slice(&at.to_le_bytes());
            out.extend_from_slice(&queue.to_le_bytes());
        }
    }

    /// Reads the footer of a run that has `count` records.
    pub(crate) fn read(bytes: &[u8], count: u64, names: &mut Names) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let mut queues = Vec::new();
        for _ in 0..reader.number::<u32>()? {
            queues.push(names.queue(&mut reader)?);
        }
        let last = Some(read_place(&mut reader)?);
        let mut blocks: Vec<Block> = Vec::new();
        let mut records = 0;
        for _ in 0..reader.number::<u32>()? {
            let block =
                Block { at: reader.number()?, records: reader.number()?, first: read_place(&mut reader)? };
            let follows =
                blocks.last().is_none_or(|before| before.at < block.at && before.first < block.first);
            if !follows {
                return Err(reader.error("a block that does not follow the one before"));
            }
            records += u64::from(block.records);
            blocks.push(block);
        }
        if records != count || blocks.is_empty() {
            return Err(reader.error("another number of records"));
        }
        let mut entries = Vec::with_capacity(blocks.len());
        while !reader.is_empty() {
            let entry = reader.take(ENTRY_BYTES)?;
            let queue = le_u32(entry, 20);
            entries.push(Entry {
                id: le_u64(entry, 0),
                key: KeyHash(le_u64(entry, 8)),
                at: le_u32(entry, 16),
                queue: queue & !(LEASED | DEAD),
                leased: queue & LEASED != 0,
                dead: queue & DEAD != 0,
            });
        }
        let known = entries.iter().all(|entry| (entry.queue as usize) < queues.len());
        let rising = entries.windows(2).all(|pair| pair[0].at < pair[1].at);
        if entries.len() as u64 != count || !known || !rising || !begin_blocks(&entries, &blocks) {
            return Err(reader.error("entries that do not match the records"));
        }
        Ok(Self { blocks, queues, entries, last })
    }
}

/// Whether each block begins at the offset of its first entry. The caller has checked that all blocks together have as many records as
/// there are entries.
fn begin_blocks(entries: &[Entry], blocks: &[Block]) -> bool {
    let mut from = 0;
    blocks.iter().all(|block| {
        let begins = entries.get(from).is_some_and(|first| first.at == block.at);
        from += block.records as usize;
        begins
    })
}

fn put_place(out: &mut Vec<u8>, place: DueKey) {
    put_varint(out, place.due_at.as_tick());
    put_varint(out, place.put_seq.0);
}

fn read_place(reader: &mut Reader<'_>) -> Result<DueKey, DecodeError> {
    Ok(DueKey { due_at: timestamp(reader)?, put_seq: Seq(reader.varint()?) })
}

#[cfg(test)]
mod tests {
    use tickwheel_engine::Timestamp;

    use super::*;

    fn footer() -> Footer {
        let place = |ms| DueKey { due_at: Timestamp::from_ms(ms).expect("after 1970"), put_seq: Seq(1) };
        let entry = |id, at| Entry { id, key: KeyHash::MADE, at, queue: 0, leased: id == 2, dead: id == 3 };
        Footer {
            blocks: vec![
                Block { at: 0, records: 2, first: place(1) },
                Block { at: 90, records: 1, first: place(3) },
            ],
            queues: vec![QueueName::new("q").expect("a name")],
            entries: vec![entry(1, 0), entry(2, 40), entry(3, 90)],
            last: Some(place(3)),
        }
    }

    fn read(footer: &Footer) -> Result<Footer, DecodeError> {
        let mut bytes = Vec::new();
        footer.put(&mut bytes);
        Footer::read(&bytes, footer.entries.len() as u64, &mut Names::new())
    }

    /// The story: the blocks and the entries of a footer described different records. So a count of live records went below zero, and a
    /// segment was removed while a task was in it.
    #[test]
    fn blocks_and_entries_tell_of_the_same_records() {
        let whole = footer();
        assert_eq!(read(&whole), Ok(whole.clone()));
        let lies: [fn(&mut Footer); 5] = [
            |footer| (footer.blocks[0].records, footer.blocks[1].records) = (1, 2),
            |footer| footer.blocks[0].at = 1,
            |footer| footer.entries[1].at = 0,
            |footer| footer.entries[2].at = 91,
            |footer| footer.entries[0].queue = 1,
        ];
        for (index, lie) in lies.into_iter().enumerate() {
            let mut footer = whole.clone();
            lie(&mut footer);
            assert!(read(&footer).is_err(), "lie {index} was believed");
        }
    }
}

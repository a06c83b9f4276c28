//! The numbers of tasks of each queue, as bytes in batches and rollups.

use std::collections::BTreeMap;

use tickwheel_engine::{Growth, Population, QueueName};

/// Bytes that are no numbers of tasks.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the numbers of tasks are damaged")]
pub struct CountsError;

/// Writes the changes of a batch.
#[must_use]
pub fn changes(growth: &BTreeMap<QueueName, Growth>) -> Vec<u8> {
    write(growth.iter().map(|(queue, growth)| (queue, growth.live, growth.dead)))
}

/// Writes the numbers of all queues.
#[must_use]
pub fn totals(populations: &BTreeMap<QueueName, Population>) -> Vec<u8> {
    write(populations.iter().map(|(queue, of)| (queue, of.live.cast_signed(), of.dead.cast_signed())))
}

/// For each queue: the length of its name (1 byte, names are shorter than 256), the name, and two numbers of 8 bytes, lowest byte first.
fn write<'a>(queues: impl Iterator<Item = (&'a QueueName, i64, i64)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (queue, live, dead) in queues {
        let name = queue.as_str().as_bytes();
        let length = u8::try_from(name.len()).expect("the name of a queue is shorter than 256 bytes");
        bytes.push(length);
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(&live.to_le_bytes());
        bytes.extend_from_slice(&dead.to_le_bytes());
    }
    bytes
}

/// Adds the numbers in `bytes` to `populations`. A queue without tasks is removed.
///
/// # Errors
/// The bytes are damaged, or a queue would have fewer than no tasks. Then `populations` has a part of the changes.
pub fn add(populations: &mut BTreeMap<QueueName, Population>, mut bytes: &[u8]) -> Result<(), CountsError> {
    while let Some((length, rest)) = bytes.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*length)).ok_or(CountsError)?;
        let (live, rest) = rest.split_first_chunk::<8>().ok_or(CountsError)?;
        let (dead, rest) = rest.split_first_chunk::<8>().ok_or(CountsError)?;
        bytes = rest;
        let name = core::str::from_utf8(name).map_err(|_| CountsError)?;
        let queue = QueueName::new(name).map_err(|_| CountsError)?;
        let of = populations.get(&queue).copied().unwrap_or_default();
        let sum =
            |count: u64, by: &[u8; 8]| count.checked_add_signed(i64::from_le_bytes(*by)).ok_or(CountsError);
        let of = Population { live: sum(of.live, live)?, dead: sum(of.dead, dead)? };
        if of == Population::default() {
            populations.remove(&queue);
        } else {
            populations.insert(queue, of);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str) -> QueueName {
        QueueName::new(name).expect("a name")
    }

    #[test]
    fn changes_add_up_to_totals() {
        let mut populations = BTreeMap::new();
        let grow = |name: &str, live, dead| BTreeMap::from([(queue(name), Growth { live, dead })]);
        for growth in [grow("a", 3, 0), grow("b", 1, 1), grow("a", -1, 1), grow("b", -1, -1)] {
            add(&mut populations, &changes(&growth)).expect("in order");
        }
        assert_eq!(populations, BTreeMap::from([(queue("a"), Population { live: 2, dead: 1 })]));
        let mut again = BTreeMap::new();
        add(&mut again, &totals(&populations)).expect("in order");
        assert_eq!(again, populations);
    }

    #[test]
    fn damage_is_an_error() {
        let bytes = changes(&BTreeMap::from([(queue("a/b"), Growth { live: 3, dead: 0 })]));
        for cut in 1..bytes.len() {
            assert_eq!(add(&mut BTreeMap::new(), &bytes[..cut]), Err(CountsError), "{cut} bytes");
        }
        let less = changes(&BTreeMap::from([(queue("a/b"), Growth { live: -1, dead: 0 })]));
        assert_eq!(add(&mut BTreeMap::new(), &less), Err(CountsError));
    }
}

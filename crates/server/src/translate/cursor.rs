//! Cursors: where a page of a list ended, as opaque text that belongs to one list.

use tickwheel_api::{BadRequest, TaskFilter};
use tickwheel_queue::{QueueName, Seq, TaskCursor, Timestamp};

/// A cursor is `<shard>-<due_at>-<put_seq>-<check>`, in hexadecimal; [`shard_text`] has the first part.
///
/// The check covers the position, the queue and the filter. So a cursor that is used for another list is refused,
/// and does not silently skip tasks. It protects against mistakes, not against forgers, because they can list
/// everything anyway.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cursor(pub(crate) TaskCursor);

/// The first part of a cursor: a 1 stands for shard 0, and 2 with the number for another one, in hexadecimal. A stored cursor of a release
/// without shards begins with 1.
pub(crate) fn shard_text(shard: u32) -> String {
    if shard == 0 { "1".to_owned() } else { format!("2-{shard:x}") }
}

/// Reads the first part of a cursor from its parts.
pub(crate) fn read_shard<'a>(parts: &mut impl Iterator<Item = &'a str>) -> Option<u32> {
    match parts.next()? {
        "1" => Some(0),
        "2" => u32::from_str_radix(parts.next()?, 16).ok(),
        _ => None,
    }
}

impl Cursor {
    /// The text for the list of `queue` by `filter`.
    pub(crate) fn write(self, queue: &QueueName, filter: &TaskFilter) -> String {
        let TaskCursor { shard, due_at, put_seq } = self.0;
        let (shard, due, seq) = (shard_text(shard), due_at.as_ms(), put_seq.0);
        format!("{shard}-{due:x}-{seq:x}-{:016x}", self.check(queue, filter))
    }

    /// Reads a text; `None` unless [`write`](Self::write) made it for the same queue and filter.
    pub(crate) fn read(text: &str, queue: &QueueName, filter: &TaskFilter) -> Option<Self> {
        let mut parts = text.split('-');
        let shard = read_shard(&mut parts)?;
        let (due, seq) = (parts.next()?, parts.next()?);
        let due_at = Timestamp::from_ms(i64::from_str_radix(due, 16).ok()?)?;
        let put_seq = Seq(u64::from_str_radix(seq, 16).ok()?);
        let cursor = Self(TaskCursor { shard, due_at, put_seq });
        // Comparing the whole text ensures that each cursor has only one spelling.
        (cursor.write(queue, filter) == text).then_some(cursor)
    }

    fn check(self, queue: &QueueName, filter: &TaskFilter) -> u64 {
        let TaskCursor { shard, due_at, put_seq } = self.0;
        let (due, seq) = (due_at.as_ms().to_be_bytes(), put_seq.0.to_be_bytes());
        let shard = shard_bytes(shard);
        let filter = filter.fingerprint();
        fnv1a([&shard, &due[..], &seq, queue.as_str().as_bytes(), b"?", filter.as_bytes()].concat())
    }
}

/// A number of a shard for the check of a cursor: nothing of shard 0.
pub(crate) fn shard_bytes(shard: u32) -> Vec<u8> {
    if shard == 0 { Vec::new() } else { shard.to_be_bytes().to_vec() }
}

/// The refusal of a text that is not a cursor of its list.
pub(crate) fn foreign_cursor() -> BadRequest {
    let hint = "send the `next_cursor` of the page before as it is";
    BadRequest::parameter("cursor", "is not a cursor of this list", hint)
}

/// FNV-1a with 64 bits: equal in every release, unlike the hash of the standard library.
pub(crate) fn fnv1a(bytes: Vec<u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwheel_api::TaskState;

    fn queue(name: &str) -> QueueName {
        QueueName::new(name).expect("a name")
    }

    #[test]
    fn a_cursor_is_read_back_by_its_own_list_only() {
        let due_at = Timestamp::from_ms(1_506_943_593_000).expect("not negative");
        let all = TaskFilter::default();
        let ready = TaskFilter { state: Some(TaskState::Ready), ..all.clone() };
        for shard in [0, 3, 1_023] {
            let cursor = Cursor(TaskCursor { shard, due_at, put_seq: Seq(41) });
            let text = cursor.write(&queue("close"), &ready);
            assert_eq!(Cursor::read(&text, &queue("close"), &ready), Some(cursor), "{text}");
        }
        let cursor = Cursor(TaskCursor { shard: 0, due_at, put_seq: Seq(41) });
        let text = cursor.write(&queue("close"), &ready);
        assert!(text.len() <= tickwheel_api::CURSOR_BYTES_MAX, "{text} is too long for the query parser");
        assert_eq!(Cursor::read(&text, &queue("confirm"), &ready), None);
        assert_eq!(Cursor::read(&text, &queue("close"), &all), None);
        let tagged = TaskFilter { tag: Some("vip".to_owned()), ..ready.clone() };
        let later = TaskFilter { due_from_ms: Some(5), ..ready };
        assert_eq!(Cursor::read(&text, &queue("close"), &tagged), None);
        assert_eq!(Cursor::read(&text, &queue("close"), &later), None);
    }

    #[test]
    fn a_changed_cursor_is_refused() {
        let cursor = Cursor(TaskCursor { shard: 1_023, due_at: Timestamp::MAX, put_seq: Seq(u64::MAX) });
        let text = cursor.write(&queue("q"), &TaskFilter::default());
        for at in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[at] = if other[at] == b'7' { b'8' } else { b'7' };
            let other = String::from_utf8(other).expect("ASCII");
            assert_eq!(Cursor::read(&other, &queue("q"), &TaskFilter::default()), None, "{other}");
        }
        for bad in [
            "",
            "1",
            "1-1",
            "1-1-1",
            "1-1-1-1",
            "1--1-1",
            "2-1-1-1",
            "2-1-1-1-1",
            "2-0-1-1-1",
            &text.to_uppercase(),
            &format!("{text}-"),
        ] {
            assert_eq!(Cursor::read(bad, &queue("q"), &TaskFilter::default()), None, "{bad}");
        }
    }
}

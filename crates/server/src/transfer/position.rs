//! The position of an export, as the text of a cursor line.

use tickwheel_api::ExportEnd;
use tickwheel_queue::{QueueName, Seq, TaskCursor, Timestamp};

use crate::translate::cursor::fnv1a;

/// The position after which an export goes on, and the numbers of lines written before.
///
/// The text is `3-<store>-<begun>-<shard>-<due_at>-<put_seq>-<queues>-<tasks>-<dead>-<check>`, in hexadecimal; the 3 is the
/// version of this form. The check covers all of it and the queue to export, so that a cursor of another export is
/// refused.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Position {
    /// When the export began, by the clock of the server.
    pub(super) begun: Timestamp,
    pub(super) after: TaskCursor,
    pub(super) written: ExportEnd,
}

const VERSION: &str = "3";

/// Why a cursor does not belong to this export.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Foreign {
    /// Another data directory made it.
    Store,
    /// The cursor is for another queue or for all queues, or it was changed.
    Other,
}

impl Position {
    pub(super) fn to_text(self, store: &str, queue: Option<&QueueName>) -> String {
        let Self { begun, after, written } = self;
        let TaskCursor { shard, due_at, put_seq } = after;
        let ExportEnd { queues, tasks, dead, .. } = written;
        let begun = begun.as_ms();
        let text = format!(
            "{VERSION}-{store}-{begun:x}-{shard:x}-{:x}-{:x}-{queues:x}-{tasks:x}-{dead:x}",
            due_at.as_ms(),
            put_seq.0
        );
        let of = queue.map_or("", QueueName::as_str);
        let check = fnv1a([text.as_bytes(), b"?", of.as_bytes()].concat());
        format!("{text}-{check:016x}")
    }

    /// Reads a text that [`to_text`](Self::to_text) made for the same store and queue.
    pub(super) fn read(text: &str, store: &str, queue: Option<&QueueName>) -> Result<Self, Foreign> {
        let Some((VERSION, rest)) = text.split_once('-') else { return Err(Foreign::Other) };
        let Some((of, rest)) = rest.split_once('-') else { return Err(Foreign::Other) };
        let position = Self::numbers(rest).filter(|position| position.to_text(of, queue) == text);
        // Comparing the whole text ensures that each cursor has only one spelling.
        match position {
            Some(_) if of != store => Err(Foreign::Store),
            position => position.ok_or(Foreign::Other),
        }
    }

    fn numbers(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
        let (begun, shard) = (number()?, u32::try_from(number()?).ok()?);
        let (due_at, put_seq) = (number()?, number()?);
        let (queues, tasks, dead) = (number()?, number()?, number()?);
        let instant = |ms| Timestamp::from_ms(i64::try_from(ms).ok()?);
        let (begun, due_at) = (instant(begun)?, instant(due_at)?);
        let written = ExportEnd { queues, tasks, dead, schedules: 0 };
        let after = TaskCursor { shard, due_at, put_seq: Seq(put_seq) };
        Some(Self { begun, after, written })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: &str = "0123456789abcdef";

    #[test]
    fn a_cursor_is_read_back_by_its_own_export_only() {
        let (close, other) =
            (QueueName::new("close").expect("a name"), QueueName::new("other").expect("a name"));
        let written = ExportEnd { queues: 1, tasks: 1_000, dead: 2, schedules: 0 };
        for after in
            [TaskCursor::START, TaskCursor { shard: 1_023, due_at: Timestamp::MAX, put_seq: Seq(u64::MAX) }]
        {
            let position = Position { begun: Timestamp::MAX, after, written };
            let text = position.to_text(STORE, Some(&close));
            assert!(text.len() <= tickwheel_api::EXPORT_CURSOR_BYTES_MAX, "{text}");
            assert_eq!(Position::read(&text, STORE, Some(&close)), Ok(position));
            assert_eq!(Position::read(&text, STORE, Some(&other)), Err(Foreign::Other));
            assert_eq!(Position::read(&text, STORE, None), Err(Foreign::Other));
            assert_eq!(Position::read(&text, "fedcba9876543210", Some(&close)), Err(Foreign::Store));
            for at in 0..text.len() {
                let mut bad = text.clone().into_bytes();
                bad[at] = if bad[at] == b'7' { b'8' } else { b'7' };
                let bad = String::from_utf8(bad).expect("ASCII");
                assert_eq!(Position::read(&bad, STORE, Some(&close)), Err(Foreign::Other), "{bad}");
            }
        }
        for bad in ["", "3", "3-1-1-1-1-1-1-1-1", "3-1-1-1-1-1-1-1-1-1-1", "2-0-0-0-0-0-0-0"] {
            assert_eq!(Position::read(bad, STORE, None), Err(Foreign::Other), "{bad}");
        }
    }
}

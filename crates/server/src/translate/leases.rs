//! Leases that run: the rows of their list, and its cursor.

use tickwheel_api::{HeldLease, LeasesQuery};
use tickwheel_queue::{LeaseCursor, LeaseNo, LeaseView, Timestamp};

use super::cursor::{fnv1a, read_shard, shard_bytes, shard_text};

pub(crate) fn held_lease(lease: &LeaseView) -> HeldLease {
    HeldLease {
        queue: lease.queue.as_str().to_owned(),
        key: lease.key.as_str().to_owned(),
        attempt: lease.attempt,
        worker: lease.worker.as_deref().map(str::to_owned),
        since_ms: lease.since.map(Timestamp::as_ms),
        until_ms: lease.until.as_ms(),
    }
}

/// The text of a cursor: `<shard>-<no>-<check>` in hexadecimal. The check covers the numbers and the filter, so that a cursor of another
/// list is refused.
pub(crate) fn cursor(LeaseCursor { shard, no }: LeaseCursor, asked: &LeasesQuery) -> String {
    let LeasesQuery { queue, worker, .. } = asked;
    let filter =
        format!("{}?{}", queue.as_deref().unwrap_or_default(), worker.as_deref().unwrap_or_default());
    let check = fnv1a([&shard_bytes(shard), &no.0.to_be_bytes()[..], filter.as_bytes()].concat());
    format!("{}-{:x}-{check:016x}", shard_text(shard), no.0)
}

/// The cursor of a text; `None` unless [`cursor`] made it for the same filter.
pub(crate) fn read_cursor(text: &str, asked: &LeasesQuery) -> Option<LeaseCursor> {
    let mut parts = text.split('-');
    let shard = read_shard(&mut parts)?;
    let no = LeaseNo(u64::from_str_radix(parts.next()?, 16).ok()?);
    let read = LeaseCursor { shard, no };
    (cursor(read, asked) == text).then_some(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back_by_its_own_list_only() {
        let of = |queue: Option<&str>, worker: Option<&str>| LeasesQuery {
            queue: queue.map(str::to_owned),
            worker: worker.map(str::to_owned),
            ..LeasesQuery::default()
        };
        let read = |text: &str| read_cursor(text, &of(Some("close"), None));
        for shard in [0, 3] {
            let behind = LeaseCursor { shard, no: LeaseNo(41) };
            assert_eq!(read(&cursor(behind, &of(Some("close"), None))), Some(behind));
        }
        let text = cursor(LeaseCursor { shard: 0, no: LeaseNo(41) }, &of(Some("close"), None));
        for other in [of(None, None), of(Some("mail"), None), of(Some("close"), Some("w"))] {
            assert_eq!(read_cursor(&text, &other), None);
        }
        for bad in ["", "1", "1-x-0", "1-29-0", "2-3", "2-3-29-0", &text.to_uppercase(), &format!("{text}-")]
        {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}

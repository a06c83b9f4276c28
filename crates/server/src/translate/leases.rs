//! Leases that run: the rows of their list, and its cursor.

use tickwheel_api::{HeldLease, LeasesQuery};
use tickwheel_queue::{LeaseNo, LeaseView, Timestamp};

use super::cursor::fnv1a;

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

/// The cursor behind this lease: `1-<no>-<check>` in hexadecimal; the 1 is the version of this form. The check covers the number and the
/// filter, so that a cursor of another list is refused.
pub(crate) fn cursor(no: LeaseNo, asked: &LeasesQuery) -> String {
    let LeasesQuery { queue, worker, .. } = asked;
    let filter =
        format!("{}?{}", queue.as_deref().unwrap_or_default(), worker.as_deref().unwrap_or_default());
    let check = fnv1a([&no.0.to_be_bytes(), filter.as_bytes()].concat());
    format!("1-{:x}-{check:016x}", no.0)
}

/// The lease of a cursor; `None` unless [`cursor`] made it for the same filter.
pub(crate) fn read_cursor(text: &str, asked: &LeasesQuery) -> Option<LeaseNo> {
    let no = LeaseNo(u64::from_str_radix(text.split('-').nth(1)?, 16).ok()?);
    (cursor(no, asked) == text).then_some(no)
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
        let text = cursor(LeaseNo(41), &of(Some("close"), None));
        assert_eq!(read_cursor(&text, &of(Some("close"), None)), Some(LeaseNo(41)));
        for other in [of(None, None), of(Some("mail"), None), of(Some("close"), Some("w"))] {
            assert_eq!(read_cursor(&text, &other), None);
        }
        for bad in ["", "1", "1-x-0", "1-29-0", &text.to_uppercase(), &format!("{text}-")] {
            assert_eq!(read_cursor(bad, &of(Some("close"), None)), None, "{bad}");
        }
    }
}

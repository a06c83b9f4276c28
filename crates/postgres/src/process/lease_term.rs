//! [`LeaseTerm`]: until when this process may answer for its shards.

use tickwheel_engine::Validity;

/// The present incarnation of the process, and until when it is valid.
///
/// No wall clock decides. An incarnation is valid until 0.8 of a lease after the *sending* of its last answered heartbeat, by the boot-time clock
/// of this machine. Another process may end the incarnation only after it saw the same heartbeat for a whole lease on its own clock. It cannot
/// have seen the heartbeat before the heartbeat was sent, so the incarnation is no longer valid by then.
#[derive(Clone, Debug)]
pub struct LeaseTerm {
    lease_ns: u64,
    incarnation: Option<String>,
    valid_until_ns: u64,
}

impl LeaseTerm {
    /// Returns the lease term of a process without an incarnation.
    #[must_use]
    pub fn new(lease_ms: u32) -> Self {
        Self { lease_ns: u64::from(lease_ms) * 1_000_000, incarnation: None, valid_until_ns: 0 }
    }

    /// Returns the time between two heartbeats (ns).
    #[must_use]
    pub fn interval_ns(&self) -> u64 {
        self.lease_ns * 3 / 10
    }

    /// Returns how long a heartbeat of another incarnation must stand still before that incarnation may be ended (ns).
    #[must_use]
    pub fn lease_ns(&self) -> u64 {
        self.lease_ns
    }

    /// Returns the present incarnation.
    #[must_use]
    pub fn incarnation(&self) -> Option<&str> {
        self.incarnation.as_deref()
    }

    /// Begins an incarnation. It is not valid before its first heartbeat is answered.
    pub fn begin(&mut self, incarnation: String) {
        self.incarnation = Some(incarnation);
        self.valid_until_ns = 0;
    }

    /// Notes that the heartbeat that was sent at `sent_ns` (boot-time clock) was answered.
    pub fn answered(&mut self, sent_ns: u64) {
        // Integers, because a part of a nanosecond too many would be too many.
        self.valid_until_ns = self.valid_until_ns.max(sent_ns.saturating_add(self.lease_ns / 10 * 8));
    }

    /// Whether another process may have ended the incarnation before `now_ns` (boot-time clock), and may have had its shards.
    #[must_use]
    pub fn was_perhaps_ended(&self, now_ns: u64) -> bool {
        let sent_ns = self.valid_until_ns.checked_sub(self.lease_ns / 10 * 8);
        sent_ns.is_none_or(|sent_ns| now_ns >= sent_ns.saturating_add(self.lease_ns))
    }

    /// Ends the incarnation: another process has ended it, and may own its shards.
    pub fn end(&mut self) {
        self.incarnation = None;
        self.valid_until_ns = 0;
    }

    /// Returns whether `incarnation` may answer at `now_ns` (boot-time clock).
    #[must_use]
    pub fn validity(&self, incarnation: &str, now_ns: u64) -> Validity {
        if self.incarnation() != Some(incarnation) {
            Validity::Lost
        } else if now_ns < self.valid_until_ns {
            Validity::Valid
        } else {
            Validity::InDoubt
        }
    }

    /// Returns for how long the incarnation is still valid (ns); `None`: there is none.
    #[must_use]
    pub fn left_ns(&self, now_ns: u64) -> Option<u64> {
        self.incarnation.as_ref().map(|_| self.valid_until_ns.saturating_sub(now_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn an_incarnation_is_valid_for_a_part_of_the_lease_after_the_sending() {
        let mut lease_term = LeaseTerm::new(5_000);
        assert_eq!(lease_term.validity("a", 0), Validity::Lost);
        lease_term.begin("a".to_owned());
        assert_eq!(lease_term.validity("a", 0), Validity::InDoubt, "no beat was answered");
        assert!(lease_term.was_perhaps_ended(0));
        lease_term.answered(100 * MS);
        assert_eq!(lease_term.validity("a", 4_099 * MS), Validity::Valid);
        assert_eq!(lease_term.validity("a", 4_100 * MS), Validity::InDoubt);
        lease_term.answered(4_200 * MS);
        assert!(!lease_term.was_perhaps_ended(9_199 * MS), "no other process has seen the beat for a lease");
        assert!(lease_term.was_perhaps_ended(9_200 * MS));
        assert_eq!(
            lease_term.validity("a", 4_300 * MS),
            Validity::Valid,
            "a late answer renews the validity"
        );
        assert_eq!(lease_term.validity("b", 4_300 * MS), Validity::Lost);
        lease_term.end();
        assert_eq!(lease_term.validity("a", 4_300 * MS), Validity::Lost);
        lease_term.begin("b".to_owned());
        assert_eq!(
            lease_term.validity("b", 4_300 * MS),
            Validity::InDoubt,
            "a beat of before does not count"
        );
    }
}

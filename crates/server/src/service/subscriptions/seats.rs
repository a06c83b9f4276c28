//! The number of open subscriptions, in all and of one token.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tickwheel_api::Problem;

use crate::access::refusal::Refusal;

/// The largest number of open subscriptions.
const SEATS_MAX: usize = 64;
/// The largest number of open subscriptions of one token.
const SEATS_OF_TOKEN_MAX: usize = 8;
/// A client that waits this long (s) finds the seats of clients that are gone free.
const RETRY_AFTER_S: u32 = 5;

/// The hash of a token; `None`: the server has no tokens.
type Owner = Option<[u8; 32]>;

/// Counts the open subscriptions.
#[derive(Clone, Debug, Default)]
pub(super) struct Seats(Arc<Mutex<BTreeMap<Owner, usize>>>);

/// The seat of a subscription. Dropping it frees the seat.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Seats,
    owner: Owner,
}

impl Seats {
    /// Takes a seat.
    ///
    /// # Errors
    /// 429, which names the limit.
    pub(super) fn take(&self, owner: Owner) -> Result<Seat, Refusal> {
        let mut taken = self.lock();
        let of_owner = taken.get(&owner).copied().unwrap_or_default();
        let refused = if taken.values().sum::<usize>() >= SEATS_MAX {
            Some(format!("{SEATS_MAX} streams of events are open, which is the limit of the server"))
        } else if owner.is_some() && of_owner >= SEATS_OF_TOKEN_MAX {
            Some(format!("{SEATS_OF_TOKEN_MAX} streams of events of the token are open, which is its limit"))
        } else {
            None
        };
        if let Some(what) = refused {
            let hint = "close a stream, such as a page of the console that nobody looks at, and try again";
            return Err(Problem::busy(what, RETRY_AFTER_S).with_hint(hint).into());
        }
        taken.insert(owner, of_owner + 1);
        Ok(Seat { seats: self.clone(), owner })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Owner, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.lock();
        let left = taken.get(&self.owner).map_or(0, |seats| seats.saturating_sub(1));
        match left {
            0 => taken.remove(&self.owner),
            left => taken.insert(self.owner, left),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_eight_seats_and_all_callers_have_sixty_four() {
        let seats = Seats::default();
        let mut held: Vec<Seat> = (0..8).map(|_| seats.take(Some([1; 32])).expect("a seat")).collect();
        let refused = seats.take(Some([1; 32])).expect_err("the ninth of a token").problem().clone();
        assert!(refused.detail.starts_with("8 streams of events of the token"), "{}", refused.detail);
        assert_eq!(refused.retry_after_s, Some(5));
        held.extend((0..56).map(|_| seats.take(None).expect("a server without tokens has one limit")));
        for owner in [None, Some([2; 32])] {
            let refused = seats.take(owner).expect_err("the 65th").problem().clone();
            assert!(refused.detail.starts_with("64 streams of events are open"), "{}", refused.detail);
        }
        held.remove(0);
        held.push(seats.take(Some([1; 32])).expect("a seat is free again"));
        drop(held);
        assert_eq!(seats.lock().len(), 0, "nothing is kept of owners without a seat");
    }
}

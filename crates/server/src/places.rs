//! How many connections there are, at both doors together.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The log says once in so long that there are too many: a flood is not to fill it.
const SAID_EVERY: Duration = Duration::from_secs(10);

/// Both draw on one process's open files, and on one memory. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    max: usize,
    free: Arc<Semaphore>,
    turned_away: Arc<Mutex<TurnedAway>>,
}

/// Who got none.
#[derive(Debug, Default)]
struct TurnedAway {
    /// Since the log said so.
    count: u64,
    said: Option<Instant>,
}

impl Places {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, free: Arc::new(Semaphore::new(max)), turned_away: Arc::default() }
    }

    /// How many there are, taken ones among them.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Takes one until what comes back is dropped; `None`: there is none, or so many would not be left to others. The log says so then.
    pub(crate) fn enter(&self, left_to_others: usize) -> Option<OwnedSemaphorePermit> {
        let place = Arc::clone(&self.free).try_acquire_owned().ok();
        let place = place.filter(|_| self.free.available_permits() >= left_to_others);
        if place.is_none()
            && let Some(turned_away) = self.turn_away(Instant::now())
        {
            tracing::warn!(connections_max = self.max, turned_away, "too many connections");
        }
        place
    }

    /// Counts one more; how many it has been since the last word, if it is time for one.
    fn turn_away(&self, now: Instant) -> Option<u64> {
        let mut turned_away = self.turned_away.lock().unwrap_or_else(PoisonError::into_inner);
        turned_away.count += 1;
        if turned_away.said.is_some_and(|said| now.saturating_duration_since(said) < SAID_EVERY) {
            return None;
        }
        turned_away.said = Some(now);
        Some(std::mem::take(&mut turned_away.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_are_left_to_others_and_come_back() {
        let places = Places::new(4);
        let held: Vec<_> = (0..4).map_while(|_| places.enter(1)).collect();
        assert_eq!(held.len(), 3);
        let last = places.enter(0);
        assert!(last.is_some() && places.enter(0).is_none());
        drop(held);
        assert!(places.enter(1).is_some());
    }

    #[test]
    fn a_flood_is_told_of_once_and_counted() {
        let (places, now) = (Places::new(1), Instant::now());
        assert_eq!(places.turn_away(now), Some(1));
        assert_eq!(places.turn_away(now), None);
        assert_eq!(places.turn_away(now + SAID_EVERY - Duration::from_millis(1)), None);
        assert_eq!(places.turn_away(now + SAID_EVERY), Some(3));
    }
}

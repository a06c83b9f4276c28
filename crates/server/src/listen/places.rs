//! How many connections there are, at both doors together, and which of them make way when there are too many.
//!
//! ```text
//! comes by HTTP:  a free place          -> takes it
//!                 none, some are idle   -> the ones that are idle the longest are closed; takes a place of theirs
//!                 none, all are at work -> a kept place: for health, figures and callers with `admin`, and otherwise
//!                                          for as long as it takes to say that there is none
//!                 none of those either  -> told so, and closed
//! ```
//!
//! Ground rules: `State` is read and written under its lock only. A seat's `since` is written by its own connection and by
//! a newcomer that needs the place; a compare-and-set decides, so a connection is either closed or begins its call.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

use crate::events;

/// One of 256 connections is closed at once when places run out, so that the search for them is paid by as many newcomers.
const CLOSED_TOGETHER: usize = 256;
/// Of a seat whose connection has a call under way.
const AT_WORK: u64 = 0;
/// Of a seat whose connection has to go.
const GONE: u64 = u64::MAX;

/// Both doors draw on one process's open files, and on one memory. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Places(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    max: usize,
    /// Beyond `max`.
    kept_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Connections that are not in a kept place.
    taken: usize,
    /// Those of them at the door for clients of beanstalkd, which are never closed for others: to be idle is their work.
    of_jobs: usize,
    kept: usize,
    /// All that came by HTTP, in the order in which they came.
    open: BTreeMap<u64, Open>,
    next: u64,
}

#[derive(Debug)]
struct Open {
    seat: Arc<Seat>,
    task: Option<AbortHandle>,
}

/// What a connection says of itself.
#[derive(Debug)]
pub(crate) struct Seat {
    /// The larger, the later it became idle.
    since: AtomicU64,
    kept: AtomicBool,
}

impl Seat {
    /// Of a connection that has asked for nothing yet.
    pub(crate) fn new(kept: bool) -> Self {
        Self { since: AtomicU64::new(now()), kept: AtomicBool::new(kept) }
    }

    /// A call begins. `false`: the connection has to end, for its place is another's.
    pub(crate) fn work(&self) -> bool {
        let work = |since| (since != GONE).then_some(AT_WORK);
        self.since.fetch_update(Ordering::AcqRel, Ordering::Acquire, work).is_ok()
    }

    /// No call is under way, and the client was just heard of.
    pub(crate) fn idle(&self) {
        let idle = |since| (since != GONE).then(now);
        let _gone = self.since.fetch_update(Ordering::AcqRel, Ordering::Acquire, idle);
    }

    pub(crate) fn is_at_work(&self) -> bool {
        self.since.load(Ordering::Acquire) == AT_WORK
    }

    /// Whether its connection is only there for what kept places are for.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.load(Ordering::Acquire)
    }

    /// Takes the place away from a connection that has been idle since then.
    fn close(&self, since: u64) -> bool {
        self.since.compare_exchange(since, GONE, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// A moment, in the order of moments.
fn now() -> u64 {
    static MOMENTS: AtomicU64 = AtomicU64::new(AT_WORK + 1);
    MOMENTS.fetch_add(1, Ordering::Relaxed)
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    of: Of,
    places: Places,
}

#[derive(Debug)]
enum Of {
    Http { id: u64, seat: Arc<Seat> },
    Jobs,
}

impl Places {
    /// `max` places, and beyond them `kept_max` that are kept.
    pub(crate) fn new(max: usize, kept_max: usize) -> Self {
        Self(Arc::new(Shared { max, kept_max, state: Mutex::default() }))
    }

    /// How many there are, taken ones among them and kept ones not.
    pub(crate) fn max(&self) -> usize {
        self.0.max
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for a connection that came by HTTP, a kept one if there is no other. `None`: there is none at all. The log says so then.
    pub(crate) fn enter(&self) -> Option<Permit> {
        let mut state = self.state();
        if state.find(self.0.max) {
            return Some(self.seated(&mut state, false));
        }
        drop(state);
        self.warn();
        self.enter_kept()
    }

    /// Takes a kept place.
    pub(crate) fn enter_kept(&self) -> Option<Permit> {
        let mut state = self.state();
        if state.kept < self.0.kept_max {
            state.kept += 1;
        } else if state.close_idle(true, 1) == 0 {
            return None;
        }
        Some(self.seated(&mut state, true))
    }

    /// Takes a place for a client of beanstalkd. Its door leaves this many to the other, whose idle connections make way for it.
    pub(crate) fn enter_by_jobs(&self, left_to_others: usize) -> Option<Permit> {
        let mut state = self.state();
        let max = self.0.max.saturating_sub(left_to_others);
        if state.of_jobs < max && state.find(self.0.max) {
            state.of_jobs += 1;
            return Some(Permit { of: Of::Jobs, places: self.clone() });
        }
        drop(state);
        self.warn();
        None
    }

    fn seated(&self, state: &mut State, kept: bool) -> Permit {
        let (id, seat) = (state.next, Arc::new(Seat::new(kept)));
        state.next += 1;
        state.open.insert(id, Open { seat: Arc::clone(&seat), task: None });
        Permit { of: Of::Http { id, seat }, places: self.clone() }
    }

    /// The log counts these lines: they are in the list of [`events::LIMITED`].
    fn warn(&self) {
        tracing::warn!(
            event = events::CONNECTIONS_FULL,
            connections_max = self.0.max,
            "too many connections (--max-connections), and none of them is idle"
        );
    }
}

impl State {
    /// Takes one of `max` places, or that of an idle connection where as many are taken.
    fn find(&mut self, max: usize) -> bool {
        if self.taken >= max {
            let closed = self.close_idle(false, 1 + self.open.len() / CLOSED_TOGETHER);
            if closed == 0 {
                return false;
            }
            self.taken -= closed;
        }
        self.taken += 1;
        true
    }

    /// Closes connections, up to `count`, those that are idle the longest first, and says how many it closed. Their places are free then.
    /// Cost: a look at each connection, 0.1 ms for 10,000 of them, and 0.4 ms when it closes 40.
    fn close_idle(&mut self, kept: bool, count: usize) -> usize {
        let of_this_kind = self.open.iter().filter(|(_, open)| open.seat.is_kept() == kept);
        let mut idle: Vec<(u64, u64)> = of_this_kind
            .map(|(id, open)| (open.seat.since.load(Ordering::Acquire), *id))
            .filter(|(since, _)| *since != AT_WORK)
            .collect();
        if idle.len() > count {
            idle.select_nth_unstable(count - 1);
            idle.truncate(count);
        }
        idle.retain(|(since, id)| self.open[id].seat.close(*since));
        for (_, id) in &idle {
            if let Some(task) = self.open.remove(id).and_then(|open| open.task) {
                task.abort();
            }
        }
        idle.len()
    }
}

impl Permit {
    /// What its connection says of itself.
    pub(crate) fn seat(&self) -> Arc<Seat> {
        match &self.of {
            Of::Http { seat, .. } => Arc::clone(seat),
            Of::Jobs => unreachable!("those connections have no seat"),
        }
    }

    /// The task that serves the connection: it ends when another needs the place.
    pub(crate) fn closes(places: &Places, id: u64, task: AbortHandle) {
        match places.state().open.get_mut(&id) {
            Some(open) => open.task = Some(task),
            // It has ended, or has to.
            None => task.abort(),
        }
    }

    /// The number of its connection.
    pub(crate) fn id(&self) -> u64 {
        match &self.of {
            Of::Http { id, .. } => *id,
            Of::Jobs => unreachable!("those connections have no number"),
        }
    }

    /// Leaves the kept place for another, if there is one by now.
    pub(crate) fn move_up(&self) -> bool {
        let Of::Http { id, seat } = &self.of else { return true };
        if !seat.is_kept() {
            return true;
        }
        let mut state = self.places.state();
        if !state.open.contains_key(id) || !state.find(self.places.0.max) {
            return false;
        }
        state.kept -= 1;
        seat.kept.store(false, Ordering::Release);
        true
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.places.state();
        match &self.of {
            Of::Jobs => {
                state.of_jobs -= 1;
                state.taken -= 1;
            }
            Of::Http { id, seat } => {
                // If it is not there, the place is another's already.
                if state.open.remove(id).is_some() {
                    let count = if seat.is_kept() { &mut state.kept } else { &mut state.taken };
                    *count -= 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection with a call under way.
    fn at_work(permit: Option<Permit>) -> Permit {
        let permit = permit.expect("a place");
        assert!(permit.seat().work());
        permit
    }

    fn is_empty(places: &Places) -> bool {
        let state = places.state();
        state.taken == 0 && state.of_jobs == 0 && state.kept == 0 && state.open.is_empty()
    }

    fn is_kept(permit: &Permit) -> bool {
        permit.seat().is_kept()
    }

    #[test]
    fn some_are_left_to_the_other_door_and_come_back() {
        let places = Places::new(4, 0);
        let held: Vec<_> = (0..4).map_while(|_| places.enter_by_jobs(1)).collect();
        assert_eq!(held.len(), 3);
        let last = at_work(places.enter());
        assert!(places.enter().is_none() && places.enter_by_jobs(0).is_none());
        drop(held);
        assert!(places.enter_by_jobs(1).is_some());
        drop(last);
        assert!(is_empty(&places));
    }

    #[test]
    fn the_one_that_is_idle_the_longest_makes_way() {
        let places = Places::new(3, 0);
        let [first, second, third] = [(); 3].map(|()| places.enter().expect("a place"));
        first.seat().idle();
        third.seat().work();
        let fourth = places.enter().expect("the second makes way");
        assert!(!second.seat().work(), "it begins no call any more");
        drop(second);
        assert!(first.seat().work() && third.seat().is_at_work(), "the others stay");
        assert!(fourth.seat().work());
        assert!(places.enter().is_none(), "all are at work");
        third.seat().idle();
        let fifth = places.enter().expect("the third makes way");
        drop((first, third, fourth, fifth));
        assert!(is_empty(&places));
    }

    #[test]
    fn clients_of_beanstalkd_take_idle_places_up_to_their_share() {
        let places = Places::new(4, 0);
        let http: Vec<_> = (0..4).map(|_| places.enter().expect("a place")).collect();
        let jobs: Vec<_> = (0..4).map_while(|_| places.enter_by_jobs(1)).collect();
        assert_eq!(jobs.len(), 3);
        assert_eq!(http.iter().filter(|permit| permit.seat().work()).count(), 1, "the youngest is left");
        assert!(places.enter().is_none(), "and a connection of that door is never closed for others");
    }

    /// The story: beyond the share of its door, each newcomer closed an idle connection of the other though there were free places.
    #[test]
    fn clients_of_beanstalkd_close_nobody_while_there_is_a_free_place() {
        let places = Places::new(4, 0);
        let http: Vec<_> = (0..3).map(|_| places.enter().expect("a place")).collect();
        let job = places.enter_by_jobs(2).expect("the fourth place");
        assert!(http.iter().all(|permit| permit.seat().work()));
        assert!(places.enter_by_jobs(2).is_none(), "all are taken, and at work");
        drop((http, job));
        assert!(is_empty(&places));
    }

    #[test]
    fn kept_places_are_taken_last_and_left_when_there_is_another() {
        let places = Places::new(1, 2);
        let ordinary = at_work(places.enter());
        assert!(!is_kept(&ordinary));
        let kept = [at_work(places.enter()), at_work(places.enter())];
        assert!(kept.iter().all(is_kept));
        assert!(places.enter().is_none() && places.enter_kept().is_none());
        assert!(!kept[0].move_up());
        drop(ordinary);
        assert!(kept[0].move_up() && !is_kept(&kept[0]));
        let next = places.enter().expect("a kept place is free again");
        assert!(is_kept(&next));
        let newer = places.enter().expect("the idle one makes way");
        assert!(!next.seat().work() && newer.seat().work());
        drop((kept, next, newer));
        assert!(is_empty(&places));
    }
}

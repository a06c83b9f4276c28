//! The permits of connections, for all doors together. If there are too many connections, this module chooses the ones
//! that are closed.
//!
//! ```text
//! a new connection:  a permit is free         -> takes it
//!                    none, some are idle      -> closes those that are idle the longest, and takes one of their permits
//!                    none, all are at work    -> takes a reserved permit: for health, metrics and callers with `admin`;
//!                                                other calls get a refusal
//!                    no reserved permit       -> refused and closed
//! a new session:     the same, but without reserved permits, and sessions leave one of 16 permits to the others
//! ```
//!
//! Ground rules: `State` is read and written under its lock only. A seat's `since` is written by its own connection
//! and by a new connection that needs the permit. A compare-and-swap decides, so a connection is either closed or
//! begins its call.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

use crate::events;
use crate::listen::door::Idle;

/// When there are no more permits, one of 256 connections is closed at once. So one search for idle connections is
/// enough for several new ones.
const CLOSED_TOGETHER: usize = 256;
/// Sessions leave one of this many permits to connections that make way.
const LEFT_BY_SESSIONS: usize = 16;
/// The `since` of a seat with a call under way.
const AT_WORK: u64 = 0;
/// The `since` of a seat whose connection must end.
const GONE: u64 = u64::MAX;

/// The permits of all doors, because they use the open files and the memory of one process. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Permits(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    max: usize,
    /// Permits beyond `max`.
    reserved_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Permits in use, without the reserved ones.
    taken: usize,
    /// The part of `taken` that sessions have.
    sessions: usize,
    reserved: usize,
    /// All connections, in the order of their arrival.
    open: BTreeMap<u64, Open>,
    next: u64,
}

#[derive(Debug)]
struct Open {
    seat: Arc<Seat>,
    task: Option<AbortHandle>,
}

/// The state of one connection. A session never counts as idle.
#[derive(Debug)]
pub(crate) struct Seat {
    /// When the connection became idle; larger is later.
    since: AtomicU64,
    reserved: AtomicBool,
}

impl Seat {
    /// The seat of a connection that has no call yet.
    pub(crate) fn new(reserved: bool) -> Self {
        Self { since: AtomicU64::new(now()), reserved: AtomicBool::new(reserved) }
    }

    /// Begins a call. `false`: another connection has taken the permit, so this one must end.
    pub(crate) fn work(&self) -> bool {
        let work = |since| (since != GONE).then_some(AT_WORK);
        self.since.fetch_update(Ordering::AcqRel, Ordering::Acquire, work).is_ok()
    }

    /// Ends a call, or notes that bytes of the idle client have just arrived.
    pub(crate) fn idle(&self) {
        let idle = |since| (since != GONE).then(now);
        let _gone = self.since.fetch_update(Ordering::AcqRel, Ordering::Acquire, idle);
    }

    pub(crate) fn is_at_work(&self) -> bool {
        self.since.load(Ordering::Acquire) == AT_WORK
    }

    /// Whether the connection has a reserved permit, and may only make the calls that reserved permits are for.
    pub(crate) fn is_reserved(&self) -> bool {
        self.reserved.load(Ordering::Acquire)
    }

    /// Takes the permit from a connection, if it has been idle since `since`.
    fn close(&self, since: u64) -> bool {
        self.since.compare_exchange(since, GONE, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// The next number of a counter that orders moments.
fn now() -> u64 {
    static MOMENTS: AtomicU64 = AtomicU64::new(AT_WORK + 1);
    MOMENTS.fetch_add(1, Ordering::Relaxed)
}

/// The right of a connection to be open. Dropping it gives the permit back.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    id: u64,
    seat: Arc<Seat>,
    is_session: bool,
    permits: Permits,
}

impl Permits {
    /// Makes `max` permits and, beyond them, `reserved_max` reserved ones.
    pub(crate) fn new(max: usize, reserved_max: usize) -> Self {
        Self(Arc::new(Shared { max, reserved_max, state: Mutex::default() }))
    }

    /// The number of permits, without the reserved ones.
    pub(crate) fn max(&self) -> usize {
        self.0.max
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a permit, or a reserved one if there is no other and the connection is no session. `None`: there is none
    /// at all. The log says when only reserved permits are left.
    pub(crate) fn enter(&self, idle: Idle) -> Option<ConnectionPermit> {
        let mut state = self.state();
        let is_session = idle == Idle::Stays;
        let is_full = is_session && state.sessions >= self.0.max - self.0.max / LEFT_BY_SESSIONS;
        if !is_full && state.find(self.0.max) {
            state.sessions += usize::from(is_session);
            return Some(self.seated(&mut state, Seat::new(false), is_session));
        }
        drop(state);
        self.warn();
        if is_session { None } else { self.enter_reserved() }
    }

    /// Takes a reserved permit.
    pub(crate) fn enter_reserved(&self) -> Option<ConnectionPermit> {
        let mut state = self.state();
        if state.reserved < self.0.reserved_max {
            state.reserved += 1;
        } else if state.close_idle(true, 1) == 0 {
            return None;
        }
        Some(self.seated(&mut state, Seat::new(true), false))
    }

    /// Closes the connection that is idle the longest, because the process needs its descriptor. `false`: none is idle.
    pub(crate) fn close_idle(&self) -> bool {
        let mut state = self.state();
        let closed = state.close_idle(false, 1);
        state.taken -= closed;
        closed > 0
    }

    fn seated(&self, state: &mut State, seat: Seat, is_session: bool) -> ConnectionPermit {
        let (id, seat) = (state.next, Arc::new(seat));
        if is_session {
            seat.work();
        }
        state.next += 1;
        state.open.insert(id, Open { seat: Arc::clone(&seat), task: None });
        ConnectionPermit { id, seat, is_session, permits: self.clone() }
    }

    /// The log limits the number of these lines: the event is in the list of [`events::LIMITED`].
    fn warn(&self) {
        tracing::warn!(
            event = events::CONNECTIONS_FULL,
            connections_max = self.0.max,
            "too many connections (--max-connections), and none of them is idle"
        );
    }
}

impl State {
    /// Takes one of `max` permits. If all are taken, closes idle connections and takes one of theirs.
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

    /// Closes up to `count` idle connections, those that are idle the longest first, and frees their permits. Returns
    /// how many it closed. Cost: reads the seat of each connection, 0.1 ms for 10,000 of them, and 0.4 ms when it
    /// closes 40.
    fn close_idle(&mut self, reserved: bool, count: usize) -> usize {
        loop {
            let of_this_kind = self.open.iter().filter(|(_, open)| open.seat.is_reserved() == reserved);
            let mut idle: Vec<(u64, u64)> = of_this_kind
                .map(|(id, open)| (open.seat.since.load(Ordering::Acquire), *id))
                .filter(|(since, _)| *since != AT_WORK)
                .collect();
            if idle.is_empty() {
                return 0;
            }
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
            if !idle.is_empty() {
                return idle.len();
            }
            // All that were found have moved since: they begin a call, or their bytes arrive. Others may be idle, and they may be again.
        }
    }
}

impl ConnectionPermit {
    /// The state of the permit's connection.
    pub(crate) fn seat(&self) -> Arc<Seat> {
        Arc::clone(&self.seat)
    }

    /// The number of the permit's connection.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Notes the task that serves the connection, which is aborted when another connection needs the permit.
    pub(crate) fn closes(permits: &Permits, id: u64, task: AbortHandle) {
        match permits.state().open.get_mut(&id) {
            Some(open) => open.task = Some(task),
            // The connection has ended, or must end.
            None => task.abort(),
        }
    }

    /// Exchanges the reserved permit for another, if there is one by now.
    pub(crate) fn move_up(&self) -> bool {
        if !self.seat.is_reserved() {
            return true;
        }
        let mut state = self.permits.state();
        if !state.open.contains_key(&self.id) || !state.find(self.permits.0.max) {
            return false;
        }
        state.reserved -= 1;
        self.seat.reserved.store(false, Ordering::Release);
        true
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut state = self.permits.state();
        // If the entry is gone, another connection already has the permit.
        if state.open.remove(&self.id).is_some() {
            let count = if self.seat.is_reserved() { &mut state.reserved } else { &mut state.taken };
            *count -= 1;
            state.sessions -= usize::from(self.is_session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A permit whose connection has a call under way.
    fn at_work(permit: Option<ConnectionPermit>) -> ConnectionPermit {
        let permit = permit.expect("a permit");
        assert!(permit.seat().work());
        permit
    }

    fn is_empty(permits: &Permits) -> bool {
        let state = permits.state();
        state.taken == 0 && state.sessions == 0 && state.reserved == 0 && state.open.is_empty()
    }

    fn is_reserved(permit: &ConnectionPermit) -> bool {
        permit.seat().is_reserved()
    }

    #[test]
    fn sessions_leave_one_of_sixteen_permits_and_give_theirs_back() {
        let permits = Permits::new(16, 0);
        let held: Vec<_> = (0..16).map_while(|_| permits.enter(Idle::Stays)).collect();
        assert_eq!(held.len(), 15);
        let last = at_work(permits.enter(Idle::MakesWay));
        assert!(permits.enter(Idle::MakesWay).is_none(), "no session makes way");
        drop(held);
        assert!(permits.enter(Idle::Stays).is_some());
        drop(last);
        assert!(is_empty(&permits));
    }

    #[test]
    fn the_one_that_is_idle_the_longest_makes_way() {
        let permits = Permits::new(3, 0);
        let [first, second, third] = [(); 3].map(|()| permits.enter(Idle::MakesWay).expect("a permit"));
        first.seat().idle();
        third.seat().work();
        let fourth = permits.enter(Idle::MakesWay).expect("the second makes way");
        assert!(!second.seat().work(), "it begins no call any more");
        drop(second);
        assert!(first.seat().work() && third.seat().is_at_work(), "the others stay");
        assert!(fourth.seat().work());
        assert!(permits.enter(Idle::MakesWay).is_none(), "all are at work");
        third.seat().idle();
        let fifth = permits.enter(Idle::MakesWay).expect("the third makes way");
        drop((first, third, fourth, fifth));
        assert!(is_empty(&permits));
    }

    #[test]
    fn a_connection_that_is_closed_for_its_descriptor_gives_its_permit_back() {
        let permits = Permits::new(2, 0);
        let (first, second) =
            (permits.enter(Idle::MakesWay).expect("a permit"), permits.enter(Idle::MakesWay));
        let second = at_work(second);
        assert!(permits.close_idle());
        assert!(!first.seat().work(), "it is closed");
        assert!(!permits.close_idle(), "the other one is at work");
        let third = permits.enter(Idle::MakesWay).expect("the permit is free");
        drop((first, second, third));
        assert!(is_empty(&permits));
    }

    #[test]
    fn sessions_take_idle_permits_up_to_their_share() {
        let permits = Permits::new(16, 1);
        let others: Vec<_> = (0..16).map(|_| permits.enter(Idle::MakesWay).expect("a permit")).collect();
        let sessions: Vec<_> = (0..16).map_while(|_| permits.enter(Idle::Stays)).collect();
        assert_eq!(sessions.len(), 15, "and no session takes the reserved one");
        assert_eq!(others.iter().filter(|permit| permit.seat().work()).count(), 1, "the youngest is left");
        assert!(is_reserved(&permits.enter(Idle::MakesWay).expect("the reserved one")));
    }

    /// A bug that was found: each new session above the share of its door closed an idle connection of the other
    /// door, though there were free permits.
    #[test]
    fn a_session_above_the_share_closes_no_other_connection() {
        let permits = Permits::new(32, 0);
        let other = permits.enter(Idle::MakesWay).expect("a permit");
        let sessions: Vec<_> = (0..32).map_while(|_| permits.enter(Idle::Stays)).collect();
        assert_eq!(sessions.len(), 30, "one permit is free");
        assert!(permits.enter(Idle::Stays).is_none());
        assert!(other.seat().work());
        drop((other, sessions));
        assert!(is_empty(&permits));
    }

    /// A bug that was found: a connection that was just accepted notes once more that it is idle. A search that met this moment found no idle
    /// connection, and a call for health was refused.
    #[test]
    fn a_connection_that_notes_again_that_it_is_idle_makes_way() {
        let permits = Permits::new(0, 1);
        let mut held = permits.enter_reserved().expect("the only one");
        let noted = Mutex::new(held.seat());
        let is_over = AtomicBool::new(false);
        let seat = || Arc::clone(&noted.lock().expect("no panic"));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let seat = seat();
                    (0..100).for_each(|_| seat.idle());
                }
            });
            let all_make_way = (0..20_000).all(|_| {
                let Some(next) = permits.enter_reserved() else { return false };
                *noted.lock().expect("no panic") = next.seat();
                held = next;
                true
            });
            is_over.store(true, Ordering::Relaxed);
            assert!(all_make_way, "no connection has a call under way");
        });
    }

    #[test]
    fn reserved_permits_are_taken_last_and_left_when_there_is_another() {
        let permits = Permits::new(1, 2);
        let ordinary = at_work(permits.enter(Idle::MakesWay));
        assert!(!is_reserved(&ordinary));
        let kept = [at_work(permits.enter(Idle::MakesWay)), at_work(permits.enter(Idle::MakesWay))];
        assert!(kept.iter().all(is_reserved));
        assert!(permits.enter(Idle::MakesWay).is_none() && permits.enter_reserved().is_none());
        assert!(!kept[0].move_up());
        drop(ordinary);
        assert!(kept[0].move_up() && !is_reserved(&kept[0]));
        let next = permits.enter(Idle::MakesWay).expect("a reserved permit is free again");
        assert!(is_reserved(&next));
        let newer = permits.enter(Idle::MakesWay).expect("the idle one makes way");
        assert!(!next.seat().work() && newer.seat().work());
        drop((kept, next, newer));
        assert!(is_empty(&permits));
    }
}

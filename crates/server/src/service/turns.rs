//! The order in which jobs do their next pages: callers take turns, and so do the jobs of one caller.
//!
//! ```text
//! working: A1 A2 A3 A4   waiting: A: A5 A6   B: B1
//! a page of A1 is done   -> A5 works, and B is the next caller     waiting: B: B1   A: A6 A1
//! a page of A2 is done   -> B1 works                               waiting: A: A6 A1 A2
//! ```
//!
//! Ground rules: `State` is read and written under its lock only. A turn is handed over outside of the lock: if its
//! job is gone, the turn is passed on, which takes the lock again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::access::producer::Producer;

/// The turns of all jobs. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Turns(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// The number of turns that no job has. While it is above 0, no job waits.
    free: usize,
    /// The callers whose jobs wait; the first is next.
    lines: VecDeque<Line>,
}

/// The waiting jobs of one caller, in the order of their arrival.
#[derive(Debug)]
struct Line {
    caller: Option<Producer>,
    jobs: VecDeque<oneshot::Sender<Turn>>,
}

/// The right to work. Dropping it passes the turn on.
#[derive(Debug)]
pub(crate) struct Turn(Turns);

impl Turns {
    /// Makes turns for `max` jobs at one time.
    pub(crate) fn new(max: usize) -> Self {
        Self(Arc::new(Mutex::new(State { free: max, lines: VecDeque::new() })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn of a job of this caller. `None`: the job began before the last start, so its caller is not
    /// known.
    pub(crate) async fn take(&self, caller: Option<Producer>) -> Turn {
        let turn = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return Turn(self.clone());
            }
            state.line(caller)
        };
        turn.await.expect("a turn is passed on to each that waits")
    }
}

impl State {
    fn line(&mut self, caller: Option<Producer>) -> oneshot::Receiver<Turn> {
        let (job, turn) = oneshot::channel();
        match self.lines.iter_mut().find(|line| line.caller == caller) {
            Some(line) => line.jobs.push_back(job),
            None => self.lines.push_back(Line { caller, jobs: VecDeque::from([job]) }),
        }
        turn
    }

    /// The job that works next; its caller moves to the end of the order. Jobs that are gone are skipped.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        loop {
            let mut line = self.lines.pop_front()?;
            let job = line.jobs.pop_front();
            if !line.jobs.is_empty() {
                self.lines.push_back(line);
            }
            if job.as_ref().is_some_and(|job| !job.is_closed()) {
                return job;
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let next = {
            let mut state = self.0.state();
            let next = state.next();
            state.free += usize::from(next.is_none());
            next
        };
        if let Some(next) = next {
            // If the job is gone by now, the turn comes back and is dropped here. So it passes to the next job.
            let _gone = next.send(Self(self.0.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const A: Option<Producer> = Some(Producer::Token([1; 32]));
    const B: Option<Producer> = Some(Producer::Token([2; 32]));
    const C: Option<Producer> = None;

    type Waits<'a> = Pin<Box<dyn Future<Output = Turn> + 'a>>;

    /// A job that waits for its turn.
    async fn waits(turns: &Turns, caller: Option<Producer>) -> Waits<'_> {
        let mut waiting: Waits<'_> = Box::pin(turns.take(caller));
        assert!(timeout(Duration::ZERO, &mut waiting).await.is_err(), "it did not wait");
        waiting
    }

    /// Ends the page of the working job, and returns the name of the job that works next.
    async fn pass(turn: Turn, waiting: &mut Vec<(&'static str, Waits<'_>)>) -> (&'static str, Turn) {
        drop(turn);
        for at in 0..waiting.len() {
            if let Ok(turn) = timeout(Duration::ZERO, &mut waiting[at].1).await {
                return (waiting.remove(at).0, turn);
            }
        }
        panic!("nobody has the turn");
    }

    /// A bug that was found: the jobs of one caller took all permits. The jobs of other callers were refused until
    /// one of them ended.
    #[tokio::test(start_paused = true)]
    async fn callers_have_their_turns_one_after_the_other() {
        let turns = Turns::new(1);
        let mut turn = turns.take(A).await;
        let mut waiting = Vec::new();
        for (name, caller) in [("a1", A), ("a2", A), ("a3", A), ("b1", B), ("b2", B), ("c1", C)] {
            waiting.push((name, waits(&turns, caller).await));
        }
        let mut order = Vec::new();
        for _ in 0..6 {
            let (name, next) = pass(turn, &mut waiting).await;
            order.push(name);
            turn = next;
        }
        assert_eq!(order, ["a1", "b1", "c1", "a2", "b2", "a3"]);
        drop(turn);
        let state = turns.state();
        assert_eq!((state.free, state.lines.len()), (1, 0));
    }

    /// A bug that was found: jobs that were gone were skipped by recursion, until the stack overflowed.
    #[test]
    fn very_many_jobs_that_are_gone_are_skipped() {
        let turns = Turns::new(0);
        for _ in 0..100_000 {
            drop(turns.state().line(A));
        }
        let mut waits = turns.state().line(B);
        drop(Turn(turns.clone()));
        assert!(waits.try_recv().is_ok(), "it has the turn");
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_goes_past_a_job_that_is_gone() {
        let turns = Turns::new(2);
        let (first, second) = (turns.take(A).await, turns.take(A).await);
        let (gone, mut waiting) = (waits(&turns, A).await, vec![("b", waits(&turns, B).await)]);
        drop(gone);
        let (name, turn) = pass(first, &mut waiting).await;
        assert_eq!(name, "b");
        // A job that got its turn and is dropped without using it.
        let unaware = waits(&turns, C).await;
        drop(turn);
        drop(unaware);
        assert!(timeout(Duration::ZERO, turns.take(B)).await.is_ok());
        drop(second);
        assert_eq!(turns.state().free, 2);
    }
}

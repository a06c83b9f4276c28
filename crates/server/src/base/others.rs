//! Yields to all other async tasks in the middle of long work.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use tokio::task::yield_now;

/// A future that is ready once all other async tasks that can run have been polled, including those whose socket or timer
/// has become ready.
///
/// [`yield_now`] alone does not do that, because a task that is woken meanwhile goes on at once. The task of a batch
/// and the task of its connection wake each other with each piece. Tokio polls sockets and timers only when no task is
/// ready, or after 61 tasks. So the other tasks had to wait for 61 pieces, which is 10 ms of work.
#[derive(Debug, Default)]
pub(crate) struct LetOthers {
    /// `None`: the future was not polled yet.
    turn: Option<Arc<Yielded>>,
}

/// A waker that only tokio calls, after it has polled sockets and timers.
#[derive(Debug)]
struct Yielded(Mutex<State>);

#[derive(Debug)]
struct State {
    over: bool,
    /// The waker of the task that waits for the turn.
    waker: Waker,
}

impl Yielded {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Yielded {
    fn wake(self: Arc<Self>) {
        let waker = {
            let mut state = self.state();
            state.over = true;
            state.waker.clone()
        };
        waker.wake();
    }
}

impl Future for LetOthers {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(turn) = &self.turn else {
            let turn = Arc::new(Yielded(Mutex::new(State { over: false, waker: cx.waker().clone() })));
            let waker = Waker::from(Arc::clone(&turn));
            // Tokio keeps the waker until that moment. The `yield_now` future itself is not needed any more.
            let _pending = pin!(yield_now()).poll(&mut Context::from_waker(&waker));
            self.turn = Some(turn);
            return Poll::Pending;
        };
        let mut state = turn.state();
        if state.over {
            return Poll::Ready(());
        }
        state.waker.clone_from(cx.waker());
        Poll::Pending
    }
}

/// Yields to all other async tasks.
pub(crate) fn let_others() -> LetOthers {
    LetOthers::default()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    /// Counts the turns of a task that always lets all other tasks go first.
    pub(crate) fn turns() -> Arc<AtomicUsize> {
        let turns = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&turns);
        tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                yield_now().await;
            }
        });
        turns
    }

    /// A bug that was found: a batch and its connection woke each other, and other tasks waited for 9 ms, though both
    /// yielded.
    #[tokio::test]
    async fn two_tasks_that_wake_each_other_give_others_a_turn() {
        let turns = turns();
        let (waker, asked) = (Arc::<Mutex<Option<Waker>>>::default(), Arc::new(Notify::new()));
        let (woken, asks) = (Arc::clone(&waker), Arc::clone(&asked));
        tokio::spawn(async move {
            loop {
                asks.notified().await;
                if let Some(waker) = woken.lock().expect("no panic").take() {
                    waker.wake();
                }
            }
        });
        let work = tokio::spawn(async move {
            for _ in 0..1_000 {
                let own = std::future::poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
                *waker.lock().expect("no panic") = Some(own);
                asked.notify_one();
                let_others().await;
            }
        });
        work.await.expect("it ends");
        let turns = turns.load(Ordering::Relaxed);
        assert!(turns >= 1_000, "{turns} turns");
    }

    #[test]
    fn without_a_runtime_it_ends_too() {
        let mut others = pin!(let_others());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(others.as_mut().poll(&mut cx).is_pending());
        assert!(others.as_mut().poll(&mut cx).is_ready());
    }
}

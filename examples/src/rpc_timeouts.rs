//! The client's side of remote calls, as in Dubbo: a table of the requests that are on their way, with a timeout for each.
//!
//! An answer takes its request out of the table and cancels the timeout. A timeout takes it out, too, and sends the request
//! again under a new id after a pause that doubles. So an answer that comes too late finds no row, and is dropped.
//!
//! Ground rules:
//! - The code that takes a row out of the table owns the call alone, and has the duty to go on with it.
//! - The table is locked for moments, never while something is scheduled, sent or answered.
//! - A timeout knows the client weakly, or the timer would keep alive who keeps the timer.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel::{Refusal, Timeout, Timer};

/// Why a call has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// All attempts have timed out.
    TimedOut {
        /// How many there were.
        attempts: u32,
    },
    /// The timer could not watch over it.
    Refused(Refusal),
    /// The client went away first, or its timer.
    Abandoned,
}

/// How long to wait, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For the answer to one attempt.
    pub timeout: Duration,
    /// Attempts in all.
    pub attempts: u32,
    /// The pause before the second attempt; each later one is twice as long. A client among many adds a random part.
    pub pause: Duration,
}

/// Sends requests and finds the caller of each answer. Clones are the same client.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    timer: Timer,
    patience: Patience,
    send: Wire,
    ids: AtomicU64,
    late: AtomicU64,
    table: Mutex<HashMap<u64, Row>>,
}

type Wire = Box<dyn Fn(u64, &str) + Send + Sync>;

/// A request on its way.
struct Row {
    call: Call,
    /// `None` for the moment between the entry into the table and into the timer.
    timeout: Option<Timeout>,
}

impl Client {
    /// A client that sends requests by `send`, each with the id that its answer has to name.
    pub fn new(timer: &Timer, patience: Patience, send: impl Fn(u64, &str) + Send + Sync + 'static) -> Self {
        let inner = Inner {
            timer: timer.clone(),
            patience,
            send: Box::new(send),
            ids: AtomicU64::new(1),
            late: AtomicU64::new(0),
            table: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Sends a request. `done` is called exactly once, on the thread that brings the answer or finds that there is none.
    pub fn call(&self, request: &str, done: impl FnOnce(Result<String, CallError>) + Send + 'static) {
        self.inner.attempt(Call { request: request.to_owned(), attempt: 1, done: Some(Box::new(done)) });
    }

    /// An answer has arrived. False if no caller waits for it any more.
    pub fn answer(&self, id: u64, text: &str) -> bool {
        let Some(row) = self.inner.take(id) else {
            self.inner.late.fetch_add(1, Ordering::Relaxed);
            return false;
        };
        if let Some(timeout) = row.timeout {
            // Nothing depends on what this says: the row decided. It saves the timer the work.
            timeout.cancel();
        }
        row.call.end(Ok(text.to_owned()));
        true
    }

    /// Requests that are on their way, without those that pause.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.inner.table().len()
    }

    /// Answers that came too late.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.inner.late.load(Ordering::Relaxed)
    }
}

impl Inner {
    fn attempt(self: &Arc<Self>, call: Call) {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let request = call.request.clone();
        // Into the table first: the timeout may be up at once, and the answer may come while `send` still runs.
        self.table().insert(id, Row { call, timeout: None });
        let client = Arc::downgrade(self);
        let expire = move || {
            if let Some(client) = client.upgrade() {
                client.expire(id);
            }
        };
        match self.timer.schedule(self.patience.timeout, expire) {
            Ok(timeout) => {
                if let Some(row) = self.table().get_mut(&id) {
                    row.timeout = Some(timeout);
                }
                (self.send)(id, &request);
            }
            Err(refused) => {
                if let Some(row) = self.take(id) {
                    row.call.end(Err(CallError::Refused(refused.why)));
                }
            }
        }
    }

    fn expire(self: &Arc<Self>, id: u64) {
        let Some(Row { mut call, .. }) = self.take(id) else { return };
        if call.attempt >= self.patience.attempts {
            let attempts = call.attempt;
            return call.end(Err(CallError::TimedOut { attempts }));
        }
        let pause = self.patience.pause.saturating_mul(1 << (call.attempt - 1).min(31));
        call.attempt += 1;
        let client = Arc::downgrade(self);
        let again = move || {
            if let Some(client) = client.upgrade() {
                client.attempt(call);
            }
        };
        if let Err(refused) = self.timer.schedule(pause, again) {
            // No room to wait in: what comes back is tried at once, and is told there if there is still none.
            (refused.task)();
        }
    }

    fn take(&self, id: u64) -> Option<Row> {
        self.table().remove(&id)
    }

    fn table(&self) -> MutexGuard<'_, HashMap<u64, Row>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question, and its caller.
struct Call {
    request: String,
    attempt: u32,
    /// Until it is answered.
    done: Option<Done>,
}

type Done = Box<dyn FnOnce(Result<String, CallError>) + Send>;

impl Call {
    fn end(mut self, result: Result<String, CallError>) {
        if let Some(done) = self.done.take() {
            done(result);
        }
    }
}

/// A timer that is shut down drops the calls that pause in it; their callers are told.
impl Drop for Call {
    fn drop(&mut self) {
        if let Some(done) = self.done.take() {
            done(Err(CallError::Abandoned));
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::mpsc::{Receiver, channel};

    use tickwheel::{Job, ManualClock};

    use super::*;
    use crate::story::pass;

    const PATIENCE: Patience = Patience { timeout: ms(100), attempts: 3, pause: ms(50) };

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    struct World {
        clock: ManualClock,
        timer: Timer,
        client: Client,
        sent: Receiver<u64>,
        results: Receiver<Result<String, CallError>>,
    }

    /// One call, just sent.
    fn world(patience: Patience) -> World {
        let clock = ManualClock::new();
        let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build().expect("a timer");
        let (out, sent) = channel();
        let client = Client::new(&timer, patience, move |id, request| {
            assert_eq!(request, "price of 7?");
            out.send(id).expect("the test listens");
        });
        let (done, results) = channel();
        client.call("price of 7?", move |result| done.send(result).expect("the test listens"));
        World { clock, timer, client, sent, results }
    }

    fn all<T>(receiver: &Receiver<T>) -> Vec<T> {
        receiver.try_iter().collect()
    }

    #[test]
    fn an_answer_cancels_the_timeout() {
        let world = world(PATIENCE);
        world.clock.advance(ms(99));
        assert!(world.client.answer(1, "12"));
        assert_eq!((world.timer.pending(), world.client.waiting()), (0, 0));
        world.clock.advance(ms(10_000));
        assert_eq!(all(&world.results), [Ok("12".to_owned())]);
        assert_eq!(all(&world.sent), [1]);
    }

    #[test]
    fn each_pause_is_twice_as_long_and_the_last_timeout_is_the_end() {
        let world = world(PATIENCE);
        // Sent at 0, 100 + 50, 250 + 100; over at 450.
        for (now, sent) in [(99, 1), (149, 1), (150, 2), (349, 2), (350, 3), (449, 3)] {
            pass(&world.clock, ms(now) - Duration::from_nanos(world.timer.now().as_nanos()));
            assert_eq!(world.client.inner.ids.load(Ordering::Relaxed) - 1, sent, "at {now}");
            assert_eq!(all(&world.results), [], "at {now}");
        }
        pass(&world.clock, ms(1));
        assert_eq!(all(&world.results), [Err(CallError::TimedOut { attempts: 3 })]);
        assert_eq!((world.timer.pending(), world.client.waiting()), (0, 0));
    }

    #[test]
    fn a_late_answer_is_dropped_and_the_one_in_time_counts() {
        let world = world(PATIENCE);
        pass(&world.clock, ms(150));
        assert!(!world.client.answer(1, "from the first attempt"));
        assert!(world.client.answer(2, "from the second"));
        assert!(!world.client.answer(2, "once more"));
        assert_eq!(world.client.late(), 2);
        assert_eq!(all(&world.results), [Ok("from the second".to_owned())]);
    }

    #[test]
    fn a_server_that_answers_inside_of_send_is_heard() {
        let clock = ManualClock::new();
        let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build().expect("a timer");
        let server: Arc<Mutex<Option<Client>>> = Arc::default();
        let wire = Arc::clone(&server);
        let client = Client::new(&timer, PATIENCE, move |id, _| {
            let client = wire.lock().expect("no panic").clone().expect("it is connected");
            assert!(client.answer(id, "at once"));
        });
        *server.lock().expect("no panic") = Some(client.clone());
        let (done, results) = channel();
        client.call("?", move |result| done.send(result).expect("the test listens"));
        assert_eq!(all(&results), [Ok("at once".to_owned())]);
        assert_eq!(timer.pending(), 0);
    }

    #[test]
    fn no_caller_is_left_without_a_word() {
        // Shut down while a call pauses, while it is on its way, and before.
        let pausing = world(PATIENCE);
        pausing.clock.advance(ms(100));
        drop(pausing.timer.shutdown());
        assert_eq!(all(&pausing.results), [Err(CallError::Abandoned)]);

        let World { client, timer, results, .. } = world(PATIENCE);
        drop(timer.shutdown());
        drop(client);
        assert_eq!(all(&results), [Err(CallError::Abandoned)]);

        let after = world(PATIENCE);
        drop(after.timer.shutdown());
        let (done, results) = channel();
        after.client.call("price of 7?", move |result| done.send(result).expect("the test listens"));
        assert_eq!(all(&results), [Err(CallError::Refused(Refusal::ShutDown))]);
    }

    /// On the system's clock: each answer races with its timeout, and with the attempt after it.
    #[test]
    fn every_call_ends_once_whatever_races() {
        const CALLS: usize = 400;
        let timer = Timer::new().expect("a thread");
        let (wire, requests) = channel();
        let patience = Patience { timeout: ms(1), attempts: 3, pause: Duration::ZERO };
        let client = Client::new(&timer, patience, move |id, _| wire.send(id).expect("it listens"));
        // Weakly, for the client has the wire that keeps the server going.
        let server = Arc::downgrade(&client.inner);
        // Half of the answers come late, when other requests have come since.
        let serving = std::thread::spawn(move || {
            let mut waiting = VecDeque::new();
            for id in requests {
                waiting.push_back(id);
                let late = waiting.len() > 4;
                let id = if id % 2 == 0 { waiting.pop_back() } else { waiting.pop_front().filter(|_| late) };
                if let (Some(id), Some(inner)) = (id, server.upgrade()) {
                    Client { inner }.answer(id, "12");
                }
            }
        });
        let (done, results) = channel();
        for call in 0..CALLS {
            let done = done.clone();
            client.call("?", move |result| done.send((call, result)).expect("the test listens"));
        }
        drop(done);
        // The iteration ends when the last `done` was called or dropped.
        let mut ended: Vec<usize> = results.iter().map(|(call, _)| call).collect();
        ended.sort_unstable();
        assert!(ended.iter().copied().eq(0..CALLS), "each call once: {ended:?}");
        assert_eq!(client.waiting(), 0);
        drop(client);
        serving.join().expect("the server ends with the client");
    }

    #[test]
    fn a_full_timer_answers_at_once() {
        let clock = ManualClock::new();
        let timer = Timer::builder().clock(clock).executor(Job::run).max_pending(1).build().expect("a timer");
        let client = Client::new(&timer, PATIENCE, |_, _| ());
        client.call("first", |_| ());
        let (done, results) = channel();
        client.call("second", move |result| done.send(result).expect("the test listens"));
        assert_eq!(all(&results), [Err(CallError::Refused(Refusal::Full))]);
        assert_eq!(client.waiting(), 1);
    }
}

//! Histories that are right, and histories that break one named promise.

mod broken;
mod flow;
mod kept;

use super::*;

/// The wall clock at the start of each story.
const WALL: i64 = 1_500_000_000_000;

/// A server with one queue `q`, played by the test: the test says what each answer is.
struct Play {
    oracle: Oracle,
    mono: u64,
    wall: i64,
    calls: u64,
}

impl Play {
    fn new() -> Self {
        Play { oracle: Oracle::new(0, WALL), mono: 0, wall: WALL, calls: 0 }
    }

    /// Advances both clocks by `ms`.
    fn pass(&mut self, ms: u64) {
        self.mono += ms;
        self.step(ms as i64);
    }

    /// Sets the wall clock forward by `ms` (back if negative).
    fn step(&mut self, ms: i64) {
        self.wall += ms;
        self.oracle.time(self.mono, self.wall);
    }

    fn send(&mut self, key: Option<&str>, verb: Verb) -> CallId {
        self.calls += 1;
        let id = CallId(self.calls);
        self.oracle.called(id, Call { queue: "q".to_owned(), key: key.map(str::to_owned), verb });
        id
    }

    /// Makes a call and answers it; the commit takes 2 ms.
    fn call(&mut self, key: Option<&str>, verb: Verb, answer: Answer) -> Result<(), Violation> {
        let id = self.send(key, verb);
        self.pass(2);
        self.oracle.answered(id, answer)
    }

    fn put(&mut self, key: &str, due: i64, task: View) -> Result<(), Violation> {
        self.call(Some(key), put(due, task.payload), Answer::Stored { created: true, task })
    }

    fn get(&mut self, key: &str, answer: Answer) -> Result<(), Violation> {
        self.call(Some(key), Verb::Get, answer)
    }

    fn cancel(&mut self, key: &str, revoke: bool, answer: Answer) -> Result<(), Violation> {
        self.call(Some(key), Verb::Cancel { if_match: None, revoke }, answer)
    }

    fn patch(&mut self, key: &str, due: i64, task: View) -> Result<(), Violation> {
        let verb = Verb::Patch { due: Some(Due::At(due)), payload: None, if_match: None, revoke: false };
        self.call(Some(key), verb, Answer::Stored { created: false, task })
    }

    /// A lease of 1 s; the server grants it as the call comes in.
    fn lease(&mut self, max: usize, mut found: Vec<Delivery>) -> Result<(), Violation> {
        found.iter_mut().for_each(|one| one.lease_until = self.wall + 1_000);
        self.call(None, Verb::Lease { max, lease_ms: 1_000 }, Answer::Delivered(found))
    }

    fn tokens(
        &mut self,
        verb: fn(Vec<String>) -> Verb,
        token: &str,
        said: TokenAnswer,
    ) -> Result<(), Violation> {
        self.call(None, verb(vec![token.to_owned()]), Answer::Tokens(vec![said]))
    }

    fn ack(&mut self, token: &str, said: TokenAnswer) -> Result<(), Violation> {
        self.tokens(|tokens| Verb::Ack { tokens }, token, said)
    }

    fn nack(&mut self, token: &str, said: TokenAnswer) -> Result<(), Violation> {
        self.tokens(
            |tokens| Verb::Nack { tokens, delay_ms: None, at_least_ms: None, how: How::Returned },
            token,
            said,
        )
    }

    fn extend(&mut self, token: &str, said: TokenAnswer) -> Result<(), Violation> {
        self.tokens(|tokens| Verb::Extend { tokens, lease_ms: 1_000 }, token, said)
    }

    fn list(&mut self, views: Vec<View>) -> Result<(), Violation> {
        self.call(None, Verb::List, Answer::Listed(views))
    }

    fn counts(&mut self, scheduled: usize, ready: usize, leased: usize) -> Result<(), Violation> {
        self.call(None, Verb::Counts, Answer::Counted { scheduled, ready, leased, dead: 0 })
    }

    fn crash(&mut self) -> Result<(), Violation> {
        self.oracle.crashed()?;
        self.pass(50);
        self.oracle.recovered();
        Ok(())
    }

    fn restart(&mut self, down_ms: u64) -> Result<(), Violation> {
        self.oracle.stopping();
        self.oracle.stopped()?;
        self.pass(down_ms);
        self.oracle.recovered();
        Ok(())
    }
}

fn put(due: i64, payload: u64) -> Verb {
    Verb::Put { due: Some(Due::At(due)), payload, mode: Mode::Upsert, if_match: None, revoke: false }
}

/// A scheduled task that was never leased; its payload is 100 times its id.
fn view(key: &str, id: u64, version: u64, due_at: i64) -> View {
    View {
        key: key.to_owned(),
        id,
        version,
        state: State::Scheduled,
        due_at,
        payload: id * 100,
        attempt: 0,
        expire_at: None,
    }
}

fn ready(key: &str, id: u64, version: u64, due_at: i64) -> View {
    View { state: State::Ready, ..view(key, id, version, due_at) }
}

/// The first delivery of such a task; `lease_until` is filled in by `Play::lease`.
fn found(key: &str, id: u64, due_at: i64, token: &str) -> Delivery {
    let (key, token) = (key.to_owned(), token.to_owned());
    Delivery { key, id, due_at, payload: id * 100, attempt: 1, token, lease_until: 0 }
}

fn again(attempt: u32, one: Delivery) -> Delivery {
    Delivery { attempt, ..one }
}

#[track_caller]
fn holds(story: impl FnOnce(&mut Play) -> Result<(), Violation>) {
    let mut play = Play::new();
    if let Err(violation) = story(&mut play) {
        panic!("{violation:#?}");
    }
    assert_eq!(play.oracle.given_up(), 0);
}

/// The last step of the story breaks `promise`, and no other step does.
#[track_caller]
fn breaks(promise: &str, story: impl FnOnce(&mut Play) -> Result<Result<(), Violation>, Violation>) {
    let mut play = Play::new();
    match story(&mut play) {
        Err(violation) => panic!("too soon: {violation:#?}"),
        Ok(Ok(())) => panic!("{promise} was broken, and the oracle saw nothing"),
        Ok(Err(violation)) => assert_eq!(violation.promise, promise, "{violation:#?}"),
    }
}

const DUE: i64 = WALL + 10_000;

/// A task `a` (id 1, version 5), due and delivered with token `t1`.
fn delivered(play: &mut Play) -> Result<(), Violation> {
    play.put("a", DUE, view("a", 1, 5, DUE))?;
    play.pass(10_000);
    play.lease(1, vec![found("a", 1, DUE, "t1")])
}

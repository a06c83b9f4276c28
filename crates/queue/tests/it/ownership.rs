//! A shard whose ownership ends: what it answers then, and how it comes back.

use std::cell::RefCell;
use std::rc::Rc;

use tickwheel_engine::{
    Answer, CallId, Command, EngineConfig, Input, Now, Reply, Request, RequestId, ShardId, ShardStore,
    Validity,
};
use tickwheel_queue::{Get, GetError, Key, Lease, Put, QueueName, Shard, Timestamp};
use tickwheel_store::MemoryStore;

/// A store that several owners share, as processes share a database.
#[derive(Clone)]
struct Shared {
    store: Rc<RefCell<MemoryStore>>,
    replies: Rc<RefCell<Vec<(RequestId, Reply)>>>,
    validity: Rc<RefCell<Validity>>,
    /// Whether replies are kept back.
    silent: Rc<RefCell<bool>>,
    is_free: Rc<RefCell<bool>>,
    /// Whether pages of what a new owner has to know are kept back.
    holds_pages: Rc<RefCell<bool>>,
}

impl Shared {
    fn of(store: &Rc<RefCell<MemoryStore>>) -> Self {
        Self {
            store: Rc::clone(store),
            replies: Rc::default(),
            validity: Rc::new(RefCell::new(Validity::Valid)),
            silent: Rc::default(),
            is_free: Rc::new(RefCell::new(true)),
            holds_pages: Rc::default(),
        }
    }
}

impl ShardStore for Shared {
    fn submit(&mut self, id: RequestId, request: Request) {
        if matches!(request, Request::Acquire { .. }) && !*self.is_free.borrow() {
            return self.replies.borrow_mut().push((id, Reply::Held));
        }
        if matches!(request, Request::Acquire { .. }) {
            *self.validity.borrow_mut() = Validity::Valid;
        }
        // An owner that has released the shard owns nothing.
        if matches!(request, Request::Release { .. }) {
            *self.validity.borrow_mut() = Validity::Lost;
        }
        let mut store = self.store.borrow_mut();
        store.submit(id, request);
        store.poll(&mut self.replies.borrow_mut());
    }

    fn poll(&mut self, replies: &mut Vec<(RequestId, Reply)>) {
        if *self.silent.borrow() {
            return;
        }
        let holds_pages = *self.holds_pages.borrow();
        let passes = |reply: &Reply| !holds_pages || !matches!(reply, Reply::AcquiredPage(_));
        replies.extend(self.replies.borrow_mut().extract_if(.., |(_, reply)| passes(reply)));
    }

    fn validity(&self) -> Validity {
        *self.validity.borrow()
    }
}

/// One process with a shard.
struct Owner {
    shard: Shard<Shared>,
    store: Shared,
    now: Now,
    calls: u64,
}

fn wall() -> Timestamp {
    Timestamp::from_ms(1_500_000_000_000).expect("after 1970")
}

fn queue() -> QueueName {
    QueueName::new("q").expect("a name")
}

fn key(key: &str) -> Key {
    Key::new(key).expect("a key")
}

impl Owner {
    fn of(store: &Rc<RefCell<MemoryStore>>) -> Self {
        let mut owner = Self::begin(Shared::of(store));
        owner.turn(Vec::new());
        owner
    }

    /// An owner that has asked for the shard.
    fn begin(store: Shared) -> Self {
        let now = Now { mono_ns: 0, wall: wall(), wall_sub_ns: 0, wall_width_ns: 0, held_ms: 0 };
        let shard = Shard::new(ShardId::ONLY, store.clone(), EngineConfig::default(), now);
        Self { shard, store, now, calls: 0 }
    }

    fn turn(&mut self, mut inputs: Vec<Input>) -> Vec<(CallId, Answer)> {
        let mut answers = Vec::new();
        loop {
            self.shard.turn(self.now, &mut inputs);
            if !self.shard.take_answers(&mut answers) {
                return answers;
            }
        }
    }

    fn call(&mut self, command: Command) -> Option<Answer> {
        self.calls += 1;
        let call = CallId(self.calls);
        let mut answers = self.turn(vec![Input::Call { call, command }]);
        assert!(answers.len() <= 1, "{answers:?}");
        answers.pop().map(|(_, answer)| answer)
    }

    fn put(&mut self, name: &str) -> Option<Answer> {
        self.call(Command::Put(Put::new(&queue(), key(name))))
    }

    fn get(&mut self, name: &str) -> Option<Answer> {
        self.call(Command::Get(Get { queue: queue(), key: key(name) }))
    }

    fn set_validity(&self, validity: Validity) {
        *self.store.validity.borrow_mut() = validity;
    }
}

fn store() -> Rc<RefCell<MemoryStore>> {
    Rc::new(RefCell::new(MemoryStore::new([7; 16])))
}

fn is_stored(answer: Option<Answer>) -> bool {
    matches!(answer, Some(Answer::Put(Ok(_))))
}

fn is_found(answer: Option<Answer>) -> bool {
    match answer {
        Some(Answer::Get(Ok(_))) => true,
        Some(Answer::Get(Err(GetError::NotFound))) => false,
        other => panic!("a get was answered {other:?}"),
    }
}

#[test]
fn an_answer_stays_while_the_ownership_is_in_doubt_and_leaves_after_its_renewal() {
    let mut owner = Owner::of(&store());
    assert!(is_stored(owner.put("a")));
    owner.set_validity(Validity::InDoubt);
    for command in [
        Command::Put(Put::new(&queue(), key("b"))),
        Command::Get(Get { queue: queue(), key: key("a") }),
        Command::Get(Get { queue: queue(), key: key("nothing") }),
        Command::Lease(Lease { wait: false, ..Lease::new(&queue()) }),
    ] {
        let answer = owner.call(command);
        assert!(answer.is_none(), "it answered {answer:?} when another owner might have had the shard");
        assert!(!owner.shard.is_idle(), "an answer waits");
    }
    assert!(owner.shard.is_in_doubt());
    owner.set_validity(Validity::Valid);
    let answers = owner.turn(Vec::new());
    assert_eq!(answers.len(), 4);
    assert!(owner.shard.is_idle());
}

#[test]
fn what_waited_for_a_lost_ownership_is_never_said() {
    let store = store();
    let mut first = Owner::of(&store);
    assert!(is_stored(first.put("a")));
    let epoch = first.shard.engine().expect("it runs").ownership().epoch;
    first.set_validity(Validity::InDoubt);
    assert!(first.put("b").is_none());
    assert!(first.get("a").is_none());
    first.set_validity(Validity::Lost);
    assert_eq!(first.turn(Vec::new()).len(), 0);
    assert!(first.shard.is_unowned() && !first.shard.is_serving());
    assert!(first.get("a").is_none(), "no engine is there to answer");
    // The put was durable before the ownership ended, so it counts; only its answer did not leave.
    first.shard.acquire(first.now);
    first.turn(Vec::new());
    assert!(first.shard.is_serving());
    assert!(first.shard.engine().expect("it runs").ownership().epoch > epoch);
    assert!(is_found(first.get("a")) && is_found(first.get("b")));
}

#[test]
fn two_owners_take_the_shard_from_each_other_and_see_what_the_other_did() {
    let store = store();
    let mut first = Owner::of(&store);
    assert!(is_stored(first.put("a")));
    let mut second = Owner::of(&store);
    assert!(is_found(second.get("a")));
    assert!(is_stored(second.put("b")));
    // The first owner does not know yet that it lost the shard. It finds out when it commits.
    assert!(first.put("c").is_none());
    assert!(first.shard.is_unowned());
    assert!(!is_found(second.get("c")), "nothing of an old owner is written");
    for round in 0..3 {
        let (mine, other) =
            if round % 2 == 0 { (&mut first, &mut second) } else { (&mut second, &mut first) };
        mine.shard.acquire(mine.now);
        mine.turn(Vec::new());
        let name = format!("round {round}");
        assert!(is_stored(mine.put(&name)), "{name}");
        assert!(other.put("late").is_none() && other.shard.is_unowned(), "{name}");
    }
}

#[test]
fn a_reply_to_an_engine_that_is_gone_says_nothing_to_the_next_one() {
    let store = store();
    let mut owner = Owner::of(&store);
    *owner.store.silent.borrow_mut() = true;
    // A key would be looked up before the commit.
    let put = || Command::Put(Put::without_key(&queue()));
    assert!(owner.call(put()).is_none() && owner.call(put()).is_none());
    owner.set_validity(Validity::Lost);
    owner.turn(Vec::new());
    assert!(owner.shard.is_unowned());
    owner.shard.acquire(owner.now);
    // The reply to the first commit comes late, when the next engine has questions of its own.
    owner.store.replies.borrow_mut().reverse();
    *owner.store.silent.borrow_mut() = false;
    owner.turn(Vec::new());
    assert!(owner.shard.is_serving());
    let lease = Lease { wait: false, max: 10, ..Lease::new(&queue()) };
    let Some(Answer::Lease(Ok(leased))) = owner.call(Command::Lease(lease)) else { panic!("no answer") };
    assert_eq!(leased.len(), 1, "the second put never reached the store");
    assert!(is_stored(owner.put("c")));
}

#[test]
fn a_shard_that_another_owner_has_is_asked_for_again() {
    let shared = store();
    let store = Shared::of(&shared);
    *store.is_free.borrow_mut() = false;
    let mut owner = Owner::begin(store);
    owner.turn(Vec::new());
    assert!(owner.shard.is_unowned());
    owner.shard.acquire(owner.now);
    owner.turn(Vec::new());
    assert!(owner.shard.is_unowned(), "it is still held");
    *owner.store.is_free.borrow_mut() = true;
    owner.shard.acquire(owner.now);
    owner.turn(Vec::new());
    assert!(owner.shard.is_serving() && is_stored(owner.put("a")));
}

#[test]
fn a_page_of_an_earlier_acquisition_is_dropped() {
    let store = Rc::new(RefCell::new(MemoryStore::new([7; 16]).with_acquired_page(1)));
    let mut first = Owner::of(&store);
    let names = ["p", "q", "r"].map(|name| QueueName::new(name).expect("a name"));
    for name in &names {
        assert!(is_stored(first.call(Command::Put(Put::new(name, key("a"))))));
    }
    let mut second = Owner::begin(Shared::of(&store));
    *second.store.holds_pages.borrow_mut() = true;
    second.turn(Vec::new());
    assert!(!second.shard.is_running(), "the second page is kept back");
    second.set_validity(Validity::Lost);
    second.turn(Vec::new());
    assert!(second.shard.is_unowned());
    second.shard.acquire(second.now);
    // The page of the first acquisition comes before the reply to the second one.
    *second.store.holds_pages.borrow_mut() = false;
    second.turn(Vec::new());
    assert!(second.shard.is_serving());
    for name in names {
        let found = second.call(Command::Get(Get { queue: name, key: key("a") }));
        assert!(is_found(found));
    }
}

#[test]
fn the_last_answers_leave_before_the_shard_is_released() {
    let mut owner = Owner::of(&store());
    let put = Command::Put(Put::without_key(&queue()));
    let answers = owner.turn(vec![Input::Call { call: CallId(1), command: put }, Input::Stop]);
    assert_eq!(answers.len(), 1, "the put is durable, and its caller is told");
    assert!(owner.shard.is_released());
}

#[test]
fn a_stop_waits_while_the_ownership_is_in_doubt() {
    let mut owner = Owner::of(&store());
    owner.set_validity(Validity::InDoubt);
    let put = Command::Put(Put::without_key(&queue()));
    let inputs = vec![Input::Call { call: CallId(1), command: put }, Input::Stop];
    assert!(owner.turn(inputs).is_empty() && !owner.shard.is_released());
    owner.set_validity(Validity::Valid);
    assert_eq!(owner.turn(Vec::new()).len(), 1);
    assert!(owner.shard.is_released());
}

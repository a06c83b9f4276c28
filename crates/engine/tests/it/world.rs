//! An engine over a memory store. The test moves the clocks, and may hold commits back.

use std::collections::BTreeMap;

use tickwheel_engine::*;
use tickwheel_store::MemoryStore;

pub(crate) struct World {
    pub(crate) engine: Engine,
    store: Option<MemoryStore>,
    /// The latest wall clock of the store when this engine began.
    pub(crate) last_wall: Timestamp,
    pub(crate) now: Now,
    answers: BTreeMap<CallId, Answer>,
    next_call: u64,
    config: EngineConfig,
    /// Commits are kept here while `hold_commits` is on.
    held: Vec<(RequestId, Request)>,
    /// Replies to reads are kept here while `hold_reads` is on. They say what was so when they were asked for.
    held_replies: Vec<(RequestId, Reply)>,
    replies: Vec<(RequestId, Reply)>,
    pub(crate) hold_commits: bool,
    pub(crate) hold_reads: bool,
    pub(crate) fail_commits: bool,
    /// Reads of this kind fail.
    pub(crate) fail_reads: Option<fn(&Request) -> bool>,
    pub(crate) stopped: bool,
    /// The rows of the inbox in each commit that the store got, with the keys of the effects in the same commit.
    pub(crate) taken: Vec<(Vec<u64>, Vec<String>)>,
    /// The answer to an instant that the engine asks for.
    pub(crate) tell: fn(&InstantWanted) -> InstantFound,
    /// Whether the wall clock ever stepped back.
    pub(crate) stepped_back: bool,
}

pub(crate) const START_MS: i64 = 1_500_000_000_000;

pub(crate) fn queue(name: &str) -> QueueName {
    QueueName::new(name).expect("a good name")
}

pub(crate) fn key(name: &str) -> Key {
    Key::new(name).expect("a good key")
}

pub(crate) fn ms(ms: i64) -> Timestamp {
    Timestamp::from_ms(START_MS + ms).expect("after 1970")
}

fn empty_store() -> MemoryStore {
    MemoryStore::new(*b"a secret of ours")
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(EngineConfig::default())
    }

    pub(crate) fn with(config: EngineConfig) -> Self {
        let now = Now { mono_ns: 0, wall: ms(0), wall_sub_ns: 0, wall_width_ns: 0, held_ms: 0 };
        Self::over(empty_store(), ShardId::ONLY, config, now, |_| unreachable!("nobody asks"))
    }

    /// One shard of a data set with several.
    pub(crate) fn of_shard(shard: ShardId) -> Self {
        let now = Now { mono_ns: 0, wall: ms(0), wall_sub_ns: 0, wall_width_ns: 0, held_ms: 0 };
        let store = empty_store().with_shard(shard);
        Self::over(store, shard, EngineConfig::default(), now, |_| unreachable!("nobody asks"))
    }

    fn over(
        mut store: MemoryStore,
        shard: ShardId,
        config: EngineConfig,
        now: Now,
        tell: fn(&InstantWanted) -> InstantFound,
    ) -> Self {
        store.submit(RequestId(0), Request::Acquire { shard, wall: now.falls_due() });
        let mut replies = Vec::new();
        store.poll(&mut replies);
        let Some((_, Reply::Acquired(acquired))) = replies.pop() else { panic!("not acquired: {replies:?}") };
        let mut world = Self {
            last_wall: acquired.last_wall,
            engine: Engine::new(config.clone(), acquired, now),
            store: Some(store),
            now,
            answers: BTreeMap::new(),
            next_call: 0,
            config,
            held: Vec::new(),
            held_replies: Vec::new(),
            replies: Vec::new(),
            hold_commits: false,
            hold_reads: false,
            fail_commits: false,
            fail_reads: None,
            stopped: false,
            taken: Vec::new(),
            tell,
            stepped_back: false,
        };
        world.turn();
        world
    }

    /// The process dies and another one takes the store over.
    pub(crate) fn crash(mut self) -> Self {
        let store = self.store.take().expect("there");
        let mut next = Self::over(store, self.engine.ownership().shard, self.config, self.now, self.tell);
        next.next_call = self.next_call;
        next.stepped_back = self.stepped_back;
        next
    }

    pub(crate) fn stop(mut self) -> Self {
        self.input(Input::Stop);
        assert!(self.stopped, "a stop ends when all is durable");
        self.crash()
    }

    /// Both clocks go on.
    pub(crate) fn pass_ms(&mut self, by_ms: u64) {
        self.now.mono_ns += by_ms * 1_000_000;
        self.now.wall = self.now.wall.plus_ms(by_ms).expect("in range");
        self.input(Input::Wake);
    }

    /// Both clocks go on, and the engine is not told before the next input.
    pub(crate) fn pass_ms_unseen(&mut self, by_ms: u64) {
        self.now.mono_ns += by_ms * 1_000_000;
        self.now.wall = self.now.wall.plus_ms(by_ms).expect("in range");
    }

    /// The wall clock alone steps.
    pub(crate) fn step_wall_ms(&mut self, by_ms: i64) {
        self.stepped_back |= by_ms < 0;
        self.now.wall = Timestamp::from_ms(self.now.wall.as_ms() + by_ms).expect("after 1970");
        self.input(Input::Wake);
    }

    pub(crate) fn send(&mut self, command: Command) -> CallId {
        self.next_call += 1;
        let call = CallId(self.next_call);
        self.input(Input::Call { call, command });
        call
    }

    /// Calls that come before the engine has done anything for one of them.
    pub(crate) fn send_together<const N: usize>(&mut self, commands: [Command; N]) -> [CallId; N] {
        let mut out = Vec::new();
        let calls = commands.map(|command| {
            self.next_call += 1;
            let call = CallId(self.next_call);
            self.engine.step(self.now, Input::Call { call, command }, &mut out);
            call
        });
        self.carry_out(out);
        self.turn();
        calls
    }

    pub(crate) fn input(&mut self, input: Input) {
        let mut out = Vec::new();
        self.engine.step(self.now, input, &mut out);
        self.carry_out(out);
        self.turn();
    }

    pub(crate) fn release(&mut self) {
        self.hold_commits = false;
        self.hold_reads = false;
        for (id, request) in std::mem::take(&mut self.held) {
            self.submit(id, request);
        }
        self.replies.append(&mut self.held_replies);
        self.turn();
    }

    /// How many reads were asked for and not answered yet.
    pub(crate) fn reads_held(&self) -> usize {
        self.held_replies.len()
    }

    /// The youngest reply that is held comes.
    pub(crate) fn release_last_read(&mut self) {
        self.replies.push(self.held_replies.pop().expect("a reply is held"));
        self.turn();
    }

    /// All reads that are held fail.
    pub(crate) fn fail_held(&mut self) {
        for (id, _) in std::mem::take(&mut self.held_replies) {
            self.fail(id);
        }
        self.turn();
    }

    /// The store cannot answer the reads that are held, now.
    pub(crate) fn leave_unanswered(&mut self) {
        for (request, _) in std::mem::take(&mut self.held_replies) {
            let mut out = Vec::new();
            let reply = Reply::Unanswered { why: "the database is slow".to_owned() };
            self.engine.step(self.now, Input::Store { request, reply }, &mut out);
            self.carry_out(out);
        }
        self.turn();
    }

    fn turn(&mut self) {
        loop {
            let mut out = Vec::new();
            self.engine.flush(self.now, &mut out);
            let mut replies = std::mem::take(&mut self.replies);
            self.store.as_mut().expect("there").poll(&mut replies);
            if out.is_empty() && replies.is_empty() {
                return;
            }
            self.carry_out(out);
            for (request, reply) in replies {
                let mut out = Vec::new();
                self.engine.step(self.now, Input::Store { request, reply }, &mut out);
                self.carry_out(out);
            }
        }
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Ask { ask, wanted } => {
                    let found = (self.tell)(&wanted);
                    self.input(Input::Instant { ask, found });
                }
                Effect::Answer { call, answer } => {
                    let twice = self.answers.insert(call, answer);
                    assert_eq!(twice, None, "{call:?} was answered twice");
                }
                Effect::Request { id, request: request @ Request::Commit { .. } } if self.hold_commits => {
                    self.held.push((id, request));
                }
                Effect::Request { id, request: Request::Commit { .. } } if self.fail_commits => {
                    self.fail(id);
                }
                Effect::Request { id, request } if self.fail_reads.is_some_and(|fails| fails(&request)) => {
                    self.fail(id);
                }
                Effect::Request { id, request } if self.hold_reads && !is_commit(&request) => {
                    self.submit(id, request);
                    self.store.as_mut().expect("there").poll(&mut self.replies);
                    self.held_replies.extend(self.replies.pop());
                }
                Effect::Request { id, request } => self.submit(id, request),
                Effect::Stopped => self.stopped = true,
            }
        }
    }

    fn fail(&mut self, request: RequestId) {
        let mut out = Vec::new();
        let reply = Reply::Failed { why: "the disk is gone".to_owned() };
        self.engine.step(self.now, Input::Store { request, reply }, &mut out);
        self.carry_out(out);
    }

    fn submit(&mut self, id: RequestId, request: Request) {
        if let Request::Commit { batch, .. } = &request
            && !batch.taken.is_empty()
        {
            let keys = batch.effects.iter().map(|effect| match effect {
                TaskEffect::Stored { task, .. } => task.key.as_str().to_owned(),
                TaskEffect::Ended(ended) => ended.key.as_str().to_owned(),
            });
            self.taken.push((batch.taken.clone(), keys.collect()));
        }
        self.store.as_mut().expect("there").submit(id, request);
    }

    /// A wait of one of the last calls has lasted long enough.
    pub(crate) fn end_wait(&mut self, back: u64) {
        self.input(Input::EndWait { call: CallId(self.next_call.saturating_sub(back)) });
    }

    /// All answers since the last time, by call.
    pub(crate) fn take_answers(&mut self) -> BTreeMap<CallId, Answer> {
        std::mem::take(&mut self.answers)
    }

    /// How long until the engine wants to be woken.
    pub(crate) fn until_wake_ms(&self) -> Option<u64> {
        let wake = self.engine.next_wake();
        let by_wall = wake.wall.map(|at| at.ms_since(self.now.wall));
        let by_mono = wake.mono_ms.map(|at| at.saturating_sub(self.now.mono_tick()));
        [by_wall, by_mono].into_iter().flatten().min()
    }

    pub(crate) fn answer(&mut self, call: CallId) -> Option<Answer> {
        self.answers.remove(&call)
    }

    pub(crate) fn ask(&mut self, command: Command) -> Answer {
        let call = self.send(command);
        self.answer(call).expect("answered at once")
    }

    pub(crate) fn put(&mut self, put: Put) -> Result<Stored, PutError> {
        let Answer::Put(result) = self.ask(Command::Put(put)) else { panic!("another answer") };
        result
    }

    pub(crate) fn put_in(&mut self, name: &str, delay_ms: u64) -> Stored {
        let put = Put { due: Due::After { ms: delay_ms }, ..Put::new(&queue("q"), key(name)) };
        self.put(put).expect("taken")
    }

    pub(crate) fn get(&mut self, name: &str) -> Result<TaskView, GetError> {
        let Answer::Get(result) = self.ask(Command::Get(Get::new(&queue("q"), key(name)))) else {
            panic!("another answer")
        };
        result
    }

    pub(crate) fn patch(&mut self, patch: Patch) -> Result<TaskView, PatchError> {
        let Answer::Patch(result) = self.ask(Command::Patch(patch)) else { panic!("another answer") };
        result
    }

    pub(crate) fn cancel(&mut self, name: &str) -> Result<Cancelled, CancelError> {
        self.cancel_by(Cancel::new(&queue("q"), key(name)))
    }

    pub(crate) fn cancel_by(&mut self, cancel: Cancel) -> Result<Cancelled, CancelError> {
        let Answer::Cancel(result) = self.ask(Command::Cancel(cancel)) else { panic!("another answer") };
        result
    }

    pub(crate) fn by_key(&mut self, name: &str, act: KeyAct) -> Result<TaskView, ByKeyError> {
        self.by_key_in(name, act, None)
    }

    /// Acts on the task only if it has this version.
    pub(crate) fn by_key_in(
        &mut self,
        name: &str,
        act: KeyAct,
        if_version: Option<Seq>,
    ) -> Result<TaskView, ByKeyError> {
        let by_key = ByKey { queue: queue("q"), key: key(name), act, if_version };
        let Answer::ByKey(result) = self.ask(Command::ByKey(by_key)) else { panic!("another answer") };
        result
    }

    pub(crate) fn lease(&mut self, max: usize, lease_ms: u64) -> Vec<Leased> {
        let lease = Lease {
            queues: [queue("q")].into(),
            max,
            lease_ms: Some(lease_ms),
            wait: false,
            worker: None,
            for_target: false,
        };
        let Answer::Lease(result) = self.ask(Command::Lease(lease)) else { panic!("another answer") };
        result.expect("granted")
    }

    pub(crate) fn ack(&mut self, token: Token) -> TokenAnswer {
        let Answer::Ack(result) = self.ask(Command::Ack(Ack::new(&queue("q"), [token]))) else {
            panic!("another answer")
        };
        result.expect("answered")[0]
    }

    pub(crate) fn nack(&mut self, token: Token, delay_ms: Option<u64>) -> TokenAnswer {
        let nack = Nack { delay_ms, ..Nack::new(&queue("q"), [token]) };
        let Answer::Nack(result) = self.ask(Command::Nack(nack)) else { panic!("another answer") };
        result.expect("answered")[0]
    }

    pub(crate) fn extend(&mut self, token: Token, lease_ms: u64) -> TokenAnswer {
        let extend = Extend { queue: queue("q"), tokens: vec![token], lease_ms: Some(lease_ms) };
        let Answer::Extend(result) = self.ask(Command::Extend(extend)) else { panic!("another answer") };
        result.expect("answered")[0]
    }

    pub(crate) fn list(&mut self, state: Option<State>) -> Vec<(String, State)> {
        let mut all = Vec::new();
        let mut after = None;
        loop {
            let filter = TaskFilter { state, ..TaskFilter::default() };
            let list = List { filter, max: 3, after, ..List::new(&queue("q")) };
            let Answer::List(Ok(page)) = self.ask(Command::List(list)) else { panic!("no page") };
            all.extend(page.tasks.into_iter().map(|task| (task.key.as_str().to_owned(), task.state)));
            after = page.next;
            if after.is_none() {
                return all;
            }
        }
    }

    /// The counts of every queue.
    pub(crate) fn all_counts(&mut self) -> Vec<QueueCounts> {
        self.listed(&ListQueues::default())
    }

    /// The counts of these queues, page by page.
    pub(crate) fn listed(&mut self, list: &ListQueues) -> Vec<QueueCounts> {
        let (mut all, mut list) = (Vec::new(), list.clone());
        loop {
            let Answer::Queues(Ok(page)) = self.ask(Command::Queues(list.clone())) else {
                panic!("no counts")
            };
            all.extend(page.queues);
            match page.next {
                Some(next) => list.after = Some(next),
                None => return all,
            }
        }
    }

    /// scheduled, ready, leased of queue q.
    pub(crate) fn counts(&mut self) -> (u64, u64, u64) {
        let queues = self.all_counts();
        queues.first().map_or((0, 0, 0), |counts| (counts.scheduled, counts.ready, counts.leased))
    }
}

fn is_commit(request: &Request) -> bool {
    matches!(request, Request::Commit { .. })
}

pub(crate) fn keys(leased: &[Leased]) -> Vec<&str> {
    leased.iter().map(|leased| leased.key.as_str()).collect()
}

//! The dispatcher of targets over the real engine and the real store, on a simulated disk that crashes. The receiver confirms messages, and
//! answers get lost. So messages come twice, but each task arrives, and none comes again once its ack is durable.

use std::collections::{BTreeMap, BTreeSet};

use tickwheel_engine::{Answer, CallId, EngineConfig, Input, Now};
use tickwheel_push::Outcome;
use tickwheel_push::dispatch::{BreakerPlan, Dispatcher, Effect, Order, Plan, SendNo, Sending};
use tickwheel_queue::{
    Ack, Backoff, ChangeQueue, Command, Extend, Get, GetError, Group, Key, Lease, Nack, Put, QueueChange,
    QueueName, QueueSettings, Retry, Shard, ShardId, Timestamp, Token, TokenAnswer,
};
use tickwheel_sim::disk::{Fault, SimDisk};
use tickwheel_sim::rng::Rng;
use tickwheel_sim::{SimIo, Slips, Switch};
use tickwheel_store::{DiskStore, HistoryLimits, StoreOptions};

type Server = Shard<DiskStore<SimDisk, SimIo>>;

const GROUPS: u64 = 3;
const SEEDS: u64 = 100;
/// The steps of a run before everything works again.
const STEPS: u64 = 500;
/// The wall clock at the begin (ms since 1970): a day in 2027.
const BEGIN_MS: u64 = 1_800_000_000_000;
/// The time that passes in one step (ms) is below this. So no lease ends before it is extended.
const STEP_MS: u64 = 1_500;

/// A group and the place of a task in it.
type Place = (u64, u64);

/// A call whose answer is awaited.
enum Asked {
    Put(Place),
    Lease,
    /// A lease call that the dispatcher has dropped.
    DroppedLease,
    Ack(Vec<Token>),
    Nack(Token),
    Extend(SendNo),
    Other,
}

/// The state of a task that was received at least once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    /// The dispatcher does not know that the receiver has confirmed. So the task comes again.
    ByReceiver,
    /// The dispatcher was told. Only a crash may make the task come again.
    ByDispatcher,
    /// The ack was answered.
    Durably,
}

#[derive(Clone, Copy, Default, Debug)]
struct Totals {
    put: u64,
    received: u64,
    again: u64,
    answers_lost: u64,
    crashes: u64,
    /// Tasks that came again because a crash had undone an ack.
    acks_lost: u64,
}

struct World {
    seed: u64,
    rng: Rng,
    order: Order,
    disk: SimDisk,
    switch: Switch,
    server: Option<Server>,
    inputs: Vec<Input>,
    next_call: u64,
    asked: BTreeMap<u64, Asked>,
    lease: Option<u64>,
    now_ms: u64,
    dispatcher: Dispatcher,
    sending: Vec<Sending>,
    tokens: BTreeMap<Token, Place>,
    /// The number of tasks that were asked for in each group, and the due time of the last one (ms).
    groups: Vec<(u64, u64)>,
    put: BTreeSet<Place>,
    known: BTreeMap<Place, Known>,
    ids: BTreeMap<Place, u64>,
    /// The last task of each group that was received.
    newest: BTreeMap<u64, u64>,
    totals: Totals,
}

impl World {
    fn new(seed: u64, order: Order) -> Self {
        let mut rng = Rng::new(seed);
        let mut world = Self {
            seed,
            order,
            disk: SimDisk::new(),
            switch: Switch::default(),
            server: None,
            inputs: Vec::new(),
            next_call: 0,
            asked: BTreeMap::new(),
            lease: None,
            now_ms: 0,
            dispatcher: dispatcher(order, &mut rng),
            sending: Vec::new(),
            tokens: BTreeMap::new(),
            groups: vec![(0, 0); usize::try_from(GROUPS).expect("few")],
            put: BTreeSet::new(),
            known: BTreeMap::new(),
            ids: BTreeMap::new(),
            newest: BTreeMap::new(),
            totals: Totals::default(),
            rng,
        };
        world.start();
        // The server gives a target with this order such a queue.
        let settings = QueueSettings { max_in_flight_per_group: Some(1), ..QueueSettings::default() };
        if order == Order::Group {
            let change = QueueChange::Settings(settings);
            world.call(Command::ChangeQueue(ChangeQueue { queue: queue(), change }), Asked::Other);
            world.switch.set(true);
            // A crash would undo the change.
            world.disk.forget_faults();
            while !world.asked.is_empty() {
                world.turn();
            }
        }
        let effects = world.dispatcher.pass_time(world.now_ms);
        world.carry_out(effects);
        world
    }

    fn now(&self) -> Now {
        let wall = Timestamp::EPOCH.saturating_plus_ms(BEGIN_MS + self.now_ms);
        Now { mono_ns: self.now_ms * 1_000_000, wall, wall_sub_ns: 0, wall_width_ns: 0, held_ms: 0 }
    }

    /// Starts a server, again and again until it is up, because the machine may die during its recovery.
    fn start(&mut self) {
        self.switch.set(true);
        loop {
            self.disk.forget_faults();
            if self.rng.chance(20) {
                self.disk.fail_at(self.rng.between(1, 25), Fault::Crash);
            }
            if let Some(server) = self.try_start() {
                self.server = Some(server);
                self.disk.forget_faults();
                if self.rng.chance(30) {
                    self.disk.fail_at(self.rng.between(1, 60), Fault::Crash);
                }
                return;
            }
            self.disk.crash(&mut self.rng.split());
        }
    }

    fn try_start(&mut self) -> Option<Server> {
        let io = SimIo::new(self.switch.clone(), Slips { percent: 30, rng: self.rng.split() });
        let opened = DiskStore::open(self.disk.clone(), io, options());
        let store = match opened {
            Err(_) if self.disk.is_crashed() => return None,
            opened => opened.expect("an undamaged store opens"),
        };
        let mut server = Shard::new(ShardId::ONLY, store, EngineConfig::default(), self.now());
        for _ in 0..10_000 {
            server.turn(self.now(), &mut Vec::new());
            if self.disk.is_crashed() {
                return None;
            }
            if server.is_serving() {
                return Some(server);
            }
        }
        panic!("seed {}: the server does not load: {:?}", self.seed, server.refusal());
    }

    /// The power is cut. Messages on their way may still arrive.
    fn crash(&mut self) {
        self.totals.crashes += 1;
        for sending in std::mem::take(&mut self.sending) {
            if self.rng.chance(50) {
                self.receive(&sending);
                self.totals.answers_lost += 1;
            }
        }
        for known in self.known.values_mut().filter(|known| **known == Known::ByDispatcher) {
            *known = Known::ByReceiver;
            self.totals.acks_lost += 1;
        }
        self.server = None;
        self.inputs.clear();
        self.asked.clear();
        self.lease = None;
        self.tokens.clear();
        self.disk.crash(&mut self.rng.split());
        self.now_ms += self.rng.pick(&[0, 1, 50, 30_000]);
        self.dispatcher = dispatcher(self.order, &mut self.rng);
        self.start();
        let effects = self.dispatcher.pass_time(self.now_ms);
        self.carry_out(effects);
    }

    fn call(&mut self, command: Command, asked: Asked) -> u64 {
        self.next_call += 1;
        self.asked.insert(self.next_call, asked);
        self.inputs.push(Input::Call { call: CallId(self.next_call), command });
        self.next_call
    }

    /// Runs one turn of the server, and takes its answers.
    fn turn(&mut self) {
        let mut answers = Vec::new();
        let mut server = self.server.take().expect("it is up");
        server.turn(self.now(), &mut self.inputs);
        server.take_answers(&mut answers);
        self.server = Some(server);
        if self.disk.is_crashed() {
            // The server died before it sent these answers.
            return self.crash();
        }
        for (CallId(call), answer) in answers {
            let asked = self.asked.remove(&call).expect("a call is answered once");
            self.answered(asked, answer);
        }
    }

    fn answered(&mut self, asked: Asked, answer: Answer) {
        match (asked, answer) {
            (Asked::Put(place), Answer::Put(stored)) => {
                stored.expect("a put without a limit");
                self.totals.put += 1;
                self.put.insert(place);
            }
            (Asked::Lease, Answer::Lease(leased)) => {
                self.lease = None;
                let leased = leased.expect("a healthy server");
                for leased in &leased {
                    self.tokens.insert(leased.token, place_of(leased.key.as_str()));
                }
                let effects = self.dispatcher.leased(self.now_ms, leased);
                self.carry_out(effects);
            }
            (Asked::DroppedLease, Answer::Lease(leased)) => {
                let tokens = leased.expect("a healthy server").iter().map(|leased| leased.token).collect();
                self.inputs.push(Input::Undelivered { tokens });
            }
            (Asked::Ack(tokens), Answer::Ack(answers)) => {
                for (token, answer) in tokens.iter().zip(answers.expect("a healthy server")) {
                    assert_eq!(
                        answer,
                        TokenAnswer::Acked,
                        "seed {}: a lease was extended in time",
                        self.seed
                    );
                    self.known.insert(self.tokens[token], Known::Durably);
                }
                let effects = self.dispatcher.settled(self.now_ms, &tokens);
                self.carry_out(effects);
            }
            (Asked::Extend(no), Answer::Extend(answers)) => {
                let answer = answers.expect("a healthy server")[0];
                let effects = self.dispatcher.extended(self.now_ms, no, answer);
                self.carry_out(effects);
            }
            (Asked::Nack(token), Answer::Nack(answers)) => {
                assert!(answers.is_ok(), "seed {}: {answers:?}", self.seed);
                let effects = self.dispatcher.settled(self.now_ms, &[token]);
                self.carry_out(effects);
            }
            (Asked::Other, Answer::ChangeQueue(changed)) => changed.expect("a healthy server"),
            (_, answer) => panic!("seed {}: another answer: {answer:?}", self.seed),
        }
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        let lease_ms = self.dispatcher.lease_ms();
        for effect in effects {
            match effect {
                Effect::Lease { max } => {
                    let lease =
                        Lease { wait: true, lease_ms: Some(lease_ms), ..Lease::new(&queue()).max(max) };
                    self.lease = Some(self.call(Command::Lease(lease), Asked::Lease));
                }
                Effect::DropLease => self.drop_lease(),
                Effect::Send(sending) => self.sending.push(sending),
                Effect::Ack(tokens) => {
                    let ack = Ack { queue: queue(), tokens: tokens.clone() };
                    self.call(Command::Ack(ack), Asked::Ack(tokens));
                }
                Effect::Nack { token, how, at_least_ms, reason } => {
                    let nack = Nack::new(&queue(), [token]);
                    let nack = Nack { how, at_least_ms, reason: Some(reason), ..nack };
                    self.call(Command::Nack(nack), Asked::Nack(token));
                }
                Effect::GiveBack(tokens) => self.inputs.push(Input::Undelivered { tokens }),
                Effect::Extend { no, token } => {
                    let lease = std::time::Duration::from_millis(lease_ms);
                    let extend = Extend::new(&queue(), [token], lease);
                    self.call(Command::Extend(extend), Asked::Extend(no));
                }
                Effect::Disable { reason } => panic!("no outcome of this test disables: {reason}"),
            }
        }
    }

    fn drop_lease(&mut self) {
        let Some(call) = self.lease.take() else { return };
        self.asked.insert(call, Asked::DroppedLease);
        self.inputs.push(Input::EndWait { call: CallId(call) });
    }

    /// Asks for the next task of a random group. Due times do not decrease within a group.
    fn put_one(&mut self) {
        let group = self.rng.below(if self.order == Order::Queue { 1 } else { GROUPS });
        let (next, due_ms) = &mut self.groups[usize::try_from(group).expect("few")];
        let place = (group, *next);
        *next += 1;
        *due_ms = (*due_ms).max(self.now_ms) + self.rng.pick(&[0, 0, 7, 900]);
        let due_at = Timestamp::EPOCH.saturating_plus_ms(BEGIN_MS + *due_ms);
        let mut put = Put::new(&queue(), key(place)).at(due_at);
        let backoff = Backoff { doubles: true, base_ms: 50, max_ms: 2_000, jitter_percent: 30 };
        put.terms.retry = Some(Retry { max_attempts: None, backoff: Some(backoff) });
        put.terms.group = Some(Group::new(&format!("g{group}")).expect("a group"));
        self.call(Command::Put(put), Asked::Put(place));
    }

    /// The receiver gets a message.
    fn receive(&mut self, sending: &Sending) {
        let leased = &sending.leased;
        let place @ (group, nth) = place_of(leased.key.as_str());
        let seed = self.seed;
        assert!(self.now().wall >= leased.due_at, "seed {seed}: EARLY: {place:?}");
        assert_eq!(*self.ids.entry(place).or_insert(leased.id), leased.id, "seed {seed}: another id");
        self.totals.received += 1;
        if let Some(known) = self.known.insert(place, Known::ByReceiver) {
            assert_eq!(known, Known::ByReceiver, "seed {seed}: {place:?} came again");
            self.totals.again += 1;
        }
        if self.order != Order::None {
            let newest = *self.newest.entry(group).or_insert(nth);
            assert!(nth >= newest, "seed {seed}: {place:?} came after {newest} of its group");
            let mut before = self.put.range((group, 0)..place);
            let waiting = before.find(|before| !self.known.contains_key(before));
            assert_eq!(waiting, None, "seed {seed}: {place:?} came before it");
            self.newest.insert(group, nth);
        }
    }

    /// A message arrives or does not, and its answer does or does not.
    fn end_send(&mut self, is_hostile: bool) {
        if self.sending.is_empty() {
            return;
        }
        let sending = self.sending.remove(self.rng.index(self.sending.len()));
        let outcome = match self.rng.below(if is_hostile { 100 } else { 50 }) {
            0..50 => {
                self.receive(&sending);
                self.known.insert(place_of(sending.leased.key.as_str()), Known::ByDispatcher);
                Outcome::Delivered
            }
            50..75 => {
                self.receive(&sending);
                self.totals.answers_lost += 1;
                if self.rng.chance(50) {
                    Outcome::task_failed("no answer")
                } else {
                    Outcome::target_failed("the connection was lost")
                }
            }
            75..90 => Outcome::task_failed("http 500"),
            _ => Outcome::target_failed("refused"),
        };
        let effects = self.dispatcher.sent(self.now_ms, sending.no, &outcome);
        self.carry_out(effects);
    }

    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        let effects = self.dispatcher.pass_time(self.now_ms);
        self.carry_out(effects);
        self.turn();
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..20 => self.put_one(),
            20..45 => {
                self.switch.set(self.rng.chance(60));
                self.turn();
            }
            45..75 => self.end_send(true),
            75..97 => {
                let ms = self.rng.pick(&[0, 1, 6, 100, STEP_MS - 1]);
                self.pass(ms);
            }
            97 => {
                // The call has waited for its longest time. It is answered without a task.
                if let Some(call) = self.lease {
                    self.inputs.push(Input::EndWait { call: CallId(call) });
                }
            }
            _ => self.crash(),
        }
    }

    /// Everything works again. All tasks arrive and are done.
    fn drain(&mut self) {
        self.disk.forget_faults();
        self.switch.set(true);
        for _ in 0..5_000 {
            self.turn();
            while !self.sending.is_empty() {
                self.end_send(false);
            }
            self.pass(STEP_MS - 1);
            // The server has taken a lease call and has nothing for it. Without the call, ready tasks might wait for an open breaker.
            let waits = self.asked.len() == 1 && self.lease.is_some() && self.inputs.is_empty();
            let is_empty = |server: &Server| server.next_wake().wall.is_none() && server.is_idle();
            if waits && self.dispatcher.in_hand() == 0 && self.server.as_ref().is_some_and(is_empty) {
                break;
            }
        }
        let lost: Vec<_> = self.put.iter().filter(|place| !self.known.contains_key(place)).collect();
        assert!(lost.is_empty(), "seed {}: LOST: {lost:?}", self.seed);
        for place in self.put.clone() {
            self.next_call += 1;
            let get = Get { queue: queue(), key: key(place) };
            self.inputs.push(Input::Call { call: CallId(self.next_call), command: Command::Get(get) });
            let (mut server, mut answers) = (self.server.take().expect("it is up"), Vec::new());
            while answers.is_empty() {
                server.turn(self.now(), &mut self.inputs);
                server.take_answers(&mut answers);
            }
            self.server = Some(server);
            let is_done = matches!(answers[..], [(_, Answer::Get(Err(GetError::Done | GetError::NotFound)))]);
            assert!(is_done, "seed {}: {place:?} is left: {answers:?}", self.seed);
        }
    }
}

fn dispatcher(order: Order, rng: &mut Rng) -> Dispatcher {
    let breaker = BreakerPlan { failures: rng.pick(&[2, 5]), open_ms: 20, open_max_ms: 200 };
    Dispatcher::new(Plan { concurrency: rng.pick(&[1, 3, 8]), timeout_ms: 1_000, order, breaker })
}

fn options() -> StoreOptions {
    let mut options = StoreOptions::new(*b"a simulated one.");
    options.history = HistoryLimits::last(1_000);
    options.log_file_bytes = 8 << 10;
    options.checkpoint_after_bytes = 12 << 10;
    options.background_step_bytes = 4 << 10;
    options.segment_bytes = 16 << 10;
    options.block_bytes = 512;
    options
}

fn queue() -> QueueName {
    QueueName::new("pushed").expect("a name")
}

fn key((group, nth): Place) -> Key {
    Key::new(&format!("{group}-{nth}")).expect("a key")
}

fn place_of(key: &str) -> Place {
    let (group, nth) = key.split_once('-').expect("a key of this test");
    (group.parse().expect("a number"), nth.parse().expect("a number"))
}

#[expect(clippy::print_stderr, reason = "the figures say what a pass means")]
fn run(order: Order) {
    let mut all = Totals::default();
    for seed in 0..SEEDS {
        let mut world = World::new(seed, order);
        for _ in 0..STEPS {
            world.step();
        }
        world.drain();
        let Totals { put, received, again, answers_lost, crashes, acks_lost } = world.totals;
        assert!(
            again <= answers_lost + acks_lost,
            "seed {seed}: more came again than could: {:?}",
            world.totals
        );
        all.put += put;
        all.received += received;
        all.again += again;
        all.answers_lost += answers_lost;
        all.crashes += crashes;
        all.acks_lost += acks_lost;
    }
    eprintln!("push, order {order:?}: {SEEDS} seeds: {all:?}");
    assert!(all.put > 50 * SEEDS && all.crashes > 5 * SEEDS && all.acks_lost > 0, "too tame: {all:?}");
    assert!(all.again * 10 > all.received, "too few messages came again: {all:?}");
}

#[test]
fn a_lost_answer_gives_a_duplicate_and_never_a_loss() {
    run(Order::None);
}

#[test]
fn a_lost_answer_inverts_no_group() {
    run(Order::Group);
}

#[test]
fn a_lost_answer_inverts_no_queue() {
    run(Order::Queue);
}

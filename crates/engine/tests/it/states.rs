//! The moves of tasks that the engine makes are those that `docs/reference/state-machine.md` tells of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tickwheel_engine::*;

use crate::imports::task;
use crate::twins::Draw;
use crate::world::*;

/// From where, to where, by what.
type Move = (String, String, String);

const KEYS: [&str; 2] = ["a", "b"];
const ROUNDS: u64 = 3_000;
const STEPS: u64 = 60;
const MONTH_MS: u64 = 31 * 86_400_000;

/// The moves in the table of the document.
fn told() -> BTreeSet<Move> {
    let rows = include_str!("../../../../docs/reference/state-machine.md")
        .lines()
        .skip_while(|line| !line.starts_with("| from | to | by |"))
        .skip(2);
    let mut moves = BTreeSet::new();
    for row in rows.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        for from in cells[1].split(", ") {
            for to in cells[2].split(", ") {
                for by in cells[3].split('`').map(str::trim).filter(|by| !by.is_empty()) {
                    moves.insert((from.to_owned(), to.to_owned(), by.to_owned()));
                }
            }
        }
    }
    moves
}

/// Where every task stands, by id.
fn standing(world: &mut World) -> BTreeMap<u64, State> {
    let mut all = BTreeMap::new();
    for state in [None, Some(State::Dead)] {
        let filter = TaskFilter { state, ..TaskFilter::default() };
        let list = List { filter, max: 1_000, after: None, ..List::new(&queue("q")) };
        let Answer::List(Ok(page)) = world.ask(Command::List(list)) else { panic!("no page") };
        assert!(page.next.is_none(), "few tasks fit on a page");
        all.extend(page.tasks.iter().map(|task| (task.id, task.state)));
    }
    all
}

fn name(state: State) -> String {
    format!("{state:?}").to_lowercase()
}

struct Watch {
    world: World,
    draw: Draw,
    seen: BTreeSet<Move>,
    /// The tokens of the last lease, and of the leases before it.
    tokens: Vec<(u64, Token)>,
    last_lease: Vec<Token>,
    /// A second ack with one of these tokens gets the same answer and touches no task.
    acked: BTreeSet<Token>,
}

/// The effects of an operation that the tasks before and after do not show.
#[derive(Default)]
struct Done {
    by: &'static str,
    /// Tasks that it took hold of, wherever they stand afterwards.
    touched: Vec<u64>,
    /// The end of a task that is gone.
    end: &'static str,
}

impl Watch {
    fn round(&mut self) {
        for _ in 0..STEPS {
            let before = standing(&mut self.world);
            let done = self.step(&before);
            let after = standing(&mut self.world);
            self.note(&before, &after, &done);
        }
    }

    fn note(&mut self, before: &BTreeMap<u64, State>, after: &BTreeMap<u64, State>, done: &Done) {
        let ids: BTreeSet<u64> = before.keys().chain(after.keys()).copied().collect();
        for id in ids {
            let (was, is) = (before.get(&id), after.get(&id));
            if was == is && !done.touched.contains(&id) {
                continue;
            }
            let from = was.map_or("(nothing)".to_owned(), |state| name(*state));
            let to = is.map_or(done.end.to_owned(), |state| name(*state));
            self.seen.insert((from, to, done.by.to_owned()));
        }
    }

    fn on_lease(&mut self) -> OnLease {
        self.draw.pick(&[OnLease::Refuse, OnLease::Revoke])
    }

    fn step(&mut self, before: &BTreeMap<u64, State>) -> Done {
        let of = key(self.draw.pick(&KEYS));
        let revokes = |on_lease, plain, revoke| if on_lease == OnLease::Revoke { revoke } else { plain };
        let leased = |id: &u64| before.get(id) == Some(&State::Leased);
        match self.draw.below(100) {
            0..25 => {
                let (put, on_lease) = self.put(of.clone());
                let dead = self.dead_of(&of);
                match self.world.put(put) {
                    Ok(Stored { created: true, .. }) => Done { by: "put", touched: dead, end: "" },
                    Ok(stored) => {
                        let id = stored.task.id;
                        let by = if leased(&id) { revokes(on_lease, "put", "put revoke") } else { "put" };
                        Done { by, touched: vec![id], end: "" }
                    }
                    Err(_) => Done { by: "a refused put", ..Done::default() },
                }
            }
            25..35 => {
                let on_lease = self.on_lease();
                let due = self.draw.pick(&[None, Some(0), Some(20)]).map(|ms| Due::After { ms });
                let payload = due.is_none().then(|| Payload::bytes(*b"x"));
                let patch = Patch { due, payload, on_lease, ..Patch::new(&queue("q"), of) };
                match self.world.patch(patch) {
                    Ok(task) => {
                        let by = if leased(&task.id) {
                            revokes(on_lease, "patch", "patch revoke")
                        } else {
                            "patch"
                        };
                        Done { by, touched: vec![task.id], end: "" }
                    }
                    Err(_) => Done { by: "a refused patch", ..Done::default() },
                }
            }
            35..42 => {
                let on_lease = self.on_lease();
                match self.world.cancel_by(Cancel { on_lease, ..Cancel::new(&queue("q"), of) }) {
                    Ok(Cancelled::Cancelled) => Done { by: "cancel", end: "cancelled", ..Done::default() },
                    Ok(Cancelled::Revoked) => Done { by: "cancel revoke", end: "revoked", ..Done::default() },
                    Err(_) => Done { by: "a refused cancel", ..Done::default() },
                }
            }
            42..58 => {
                let granted = self.world.lease(self.draw.below(3) as usize + 1, 1_000);
                self.tokens.extend(granted.iter().map(|one| (one.id, one.token)));
                self.last_lease = granted.iter().map(|one| one.token).collect();
                Done { by: "lease", ..Done::default() }
            }
            58..62 => {
                let tokens = std::mem::take(&mut self.last_lease);
                self.world.input(Input::Undelivered { tokens });
                Done { by: "undelivered", ..Done::default() }
            }
            62..78 => {
                let back = self.draw.below(4) as usize;
                let Some((id, token)) = self.tokens.iter().rev().nth(back).copied() else {
                    return Done::default();
                };
                self.last_lease.clear();
                // Over a crash a token may still hold a task that is ready by now.
                let held = |id: u64, took: bool| if took { vec![id] } else { Vec::new() };
                match self.draw.below(4) {
                    0 => {
                        let acked = self.world.ack(token) == TokenAnswer::Acked && self.acked.insert(token);
                        Done { by: "ack", touched: held(id, acked), end: "done" }
                    }
                    1 => {
                        let extended = self.world.extend(token, 1_500) == TokenAnswer::Extended;
                        Done { by: "extend", touched: held(id, extended), end: "" }
                    }
                    _ => {
                        let (by, how) = self.draw.pick(&[
                            ("nack", NackHow::Returned),
                            ("nack", NackHow::Returned),
                            ("bury", NackHow::Buried),
                            ("gone", NackHow::Gone),
                        ]);
                        let delay_ms = self.draw.pick(&[None, None, Some(0), Some(15)]);
                        let nack = Nack { how, delay_ms, ..Nack::new(&queue("q"), [token]) };
                        let answer = self.world.ask(Command::Nack(nack));
                        let nacked = answer == Answer::Nack(Ok(vec![TokenAnswer::Nacked]));
                        Done { by, touched: held(id, nacked), end: "" }
                    }
                }
            }
            78..88 => {
                self.last_lease.clear();
                if self.draw.below(3) == 0 {
                    // The wall clock alone is set back.
                    self.world.step_wall_ms(-40);
                } else {
                    self.world.pass_ms(self.draw.pick(&[1, 5, 10, 30, 700, 1_100, MONTH_MS]));
                }
                Done { by: "time", end: "forgotten", ..Done::default() }
            }
            88..91 => self.restart(World::crash, "crash", Vec::new()),
            91..94 => {
                let stay = before.keys().copied().filter(leased).collect();
                self.restart(World::stop, "stop", stay)
            }
            94 => self.by_key(of, before),
            95 => {
                let dead = before.iter().find(|(_, state)| **state == State::Dead);
                let Some((id, _)) = dead else { return Done::default() };
                self.world.ask(Command::Redrive(Redrive { queue: queue("q"), id: *id }));
                Done { by: "redrive", ..Done::default() }
            }
            96 => self.import(of, before),
            97 => {
                let among = before.keys().nth(self.draw.below(3) as usize);
                let Some(&id) = among else { return Done::default() };
                self.by_id(id)
            }
            98 => {
                let jitter_ms = self.draw.pick(&[0, 4_000]);
                let schedule =
                    Schedule { jitter_ms, count: Some(2), ..Schedule::new(Cadence::Every { ms: 100 }) };
                let of = ScheduleName::new("s").expect("a name");
                self.world.ask(Command::PutSchedule(PutSchedule::new(&queue("q"), of, Arc::new(schedule))));
                Done { by: "a schedule", ..Done::default() }
            }
            _ => {
                let of = ScheduleName::new("s").expect("a name");
                let delete = DeleteSchedule { queue: queue("q"), name: of, if_version: None };
                self.world.ask(Command::DeleteSchedule(delete));
                Done { by: "a schedule", ..Done::default() }
            }
        }
    }

    /// Brings a task from elsewhere, live or dead, onto what is there.
    fn import(&mut self, of: Key, before: &BTreeMap<u64, State>) -> Done {
        let on_lease = self.on_lease();
        let now = self.world.now.wall;
        let at = |by_ms: i64| Timestamp::from_ms(now.as_ms() + by_ms).expect("after 1970");
        let why = self.draw.pick(&[None, None, Some(Death::MaxAttempts)]);
        let due_at = at(self.draw.pick(&[-5, 0, 50]));
        let dead = why.map(|why| Dead { at: at(-3), due_at, why, keyless: false });
        let expire_at = self.draw.pick(&[None, None, Some(-1)]).map(at);
        let task = ImportTask {
            put_at: at(-9),
            due_at,
            key: of.clone(),
            extra: Extra { dead, expire_at: expire_at.filter(|_| dead.is_none()), ..Extra::default() },
            ..task("x", 0, 0)
        };
        let holder = self.world.get(of.as_str()).ok().map(|task| task.id);
        let import =
            ImportTasks { tasks: vec![task], existing: Existing::Replace, on_lease, ids_below: None };
        let Answer::Import(Ok(imported)) = self.world.ask(Command::Import(import)) else {
            panic!("no answer")
        };
        match imported.outcomes.first() {
            Some(ImportOutcome::Replaced) => {
                let id = holder.expect("it was there");
                let was_leased = before.get(&id) == Some(&State::Leased);
                let by = if was_leased { "import revoke" } else { "import" };
                Done { by, touched: vec![id], end: "" }
            }
            // The one that was dead has lost its key.
            Some(_) => {
                let dead = holder.filter(|id| before.get(id) == Some(&State::Dead));
                Done { by: "import", touched: dead.into_iter().collect(), end: "" }
            }
            None => Done { by: "a refusal", ..Done::default() },
        }
    }

    fn by_id(&mut self, id: u64) -> Done {
        let lease = Act::Lease { lease_ms: Some(1_000) };
        let (by, act) = self.draw.pick(&[("run", Act::Run), ("take", lease), ("cancel", Act::Cancel)]);
        match self.world.ask(Command::ById(ById { id, act, within: None, if_version: None, worker: None })) {
            Answer::ById(Ok(Acted::Leased(leased))) => {
                self.tokens.push((id, leased.token));
                Done { by, touched: vec![id], end: "" }
            }
            Answer::ById(Ok(_)) => Done { by, touched: vec![id], end: "cancelled" },
            _ => Done { by: "a refusal", ..Done::default() },
        }
    }

    fn by_key(&mut self, of: Key, before: &BTreeMap<u64, State>) -> Done {
        let (by, act) = self.draw.pick(&[("run", KeyAct::Run), ("release", KeyAct::Release)]);
        match self.world.by_key(of.as_str(), act) {
            Ok(task) if act == KeyAct::Release || before.get(&task.id) == Some(&State::Scheduled) => {
                Done { by, touched: vec![task.id], end: "" }
            }
            Ok(_) => Done { by: "nothing to be done", ..Done::default() },
            Err(_) => Done { by: "a refusal", ..Done::default() },
        }
    }

    fn put(&mut self, of: Key) -> (Put, OnLease) {
        let backoff = Backoff { doubles: false, base_ms: 7, max_ms: 7, jitter_percent: 0 };
        let retry = self.draw.pick(&[
            None,
            Some(Retry { max_attempts: Some(1), backoff: None }),
            Some(Retry { max_attempts: Some(2), backoff: Some(backoff) }),
        ]);
        let expire_after_ms = self.draw.pick(&[None, None, Some(60)]);
        let terms = Terms { retry, expire_after_ms, ..Terms::default() };
        let on_lease = self.on_lease();
        let mut put = Put { terms, on_lease, ..Put::new(&queue("q"), of) };
        if self.draw.below(5) == 0 {
            let at = |ms| self.world.now.wall.plus_ms(ms).expect("in range");
            let moment = |ms| Moment { at: at(ms), payload: [].as_slice().into(), content_type: "".into() };
            put.body.timeline = [moment(0), moment(5), moment(500)].into();
        } else {
            put.due = Due::After { ms: self.draw.pick(&[0, 0, 5, 50]) };
        }
        (put, on_lease)
    }

    /// The dead task that this key leads to.
    fn dead_of(&mut self, of: &Key) -> Vec<u64> {
        let Answer::Get(found) = self.world.ask(Command::Get(Get::new(&queue("q"), of.clone()))) else {
            panic!("another answer")
        };
        found.into_iter().filter(|task| task.state == State::Dead).map(|task| task.id).collect()
    }

    fn restart(&mut self, act: fn(World) -> World, by: &'static str, touched: Vec<u64>) -> Done {
        self.last_lease.clear();
        let world = std::mem::replace(&mut self.world, World::new());
        self.world = act(world);
        Done { by, touched, end: "lost" }
    }
}

/// The store can write nothing any more, and no other worker gets a task that a worker has.
fn after_a_failure() -> Move {
    let mut world = World::new();
    world.put_in("a", 0);
    let leased = world.lease(1, 1_000);
    world.fail_commits = true;
    world.send(Command::Put(Put::new(&queue("q"), key("b"))));
    world.pass_ms(2_000);
    let state = standing(&mut world).remove(&leased[0].id).expect("it is there");
    ("leased".to_owned(), name(state), "failed store".to_owned())
}

#[test]
fn the_moves_of_tasks_are_those_that_are_told() {
    let mut seen = BTreeSet::from([after_a_failure()]);
    for round in 0..ROUNDS {
        let (draw, tokens) = (Draw(round), Vec::new());
        let mut watch =
            Watch { world: World::new(), draw, seen, tokens, last_lease: Vec::new(), acked: BTreeSet::new() };
        watch.round();
        seen = watch.seen;
    }
    let told = told();
    let untold: Vec<_> = seen.difference(&told).collect();
    assert!(untold.is_empty(), "these moves are not told of: {untold:#?}");
    let unseen: Vec<_> = told.difference(&seen).collect();
    assert!(unseen.is_empty(), "these moves are told of, and were not seen: {unseen:#?}");
}

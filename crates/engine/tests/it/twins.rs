//! Two engines get the same inputs, one with a tiny budget for near memory and one with none to speak of. They must say
//! the same, and the one with the budget must keep to it.

use tickwheel_engine::*;

use crate::figures::assert_figures_add_up;
use crate::world::*;

const KEYS: u64 = 24;
const STEPS: u64 = 400;

/// Draws that are the same in every run.
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    fn key(&mut self) -> Key {
        key(&format!("k{}", self.below(KEYS)))
    }

    fn queue(&mut self) -> QueueName {
        queue(self.pick(&["p", "q"]))
    }

    fn on_lease(&mut self) -> OnLease {
        self.pick(&[OnLease::Refuse, OnLease::Revoke])
    }

    fn delay_ms(&mut self) -> u64 {
        let most = self.pick(&[1, 10, 1_000, 100_000, 10_000_000]);
        self.below(most)
    }

    fn terms(&mut self) -> Terms {
        let backoff = Backoff { doubles: true, base_ms: 3, max_ms: 1_000, jitter_percent: 50 };
        let retry = Retry { max_attempts: self.pick(&[None, Some(1), Some(2)]), backoff: Some(backoff) };
        Terms {
            priority: self.priority(),
            group: Group::new(self.pick(&["", "", "a", "b"])).ok(),
            retry: self.pick(&[None, Some(retry)]),
            expire_after_ms: self.pick(&[None, None, Some(700), Some(100_000)]),
        }
    }

    fn priority(&mut self) -> u32 {
        self.pick(&[PRIORITY_DEFAULT, PRIORITY_DEFAULT, 0, 7, u32::MAX])
    }

    fn body(&mut self) -> Body {
        let bytes = self.pick(&[0, 3, 3, 300, 5_000]);
        Body::bytes(vec![self.below(256) as u8; bytes])
    }
}

struct Twins {
    tiny: World,
    ample: World,
    near_bytes_max: u64,
    tokens: Vec<(QueueName, Token)>,
    /// The ids of all tasks that were put.
    ids: Vec<u64>,
}

impl Twins {
    fn new(config: EngineConfig) -> Self {
        let ample = EngineConfig { near_bytes_max: u64::MAX, ..config.clone() };
        let near_bytes_max = config.near_bytes_max;
        let (tokens, ids) = (Vec::new(), Vec::new());
        Self { tiny: World::with(config), ample: World::with(ample), near_bytes_max, tokens, ids }
    }

    fn both(&mut self, act: impl Fn(&mut World)) {
        act(&mut self.tiny);
        act(&mut self.ample);
        self.compare();
    }

    fn send(&mut self, command: Command) {
        self.both(|world| {
            world.send(command.clone());
        });
    }

    /// Compares all that was answered since, and how much memory is in use.
    fn compare(&mut self) {
        let (tiny, ample) = (self.tiny.take_answers(), self.ample.take_answers());
        for (tiny, ample) in tiny.iter().zip(&ample) {
            assert!(tiny == ample, "with a budget {tiny:.0?}, and without {ample:.0?}");
        }
        assert_eq!(tiny.len(), ample.len(), "with a budget {:?}, without {:?}", tiny.keys(), ample.keys());
        for (_, answer) in tiny {
            let leased = match answer {
                Answer::Lease(Ok(leased)) => leased,
                Answer::ById(Ok(Acted::Leased(leased))) => vec![*leased],
                Answer::Put(Ok(stored)) => {
                    self.ids.push(stored.task.id);
                    continue;
                }
                _ => continue,
            };
            for one in leased {
                assert!(one.ready_at >= one.due_at || self.tiny.stepped_back, "early: {one:?}");
                self.tokens.push((one.queue, one.token));
            }
        }
        let counts = self.tiny.all_counts();
        assert_eq!(as_seen(counts.clone()), as_seen(self.ample.all_counts()));
        assert_figures_add_up(&mut self.tiny);
        assert_figures_add_up(&mut self.ample);
        let leased: u64 = counts.iter().map(|counts| counts.leased).sum();
        let engine = &self.tiny.engine;
        // An eighth of the budget is for tasks that are held whole, each of 500 bytes at least, whatever else there is.
        let heads = self.near_bytes_max / 8 / 500;
        assert!(
            engine.near_bytes() <= self.near_bytes_max || engine.tasks_in_memory() as u64 <= leased + heads,
            "{} bytes, {} whole, {leased} leased, {} stubs",
            engine.near_bytes(),
            engine.tasks_in_memory(),
            engine.stubs_in_memory()
        );
    }

    fn crash(self) -> Self {
        Self { tiny: self.tiny.crash(), ample: self.ample.crash(), ..self }
    }

    fn stop(self) -> Self {
        Self { tiny: self.tiny.stop(), ample: self.ample.stop(), ..self }
    }

    fn token(&self, draw: &mut Draw) -> Option<(QueueName, Token)> {
        // Mostly young ones.
        let back = draw.below(8) as usize;
        self.tokens.len().checked_sub(1 + back).map(|at| self.tokens[at].clone())
    }
}

/// Counts as an operator sees them.
///
/// A task that the tiny world has to load first becomes ready when it is loaded, which may be later by the wall clock. And a queue that is
/// looked at for a moment appears without an operator seeing it.
fn as_seen(mut counts: Vec<QueueCounts>) -> Vec<QueueCounts> {
    for QueueCounts { figures, appeared, .. } in &mut counts {
        (figures.lateness, figures.lateness_sum_ms, *appeared) = Default::default();
    }
    counts
}

fn step(mut twins: Twins, draw: &mut Draw) -> Twins {
    let (name, of) = (draw.key(), draw.queue());
    match draw.below(100) {
        0..35 => {
            let due = match draw.below(3) {
                0 => Due::Now,
                1 => Due::After { ms: draw.delay_ms() },
                // Many at one instant.
                _ => Due::At(ms(draw.pick(&[0, 500, 5_000, 600_000]))),
            };
            let body = draw.body();
            let mode = draw.pick(&[
                PutMode::Upsert,
                PutMode::Upsert,
                PutMode::Create,
                PutMode::Replace,
                PutMode::Debounce { max_wait_ms: Some(1_000) },
            ]);
            twins.send(Command::Put(Put {
                due,
                body,
                terms: draw.terms(),
                ttr_ms: draw.pick(&[None, Some(20), Some(60_000)]),
                mode,
                on_lease: draw.on_lease(),
                ..Put::new(&of, name)
            }));
        }
        35..40 => twins.send(Command::Get(Get::new(&of, name))),
        40..48 => {
            let delay_ms = draw.delay_ms();
            let due = draw.pick(&[None, Some(Due::Now), Some(Due::After { ms: delay_ms })]);
            let payload = (draw.below(2) == 0).then(|| Payload::bytes(draw.body().payload));
            let priority = (draw.below(4) == 0).then(|| draw.priority());
            twins.send(Command::Patch(Patch {
                due,
                payload,
                priority,
                on_lease: draw.on_lease(),
                ..Patch::new(&of, name)
            }));
        }
        48..54 => twins.send(Command::Cancel(Cancel { on_lease: draw.on_lease(), ..Cancel::new(&of, name) })),
        54..68 => {
            let (max, lease_ms) = (draw.pick(&[1, 1, 3, 100]), draw.pick(&[1, 50, 10_000]));
            // Waits in one queue only: no promise says which of two queues is served first in one moment, and the
            // lease numbers would show it.
            let wait = of.as_str() == "q" && draw.below(3) == 0;
            let (queues, max) = match draw.below(4) {
                // A lease from several queues may get fewer tasks than are ready.
                0 if !wait => (["q", "p"].map(queue).to_vec(), 1),
                _ => (vec![of], max),
            };
            let lease_ms = draw.pick(&[None, Some(lease_ms)]);
            twins.send(Command::Lease(Lease {
                queues: queues.into(),
                max,
                lease_ms,
                wait,
                worker: None,
                for_target: false,
            }));
        }
        68..82 => {
            let Some((queue, token)) = twins.token(draw) else { return twins };
            let tokens = vec![token];
            let delay_ms = draw.pick(&[None, Some(0), Some(700), Some(90_000)]);
            let too_large = NackHow::Undeliverable(Undeliverable::TooLarge);
            let how =
                draw.pick(&[NackHow::Returned, NackHow::Returned, NackHow::Gone, NackHow::Buried, too_large]);
            let priority = (draw.below(3) == 0).then(|| draw.priority());
            let command = match draw.below(6) {
                0..3 => Command::Ack(Ack { queue, tokens }),
                3 | 4 => Command::Nack(Nack { how, delay_ms, priority, ..Nack::new(&queue, tokens) }),
                _ => Command::Extend(Extend { queue, tokens, lease_ms: Some(draw.pick(&[1, 5_000])) }),
            };
            twins.send(command);
        }
        82 => {
            let Some((_, token)) = twins.token(draw) else { return twins };
            twins.both(|world| world.input(Input::Undelivered { tokens: vec![token] }));
        }
        83 => {
            let back = draw.below(20);
            twins.both(|world| world.end_wait(back));
        }
        84 if draw.below(3) == 0 => {
            twins.send(Command::Leases(ListLeases { queue: Some(of), worker: None, after: None, max: 3 }));
        }
        84 => {
            let state = draw.pick(&[
                None,
                Some(State::Ready),
                Some(State::Scheduled),
                Some(State::Leased),
                Some(State::Dead),
            ]);
            let filter = TaskFilter {
                state,
                due_from: draw.pick(&[None, None, Some(ms(500))]),
                due_to: draw.pick(&[None, None, Some(ms(5_000))]),
                why: draw.pick(&[None, None, Some(Death::Buried)]),
                ..TaskFilter::default()
            };
            twins.send(Command::List(List { filter, max: 1_000, ..List::new(&of) }));
        }
        85 => {
            let act = draw.pick(&[KeyAct::Run, KeyAct::Release]);
            twins.send(Command::ByKey(ByKey { queue: of, key: name, act, if_version: None }));
        }
        86 => {
            let settings = QueueSettings {
                max_in_flight: draw.pick(&[None, None, Some(1), Some(5)]),
                max_in_flight_per_group: draw.pick(&[None, Some(1), Some(2)]),
                rate: draw.pick(&[None, None, Some(Rate { tasks: 3, per_ms: 1_000, burst: 4 })]),
                ..QueueSettings::default()
            };
            let change = match draw.below(6) {
                0 => QueueChange::Pause { ms: draw.pick(&[None, Some(500)]) },
                1 => QueueChange::Resume,
                2 => QueueChange::Delete,
                _ => QueueChange::Settings(settings),
            };
            twins.send(Command::ChangeQueue(ChangeQueue { queue: of, change }));
        }
        87..92 => {
            let lease_ms = draw.pick(&[None, Some(50), Some(10_000)]);
            let act = draw.pick(&[Act::Get, Act::Cancel, Act::Run, Act::Run, Act::Lease { lease_ms }]);
            let within = draw.pick(&[None, None, Some("q")]).map(Into::into);
            // Mostly young ones.
            let back = 1 + draw.below(12) as usize;
            let id = twins.ids.len().checked_sub(back).map_or(7_777, |at| twins.ids[at]);
            twins.send(Command::ById(ById { id, act, within, if_version: None, worker: None }));
        }
        92..97 => {
            let by_ms = draw.delay_ms();
            twins.both(|world| world.pass_ms(by_ms));
        }
        97 => {
            let by_ms = draw.pick(&[-1, -500, -10_000, -5_000_000, 1, 5_000_000]);
            twins.both(|world| world.step_wall_ms(by_ms));
        }
        98 => return twins.crash(),
        _ => return twins.stop(),
    }
    twins
}

#[test]
fn a_tiny_budget_changes_no_answer() {
    let seeds = if tickwheel_testing::is_long() { 4_000 } else { 60 };
    for seed in 0..seeds {
        let mut draw = Draw(seed);
        draw.below(1);
        let config = EngineConfig {
            horizon_ms: draw.pick(&[2, 100, 10_000, 3_600_000]),
            scan_max: draw.pick(&[1, 3, 1_024]),
            near_bytes_max: draw.pick(&[512, 700, 2_000, 8_000]),
            ..EngineConfig::default()
        };
        let mut twins = Twins::new(config.clone());
        println!("seed {seed}: {config:?}");
        for n in 0..STEPS {
            println!("step {n}");
            twins = step(twins, &mut draw);
        }
        drain(twins);
    }
}

/// Each task that is left comes out, at its instant.
fn drain(mut twins: Twins) {
    twins.both(|world| world.step_wall_ms(0));
    for of in ["p", "q"] {
        for change in [QueueChange::Resume, QueueChange::Settings(QueueSettings::default())] {
            twins.send(Command::ChangeQueue(ChangeQueue { queue: queue(of), change }));
        }
    }
    for _ in 0..10_000 {
        for of in ["p", "q"] {
            twins.send(Command::Lease(Lease { lease_ms: Some(60_000), ..Lease::new(&queue(of)).max(7) }));
            for (queue, token) in std::mem::take(&mut twins.tokens) {
                twins.send(Command::Ack(Ack { queue, tokens: vec![token] }));
            }
        }
        let counts = twins.ample.all_counts();
        assert_eq!(as_seen(counts.clone()), as_seen(twins.tiny.all_counts()));
        // The dead are forgotten in their time.
        if counts.iter().all(|of| of.scheduled + of.ready + of.leased + of.dead == 0) {
            return;
        }
        if counts.iter().all(|counts| counts.ready == 0) {
            let by_ms = twins.ample.until_wake_ms().expect("something is left, and there is a time for it");
            if by_ms < 100 * 365 * 86_400_000 {
                twins.both(|world| world.pass_ms(by_ms));
                continue;
            }
            // Tasks that workers gave up are not forgotten, so they run again. Tasks with one key run one after the other.
            assert!(counts.iter().all(|counts| counts.scheduled + counts.leased == 0), "{counts:?}");
            for id in twins.ids.clone() {
                twins.send(Command::ById(ById {
                    id,
                    act: Act::Run,
                    within: None,
                    if_version: None,
                    worker: None,
                }));
            }
        }
    }
    panic!("tasks are left for ever: {:?}", twins.tiny.all_counts());
}

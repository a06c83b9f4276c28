//! Random steps, compared with a model that keeps a simple list.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use tickwheel::Submitted;

use crate::purgatory::probe::{Probe, World, hook};

const KEYS: [&str; 4] = ["k1", "k2", "k3", "k4"];

#[derive(Clone, Debug)]
enum Step {
    Submit { ready: bool, keys: Vec<usize>, seconds: u64 },
    Ready(prop::sample::Index),
    Check(usize),
    CheckOne(prop::sample::Index),
    Complete(prop::sample::Index),
    Cancel(usize),
    Advance { seconds: u64 },
    Shutdown,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let submit = (prop::bool::weighted(0.1), prop::collection::vec(0..4_usize, 0..6), 1..20_u64)
        .prop_map(|(ready, keys, seconds)| Step::Submit { ready, keys, seconds });
    let step = prop_oneof![
        6 => submit,
        4 => any::<prop::sample::Index>().prop_map(Step::Ready),
        4 => (0..4_usize).prop_map(Step::Check),
        1 => any::<prop::sample::Index>().prop_map(Step::CheckOne),
        1 => any::<prop::sample::Index>().prop_map(Step::Complete),
        1 => (0..4_usize).prop_map(Step::Cancel),
        3 => (1..8_u64).prop_map(|seconds| Step::Advance { seconds }),
    ];
    let rarely = prop_oneof![80 => step, 1 => Just(Step::Shutdown)];
    prop::collection::vec(rarely, 1..120)
}

/// The model's record of an operation that was submitted.
struct Known {
    probe: Arc<Probe>,
    submitted: Option<Submitted<Probe>>,
    keys: BTreeSet<usize>,
    deadline: u64,
    ready: bool,
    waits: bool,
    ends: (usize, usize),
}

struct Model {
    world: World,
    known: Vec<Known>,
    seconds: u64,
    shut: bool,
    /// The numbers of operations, in the order in which they ended.
    told: Arc<Mutex<Vec<usize>>>,
}

impl Model {
    fn new() -> Self {
        Self { world: World::new(), known: Vec::new(), seconds: 0, shut: false, told: Arc::default() }
    }

    /// Ends each waiting operation for which `which` is true, with these counts, and returns their numbers.
    fn end(&mut self, ends: (usize, usize), which: impl Fn(&Known) -> bool) -> Vec<usize> {
        let ended = self.known.iter_mut().enumerate().filter(|(_, known)| known.waits && which(known));
        let numbers = ended.map(|(number, known)| {
            (known.waits, known.ends) = (false, ends);
            number
        });
        numbers.collect()
    }

    fn take(&mut self, step: &Step) {
        let (purgatory, told) =
            (self.world.purgatory.clone(), std::mem::take(&mut *self.told.lock().expect("no poison")));
        drop(told);
        let mut expected = Vec::new();
        match step {
            Step::Submit { ready, keys, seconds } => self.submit(*ready, keys, *seconds),
            Step::Ready(index) => {
                if !self.known.is_empty() {
                    let known = index.get_mut(&mut self.known);
                    known.ready = true;
                    known.probe.set_ready();
                }
                return;
            }
            Step::Check(key) => {
                expected = self.end((0, 1), |known| known.ready && known.keys.contains(key));
                assert_eq!(purgatory.check(KEYS[*key]), expected.len());
            }
            Step::CheckOne(index) | Step::Complete(index) => {
                let Some(chosen) = (!self.known.is_empty()).then(|| index.index(self.known.len())) else {
                    return;
                };
                let forced = matches!(step, Step::Complete(_));
                let probe = Arc::clone(&self.known[chosen].probe);
                expected =
                    self.end((0, 1), |known| Arc::ptr_eq(&known.probe, &probe) && (known.ready || forced));
                if let Some(Submitted::Waiting(waiting)) = &self.known[chosen].submitted {
                    let done = if forced { waiting.complete() } else { waiting.check() };
                    assert_eq!(done, !expected.is_empty());
                }
            }
            Step::Cancel(key) => {
                let mine = self.end((0, 0), |known| known.keys.contains(key));
                let cancelled = purgatory.cancel_key(KEYS[*key]);
                assert_eq!(cancelled.len(), mine.len());
                assert!(
                    mine.iter()
                        .zip(&cancelled)
                        .all(|(&number, probe)| { Arc::ptr_eq(&self.known[number].probe, probe) })
                );
            }
            Step::Advance { seconds } => {
                self.seconds += seconds;
                let now = self.seconds;
                expected = self.end((1, 1), |known| known.deadline <= now);
                self.world.clock.advance(Duration::from_secs(*seconds));
                // Operations end in the order of their deadlines. The timer chooses the order for equal
                // deadlines.
                let told = self.told.lock().expect("no poison");
                assert!(told.is_sorted_by_key(|&number| self.known[number].deadline), "{told:?}");
                expected.sort_by_key(|number| told.iter().position(|told| told == number));
            }
            Step::Shutdown => {
                self.shut = true;
                expected = self.end((1, 1), |_| true);
                assert_eq!(purgatory.shutdown(), expected.len());
            }
        }
        if !matches!(step, Step::Submit { .. }) {
            assert_eq!(*self.told.lock().expect("no poison"), expected);
        }
    }

    fn submit(&mut self, ready: bool, keys: &[usize], seconds: u64) {
        let (number, probe, told) = (self.known.len(), Probe::new(), Arc::clone(&self.told));
        hook(&probe.on_end, move || told.lock().expect("no poison").push(number));
        if ready {
            probe.set_ready();
        }
        let result = self.world.purgatory.submit(
            Arc::clone(&probe),
            keys.iter().map(|&key| KEYS[key]),
            Duration::from_secs(seconds),
        );
        let taken = !keys.is_empty() && !self.shut;
        assert_eq!(result.is_ok(), taken);
        let waits = taken && !ready;
        let submitted = result.ok();
        assert_eq!(matches!(submitted, Some(Submitted::Waiting(_))), waits);
        self.known.push(Known {
            probe,
            submitted,
            keys: keys.iter().copied().collect(),
            deadline: self.seconds + seconds,
            ready,
            waits,
            ends: (0, usize::from(taken && ready)),
        });
    }

    fn compare(&self) {
        let waiting = || self.known.iter().filter(|known| known.waits);
        let places = waiting().map(|known| known.keys.len()).sum();
        assert_eq!(self.world.gauges(), (waiting().count(), places));
        assert_eq!(self.world.timer.pending(), waiting().count());
        for known in &self.known {
            assert_eq!(known.probe.ends(), known.ends);
        }
    }
}

proptest! {
    #[test]
    fn p_every_step_does_what_a_plain_list_does(steps in steps()) {
        let mut model = Model::new();
        for step in &steps {
            model.take(step);
            model.compare();
        }
    }
}

//! What has to be seen from inside: the end of the generations, the end of the places, and how
//! much is opened at a time.

use alloc::vec::Vec;
use core::num::NonZeroU32;

use super::Wheel;
use super::chunk::{CHUNK_PLACES, Chunks};
use super::filing::weight;
use super::number::Number;
use super::tree::MANY;
use crate::conformance::Family;
use crate::conformance::random::Random;
use crate::conformance::script::{Aim, Step, replay};
use crate::{Handle, Refusal, Refused, RescheduleError, TimerQueue};

/// Wheels of which almost all generations have been used once.
struct LateWheels;

impl Family for LateWheels {
    type Queue<T> = Wheel<T>;

    fn start<T>(start: u64) -> Wheel<T> {
        // The 30th insertion is in the next era, and the first of this one were in the last.
        let next = NonZeroU32::new(u32::MAX - 28).map(|generation| Number { high: 6, generation });
        Wheel { next: next.expect("it is not 0"), ..Wheel::new(start) }
    }

    fn heap_bytes<T>(wheel: &Wheel<T>) -> Option<usize> {
        Some(wheel.heap_bytes())
    }
}

crate::conformance_suite!(late_wheel, LateWheels);

/// A wheel that has no more than so many chunks.
fn narrow(chunks: usize) -> Wheel<u64> {
    Wheel { chunks: Chunks::with_limit(chunks), ..Wheel::new(0) }
}

#[test]
fn a_full_wheel_gives_the_value_back_and_goes_on() {
    let mut wheel = narrow(1);
    let handles: Vec<_> = (0..64).map(|value| wheel.insert(5, value).expect("there is room")).collect();
    let refused = wheel.insert(5, 64).expect_err("a chunk has 64 places");
    assert_eq!((refused.why, refused.value), (Refusal::Full, 64));
    // What is wrong with the deadline is said first: making room would not help.
    let refused = wheel.insert(0, 65).expect_err("it has elapsed");
    assert_eq!(refused.why, Refusal::Elapsed);

    assert_eq!(wheel.cancel(handles[7]), Some(7));
    wheel.insert(5, 66).expect("a place was freed");
    let mut fired = Vec::new();
    assert_eq!(wheel.advance_with(5, |_, value| fired.push(value)), 64);
    let expected: Vec<_> = (0..64).filter(|&value| value != 7).chain([66]).collect();
    assert_eq!(fired, expected);
}

/// A reschedule is never refused for want of room, wherever the entry lives and goes.
#[test]
fn a_full_wheel_still_reschedules() {
    let mut wheel = narrow(3);
    let near = |value| 300 + value;
    let mut handles: Vec<_> =
        (0..).map_while(|value| wheel.insert(10_000 + near(value), value).ok()).collect();
    assert!(handles.len() > 2 * CHUNK_PLACES, "{} found room", handles.len());
    let targets = [near(0), 70_000, 10_000, 1 << 40, (1 << 40) + 1, 1, 5 << 32];
    for round in 0..4 * targets.len() {
        for (value, handle) in (0..).zip(&mut handles) {
            let to = targets[(round + value as usize) % targets.len()] + near(value);
            *handle = wheel.reschedule(*handle, to).expect("it is pending");
            assert_eq!(wheel.deadline(*handle), Some(to));
        }
    }
    let mut expected: Vec<(u64, u64)> =
        (0..).zip(&handles).filter_map(|(value, &handle)| Some((wheel.deadline(handle)?, value))).collect();
    expected.sort_unstable();
    assert_eq!(expected.len(), handles.len());
    let mut fired = Vec::new();
    wheel.advance_with(u64::MAX, |deadline, value| fired.push((deadline, value)));
    assert_eq!(fired, expected);
}

/// The slot of level 1 that comes next is opened in 256 equal parts.
#[test]
fn a_slot_is_opened_in_equal_parts() {
    const ENTRIES: usize = 200_000;
    let mut wheel = Wheel::new(0);
    for entry in 0..ENTRIES as u64 {
        wheel.insert(512 + entry % 256, entry).expect("it is ahead");
    }
    wheel.advance_with(255, |_, _| panic!("nothing is due"));
    let mut before = wheel.chunks.drained();
    assert_eq!(before, 0, "it is not the next one yet");
    for tick in 256..=511 {
        wheel.advance_with(tick, |_, _| panic!("nothing is due"));
        let after = wheel.chunks.drained();
        let moved = (after - before) * CHUNK_PLACES;
        assert!(moved <= ENTRIES / 256 + 2 * CHUNK_PLACES, "{moved} entries in tick {tick}");
        before = after;
    }
    assert!(before * CHUNK_PLACES >= ENTRIES - CHUNK_PLACES, "it is open when its time comes");
    let mut count = 0;
    for tick in 512..768 {
        count += wheel.advance_with(tick, |_, entry| assert_eq!(512 + entry % 256, tick));
    }
    assert_eq!(count, ENTRIES);
}

/// What is left to do for one slot has a bound, however many entries it gets.
#[test]
fn a_slot_takes_no_more_than_many() {
    let mut wheel = Wheel::new(0);
    let mut fullest = 0;
    for entry in 0..2 * MANY {
        // In one slot of 65,536 ticks that is neither the one of the base nor the next.
        wheel.insert(140_000 + entry as u64 % 50_000, entry).expect("it is ahead");
        if entry % 16_384 == 0 {
            fullest = wheel.tree.slots.iter().map(weight).max().max(Some(fullest)).unwrap_or_default();
        }
    }
    assert!(fullest > MANY / 2, "the entries are not in one slot: at most {fullest}");
    assert!(fullest <= MANY + CHUNK_PLACES, "{fullest} entries");
    assert_eq!(wheel.advance_with(200_000, |_, _| ()), 2 * MANY);
}

/// Chunks that a slot no longer needs go to another one.
#[test]
fn empty_chunks_are_given_back() {
    let mut wheel = Wheel::new(0);
    let mut settled = None;
    for slot in 2..12 {
        let handles: Vec<Handle> =
            (0..50_000).map(|value| wheel.insert(slot * 256, value).expect("it is ahead")).collect();
        // All but one in 1,000, which stay where they are.
        for (index, &handle) in handles.iter().enumerate() {
            if index % 1_000 > 0 {
                wheel.cancel(handle).expect("it is pending");
            }
        }
        let bytes = wheel.heap_bytes();
        // Twice the first, as a vector that grows doubles; ten times, if nothing were given back.
        let most = 2 * *settled.get_or_insert(bytes);
        assert!(bytes <= most, "{bytes} bytes with slot {slot}, at most {most}");
    }
    assert_eq!(wheel.advance_with(3_000, |_, _| ()), 500);
}

/// A wheel that checks itself after each call.
struct Checked<T>(Wheel<T>);

impl<T> TimerQueue<T> for Checked<T> {
    fn now(&self) -> u64 {
        self.0.now()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn insert(&mut self, deadline: u64, value: T) -> Result<Handle, Refused<T>> {
        let answer = self.0.insert(deadline, value);
        self.0.check();
        answer
    }

    fn cancel(&mut self, handle: Handle) -> Option<T> {
        let answer = self.0.cancel(handle);
        self.0.check();
        answer
    }

    fn reschedule(&mut self, handle: Handle, deadline: u64) -> Result<Handle, RescheduleError> {
        let answer = self.0.reschedule(handle, deadline);
        self.0.check();
        answer
    }

    fn deadline(&self, handle: Handle) -> Option<u64> {
        self.0.deadline(handle)
    }

    fn next_wake(&self) -> Option<u64> {
        self.0.next_wake()
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(u64, T)) -> usize {
        // Also after a panic, at the next call.
        self.0.check();
        let count = self.0.advance(now, fire);
        self.0.check();
        count
    }
}

struct CheckedWheels;

impl Family for CheckedWheels {
    type Queue<T> = Checked<T>;

    fn start<T>(start: u64) -> Checked<T> {
        Checked(Wheel::new(start))
    }
}

fn catch(body: &mut dyn FnMut()) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_err()
}

/// A script of `count` steps that crowds into a few slots of each level, or spreads.
fn script(random: &mut Random, count: u64) -> Vec<Step> {
    let spread = [1, 3, 300, 5_000, 90_000, 1 << 20, 1 << 26, 1 << 34];
    let spread = &spread[..1 + random.below(8) as usize];
    let edge = [8, 16, 24, 32][random.below(4) as usize];
    let aim = |random: &mut Random| match random.below(4) {
        0 => Aim::Edge { bits: edge, off: random.below(3) as i8 - 1 },
        1 => Aim::Edge { bits: 8, off: random.below(100) as i8 },
        _ => {
            let most = spread[random.below(spread.len() as u64) as usize];
            Aim::Ahead(1 + random.below(most))
        }
    };
    (0..count)
        .map(|_| match random.below(20) {
            0..=8 => Step::Insert(aim(random)),
            9 => Step::InsertBeside(random.next() as usize),
            10..=12 => Step::Cancel(random.next() as usize),
            13..=14 => Step::Reschedule(random.next() as usize, aim(random)),
            15 => Step::RescheduleBeside(random.next() as usize, random.next() as usize),
            16 => Step::Panic(aim(random), random.below(5) as usize),
            17 => Step::Advance(Aim::Ahead(random.below(400))),
            18 => Step::Advance(aim(random)),
            _ => Step::Follow,
        })
        .collect()
}

/// Between any two calls everything inside is as it should be.
#[test]
fn a_wheel_that_checks_itself_finds_nothing() {
    // Bodies that fail on purpose do not fill the terminal.
    let loud = std::panic::take_hook();
    std::panic::set_hook(std::boxed::Box::new(move |info| {
        if !std::format!("{info}").contains("on purpose") {
            loud(info);
        }
    }));
    for seed in 0..10_000 {
        let mut random = Random::new(seed);
        let start = random.next() >> random.below(64);
        let count = 20 + random.below(400);
        let script = script(&mut random, count);
        replay::<CheckedWheels>(start, &script, catch);
    }
}

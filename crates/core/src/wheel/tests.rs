//! Tests that need access to internals: the last generation, the last place, and how much of a slot is opened at a time.

#[path = "../../tests/it/panics/mod.rs"]
mod panics;

use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU32;
use core::ops::Range;

use panics::{catch, quiet};

use super::Wheel;
use super::chunk::{Chunks, PLACES_FOR_ALL, PLACES_FOR_EACH};
use super::filing::weight;
use super::id::CHUNK_PLACES;
use super::number::Number;
use super::tree::MANY;
use crate::conformance::Family;
use crate::conformance::random::Random;
use crate::conformance::script::{Aim, Step, is_on_purpose, replay};
use crate::{Handle, Refusal, Refused, RescheduleError, TimerQueue};

/// Wheels in which almost all generations have been used once.
struct LateWheels;

impl Family for LateWheels {
    type Queue<T> = Wheel<T>;

    fn start<T>(start: u64) -> Wheel<T> {
        // The 30th insertion has the next high word of the number, and the first insertions have the last generations before it.
        let next = NonZeroU32::new(u32::MAX - 28).map(|generation| Number { high: 6, generation });
        Wheel { next: next.expect("it is not 0"), ..Wheel::new(start) }
    }

    fn heap_bytes<T>(wheel: &Wheel<T>) -> Option<usize> {
        Some(wheel.heap_bytes())
    }
}

crate::conformance_suite!(late_wheel, LateWheels);

/// A wheel with at most `chunks` chunks.
fn narrow(chunks: usize) -> Wheel<u64> {
    Wheel { chunks: Chunks::with_limit(chunks), ..Wheel::new(0) }
}

#[test]
fn a_full_wheel_gives_the_value_back_and_goes_on() {
    let mut wheel = narrow(1);
    let handles: Vec<_> = (0..64).map(|value| wheel.insert(5, value).expect("there is room")).collect();
    let refused = wheel.insert(5, 64).expect_err("a chunk has 64 places");
    wheel.check();
    assert_eq!((refused.why, refused.value), (Refusal::Full, 64));
    // The reason in the deadline is reported first, because a free place would not help.
    let refused = wheel.insert(0, 65).expect_err("it has elapsed");
    assert_eq!(refused.why, Refusal::Elapsed);

    assert_eq!(wheel.cancel(handles[7]), Some(7));
    wheel.insert(5, 66).expect("a place was freed");
    let mut fired = Vec::new();
    assert_eq!(wheel.advance_with(5, |_, value| fired.push(value)), 64);
    let expected: Vec<_> = (0..64).filter(|&value| value != 7).chain([66]).collect();
    assert_eq!(fired, expected);
}

/// A reschedule is never refused for lack of a free place, wherever the entry lives and whatever the new deadline is.
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
            wheel.check();
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

/// An entry at home that is rescheduled to a later tick stays at its place with the same handle, also if another entry has another high
/// word. If the wheel stops at the old tick, nothing fires.
#[test]
fn an_entry_at_home_is_put_off_in_its_place() {
    for (others, old, far) in [(0, 100, 0), (40, 100, 0), (40, 70_000, 0), (40, 70_000, 1 << 40)] {
        let mut wheel = Wheel::new(0);
        if far > 0 {
            wheel.insert(far, 0).expect("it is ahead");
        }
        for value in 0..others {
            wheel.insert(old + 1, value).expect("it is ahead");
        }
        let mut moved = wheel.insert(old, u64::MAX).expect("it is ahead");
        for deadline in [old, old + 5, 90_000] {
            let before = moved;
            moved = wheel.reschedule(moved, deadline).expect("it is pending");
            assert!(moved == before || old != 70_000, "it is at home");
            assert_eq!(wheel.deadline(moved), Some(deadline));
            wheel.check();
        }
        let (mut stops, mut fired) = (alloc::vec![], 0);
        while let Some(stop) = wheel.next_wake() {
            stops.push(stop);
            wheel.advance_with(stop, |deadline, _| {
                assert_eq!(deadline, stop);
                fired += 1;
            });
            wheel.check();
        }
        assert_eq!(fired, others + 1 + u64::from(far > 0));
        stops.retain(|&stop| stop != old);
        let expected = [old + 1, 90_000, far].into_iter();
        let expected: Vec<u64> =
            expected.filter(|&stop| stop > old + 1 || stop > old && others > 0).collect();
        assert_eq!(stops, expected);
    }
}

/// The slot that comes next, on each level, is opened in 256 equal parts, whatever the steps of time are.
#[test]
fn a_slot_is_opened_in_equal_parts() {
    const ENTRIES: usize = 200_000;
    for (level, steps) in [(1, &[1][..]), (2, &[1]), (2, &[1, 7, 300, 3_000]), (3, &[1, 65_000, 300_000])] {
        let span = 1_u64 << (8 * level);
        let unit = span / 256;
        let mut wheel = Wheel::new(0);
        for entry in 0..ENTRIES as u64 {
            wheel.insert(2 * span + entry % span, entry).expect("it is ahead");
        }
        wheel.advance_with(span - 1, |_, _| panic!("nothing is due"));
        assert_eq!(wheel.chunks.drained(), 0, "it is not the next one yet");
        let mut steps = steps.iter().cycle();
        while wheel.now() < 2 * span - 1 {
            let (base, before) = (wheel.now() + 1, wheel.chunks.drained());
            let now = wheel.now() + steps.next().expect("it has no end");
            wheel.advance_with(now.min(2 * span - 1), |_, _| panic!("nothing is due"));
            let units = (wheel.now() + 1) / unit - base / unit;
            let moved = (wheel.chunks.drained() - before) * CHUNK_PLACES;
            let most = (ENTRIES / 256 + CHUNK_PLACES) * units as usize + CHUNK_PLACES;
            assert!(moved <= most, "{moved} entries in {units} parts of level {level}");
        }
        let drained = wheel.chunks.drained() * CHUNK_PLACES;
        assert!(drained >= ENTRIES - CHUNK_PLACES, "it is open when its time comes");
        let mut last = 0;
        let fired = wheel.advance_with(3 * span, |deadline, entry| {
            assert_eq!(deadline, 2 * span + entry % span);
            assert!(last <= deadline, "{deadline} after {last}");
            last = deadline;
        });
        assert_eq!(fired, ENTRIES);
    }
}

/// Chunks with few entries are opened as slowly as full ones, because the work is proportional to the places.
#[test]
fn a_sparse_slot_is_opened_in_equal_parts() {
    const CHUNKS: usize = 2_560;
    let mut wheel = Wheel::new(0);
    let insert = |value| wheel.insert(512 + value % 256, value).expect("it is ahead");
    let handles: Vec<Handle> = (0..(CHUNKS * CHUNK_PLACES) as u64).map(insert).collect();
    for (index, &handle) in handles.iter().enumerate() {
        if index % CHUNK_PLACES > 0 {
            wheel.cancel(handle).expect("it is pending");
        }
    }
    wheel.advance_with(255, |_, _| panic!("nothing is due"));
    for tick in 256..=511 {
        let before = wheel.chunks.drained();
        wheel.advance_with(tick, |_, _| panic!("nothing is due"));
        let opened = wheel.chunks.drained() - before;
        assert!(opened <= CHUNKS / 256 + 2, "{opened} chunks in tick {tick}");
    }
    assert_eq!(wheel.advance_with(800, |_, _| ()), CHUNKS);
}

/// The list of a slot that comes out of a coarser slot is opened in equal parts, too. This also holds for the first slot of a ring, which
/// follows the last slot of another ring.
#[test]
fn a_list_is_opened_in_equal_parts() {
    const ENTRIES: usize = 25_600;
    const PART: usize = ENTRIES / 256;
    for begin in [2 << 16, (2 << 16) + 512] {
        let mut wheel = Wheel::new(0);
        for entry in 0..ENTRIES as u64 {
            wheel.insert(begin + entry % 256, entry).expect("it is ahead");
        }
        for tick in (1 << 16)..begin - 256 {
            wheel.advance_with(tick, |_, _| panic!("nothing is due"));
        }
        let slot = wheel.tree.slot_of(begin);
        let mut before = wheel.tree.slot(slot).list.len();
        assert!(before >= ENTRIES - 2 * PART, "the slot has {before}, and is not the next one yet");
        for tick in begin - 256..begin {
            wheel.advance_with(tick, |_, _| panic!("nothing is due"));
            let after = wheel.tree.slot(slot).list.len();
            assert!(before <= after + PART + 1, "from {before} to {after} in tick {tick}");
            before = after;
        }
        assert_eq!(before, 0, "it is open when its time comes");
        assert_eq!(wheel.advance_with(begin + 255, |_, _| ()), ENTRIES);
    }
}

/// The work that is left when the base reaches a slot is bounded, even if the slot gets very many entries.
#[test]
fn a_slot_takes_no_more_than_many() {
    let mut wheel = Wheel::new(0);
    let mut fullest = 0;
    for entry in 0..2 * MANY {
        // In one slot of 65,536 ticks that is neither the slot of the base nor the next slot.
        wheel.insert(140_000 + entry as u64 % 50_000, entry).expect("it is ahead");
        if entry % 16_384 == 0 {
            fullest = wheel.tree.slots.iter().map(weight).max().max(Some(fullest)).unwrap_or_default();
        }
    }
    assert!(fullest > MANY / 2, "the entries are not in one slot: at most {fullest}");
    assert!(fullest <= MANY + CHUNK_PLACES, "{fullest} entries");
    assert_eq!(wheel.advance_with(200_000, |_, _| ()), 2 * MANY);
}

/// Chunks that a slot no longer needs go to another slot.
#[test]
fn empty_chunks_are_given_back() {
    let mut wheel = Wheel::new(0);
    let mut settled = None;
    for slot in 2..12 {
        let handles: Vec<Handle> =
            (0..50_000).map(|value| wheel.insert(slot * 256, value).expect("it is ahead")).collect();
        // All entries but one in 1,000 are cancelled; the rest stay where they are.
        for (index, &handle) in handles.iter().enumerate() {
            if index % 1_000 > 0 {
                wheel.cancel(handle).expect("it is pending");
            }
        }
        let bytes = wheel.heap_bytes();
        // The limit is twice the first memory, because a vector doubles when it grows. Without the return of chunks the memory would be ten
        // times the first.
        let most = 2 * *settled.get_or_insert(bytes);
        assert!(bytes <= most, "{bytes} bytes with slot {slot}, at most {most}");
    }
    assert_eq!(wheel.advance_with(3_000, |_, _| ()), 500);
}

/// One entry in 64, which is one in each chunk, is rescheduled far ahead. Later entries then use the other 63 places of each chunk.
#[test]
fn places_follow_the_entries_that_are_left_in_chunks() {
    let mut wheel = Wheel::new(0);
    for now in 1..=40_000 {
        for value in 0..64 {
            let handle = wheel.insert(now + 600, value).expect("it is ahead");
            if value == 0 {
                wheel.reschedule(handle, now + 3_600_000).expect("it is pending");
            }
        }
        wheel.advance_with(now, |_, _| ());
        let (places, len) = (wheel.chunks.count() as usize * CHUNK_PLACES, wheel.len());
        let most = (PLACES_FOR_EACH * len + PLACES_FOR_ALL) * 9 / 8;
        assert!(places <= most, "{places} places for {len} entries at {now}");
        if now % 4_000 == 0 {
            wheel.check();
        }
    }
}

/// Sessions: each session is rescheduled again and again, and sometimes one ends and another begins. The memory of the chunks follows the
/// number of sessions, although each session was in many slots.
#[test]
fn sessions_that_are_put_off_leave_no_chunks_behind() {
    const SESSIONS: usize = 20_000;
    const TIMEOUT: u64 = 5_000;
    let mut wheel = Wheel::new(0);
    let mut random = Random::new(1);
    let mut handles: Vec<Handle> =
        (0..SESSIONS).map(|session| wheel.insert(TIMEOUT, session).expect("it is ahead")).collect();
    let mut most = 0;
    for now in 1..=8 * TIMEOUT {
        wheel.advance_with(now, |_, session| panic!("session {session} was heard in time"));
        // Each session is renewed after 4/5 of its time, and one in 200 ends.
        let first = now as usize * 5 % SESSIONS;
        for (session, handle) in (first..).zip(&mut handles[first..first + 5]) {
            if random.below(200) == 0 {
                assert_eq!(wheel.cancel(*handle), Some(session));
                *handle = wheel.insert(now + TIMEOUT, session).expect("it is ahead");
            } else {
                *handle = wheel.reschedule(*handle, now + TIMEOUT).expect("it is pending");
            }
        }
        most = most.max(wheel.heap_bytes());
    }
    assert!(most <= 6 * 16 * SESSIONS, "{most} bytes for {SESSIONS} sessions");
}

/// A wheel that checks its invariants after each advance, and after every eighth of the other calls.
struct Checked<T> {
    wheel: Wheel<T>,
    calls: usize,
}

impl<T> Checked<T> {
    fn check_now_and_then(&mut self) {
        self.calls += 1;
        if self.calls.is_multiple_of(8) {
            self.wheel.check();
        }
    }
}

impl<T> TimerQueue<T> for Checked<T> {
    fn now(&self) -> u64 {
        self.wheel.now()
    }

    fn len(&self) -> usize {
        self.wheel.len()
    }

    fn insert(&mut self, deadline: u64, value: T) -> Result<Handle, Refused<T>> {
        let answer = self.wheel.insert(deadline, value);
        self.check_now_and_then();
        answer
    }

    fn cancel(&mut self, handle: Handle) -> Option<T> {
        let answer = self.wheel.cancel(handle);
        self.check_now_and_then();
        answer
    }

    fn reschedule(&mut self, handle: Handle, deadline: u64) -> Result<Handle, RescheduleError> {
        let answer = self.wheel.reschedule(handle, deadline);
        self.check_now_and_then();
        answer
    }

    fn deadline(&self, handle: Handle) -> Option<u64> {
        self.wheel.deadline(handle)
    }

    fn next_wake(&self) -> Option<u64> {
        self.wheel.next_wake()
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(u64, T)) -> usize {
        // The check runs at the next call, also after a panic.
        self.wheel.check();
        let count = self.wheel.advance(now, fire);
        self.wheel.check();
        count
    }
}

struct CheckedWheels;

impl Family for CheckedWheels {
    type Queue<T> = Checked<T>;

    fn start<T>(start: u64) -> Checked<T> {
        // The generations reach their end after some insertions.
        let generation = NonZeroU32::new(u32::MAX - (start % 700) as u32);
        let next = Number { high: 6, generation: generation.expect("it is not 0") };
        let mut wheel = Wheel { next, ..Wheel::new(start) };
        // Slots are opened because they have many entries, not only because their time is near.
        if start.is_multiple_of(3) {
            wheel.tree.many = 200;
        }
        // With this setting, holes are given to the commons.
        if start.is_multiple_of(2) {
            wheel.chunks.spare = 64;
        }
        Checked { wheel, calls: 0 }
    }
}

/// A script with deadlines in a few slots of each level, or with spread deadlines.
fn spread(random: &mut Random) -> Vec<Step> {
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
    (0..20 + random.below(400))
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

/// Writes scripts in which crowds of entries are inserted, moved and cancelled together, and time stops at the edges of slots.
struct Crowds<'a> {
    random: &'a mut Random,
    steps: Vec<Step>,
    /// The claims of each crowd; the newest crowd is last.
    crowds: Vec<Range<usize>>,
    /// The number of insertions so far. It is the number of claims if no insertion is refused.
    claims: usize,
}

impl Crowds<'_> {
    /// The logarithms of the sizes of slots, level by level; the value of the top level is there twice.
    const BITS: [u32; 6] = [0, 8, 16, 24, 32, 32];

    fn script(random: &mut Random) -> Vec<Step> {
        let mut crowds = Crowds { random, steps: vec![], crowds: vec![], claims: 0 };
        // In a script without cancels and reschedules the wake has to be exact.
        let kinds = if crowds.random.below(4) == 0 { 5 } else { 10 };
        for _ in 0..3 + crowds.random.below(12) {
            match crowds.random.below(kinds) {
                0 | 1 => crowds.come(),
                2..5 => crowds.pass(),
                5 | 6 => crowds.go(),
                7 => crowds.stay_beside(),
                _ => crowds.move_on(),
            }
        }
        crowds.steps
    }

    fn choose<C: Copy>(&mut self, choices: &[C]) -> C {
        choices[self.random.below(choices.len() as u64) as usize]
    }

    /// A tick in a slot of 2^`bits` ticks: at its begin, at its end, or at an edge of finer slots.
    fn ticks(&mut self, bits: u32) -> u64 {
        let last = (1_u64 << bits) - 1;
        let finer = 8 * self.random.below(u64::from(bits) / 8 + 1) as u32;
        let edge = self.choose(&[0, 1, 2, 3, 255]) << finer;
        let near = self.random.below(3);
        match self.random.below(4) {
            0 => near & last,
            1 => last.saturating_sub(near),
            2 => (edge + near) & last,
            _ => edge.saturating_sub(near + 1) & last,
        }
    }

    /// A slot that is 0 to 3, or 255 to 257, slots after the slot of now.
    fn aim(&mut self) -> Aim {
        let bits = self.choose(&Self::BITS);
        let slots = self.choose(&[0, 1, 1, 1, 2, 2, 3, 255, 256, 257]);
        let ticks = self.ticks(bits);
        Aim::Slot { bits, slots, ticks }
    }

    /// A crowd is inserted into one slot: at one or two ticks of it, or at any ticks.
    fn come(&mut self) {
        let bits = self.choose(&Self::BITS);
        let slots = self.choose(&[1, 1, 2, 2, 2, 3, 255]);
        let count = self.choose(&[1, 2, 15, 16, 17, 17, 18, 20, 33, 64, 65, 80, 81, 82, 129, 150]);
        let few = [self.ticks(bits), self.ticks(bits)];
        let to_few = self.random.below(2) == 0;
        for _ in 0..count {
            let ticks = if to_few { self.choose(&few) } else { self.ticks(bits) };
            self.steps.push(Step::Insert(Aim::Slot { bits, slots, ticks }));
        }
        self.crowds.push(self.claims..self.claims + count);
        self.claims += count;
    }

    /// The claims of a crowd, or some of them, in their order or in another order.
    fn members(&mut self) -> Vec<usize> {
        let Some(last) = self.crowds.len().checked_sub(1) else { return vec![] };
        let crowd = self.crowds[last - self.random.below(1 + last.min(3) as u64) as usize].clone();
        let mut members: Vec<usize> = crowd.collect();
        match self.random.below(3) {
            0 => members.reverse(),
            1 => {
                for index in 1..members.len() {
                    members.swap(index, self.random.below(index as u64 + 1) as usize);
                }
            }
            _ => {}
        }
        let spared = self.choose(&[0, 0, 0, 1, 2, 15, 16, 17, 63, 64]);
        members.truncate(members.len().saturating_sub(spared));
        members
    }

    /// A crowd is cancelled.
    fn go(&mut self) {
        let members = self.members();
        self.steps.extend(members.into_iter().map(Step::Cancel));
    }

    /// New entries get the same deadlines as a crowd.
    fn stay_beside(&mut self) {
        let members = self.members();
        self.crowds.push(self.claims..self.claims + members.len());
        self.claims += members.len();
        self.steps.extend(members.into_iter().map(Step::InsertBeside));
    }

    /// A crowd is rescheduled, to one slot or to the deadlines of another crowd.
    fn move_on(&mut self) {
        let members = self.members();
        let beside = self.random.below(3) == 0;
        let bits = self.choose(&Self::BITS);
        let slots = self.choose(&[0, 1, 1, 2, 2, 3, 255]);
        for member in members {
            let step = if beside {
                Step::RescheduleBeside(member, self.random.below(self.claims as u64) as usize)
            } else {
                let ticks = self.ticks(bits);
                Step::Reschedule(member, Aim::Slot { bits, slots, ticks })
            };
            self.steps.push(step);
        }
    }

    /// Time passes: to an edge and across it tick by tick, by a random distance, or to the next wake.
    fn pass(&mut self) {
        let bits = self.choose(&Self::BITS);
        match self.random.below(8) {
            0..=2 => {
                let off = -(1 + self.random.below(3) as i8);
                self.steps.push(Step::Advance(Aim::Edge { bits, off }));
                for _ in 0..self.random.below(6) {
                    self.steps.push(Step::Advance(Aim::Ahead(1)));
                }
            }
            3 => {
                let aim = self.aim();
                self.steps.push(Step::Advance(aim));
            }
            4 => {
                let ticks = self.choose(&[1, 2, 100, 255, 256, 300]);
                for _ in 0..1 + self.random.below(4) {
                    self.steps.push(Step::Advance(Aim::Ahead(ticks)));
                }
            }
            5 => {
                let after = self.choose(&[0, 1, 5, 15, 16, 17, 70]);
                let aim = self.aim();
                self.steps.push(Step::Panic(aim, after));
            }
            _ => {
                for _ in 0..1 + self.random.below(5) {
                    self.steps.push(Step::Follow);
                }
            }
        }
    }

    /// A tick shortly before or after an edge.
    fn start(random: &mut Random) -> u64 {
        let edge = (1 + random.next() % 5) << [8, 16, 24, 32, 40][random.below(5) as usize];
        match random.below(4) {
            0 => random.next() >> random.below(64),
            1 => random.below(3),
            _ => edge + random.below(4) - 2 - random.below(2) * random.below(250),
        }
    }
}

/// All invariants hold between any two calls.
#[test]
fn a_wheel_that_checks_itself_finds_nothing() {
    quiet();
    for seed in 0..3_000 {
        let mut random = Random::new(seed);
        let start = random.next() >> random.below(64);
        replay::<CheckedWheels>(start, &spread(&mut random), catch);
    }
}

/// All invariants hold between any two calls, also when whole slots fill and empty.
#[test]
fn a_wheel_of_crowds_that_checks_itself_finds_nothing() {
    quiet();
    for seed in 0..2_000 {
        let mut random = Random::new(seed);
        let start = Crowds::start(&mut random);
        replay::<CheckedWheels>(start, &Crowds::script(&mut random), catch);
    }
}

//! Random scripts: every queue against the model, near the edges of slots and levels.

use crate::families::{
    Bytes, Calendars, HashedWheels, HeapQueues, HierarchicalWheels, Models, SimpleWheels, SortedLists, Wheels,
};
use crate::panics::{catch, quiet};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tickwheel_core::conformance::script::{Aim, Step, replay};

fn start() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(255),
        Just(65_535),
        0..1_000_000_u64,
        (8..64_u32, -300..300_i64).prop_map(|(bits, off)| (1_u64 << bits).wrapping_add_signed(off)),
        (0..100_000_u64).prop_map(|before| u64::MAX - before),
        any::<u64>(),
    ]
}

/// The slot sizes of this wheel and of others, and all powers of two between them.
fn bits() -> impl Strategy<Value = u32> {
    prop_oneof![Just(6), Just(8), Just(16), Just(24), Just(32), 0..64_u32]
}

fn aim() -> impl Strategy<Value = Aim> {
    prop_oneof![
        4 => (0..600_u64).prop_map(Aim::Ahead),
        2 => (0..200_000_u64).prop_map(Aim::Ahead),
        6 => (bits(), -2..=2_i8).prop_map(|(bits, off)| Aim::Edge { bits, off }),
        2 => (bits(), any::<i8>()).prop_map(|(bits, off)| Aim::Edge { bits, off }),
        2 => (0..64_u32, any::<u64>()).prop_map(|(bits, ticks)| Aim::Ahead(ticks >> bits)),
        1 => (0..1_000_u64).prop_map(Aim::Behind),
        1 => (0..600_u64).prop_map(|before| Aim::At(u64::MAX - before)),
        1 => any::<u64>().prop_map(Aim::At),
    ]
}

/// Most advances are short, so that a script does not reach the end of time at once.
fn short_aim() -> impl Strategy<Value = Aim> {
    prop_oneof![
        4 => (0..10_u64).prop_map(Aim::Ahead),
        4 => (0..600_u64).prop_map(Aim::Ahead),
        2 => (0..200_000_u64).prop_map(Aim::Ahead),
        4 => (0..34_u32, -2..=2_i8).prop_map(|(bits, off)| Aim::Edge { bits, off }),
        1 => (0..1_000_u64).prop_map(Aim::Behind),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => aim().prop_map(Step::Insert),
        4 => any::<usize>().prop_map(Step::InsertBeside),
        3 => any::<usize>().prop_map(Step::Cancel),
        4 => (any::<usize>(), aim()).prop_map(|(pick, aim)| Step::Reschedule(pick, aim)),
        4 => any::<(usize, usize)>().prop_map(|(pick, other)| Step::RescheduleBeside(pick, other)),
        4 => short_aim().prop_map(Step::Advance),
        1 => (short_aim(), 0..8_usize).prop_map(|(aim, after)| Step::Panic(aim, after)),
        2 => Just(Step::Follow),
    ]
}

/// A jump to anywhere, rarely.
fn script() -> impl Strategy<Value = Vec<Step>> {
    let part = prop::collection::vec(step(), 1..150);
    let jump = prop::option::of(aim().prop_map(Step::Advance));
    prop::collection::vec((part, jump), 1..4)
        .prop_map(|parts| parts.into_iter().flat_map(|(part, jump)| part.into_iter().chain(jump)).collect())
}

/// Crowds are hundreds of entries in few slots. With them slots have chunks, and are opened in
/// parts.
fn crowd() -> impl Strategy<Value = Vec<Step>> {
    let spot = prop_oneof![300..330_u64, 70_000..70_600_u64, Just(256)];
    let step = prop_oneof![
        6 => spot.clone().prop_map(|ahead| Step::Insert(Aim::Ahead(ahead))),
        4 => any::<usize>().prop_map(Step::Cancel),
        2 => (any::<usize>(), spot).prop_map(|(pick, ahead)| Step::Reschedule(pick, Aim::Ahead(ahead))),
        1 => (0..3_u64).prop_map(|ahead| Step::Advance(Aim::Ahead(ahead))),
        1 => (0..400_u64, 0..100_usize).prop_map(|(ahead, after)| Step::Panic(Aim::Ahead(ahead), after)),
    ];
    prop::collection::vec(step, 200..800)
}

/// Replays `cases` scripts of both kinds on a queue. It takes a function and not a family, because what makes scripts is much code: it is
/// compiled once, and not for each family.
fn agrees_with_the_model(cases: u32, replay: fn(u64, &[Step])) {
    quiet();
    let mut runner = TestRunner::new(ProptestConfig { cases, ..ProptestConfig::default() });
    let scripts = prop_oneof![3 => script(), 1 => crowd()];
    let outcome = runner.run(&(start(), scripts), |(start, script)| {
        replay(start, &script);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// One test for each queue, in a module with the name that the suite uses.
macro_rules! scripts {
    ($($queue:ident: $family:ty, $cases:literal;)*) => {
        $(
            #[test]
            fn $queue() {
                agrees_with_the_model($cases, |start, script| replay::<$family>(start, script, catch));
            }
        )*
    };
}

scripts! {
    model: Models, 100;
    wheel: Wheels, 2_000;
    sorted_list: SortedLists, 500;
    heap_queue: HeapQueues, 500;
    simple_wheel_of_64: SimpleWheels<64>, 300;
    simple_wheel_of_an_odd_number: SimpleWheels<1_001>, 300;
    hashed_wheel_of_1: HashedWheels<1, 1>, 300;
    hashed_wheel_of_3: HashedWheels<1, 3>, 300;
    hashed_wheel_of_512: HashedWheels<1, 512>, 300;
    hashed_wheel_with_a_tick_of_10: HashedWheels<10, 7>, 300;
    hierarchical_wheel_of_2: HierarchicalWheels<1, 2>, 300;
    hierarchical_wheel_of_3: HierarchicalWheels<1, 3>, 300;
    hierarchical_wheel_of_20: HierarchicalWheels<1, 20>, 300;
    hierarchical_wheel_of_256: HierarchicalWheels<1, 256>, 300;
    hierarchical_wheel_with_a_tick_of_10: HierarchicalWheels<10, 3>, 300;
    hierarchical_wheel_with_an_odd_tick: HierarchicalWheels<7, 64>, 300;
    hierarchical_calendar: Calendars, 300;
    hierarchical_bytes: Bytes, 300;
}

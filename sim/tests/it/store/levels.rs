//! Acknowledgements that do not wait for a sync: the crashes that they survive. Only the last commits can be lost.

use tickwheel_engine::Reply;
use tickwheel_sim::disk::SimDisk;
use tickwheel_sim::rng::Rng;
use tickwheel_store::{AckLevel, DiskStore, InlineIo, StoreOptions};

use crate::store::world::{Came, Model, Store, acquire, commit, contents, options, rest};

fn options_of(level: AckLevel) -> StoreOptions {
    StoreOptions { ack_level: level, ..options() }
}

fn open(disk: &SimDisk, level: AckLevel, story: &str) -> Store {
    DiskStore::open(disk.clone(), InlineIo::new(), options_of(level))
        .unwrap_or_else(|error| panic!("{story}: failed to open the store: {error}\n{:?}", disk.files()))
}

/// Commits random batches. Returns the state before them and the state after each of them.
fn live(store: &mut Store, start: &Model, rng: &mut Rng) -> Vec<Model> {
    let ownership = acquire(store).expect("it can be had");
    let mut states = vec![start.clone()];
    for _ in 0..rng.between(1, 40) {
        let (next, batch) = states[states.len() - 1].batch(rng);
        let reply = commit(store, ownership, next.seq, batch);
        assert!(matches!(reply, Came::Reply(Reply::Done { .. })), "{reply:?}");
        states.push(next);
        if rng.chance(40) {
            rest(store, rng.below(6));
        }
    }
    states
}

fn lives(level: AckLevel, power_cut: bool) -> (usize, usize) {
    let (mut whole, mut cut) = (0, 0);
    for seed in 0..250 {
        let disk = SimDisk::new();
        let mut rng = Rng::new(seed);
        let mut found = Model::default();
        for life in 0..5 {
            let story = format!("seed {seed}, life {life} at level {level}");
            let mut store = open(&disk, level, &story);
            let states = live(&mut store, &found, &mut rng);
            // The store is dropped without a release, while commits or background work may be under way.
            drop(store);
            if power_cut {
                disk.crash(&mut rng);
            }
            let table = contents(&mut open(&disk, level, &story));
            let known = states.iter().rposition(|state| state.difference(&table).is_none());
            let differences =
                || states.iter().filter_map(|state| state.difference(&table)).collect::<Vec<_>>();
            let known = known
                .unwrap_or_else(|| panic!("{story}: no state that ever was: {:?}", differences().last()));
            if known + 1 == states.len() {
                whole += 1;
            } else {
                cut += 1;
            }
            found = states[known].clone();
        }
    }
    (whole, cut)
}

#[test]
fn os_survives_the_process_whole_and_a_power_cut_but_for_the_last_moments() {
    assert_eq!(lives(AckLevel::Os, false).1, 0, "the process died, and something was lost");
    let (whole, cut) = lives(AckLevel::Os, true);
    assert!(whole > 50 && cut > 50, "{whole} lives came back whole and {cut} without their end");
}

#[test]
fn memory_loses_nothing_but_the_end() {
    let (whole, cut) = lives(AckLevel::Memory, false);
    assert!(whole > 50 && cut > 50, "{whole} lives came back whole and {cut} without their end");
    let (whole, cut) = lives(AckLevel::Memory, true);
    assert!(whole > 20 && cut > 50, "{whole} lives came back whole and {cut} without their end");
}

#[test]
fn fsync_loses_nothing() {
    assert_eq!(lives(AckLevel::Fsync, true).1, 0);
}

/// One directory is used at one level after another, with power cuts in between.
#[test]
fn levels_take_turns() {
    for seed in 0..150 {
        let disk = SimDisk::new();
        let mut rng = Rng::new(seed);
        let mut found = Model::default();
        for life in 0..6 {
            let level = rng.pick(&[AckLevel::Fsync, AckLevel::Os, AckLevel::Memory]);
            let story = format!("seed {seed}, life {life} at level {level}");
            let mut store = open(&disk, level, &story);
            let states = live(&mut store, &found, &mut rng);
            drop(store);
            disk.crash(&mut rng);
            let table = contents(&mut open(&disk, level, &story));
            let known = states.iter().rposition(|state| state.difference(&table).is_none());
            let known = known.unwrap_or_else(|| panic!("{story}: no state that ever was"));
            assert!(level != AckLevel::Fsync || known + 1 == states.len(), "{story}: the end is lost");
            found = states[known].clone();
        }
    }
}

/// Reproduces a failure. A process died between the write of a frame and its sync, and its log file had no other
/// frame. The next process read the frame and repeated it in the next log file; then the power failed. The first of
/// the two files had lost its frame, so it was used again. But the header of the second file named that frame, and
/// the directory was refused.
#[test]
fn processes_die_and_the_power_goes_in_turns() {
    for seed in 0..400 {
        let disk = SimDisk::new();
        let mut rng = Rng::new(seed);
        let mut found = Model::default();
        for life in 0..8 {
            let level = rng.pick(&[AckLevel::Fsync, AckLevel::Os, AckLevel::Memory]);
            let story = format!("seed {seed}, life {life} at level {level}");
            let mut store = open(&disk, level, &story);
            let states = live(&mut store, &found, &mut rng);
            drop(store);
            let power_cut = rng.chance(50);
            if power_cut {
                disk.crash(&mut rng);
            }
            let table = contents(&mut open(&disk, level, &story));
            let known = states.iter().rposition(|state| state.difference(&table).is_none());
            let known = known.unwrap_or_else(|| panic!("{story}: no state that ever was"));
            let loses = level == AckLevel::Memory || power_cut && level == AckLevel::Os;
            assert!(loses || known + 1 == states.len(), "{story}: the end is lost");
            found = states[known].clone();
        }
    }
}

//! The bounds of one run. A run has some hundred tasks, and the default bounds are made for millions, so some bounds are set so small
//! that the run reaches them.

use tickwheel_engine::Bounds as EngineBounds;
use tickwheel_store::Bounds as StoreBounds;

use crate::rng::Rng;

/// The largest pieces of work of the store and of the engine of a run.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) store: StoreBounds,
    pub(crate) engine: EngineBounds,
}

impl Bounds {
    /// Draws the bounds. Each bound is small with a chance of `percent`, and has its default otherwise. A bound that is
    /// small at one `percent` is small, and has the same size, at every higher one.
    pub(crate) fn draw(percent: u64, rng: &mut Rng) -> Self {
        let mut bounds = Self { store: StoreBounds::default(), engine: EngineBounds::default() };
        let Self { store, engine } = &mut bounds;
        for (bound, sizes) in store_sizes(store) {
            if let Some(size) = draw(percent, &sizes, rng) {
                *bound = size;
            }
        }
        if let Some(size) = draw(percent, &[1, 2_000, 20_000], rng) {
            store.moved_bytes = size as u64;
        }
        for (bound, sizes) in engine_sizes(engine) {
            if let Some(size) = draw(percent, &sizes, rng) {
                *bound = size;
            }
        }
        for (bound, sizes) in engine_sizes_of_64_bits(engine) {
            if let Some(size) = draw(percent, &sizes, rng) {
                *bound = size as u64;
            }
        }
        bounds
    }
}

/// One of these sizes with a chance of `percent`, otherwise none. The generator advances equally in both cases.
fn draw(percent: u64, sizes: &[usize; 3], rng: &mut Rng) -> Option<usize> {
    let is_small = rng.below(100) < percent;
    let size = sizes[rng.index(sizes.len())];
    is_small.then_some(size)
}

/// The sizes that each bound of a store may have. A new bound does not compile here until it has its sizes.
fn store_sizes(store: &mut StoreBounds) -> Vec<(&mut usize, [usize; 3])> {
    let StoreBounds {
        histogram_read_bytes,
        histogram_bytes,
        histogram_blocks,
        histogram_memtable,
        page_looks,
        page_passes,
        page_bytes,
        merge_read_bytes,
        moved_bytes: _,
        moved_at_once,
        settled_at_once,
        checkpoint_calls,
        segment_runs,
        memtable_tail,
        spare_files,
        tasks_ahead,
        record_read_bytes,
        log_read_bytes,
        acquired_page,
    } = store;
    vec![
        (histogram_read_bytes, [1, 300, 2_000]),
        (histogram_bytes, [1, 300, 2_000]),
        (histogram_blocks, [1, 2, 5]),
        (histogram_memtable, [1, 2, 10]),
        (page_looks, [1, 20, 60]),
        (page_passes, [1, 3, 10]),
        (page_bytes, [1, 100, 5_000]),
        (merge_read_bytes, [1, 300, 2_000]),
        (moved_at_once, [1, 2, 20]),
        (settled_at_once, [1, 2, 20]),
        (checkpoint_calls, [1, 2, 3]),
        (segment_runs, [1, 2, 4]),
        (memtable_tail, [1, 2, 16]),
        (spare_files, [1, 1, 2]),
        (tasks_ahead, [1, 2, 3]),
        (record_read_bytes, [1, 9, 100]),
        (log_read_bytes, [72, 80, 300]),
        (acquired_page, [1, 2, 5]),
    ]
}

/// The sizes that each bound of an engine may have.
fn engine_sizes(engine: &mut EngineBounds) -> Vec<(&mut usize, [usize; 3])> {
    let EngineBounds {
        head,
        fetched,
        shed_visits,
        shed_drops,
        batch_effects,
        instants,
        overdue,
        empty_queues,
        ..
    } = engine;
    vec![
        (head, [2, 2, 5]),
        (fetched, [1, 2, 5]),
        (shed_visits, [1, 3, 20]),
        (shed_drops, [1, 3, 20]),
        (batch_effects, [1, 2, 5]),
        (instants, [1, 2, 5]),
        (overdue, [1, 2, 5]),
        (empty_queues, [1, 2, 5]),
    ]
}

/// The bounds that are 64 bits wide on every machine.
fn engine_sizes_of_64_bits(engine: &mut EngineBounds) -> [(&mut u64, [usize; 3]); 3] {
    let EngineBounds {
        fetched_bytes,
        ids_block,
        batch_bytes,
        // The oracle expects each ready task in an answer that has room for it, and knows no sizes.
        lease_bytes: _,
        head: _,
        fetched: _,
        shed_visits: _,
        shed_drops: _,
        batch_effects: _,
        instants: _,
        overdue: _,
        empty_queues: _,
    } = engine;
    [(fetched_bytes, [1, 100, 5_000]), (batch_bytes, [1, 300, 2_000]), (ids_block, [1, 2, 10])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_small_or_all_are_and_some_are_in_between() {
        let small = |percent| {
            let mut drawn = Bounds::draw(percent, &mut Rng::new(7)).store;
            let mut default = StoreBounds::default();
            let (drawn, default) = (store_sizes(&mut drawn), store_sizes(&mut default));
            drawn.iter().zip(&default).filter(|((drawn, _), (default, _))| **drawn < **default).count()
        };
        let all = store_sizes(&mut StoreBounds::default()).len();
        assert_eq!((small(0), small(100)), (0, all));
        assert!((1..all).contains(&small(50)), "{} of {all}", small(50));
    }
}

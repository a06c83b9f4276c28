//! Checks of memory, drops and panics.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::book::Book;
use super::family::{Catch, Family, fired, within};
use crate::TimerQueue;

/// Ten minutes (in ticks of a millisecond).
const TEN_MINUTES: u64 = 600_000;

/// WH17: pairs of insert and cancel with deadlines ten minutes ahead, and the same number of reschedules, do not make the memory grow,
/// whether the clock stands still or moves. The check makes 1 million pairs, so that slow queues can run it, too; a long run of
/// `tests/memory.rs` makes 10 million for the wheel.
pub fn wh17_pairs_and_reschedules_keep_memory_flat<F: Family>() {
    const PAIRS: u64 = 1_000_000;
    for step in [0, 1, 977] {
        let ahead = within::<F>(TEN_MINUTES);
        let mut queue = F::start(0);
        let mut moving = queue.insert(ahead, 0).expect("it is ahead");
        let mut settled = None;
        for pair in 1..=PAIRS {
            let now = pair * step.min(ahead - 1);
            assert_eq!(fired(&mut queue, now), []);
            let handle = queue.insert(now + ahead, pair).expect("it is ahead");
            moving = queue.reschedule(moving, now + ahead).expect("it is pending");
            assert_eq!(queue.len(), 2);
            assert_eq!(queue.cancel(handle), Some(pair));
            // After this number of pairs every level in reach has been made.
            if pair == PAIRS / 10 {
                settled = Some(F::heap_bytes(&queue));
            }
        }
        assert_eq!(queue.len(), 1);
        assert_eq!(queue.cancel(moving), Some(0));
        if let (Some(Some(before)), Some(after)) = (settled, F::heap_bytes(&queue)) {
            // The clock may have reached one more level.
            assert!(after <= before + 8_192, "memory grew from {before} to {after} bytes");
        }
    }
}

/// WH18: each value, of any type, is dropped exactly once: after it fired, after a cancel, after a refusal, or with the queue.
pub fn wh18_values_are_dropped_exactly_once<F: Family>() {
    let book = Book::new();
    let mut queue = F::start(1_000);
    let deadline = |id: u64| 1_001 + (id * id * 100) % F::REACH;
    let mut handles = vec![];
    for id in 0..100 {
        handles.push(queue.insert(deadline(id), book.value()).expect("it is ahead"));
    }
    drop(queue.insert(1_000, book.value())); // 100: elapsed
    drop(queue.insert(u64::MAX, book.value())); // 101: too far
    assert_eq!((book.drops(100), book.drops(101)), (1, 1));
    drop(queue.cancel(handles[50]));
    assert_eq!(book.drops(50), 1);
    queue.reschedule(handles[60], deadline(0)).expect("it is pending");
    let now = deadline(30);
    queue.advance(now, &mut |_, value| drop(value));
    for (id, number) in (0..100).zip(0..) {
        let gone = deadline(number) <= now || id == 50 || id == 60;
        assert_eq!(book.drops(id), u32::from(gone), "value {id}");
    }
    // Some more entries, which take places that were freed.
    for _ in 0..20 {
        queue.insert(now + within::<F>(1 << 40), book.value()).expect("it is ahead");
    }
    drop(queue);
    assert!(book.all_dropped_once());

    // Values of size zero, values on the heap, and borrowed values.
    let mut queue = F::start(0);
    queue.insert(5, ()).expect("it is ahead");
    assert_eq!(fired(&mut queue, 5), [(5, ())]);
    let mut queue = F::start(0);
    queue.insert(5, "text".to_string()).expect("it is ahead");
    assert_eq!(fired(&mut queue, 5), [(5, String::from("text"))]);
    let local = 7;
    let mut queue = F::start(0);
    queue.insert(5, &local).expect("it is ahead");
    assert_eq!(fired(&mut queue, 5), [(5, &7)]);
    let mut queue: F::Queue<Box<dyn Fn() -> u8>> = F::start(0);
    queue.insert(5, Box::new(|| 9)).expect("it is ahead");
    let called: Vec<u8> = fired(&mut queue, 5).iter().map(|(_, call)| call()).collect();
    assert_eq!(called, [9]);
}

/// WH18: a panic in `fire` loses only the value that was being fired. All other entries are pending, their handles work, time stands before
/// their deadlines, and the queue goes on in order.
pub fn wh18_a_panic_in_fire_loses_nothing_else<F: Family>(catch: Catch) {
    for start in [0, 200, 65_530, 1 << 40] {
        let book = Book::new();
        let mut queue = F::start(start);
        // Three entries for each tick; the ticks are on several levels.
        let aheads = [1, 2, 56, 300, 301, 70_000].into_iter().filter(|&ahead| ahead <= F::REACH);
        let deadlines: Vec<u64> = aheads.map(|ahead| start + ahead).collect();
        let mut handles = vec![];
        for _ in 0..3 {
            for &deadline in &deadlines {
                handles.push(queue.insert(deadline, book.value()).expect("it is ahead"));
            }
        }
        let mut expected: Vec<(u64, usize)> =
            (0..handles.len()).map(|id| (deadlines[id % deadlines.len()], id)).collect();
        expected.sort_unstable();

        let mut list = vec![];
        let mut panics = 0;
        let end = start + 100_000;
        while queue.len() > 0 {
            let before = queue.now();
            let panicked = catch(&mut || {
                queue.advance(end, &mut |deadline, value| {
                    list.push((deadline, value.id));
                    // Every second value panics, and so does the last value of some ticks.
                    assert!(list.len() % 2 == 0, "a body fails, on purpose");
                });
            });
            panics += usize::from(panicked);
            assert_eq!(queue.len(), handles.len() - list.len());
            if !panicked {
                break;
            }
            let &(deadline, last) = list.last().expect("it panicked on a value");
            assert_eq!(queue.now(), deadline - 1);
            assert!(queue.now() >= before, "time ran backwards");
            assert_eq!(book.drops(last), 1);
            assert!(queue.cancel(handles[last]).is_none(), "a fired entry was cancelled");
            for &(deadline, id) in &expected[list.len()..] {
                assert_eq!(queue.deadline(handles[id]), Some(deadline));
                assert_eq!(book.drops(id), 0);
            }
            match (queue.next_wake(), expected.get(list.len())) {
                (Some(wake), Some(&(nearest, _))) => {
                    assert!(queue.now() < wake && wake <= nearest, "{wake} for {nearest}");
                }
                (wake, nearest) => assert!(wake.is_none() && nearest.is_none()),
            }
            // The entry that fires next can be moved to another deadline and back, and keeps its position in the order.
            if let Some(&(nearest, id)) = expected.get(list.len()) {
                let away = (nearest + 1_000).min(queue.now().saturating_add(F::REACH));
                for to in [away, nearest] {
                    handles[id] = queue.reschedule(handles[id], to).expect("it is pending");
                }
            }
            // After the panic the queue can be used at once, with deadlines of the interrupted tick, too.
            let extra = queue.insert(deadline, book.value()).expect("time stands before it");
            let moved = queue.reschedule(extra, deadline + 1).expect("it is pending");
            let moved = queue.reschedule(moved, deadline).expect("it is pending");
            assert!(queue.cancel(moved).is_some());
        }
        assert_eq!(panics, handles.len().div_ceil(2), "each second one panicked");
        assert_eq!(list, expected, "from {start}");
        queue.advance(end, &mut |_, _| panic!("nothing is left"));
        assert_eq!((queue.now(), queue.next_wake()), (end, None));
        drop(queue);
        assert!(book.all_dropped_once());
    }
}

/// WH19: a cancelled entry does not stay until its deadline. Its value is returned at once, and the next entries take its memory.
pub fn wh19_a_cancelled_entry_is_freed_at_once<F: Family>() {
    let book = Book::new();
    let mut queue = F::start(0);
    let mut peak = None;
    for round in 0..100 {
        let mut handles = vec![];
        for id in 0..1_000 {
            // Distances of seconds, days, years and more, limited to the reach.
            let deadline = within::<F>(1_000 << (id % 40));
            handles.push(queue.insert(deadline, book.value()).expect("it is ahead"));
        }
        assert_eq!(queue.len(), 1_000);
        for handle in handles {
            assert!(queue.cancel(handle).is_some());
        }
        assert_eq!((queue.len(), queue.next_wake()), (0, None));
        assert!(book.all_dropped_once(), "a cancelled value is still held");
        match peak {
            None => peak = Some(F::heap_bytes(&queue)),
            Some(peak) => assert_eq!(F::heap_bytes(&queue), peak, "memory grew in round {round}"),
        }
    }
}

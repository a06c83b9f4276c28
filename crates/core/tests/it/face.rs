//! The public API: guarantees besides behaviour.

use std::error::Error;

use tickwheel_core::{Handle, Model, Refusal, Refused, RescheduleError, TimerQueue, Wheel};

fn is_send_and_sync<T: Send + Sync>() {}

#[test]
fn a_wheel_can_go_to_another_thread() {
    is_send_and_sync::<Wheel<u32>>();
    is_send_and_sync::<Model<u32>>();
    is_send_and_sync::<Handle>();
}

#[test]
fn queues_can_be_chosen_at_run_time() {
    let mut queues: Vec<Box<dyn TimerQueue<u8>>> = vec![Box::new(Wheel::new(0)), Box::new(Model::new(0))];
    for queue in &mut queues {
        queue.insert(3, 1).unwrap();
        let mut fired = vec![];
        assert_eq!(queue.advance(3, &mut |deadline, value| fired.push((deadline, value))), 1);
        assert_eq!(fired, [(3, 1)]);
    }
}

#[test]
fn refusals_are_errors_that_read_well() {
    // A value that implements neither `Debug` nor `PartialEq`.
    struct Opaque;
    let refused: Refused<Opaque> = Wheel::new(5).insert(5, Opaque).unwrap_err();
    assert_eq!(format!("{refused:?}"), "Refused { why: Elapsed, .. }");
    let boxed: Box<dyn Error> = Box::new(refused);
    assert_eq!(
        format!("failed to insert: {boxed}"),
        "failed to insert: the deadline is not after now; the earliest one is now + 1"
    );
    for text in [
        Refusal::Elapsed.to_string(),
        Refusal::TooFar.to_string(),
        Refusal::Full.to_string(),
        RescheduleError::Stale.to_string(),
        RescheduleError::Elapsed.to_string(),
        RescheduleError::TooFar.to_string(),
    ] {
        assert!(text.starts_with(char::is_lowercase), "{text:?} completes no sentence");
        assert!(!text.ends_with('.'), "{text:?} is a fragment");
    }
}

#[test]
fn debug_tells_the_state_of_a_wheel() {
    let mut wheel = Wheel::new(1);
    wheel.insert(9, ()).unwrap();
    assert_eq!(format!("{wheel:?}"), "Wheel { now: 1, len: 1, next_wake: Some(9), .. }");
}

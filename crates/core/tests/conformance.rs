//! The suite, for the model and for the wheel.

use tickwheel_core::conformance::Family;
use tickwheel_core::{Model, Wheel};

struct Models;

impl Family for Models {
    type Queue<T> = Model<T>;

    fn start<T>(start: u64) -> Model<T> {
        Model::new(start)
    }
}

struct Wheels;

impl Family for Wheels {
    type Queue<T> = Wheel<T>;

    fn start<T>(start: u64) -> Wheel<T> {
        Wheel::new(start)
    }

    fn heap_bytes<T>(wheel: &Wheel<T>) -> Option<usize> {
        Some(wheel.heap_bytes())
    }
}

tickwheel_core::conformance_suite!(model, Models);
tickwheel_core::conformance_suite!(wheel, Wheels);

//! The functions that the page calls. Each one leaves the state as JSON in memory, where the page reads [`length`] bytes at [`state`].

#![expect(
    unsafe_code,
    reason = "a name that is exported counts as unsafe: two libraries could export the same one"
)]

use std::cell::RefCell;

use crate::model::Model;
use crate::structure::Kind;

thread_local! {
    static PAGE: RefCell<(Model, String)> = RefCell::new((Model::new(Kind::Kafka, 4), String::new()));
}

fn change(change: impl FnOnce(&mut Model)) {
    PAGE.with_borrow_mut(|(model, state)| {
        change(model);
        *state = model.state();
    });
}

/// Begins with an empty wheel. A kind that does not exist is the first one.
#[unsafe(no_mangle)]
extern "C" fn begin(kind: u32, slots: u32) {
    let kind = Kind::from_number(kind).unwrap_or(Kind::Simple);
    change(|model| *model = Model::new(kind, slots.clamp(2, 64) as usize));
}

#[unsafe(no_mangle)]
extern "C" fn insert(delay: u32) {
    change(|model| model.insert(delay.into()));
}

#[unsafe(no_mangle)]
extern "C" fn cancel(id: u32) {
    change(|model| model.cancel(id));
}

#[unsafe(no_mangle)]
extern "C" fn tick() {
    change(Model::tick);
}

#[unsafe(no_mangle)]
extern "C" fn stop() {
    change(Model::stop);
}

#[unsafe(no_mangle)]
extern "C" fn state() -> *const u8 {
    PAGE.with_borrow(|(_, state)| state.as_ptr())
}

#[unsafe(no_mangle)]
extern "C" fn length() -> usize {
    PAGE.with_borrow(|(_, state)| state.len())
}

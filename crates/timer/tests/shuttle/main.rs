//! The concurrent parts under shuttle, which decides what runs next. See `scripts/shuttle`.

#![cfg(tickwheel_shuttle)]

mod delay_queue;

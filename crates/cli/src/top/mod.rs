//! A watch of a server: its state, drawn on a terminal repeatedly, with keys.
//!
//! `view` and `page` are pure: a key changes the view, and a page makes lines of text of a view and a screen size. `terminal` and `events`
//! use the terminal, and `watch` connects these modules.

mod clock;
mod events;
mod key;
mod look;
mod order;
mod page;
mod terminal;
mod view;
mod watch;

pub(crate) use clock::SystemClock;
pub(crate) use look::Seen;
pub(crate) use order::{Column, Order};
pub(crate) use watch::{Plan, watch};

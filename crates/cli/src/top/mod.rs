//! A watch of a server: its work, drawn on a terminal repeatedly, with keys.
//!
//! `view` and `page` are pure: a key changes the view, and a view of a given size is a list of lines. `terminal` and `events` touch the
//! terminal, and `watch` joins them.

mod events;
mod key;
mod look;
mod order;
mod page;
mod terminal;
mod view;
mod watch;

pub(crate) use look::Seen;
pub(crate) use order::{Column, Order};
pub(crate) use watch::{Plan, watch};

//! The client against servers of a few lines: what it sends, what it makes of answers, and what it does when there is none.

mod calls;
mod kept;
mod peer;
mod repeats;
mod script;
mod silence;
mod tls;

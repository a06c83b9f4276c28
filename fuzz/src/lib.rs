//! Bytes become operations on the queues of `tickwheel-core`, beside the model, damage to the files of a store, and what clients of
//! beanstalkd say.
//!
//! [`script`] reads any bytes as a script; [`case`] has a queue to replay it on; [`panics`] tells the
//! panics that a script asks for from a finding; [`store`] has the damage; [`said`] has packets of that protocol; [`files`] replays what a fuzzer wrote down. None of
//! it needs a fuzzer: the tests of this package replay the corpus, and random bytes.

pub mod case;
#[path = "../../crates/core/tests/it/families/mod.rs"]
mod families;
pub mod files;
pub mod panics;
pub mod said;
pub mod script;
pub mod store;

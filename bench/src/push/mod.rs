//! `tickwheel-bench push`: targets of queues, over a queue in memory and against real brokers on loopback.
//!
//! - `kind`: the kinds of targets. `broker`: a broker in a process of its own. `receiver`: the receiver of webhooks.
//! - `sample_message`: the bytes of the messages. `progress`: how far a sender is. `wait`: an end to waiting.
//! - `pushed`: a queue with a target. `sinks`: the target of each kind. `bare`, `raw`: the same bytes without Tickwheel.
//! - `rate`: messages in a second. `lateness`: from due to confirmed. `outage`: a target that is down.
//! - `goals`: the goals. `run`: the rounds.

mod bare;
mod broker;
mod goals;
mod kind;
mod lateness;
mod outage;
mod progress;
mod pushed;
mod rate;
mod raw;
mod receiver;
mod run;
mod sample_message;
mod sinks;

pub(crate) use receiver::receive;
pub(crate) use run::{PushArguments, run};

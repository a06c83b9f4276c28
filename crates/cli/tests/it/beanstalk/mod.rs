//! The beanstalkd door, compared with beanstalkd itself where it is installed.

mod both;
mod conversation;
mod crash;
mod door;
#[path = "../../../postgres/tests/kit/mod.rs"]
mod kit;
mod reference;
mod silent;
#[path = "../cli/stores.rs"]
#[allow(dead_code, reason = "no test of this suite is left out")]
mod stores;

//! The beanstalkd door, compared with beanstalkd itself where it is installed.

mod both;
mod conversation;
mod crash;
mod door;
mod reference;
mod silent;

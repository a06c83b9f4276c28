//! The door for clients of beanstalkd, beside beanstalkd itself where it is installed.

mod both;
mod conversation;
mod crash;
mod door;
mod reference;
mod silent;

//! `tickwheel bridge rabbitmq` against a real RabbitMQ broker: messages arrive when they are due, also if programs are killed.

mod consumer;
mod ledger;
mod migrate;
mod programs;
mod publisher;
mod refusals;
mod run;
mod start;

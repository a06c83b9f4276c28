//! A real server on a free port, asked over real sockets. Time is the server's virtual clock; nothing here sleeps.

mod batches;
mod beanstalk;
mod bulk;
mod clocks;
mod dead;
mod deleting;
mod described;
mod forecasts;
mod keys;
mod leases;
mod lists;
mod moving;
mod raw;
mod refusals;
mod reports;
mod schedules;
mod served;
mod settings;
mod starts;
mod stops;
mod tasks;
mod tls;
mod tokens;
mod traces;
mod troubles;
mod wire;

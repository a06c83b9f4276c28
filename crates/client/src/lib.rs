//! A small blocking HTTP client over the types of `tickwheel-api`: one method for each call of the API.
//!
//! It sends each call once, unless it is told to try again ([`Client::with_retries`]): then what had no effect is sent again, and what may have
//! had one only if twice is as good as once: a put is not, for its task may be done by then, and the second would make another;
//! [`Client::post_once`] is.

mod backups;
mod bulk;
mod client;
mod error;
mod exchange;
mod exports;
mod queues;
mod retries;
mod schedules;
mod server;
mod tasks;
#[cfg(unix)]
mod unix;
mod url;
mod workers;

pub use client::{Client, SERVER_URL_DEFAULT, Stored};
pub use error::ClientError;
pub use retries::Retries;

//! A client of Tickwheel's HTTP API over the types of `tickwheel-api`: one method for each call.
//!
//! There are two APIs. [`Client`] is async, for programs on tokio. [`blocking::Client`] has the same calls for all other programs. Both
//! keep up to 64 connections open between calls, speak HTTP over TCP, TLS (`https://`) and unix sockets (`unix:PATH`), and read answers of
//! up to 2 GiB.
//!
//! ```no_run
//! use tickwheel_api::{Due, LeaseBody, PayloadBody, PutBody, PutQuery};
//! use tickwheel_client::{Client, ClientError, Outcome, SERVER_URL_DEFAULT};
//!
//! # async fn work() -> Result<(), ClientError> {
//! let client = Client::new(SERVER_URL_DEFAULT)?;
//! let payload = PayloadBody::json(br#"{"order":1}"#.to_vec());
//! let body = PutBody { due: Due::After(1_800_000), payload, ..PutBody::default() };
//! match client.put("close", "order/1", &body, PutQuery::default(), None).await {
//!     Ok(stored) => assert!(stored.created),
//!     Err(error) if error.outcome() == Outcome::Unknown => drop(client.get("close", "order/1").await?),
//!     Err(error) => return Err(error),
//! }
//! for task in client.lease("close", &LeaseBody { wait_ms: 20_000, ..LeaseBody::default() }).await? {
//!     client.ack("close", vec![task.token]).await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # How long a call takes
//!
//! A connection must be made within 5 s, and the whole answer must arrive within 30 s. A lease that waits has its wait in addition. Calls
//! that may change millions of tasks, exports and imports have 10 minutes. A call that takes longer ends with [`ClientError::Unreachable`]
//! or [`ClientError::NoAnswer`]. If a future is dropped, its connection is closed; the call may have taken effect or not.
//!
//! # What is repeated
//!
//! A call is sent once, unless [`Client::with_retries`] allows more. With retries, any call is sent again if the server has received
//! nothing of it, or says that the call had no effect. If the answer was lost, the call may have had its effect. In this case only the
//! following calls are sent again:
//!
//! | calls | again if the answer was lost | why |
//! |---|---|---|
//! | `get` `story` `list` `dead` `dead_groups` `tasks_of_key` `queue` `queues` `list_queues` `schedule` `schedules` `all_schedules` `preview` `forecast` `metrics` `health` `job` `jobs` `leases` `backup` `backups` `list_backups` `whoami` `preview_unstored` `index` `target` `targets` `attempts` | yes | a look changes nothing |
//! | `post_once` | yes | its key makes one task of both |
//! | `configure` `reconfigure` `drain` `resume` `drain_server` `resume_server` `delete_queue` `put_schedule` `put_target` `pause_target` `resume_target` `stop_backup` | yes | the second leaves what the first has made; with `if_match` no, for the second would be refused |
//! | `ack` `extend` | yes | the second gets the answer of the first |
//! | `lease` | yes | tasks that were lost on the way come back when their lease ends |
//! | `put` `post` `patch` | no | the task may be done by then, and the second would make another; a delay counts from its arrival |
//! | `cancel` `nack` `redrive` `release` `delete_schedule` `delete_target` `stop_job` | no | the answer to the second would hide that of the first |
//! | `batch` `cancel_many` `move_many` `redrive_many` `purge` `import` | no | the second would find other tasks, and count them only |
//! | `pause` `advance` `begin_backup` `run` `rotate_target` `test_target` | no | the second counts from its own arrival, or does it twice |
//! | `export` | no | its caller goes on from the last cursor line |
//!
//! A kept connection may have been closed by the server before it took a byte of the call. That says nothing about the server, so the call
//! is sent over another connection at once, with or without retries.

pub mod blocking;
mod call;
mod calls;
mod client;
mod connect;
mod endpoint;
mod error;
mod exchange;
mod pool;
mod retries;
#[cfg(unix)]
mod unix;

// The code examples of this page are compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/cancel-and-move.md")]
struct CancelAndMove;

pub use calls::exports::Export;
pub use calls::tasks::Stored;
pub use client::{Client, SERVER_URL_DEFAULT};
pub use error::{ClientError, Outcome};
pub use retries::Retries;

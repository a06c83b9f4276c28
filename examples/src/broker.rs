//! [`Broker`]: a broker that the reader starts before the example.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow};
use futures_core::Stream;
use tickwheel_push::broker::Endpoint;
use tokio::time::timeout;

/// A broker answers within this time, or it is not there.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// A broker that the reader starts before the example.
pub struct Broker {
    /// The address, `HOST:PORT`.
    pub address: String,
    /// The command that starts a broker on the usual port.
    command: &'static str,
}

impl Broker {
    /// Returns the broker that the first argument of the program names. Without an argument it is at `usual`.
    #[must_use]
    pub fn named(usual: &str, command: &'static str) -> Self {
        Self { address: std::env::args().nth(1).unwrap_or_else(|| usual.to_owned()), command }
    }

    /// Returns the address as a target wants it.
    ///
    /// # Errors
    /// The text is no address.
    pub fn endpoint(&self) -> Result<Endpoint> {
        self.address.parse().with_context(|| format!("`{}` is no HOST:PORT", self.address))
    }

    /// Returns the connection that a client makes.
    ///
    /// # Errors
    /// There is none within 5 s. The error says how to start a broker.
    pub async fn reached<T, E: Into<Error>>(
        &self,
        reaching: impl Future<Output = Result<T, E>>,
    ) -> Result<T> {
        let answered = match timeout(ANSWER_LIMIT, reaching).await {
            Ok(answered) => answered.map_err(Into::into),
            Err(_) => Err(anyhow!("no answer within {} s", ANSWER_LIMIT.as_secs())),
        };
        let Self { address, command } = self;
        answered.with_context(|| format!("no broker answers at {address}; start one first: {command}"))
    }
}

/// Returns the next element of a stream, as `StreamExt::next` of the package `futures-util` does.
///
/// # Errors
/// The stream has ended, or its next element is an error.
pub async fn next<T, E: Into<Error>>(stream: &mut (impl Stream<Item = Result<T, E>> + Unpin)) -> Result<T> {
    let next = poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await;
    next.context("the broker has ended the stream of messages")?.map_err(Into::into)
}

//! A time limit for other futures, [`Timer::timeout`](crate::Timer::timeout).

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use super::Sleep;
use crate::Refusal;

/// The reason why a future with a time limit gave no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeoutError {
    /// The time was up.
    Elapsed,
    /// The timer refused the sleep for the limit.
    Refused(Refusal),
}

/// The value of a future, if it is ready before the sleep ends.
pub(crate) async fn within<F: Future>(mut sleep: Sleep, future: F) -> Result<F::Output, TimeoutError> {
    let mut future = pin!(future);
    poll_fn(|context| {
        if let Poll::Ready(value) = future.as_mut().poll(context) {
            return Poll::Ready(Ok(value));
        }
        Pin::new(&mut sleep).poll(context).map(|slept| match slept {
            Ok(()) => Err(TimeoutError::Elapsed),
            Err(error) => Err(TimeoutError::Refused(error.why)),
        })
    })
    .await
}

impl fmt::Display for TimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elapsed => f.write_str("no value within the time given"),
            Self::Refused(why) => write!(f, "the timer could not watch over it: {why}"),
        }
    }
}

impl Error for TimeoutError {}

//! [`Watched`]: a store that says why it takes no messages now.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tickwheel_push::bridge::{Delayed, Keeping, Kept, Store};
use tickwheel_queue::Key;

/// A wait below this length is no trouble: a worker has the task for a moment.
const TROUBLE_MIN: Duration = Duration::from_millis(150);

/// Passes the calls on to a store, and remembers why the last one could not be carried out. All clones are one.
#[derive(Clone)]
pub(crate) struct Watched {
    store: Arc<dyn Store>,
    trouble: Arc<Mutex<Option<String>>>,
}

impl Watched {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, trouble: Arc::default() }
    }

    /// Returns why the store does not take messages now; `None`: the last call had a final answer.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn noted(&self, kept: Kept) -> Kept {
        let trouble = match &kept {
            Kept::NotNow { after, .. } if *after < TROUBLE_MIN => return kept,
            Kept::NotNow { reason, .. } => Some(reason.clone()),
            Kept::Done | Kept::Refused(_) => None,
        };
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
        kept
    }
}

impl Store for Watched {
    fn put<'a>(&'a self, message: &'a Delayed) -> Keeping<'a> {
        // The call is made here, and the future waits for its answer.
        let keeping = self.store.put(message);
        Box::pin(async { self.noted(keeping.await) })
    }

    fn cancel<'a>(&'a self, key: &'a Key) -> Keeping<'a> {
        let keeping = self.store.cancel(key);
        Box::pin(async { self.noted(keeping.await) })
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_queue::Due;

    use super::*;

    /// Gives the answers of a list, the last one first.
    struct Answers(Mutex<Vec<Kept>>);

    impl Store for Answers {
        fn put<'a>(&'a self, _: &'a Delayed) -> Keeping<'a> {
            let answer = self.0.lock().expect("one thread").pop().expect("an answer");
            Box::pin(async { answer })
        }

        fn cancel<'a>(&'a self, _: &'a Key) -> Keeping<'a> {
            unreachable!("the test only puts")
        }
    }

    #[tokio::test]
    async fn the_trouble_is_that_of_the_last_call() {
        let not_now =
            |ms| Kept::NotNow { reason: "the disk is full".to_owned(), after: Duration::from_millis(ms) };
        let answers =
            vec![Kept::Refused("no".to_owned()), not_now(1_000), Kept::Done, not_now(100), not_now(1_000)];
        let watched = Watched::new(Arc::new(Answers(Mutex::new(answers))));
        let message = Delayed { key: None, due: Due::Now, payload: Vec::new() };
        for expected in [true, true, false, true, false] {
            watched.put(&message).await;
            assert_eq!(watched.trouble().is_some(), expected);
        }
    }
}

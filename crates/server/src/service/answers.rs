//! Memory for the payloads of answers that clients have not read yet.
//!
//! A client that reads slowly, or not at all, keeps its answer in memory. So large answers share a budget, and one caller has at most a
//! quarter of it.
//!
//! Ground rule: `Taken` is read and written under its lock only.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tickwheel_api::Problem;

use crate::access::producer::Producer;
use crate::access::refusal::Refusal;

/// Answers with payloads up to this size (bytes) take no memory of the budget: a connection has a buffer of about this size anyway.
const SMALL_BYTES: usize = 64 << 10;
/// The budget is divided by this number. One caller may use at most one of these parts.
const CALLER_SHARE: usize = 4;

/// The budget of answers. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    max: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    /// Bytes of all answers.
    all: usize,
    /// Bytes by caller, without callers that have none.
    callers: BTreeMap<Producer, usize>,
}

/// The memory of one answer. Dropping it gives the memory back.
#[derive(Debug, Default)]
pub(crate) struct Held(Option<(Answers, Producer, usize)>);

impl Answers {
    /// A budget of this many bytes.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, taken: Arc::default() }
    }

    /// Takes the memory for an answer with payloads of this size (bytes). An answer that is larger than a share takes the whole share.
    ///
    /// # Errors
    /// 429 if the budget, or the caller's share of it, has less left.
    pub(crate) fn hold(&self, producer: Producer, bytes: usize) -> Result<Held, Refusal> {
        let (_, held) = self.hold_first(producer, [bytes])?;
        Ok(held)
    }

    /// Takes the memory for the first tasks of an answer, as many as there is room for. `sizes` are the sizes of their payloads (bytes).
    /// Returns the number of these tasks, which is at least one if there are any.
    ///
    /// # Errors
    /// 429 if there is no room for the first one.
    pub(crate) fn hold_first(
        &self,
        producer: Producer,
        sizes: impl IntoIterator<Item = usize, IntoIter: Clone>,
    ) -> Result<(usize, Held), Refusal> {
        let sizes = sizes.into_iter();
        let (count, all) = sizes.clone().fold((0, 0), |(count, all), bytes| (count + 1, all + bytes));
        if all <= SMALL_BYTES {
            return Ok((count, Held::default()));
        }
        let mut taken = self.taken();
        let of_caller = taken.callers.get(&producer).copied().unwrap_or(0);
        let share = if producer.has_share() { self.max / CALLER_SHARE } else { self.max };
        let (of_share, of_all) = (share.saturating_sub(of_caller), self.max.saturating_sub(taken.all));
        // A few small tasks have room always.
        let room = of_share.min(of_all).max(SMALL_BYTES);
        let (mut count, mut bytes) = (0, 0);
        for one in sizes {
            // Otherwise a caller with nothing under way would never get a task that is larger than its share.
            let one = one.min(share);
            if bytes + one > room {
                break;
            }
            (count, bytes) = (count + 1, bytes + one);
        }
        if count == 0 {
            return Err(self.refused(of_caller, taken.all, of_share <= of_all).into());
        }
        if bytes <= SMALL_BYTES {
            return Ok((count, Held::default()));
        }
        taken.all += bytes;
        taken.callers.insert(producer, of_caller + bytes);
        Ok((count, Held(Some((self.clone(), producer, bytes)))))
    }

    fn refused(&self, of_caller: usize, all: usize, is_share: bool) -> Problem {
        let max = self.max;
        let what = if is_share {
            format!(
                "the caller has {of_caller} bytes of answers that it has not read; one caller may have a quarter of {max} (--max-answer-bytes)"
            )
        } else {
            format!(
                "the server has {all} bytes of answers that clients have not read, of {max} (--max-answer-bytes)"
            )
        };
        let hint = "read the answers to earlier calls and try again, or ask for fewer tasks at once";
        Problem::busy(what, 1).with_hint(hint)
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Whether no memory is held.
    pub(crate) fn is_nothing(&self) -> bool {
        self.0.is_none()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some((answers, producer, bytes)) = self.0.take() else { return };
        let mut taken = answers.taken();
        taken.all -= bytes;
        if let Some(of_caller) = taken.callers.get_mut(&producer) {
            *of_caller -= bytes;
            if *of_caller == 0 {
                taken.callers.remove(&producer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;
    const ONE: Producer = Producer::Token([1; 32]);
    const OTHER: Producer = Producer::Token([2; 32]);

    #[test]
    fn one_caller_has_a_quarter_and_gives_it_back() {
        let answers = Answers::new(64 * MIB);
        let held = answers.hold(ONE, 10 * MIB).expect("there is room");
        let (count, more) = answers.hold_first(ONE, [MIB; 20]).expect("there is some room");
        assert_eq!(count, 6, "a quarter is 16 MiB, and 10 of them are taken");
        let refused = answers.hold(ONE, MIB).expect_err("its share is used up");
        assert_eq!(refused.problem().status, 429);
        assert!(
            refused.problem().detail.contains("the caller has 16777216 bytes"),
            "{}",
            refused.problem().detail
        );
        assert!(answers.hold(OTHER, 16 * MIB).is_ok(), "another caller has a share of its own");
        drop((held, more));
        assert!(
            answers.hold(ONE, 20 * MIB).is_ok(),
            "it is given back, and one answer may be larger than a share"
        );
        assert!(answers.taken().callers.is_empty());
    }

    #[test]
    fn small_answers_have_room_always() {
        let answers = Answers::new(8 * MIB);
        let _all = answers.hold(Producer::Local, 8 * MIB).expect("a caller without a share has all");
        assert!(answers.hold(ONE, SMALL_BYTES).is_ok());
        let (count, _) = answers.hold_first(ONE, [SMALL_BYTES / 2; 9]).expect("two of them are small");
        assert_eq!(count, 2);
        let refused = answers.hold(ONE, SMALL_BYTES + 1).expect_err("nothing is left");
        assert!(
            refused.problem().detail.contains("the server has 8388608 bytes"),
            "{}",
            refused.problem().detail
        );
        assert_eq!(answers.hold_first(ONE, []).expect("no task").0, 0);
    }
}

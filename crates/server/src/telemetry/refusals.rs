//! The number of refusals by their kind.

use std::sync::atomic::{AtomicU64, Ordering};

use tickwheel_api::ProblemKind;

const KINDS: usize = ProblemKind::ALL.len();

/// Counts of problems, in the order of [`ProblemKind::ALL`]: in answers, in lines of batches, and on connections that
/// never sent a whole request.
#[derive(Debug)]
pub(crate) struct Refusals([AtomicU64; KINDS]);

impl Refusals {
    pub(crate) fn new() -> Self {
        Self([const { AtomicU64::new(0) }; KINDS])
    }

    /// Counts one problem of this kind.
    pub(crate) fn count(&self, kind: ProblemKind) {
        if let Some(at) = ProblemKind::ALL.iter().position(|one| *one == kind) {
            self.0[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Each kind by the last word of its type, and its count.
    pub(crate) fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        ProblemKind::ALL.iter().zip(counts).map(|(kind, count)| (word(*kind), count)).collect()
    }
}

/// The last word of the kind's type.
pub(crate) fn word(kind: ProblemKind) -> &'static str {
    let uri = kind.type_uri();
    uri.strip_prefix("/problems/").unwrap_or(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_count_and_a_word_of_its_own() {
        let refusals = Refusals::new();
        refusals.count(ProblemKind::Busy);
        refusals.count(ProblemKind::Busy);
        let counts = refusals.counts();
        assert!(counts.contains(&("busy", 2)), "{counts:?}");
        assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), 2);
        let mut words: Vec<&str> = counts.iter().map(|(word, _)| *word).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), KINDS);
    }
}

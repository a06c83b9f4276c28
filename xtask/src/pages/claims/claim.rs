//! A claim, and whether a sentence makes it.
//!
//! A claim is no sentence but words that stand beside each other, so that it is found again in other words.

use super::sentences::Sentence;
use super::words::{between, places, words};

/// A claim that is false today.
#[derive(Debug)]
pub(super) struct Claim {
    /// The claim in plain words.
    pub(super) name: &'static str,
    /// The true statement of today, as the rest of a sentence that begins with `Today`.
    pub(super) today: &'static str,
    pub(super) signs: &'static [Sign],
}

/// Words by which a sentence makes a claim.
#[derive(Debug)]
pub(super) struct Sign {
    /// The subject of the claim: one of these stands in the sentence.
    pub(super) about: &'static [&'static str],
    /// One of these stands beside it. The list is empty if the subject says all.
    pub(super) beside: &'static [&'static str],
    /// The number of words that may stand between the two.
    pub(super) within: usize,
    /// With one of these the sentence says something else.
    pub(super) unless: &'static [&'static str],
}

/// The words of a phrase.
type Phrase = Vec<String>;

/// Claims with their phrases as words, ready for many sentences.
pub(super) struct Reader {
    claims: Vec<(&'static Claim, Vec<Phrases>)>,
}

/// A sign with its phrases as words.
struct Phrases {
    sign: &'static Sign,
    about: Vec<Phrase>,
    beside: Vec<Phrase>,
    unless: Vec<Phrase>,
}

impl Reader {
    pub(super) fn new(claims: &'static [Claim]) -> Self {
        let all = |phrases: &[&str]| phrases.iter().map(|phrase| words(phrase)).collect();
        let read = |sign: &'static Sign| Phrases {
            sign,
            about: all(sign.about),
            beside: all(sign.beside),
            unless: all(sign.unless),
        };
        Self { claims: claims.iter().map(|claim| (claim, claim.signs.iter().map(read).collect())).collect() }
    }

    /// The claims that a sentence makes, alone or as the answer to one of its leads.
    pub(super) fn claims_of(&self, sentence: &Sentence) -> Vec<&'static Claim> {
        let own = words(&sentence.text);
        let mut readings = vec![(own.clone(), 0)];
        readings.extend(sentence.leads.iter().map(|lead| {
            let lead = words(lead);
            let length = lead.len();
            (lead.into_iter().chain(own.iter().cloned()).collect(), length)
        }));
        let is_made = |signs: &[Phrases]| {
            readings.iter().any(|(words, lead)| signs.iter().any(|sign| sign.is_in(words, *lead)))
        };
        self.claims.iter().filter(|(_, signs)| is_made(signs)).map(|(claim, _)| *claim).collect()
    }
}

impl Phrases {
    /// Whether the sign is in a sentence with these words. The first `lead` words are what the sentence belongs to: they alone make no claim.
    fn is_in(&self, sentence: &[String], lead: usize) -> bool {
        let all = |phrases: &[Phrase]| -> Vec<(usize, usize)> {
            phrases.iter().flat_map(|phrase| places(sentence, phrase)).collect()
        };
        let about = all(&self.about);
        if about.is_empty() || !all(&self.unless).is_empty() {
            return false;
        }
        if self.beside.is_empty() {
            return about.iter().any(|place| place.1 > lead);
        }
        let beside = all(&self.beside);
        let makes = |one: (usize, usize), other: (usize, usize)| {
            one.1.max(other.1) > lead && between(one, other) <= self.sign.within
        };
        about.iter().any(|&one| beside.iter().any(|&other| makes(one, other)))
    }
}

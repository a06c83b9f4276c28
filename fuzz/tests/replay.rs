//! The targets without a fuzzer: the corpus, and random bytes.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tickwheel_fuzz::case::Case;
use tickwheel_fuzz::said::Said;
use tickwheel_fuzz::store::damaged::Damaged;
use tickwheel_fuzz::store::sample::Sample;

/// What the fuzzer found worth keeping: together it goes every way through the code.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let files = fs::read_dir(folder).expect("the corpus is there");
    files.map(|file| fs::read(file.expect("a file").path()).expect("it can be read")).collect()
}

#[test]
fn the_corpus_of_the_wheel_is_in_order() {
    let corpus = corpus("wheel");
    assert!(!corpus.is_empty());
    corpus.iter().for_each(|bytes| Case::of_wheel(bytes).replay());
}

#[test]
fn the_corpus_of_the_classics_is_in_order() {
    let corpus = corpus("classics");
    assert!(!corpus.is_empty());
    corpus.iter().for_each(|bytes| Case::of_classics(bytes).replay());
}

#[test]
fn the_corpora_of_the_store_are_in_order() {
    type Target = (&'static str, fn(&[u8]) -> Damaged);
    let targets: [Target; 4] = [
        ("frames", Damaged::frames),
        ("segments", Damaged::segments),
        ("saved_index", Damaged::saved_index),
        ("checkpoints", Damaged::checkpoints),
    ];
    for (name, damaged) in targets {
        let corpus = corpus(name);
        assert!(!corpus.is_empty(), "{name} has no corpus");
        corpus.iter().for_each(|bytes| damaged(bytes).replay());
        corpus.iter().for_each(|bytes| damaged(bytes).salvage());
    }
}

#[test]
fn the_corpus_of_salvage_is_in_order() {
    let corpus = corpus("salvage");
    assert!(!corpus.is_empty());
    corpus.iter().for_each(|bytes| Damaged::anywhere(bytes).salvage());
}

#[test]
fn the_corpus_of_the_protocol_is_in_order() {
    let corpus = corpus("beanstalk");
    assert!(!corpus.is_empty());
    corpus.iter().for_each(|bytes| Said::new(bytes).replay());
}

/// A target whose samples lack something would never damage it.
#[test]
fn the_samples_have_every_kind_of_file() {
    assert!(!Sample::nth(0).named("/log-").is_empty());
    for nth in 1..4 {
        for kind in ["/log-", "/segment-", "/checkpoint-"] {
            assert!(!Sample::nth(nth).named(kind).is_empty(), "sample {nth} has no {kind}");
        }
    }
}

proptest! {
    #[test]
    fn random_bytes_are_in_order(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        Case::of_wheel(&bytes).replay();
        Case::of_classics(&bytes).replay();
    }

    #[test]
    fn random_packets_are_in_order(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\r'), Just(b'\n')], 0..400)) {
        Said::new(&bytes).replay();
    }

    #[test]
    fn random_damage_is_in_order(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        Damaged::frames(&bytes).replay();
        Damaged::segments(&bytes).replay();
        Damaged::saved_index(&bytes).replay();
        Damaged::checkpoints(&bytes).replay();
    }

    #[test]
    fn what_is_salvaged_of_random_damage_is_in_order(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        Damaged::anywhere(&bytes).salvage();
    }
}

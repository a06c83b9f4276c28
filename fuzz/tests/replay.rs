//! The targets without a fuzzer: the corpus, and random bytes.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tickwheel_fuzz::case::Case;

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

proptest! {
    #[test]
    fn random_bytes_are_in_order(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        Case::of_wheel(&bytes).replay();
        Case::of_classics(&bytes).replay();
    }
}

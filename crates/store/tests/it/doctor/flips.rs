//! Every byte of a small directory, one after the other.

use tickwheel_store::conformance;
use tickwheel_store::doctor::Depth;

use crate::disk::Image;
use crate::doctor::patient::{self, filled};

/// Any one byte is flipped. The doctor reports a problem or a torn tail; or else an opening finds all that it found before, record
/// by record.
#[test]
fn a_flipped_byte_is_told_or_means_nothing() {
    let mut image = filled();
    let whole = image.examine(Depth::Records);
    assert_eq!((whole.problems.len(), &whole.torn), (0, &None));
    let contents = |image: &Image| {
        let mut store = patient::open(image.clone()).map_err(|error| error.to_string())?;
        conformance::contents(&mut store, 10_000)
    };
    let expected = contents(&image).expect("it opens");
    let (mut problems, mut torn, mut meaningless) = (0, 0, 0);
    let files: Vec<(String, usize)> =
        image.files.iter().map(|(name, bytes)| (name.clone(), bytes.len())).collect();
    for (file, len) in files {
        let log = whole.logs.iter().find(|log| log.file == file);
        // Long rows of zeroes are all alike, and so are the frames of a spare: of these bytes only every 61st is flipped.
        let is_dull = |byte: usize| match log {
            Some(log) if log.spare => byte >= 64,
            Some(log) => (64..4_096).contains(&byte) || byte >= log.used_bytes as usize + 128,
            None => false,
        };
        for byte in (0..len).filter(|byte| !is_dull(*byte) || byte % 61 == 0) {
            let bits = 1 << (byte % 8);
            image.flip(&file, byte, bits);
            let found = image.examine(Depth::Records);
            if !found.problems.is_empty() {
                problems += 1;
            } else if found.torn.is_some() {
                torn += 1;
            } else {
                meaningless += 1;
                let now = contents(&image);
                assert!(now.as_ref() == Ok(&expected), "byte {byte} of {file} went unseen: {now:?}");
            }
            image.flip(&file, byte, bits);
        }
    }
    assert!(problems > 5_000 && torn > 50 && meaningless > 100, "{problems} {torn} {meaningless}");
}

//! A page in `docs/reference`.

use std::path::PathBuf;

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "docs", "reference", name].iter().collect()
}

/// Compares the file with the page that this version makes. `writer` is the ignored test that writes the file.
pub(super) fn compare(name: &str, made: &str, writer: &str) {
    let written = std::fs::read_to_string(path(name)).unwrap_or_default();
    let longest = made.lines().count().max(written.lines().count());
    let (mut ours, mut theirs) = (made.lines(), written.lines());
    let differs = (1..=longest).find(|_| ours.next() != theirs.next());
    assert!(
        written == made,
        "docs/reference/{name} is not the page of this version from line {} on; this command rewrites it: \
         cargo test -p tickwheel-cli --bin tickwheel {writer} -- --ignored",
        differs.unwrap_or(longest)
    );
}

/// Writes the file.
pub(super) fn write(name: &str, made: &str) {
    std::fs::write(path(name), made).expect("written");
}

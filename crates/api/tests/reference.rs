//! A test that `docs/http.md` is the page that the code makes.

use std::path::PathBuf;

use tickwheel_api::openapi::reference;

fn page() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "docs", "http.md"].iter().collect()
}

#[test]
fn the_page_is_that_of_this_version() {
    let written = std::fs::read_to_string(page()).expect("the page is there");
    let differs = reference().lines().zip(written.lines()).position(|(made, written)| made != written);
    assert!(
        written == reference(),
        "docs/http.md is another from line {} on; `cargo test -p tickwheel-api --test reference -- --ignored` writes it",
        differs.map_or(0, |line| line + 1)
    );
}

#[test]
#[ignore = "it writes the page"]
fn write_the_page() {
    std::fs::write(page(), reference()).expect("written");
}

//! The chore `planted`: the binary that ships has none of the bugs that are there for the simulator to find.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::finding::{Finding, report};
use crate::root::{Text, root, texts};

/// Stands in every build of the binary, so that a file in which nothing is found is known to be one that was searched well.
const CONTROL: &str = "tickwheel-data";
/// The mangled name of the function that switches a bug on.
const SWITCH: &str = "7planted6select";
/// Fewer names than this mean that the search for them is broken, not that the bugs are gone.
const NAMES_MIN: usize = 3;

/// Searches `binary`, or the release binary.
pub(crate) fn run(binary: Option<&str>) -> Result<()> {
    let binary = binary.map_or_else(release_binary, PathBuf::from);
    let names = names(&texts(&root())?);
    if names.len() < NAMES_MIN {
        bail!("only {} names of planted bugs found in the sources, not {NAMES_MIN}: {names:?}", names.len());
    }
    let bytes =
        fs::read(&binary).with_context(|| format!("read {}; build it with --release", binary.display()))?;
    if !holds(&bytes, CONTROL) {
        bail!("{} does not hold `{CONTROL}`: it is not the tickwheel binary", binary.display());
    }
    report(
        "planted",
        &format!("{} bugs in {}", names.len(), binary.display()),
        search(&binary, &bytes, &names),
    )
}

fn release_binary() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join("release").join(format!("tickwheel{}", std::env::consts::EXE_SUFFIX))
}

fn search(binary: &std::path::Path, bytes: &[u8], names: &BTreeSet<String>) -> Vec<Finding> {
    let place = binary.display().to_string();
    let found = names.iter().map(String::as_str).filter(|name| holds(bytes, beginning(name)));
    let found = found.chain(Some(SWITCH).filter(|switch| holds(bytes, switch)));
    found
        .map(|name| Finding::new(&place, format!("holds `{name}`; was it built with --cfg tickwheel_sim?")))
        .collect()
}

/// As much of a name as stays in one piece: a compiler may take a short text apart and compare it sixteen or eight bytes at a
/// time.
fn beginning(name: &str) -> &str {
    let piece = [16, 8].into_iter().find(|&piece| name.len() >= piece);
    piece.and_then(|piece| name.get(..piece)).unwrap_or(name)
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// The names of all planted bugs: what the product asks `planted::is` about.
fn names(texts: &[Text]) -> BTreeSet<String> {
    let product = texts.iter().filter(|text| text.path.starts_with("crates/") && text.path.ends_with(".rs"));
    let asked = product.flat_map(|text| text.text.split("planted::is(\"").skip(1));
    asked.filter_map(|rest| rest.split_once('"')).map(|(name, _)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &str, text: &str) -> Text {
        Text { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn names_are_found_in_the_product_only() {
        let texts = [
            text(
                "crates/engine/src/a.rs",
                "if planted::is(\"one-bug\") && !crate::planted::is(\"two-bugs\") {}",
            ),
            text("sim/src/a.rs", "planted::is(\"not-shipped\")"),
            text("crates/engine/notes.md", "planted::is(\"prose\")"),
        ];
        assert_eq!(names(&texts), BTreeSet::from(["one-bug".to_owned(), "two-bugs".to_owned()]));
    }

    #[test]
    fn a_name_inside_other_bytes_is_found() {
        let names = BTreeSet::from(["one-bug".to_owned(), "two-bugs".to_owned()]);
        let found = search("b".as_ref(), b"\x00\xffxone-bugy\x00", &names);
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().contains("b: holds `one-bug`"), "{found:?}");
        assert_eq!(search("b".as_ref(), b"_ZN5store7planted6select17h", &names).len(), 1);
        assert_eq!(search("b".as_ref(), b"one_bug, two_bugs", &names), []);
    }

    #[test]
    fn a_name_that_was_taken_apart_is_found_by_its_beginning() {
        let names = BTreeSet::from(["old-instant-fires".to_owned(), "no-dir-sync".to_owned()]);
        assert_eq!(search("b".as_ref(), b"old-instant-fire\x00\x73no-dir-s", &names).len(), 2);
        assert_eq!(search("b".as_ref(), b"old-instance no-dir", &names), []);
    }

    #[test]
    fn the_names_of_this_very_repository_are_found() {
        let names = names(&texts(&root()).expect("the repository can be read"));
        assert!(names.len() >= NAMES_MIN, "found {names:?}");
    }
}

//! The tests that are named after a behaviour.

use super::id::Id;
use crate::root::Text;

/// A test and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Test {
    pub(super) id: Id,
    /// File and line.
    pub(super) place: String,
    /// Whether `cargo test` runs it.
    pub(super) runs: bool,
}

/// A macro that makes a test of each name it is given has this line.
const ONE_FOR_EACH: &str = "fn $check() {";
/// Tests of other builds than the usual one.
const OTHER_BUILDS: &str = "/tests/it/shuttle/";

/// The tests in one file, if it is one of the product or an example.
pub(super) fn tests(text: &Text) -> Vec<Test> {
    let ours = text.path.starts_with("crates/") || text.path.starts_with("examples/");
    if !ours || !text.path.ends_with(".rs") {
        return Vec::new();
    }
    let makes_tests = text.text.lines().any(|line| line.trim() == ONE_FOR_EACH);
    let usual = !text.path.contains(OTHER_BUILDS);
    let mut tests = Vec::new();
    // The lines above the function are read upwards, to the last line that is neither attribute nor comment.
    let mut attributes = Attributes::default();
    for (number, line) in (1..).zip(text.text.lines()) {
        let line = line.trim();
        let mut add = |name: &str, runs: bool| {
            let place = || format!("{}:{number}", text.path);
            tests.extend(Id::of_test(name).map(|id| Test { id, place: place(), runs }));
        };
        if attributes.take(line) {
            continue;
        }
        if let Some(name) = function(line) {
            if attributes.test {
                add(name, usual && !attributes.ignored);
            }
        } else if makes_tests && let Some(name) = line.strip_suffix(',') {
            add(name, usual);
        }
        attributes = Attributes::default();
    }
    tests
}

/// The attributes of the next function.
#[derive(Default)]
struct Attributes {
    test: bool,
    ignored: bool,
    /// In the middle of one.
    open: bool,
}

impl Attributes {
    /// Whether the line is a part of what stands above a function.
    fn take(&mut self, line: &str) -> bool {
        if self.open {
            self.open = !line.ends_with(']');
            return true;
        }
        let Some(attribute) = line.strip_prefix("#[") else { return line.starts_with("//") };
        let name = attribute.split(['(', ']', ' ', '=']).next().unwrap_or_default();
        self.test |= name == "test" || name.ends_with("::test");
        self.ignored |= name == "ignore";
        self.open = !line.ends_with(']');
        true
    }
}

/// The name of the function that begins in a line.
fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    let rest = line.strip_prefix("fn ")?;
    rest.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next()
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let text = Text { path: path.to_owned(), text: text.to_owned() };
        let shown = |test: Test| format!("{} {} {}", test.id, test.place, test.runs);
        tests(&text).into_iter().map(shown).collect()
    }

    #[test]
    fn a_function_is_a_test_by_its_attribute() {
        let text = "#[test]\nfn t1_a() {}\n\nfn t2_b() {}\n#[tokio::test]\nasync fn t3_c() {}\n";
        assert_eq!(
            found("crates/timer/tests/a.rs", text),
            ["T1 crates/timer/tests/a.rs:2 true", "T3 crates/timer/tests/a.rs:6 true"]
        );
    }

    #[test]
    fn comments_and_other_attributes_may_stand_between() {
        let text = "    #[test]\n    /// Why.\n    // More.\n    #[expect(\n        x,\n        reason = \"y\"\n    )]\n    fn d1_a(x in 0..3) {\n    }\n#[test]\nlet x = 1;\nfn d2_b() {}\n";
        assert_eq!(found("examples/src/a.rs", text), ["D1 examples/src/a.rs:8 true"]);
    }

    #[test]
    fn what_cargo_test_does_not_run_is_told_from_what_it_runs() {
        let text = "#[test]\n#[ignore = \"slow\"]\nfn g1_a() {}\n#[test]\nfn g2_b() {}\n";
        assert_eq!(
            found("crates/a/src/a.rs", text),
            ["G1 crates/a/src/a.rs:3 false", "G2 crates/a/src/a.rs:5 true"]
        );
        assert_eq!(
            found("crates/a/tests/it/shuttle/a.rs", "#[test]\nfn g1_a() {}\n"),
            ["G1 crates/a/tests/it/shuttle/a.rs:2 false"]
        );
    }

    #[test]
    fn a_macro_makes_a_test_of_each_name() {
        let list = "suite!(\n    wh1_a,\n    wh2_b,\n);\n";
        assert_eq!(found("crates/a/src/a.rs", list), Vec::<String>::new());
        let with_macro = format!("{list}#[test]\nfn $check() {{\n");
        assert_eq!(
            found("crates/a/src/a.rs", &with_macro),
            ["WH1 crates/a/src/a.rs:2 true", "WH2 crates/a/src/a.rs:3 true"]
        );
    }

    #[test]
    fn only_the_product_and_the_examples_count() {
        for path in ["sim/src/a.rs", "xtask/src/a.rs", "crates/a/notes.md"] {
            assert_eq!(found(path, "#[test]\nfn t1_a() {}\n"), Vec::<String>::new(), "{path}");
        }
    }
}

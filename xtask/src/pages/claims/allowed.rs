//! Sentences that have the words of a retired claim, and are true.

use crate::finding::Finding;

/// The list of them.
pub(super) const LIST: &str = "xtask/src/pages/claims/allowed.txt";

/// A piece of a page that is allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Allowed<'a> {
    /// The line of the list in which it begins.
    pub(super) line: usize,
    pub(super) page: &'a str,
    /// Stands in the sentence as the check prints it.
    pub(super) says: &'a str,
}

/// The entries of the list. Each has three lines, `page`, `says` and `true`; an empty line ends it, and `#` begins a comment.
pub(super) fn read<'a>(list: &'a str, findings: &mut Vec<Finding>) -> Vec<Allowed<'a>> {
    let mut entries = Vec::new();
    let lines: Vec<(usize, &str)> = (1..).zip(list.lines().map(str::trim)).collect();
    let lines = lines.into_iter().filter(|(_, line)| !line.starts_with('#'));
    let lines: Vec<(usize, &str)> = lines.collect();
    for entry in lines.split(|(_, line)| line.is_empty()).filter(|entry| !entry.is_empty()) {
        let line = entry[0].0;
        let values: Vec<Option<&str>> = ["page ", "says ", "true "]
            .into_iter()
            .zip(entry)
            .map(|(key, (_, line))| line.strip_prefix(key).map(str::trim))
            .collect();
        match values[..] {
            [Some(page), Some(says), Some(_)] if entry.len() == 3 => {
                entries.push(Allowed { line, page, says });
            }
            _ => {
                let what = "an entry has the three lines `page PAGE`, `says PIECE OF THE SENTENCE` and `true REASON`, and then an empty line";
                findings.push(Finding::new(format!("{LIST}:{line}"), what));
            }
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_three_lines() {
        let mut findings = Vec::new();
        let list = "# head\n\npage  a.md\n# beside\nsays  not b\ntrue  It speaks of c.\n\n\npage d.md\nsays e\n\npage f.md\nsays g\ntrue h\nmore\n";
        let entries = read(list, &mut findings);
        assert_eq!(entries, [Allowed { line: 3, page: "a.md", says: "not b" }]);
        let places: Vec<&str> = findings.iter().map(|finding| finding.place.as_str()).collect();
        assert_eq!(places, ["xtask/src/pages/claims/allowed.txt:9", "xtask/src/pages/claims/allowed.txt:12"]);
    }
}

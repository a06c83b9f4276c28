//! Words that GLOSSARY.md retires.

use super::plain::places;
use super::prose::Paragraph;
use crate::finding::Finding;
use crate::root::Text;

/// A retired word of the prose, and what to write instead.
const WORDS: [(&str, &str); 18] = [
    ("gate", "`commit barrier`, `limiter` or `connection framer`"),
    ("gates", "`limiters`"),
    ("the task machine", "`the engine`"),
    ("a pure machine", "`a pure engine`"),
    ("the machine asks", "`the engine asks`"),
    ("upkeep", "`maintenance`"),
    ("fresh tasks", "`tasks in the memtable`"),
    ("hungry", "`waiting`, or `prefetch` for what is read ahead"),
    ("lapse", "`lease end`"),
    ("lapses", "`lease ends`"),
    ("burial", "`dead-lettering`"),
    ("in vain", "`unserved`"),
    ("impatient", "`no-wait`"),
    ("census", "`due histogram`"),
    ("laid down", "`configured`"),
    ("rim", "`edge`"),
    ("parcel", "`undelivered guard`"),
    ("linger", "`evict` or `pin`"),
];
/// A retired name, in code as in prose, that no crate below still exports.
const NAMES: [(&str, &str); 5] = [
    ("Desk", "`ConnectionContext`"),
    ("Cut", "`Disconnect`"),
    ("HeldStill", "`BackupPin`"),
    ("Lapse", "`LeaseEnd`"),
    ("Census", "`DueHistogram`"),
];

/// Retired words of one paragraph.
pub(super) fn check(path: &str, paragraph: &Paragraph, findings: &mut Vec<Finding>) {
    let lower = paragraph.text().to_ascii_lowercase();
    for (word, instead) in WORDS {
        for at in places(&lower, word) {
            findings.push(finding(path, paragraph.line_of(at), word, instead));
        }
    }
}

/// Retired names of a source file.
pub(super) fn check_names(text: &Text, findings: &mut Vec<Finding>) {
    if !text.path.ends_with(".rs") {
        return;
    }
    for (number, line) in (1..).zip(text.text.lines()) {
        for (name, instead) in NAMES.iter().filter(|(name, _)| !places(line, name).is_empty()) {
            findings.push(finding(&text.path, number, name, instead));
        }
    }
}

fn finding(path: &str, line: usize, word: &str, instead: &str) -> Finding {
    Finding::new(format!("{path}:{line}"), format!("`{word}` is retired (GLOSSARY.md); write {instead}"))
}

#[cfg(test)]
mod tests {
    use super::super::prose::paragraphs;
    use super::*;

    fn said(path: &str, text: &str) -> Vec<String> {
        let text = Text { path: path.to_owned(), text: text.to_owned() };
        let mut findings = Vec::new();
        paragraphs(&text).iter().for_each(|paragraph| check(path, paragraph, &mut findings));
        check_names(&text, &mut findings);
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_retired_word_is_told_with_its_heir() {
        let found = said("a.md", "Answers wait in the\nGate until then.\n");
        let expected = "error: a.md:2: `gate` is retired (GLOSSARY.md); write `commit barrier`, `limiter` or `connection framer`";
        assert_eq!(found, [expected]);
        assert_eq!(said("a.md", "An aggregate, a gateway and `gate`.\n"), Vec::<String>::new());
    }

    #[test]
    fn a_retired_name_is_told_wherever_it_stands() {
        assert_eq!(said("a.rs", "struct Desk {\n    cut: Cutter,\n}\n").len(), 1);
        assert_eq!(said("a.rs", "let x = &Cut;\n").len(), 1);
        assert_eq!(said("a.rs", "let desk = Desks;\n"), Vec::<String>::new());
    }
}

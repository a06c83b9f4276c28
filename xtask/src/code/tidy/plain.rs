//! Plain English, as far as a machine can tell: a paragraph opens with its subject, and a person or a number is named.

use super::prose::{Kind, Paragraph};
use crate::finding::Finding;

/// A paragraph that opens so leaves its subject to the reader. A heading may.
const OPENINGS: [&str; 9] = ["It", "They", "He", "She", "That", "Those", "What", "Of", "The same of"];
/// `This` is a subject of its own before one of these, otherwise a noun follows.
const VERBS: [&str; 20] = [
    "is", "was", "has", "had", "may", "can", "must", "does", "did", "will", "would", "should", "says",
    "means", "makes", "needs", "keeps", "holds", "happens", "takes",
];
/// Words that name nothing, and what to do instead.
const VAGUE: [(&str, &str); 6] = [
    ("so many", "name the number"),
    ("so long", "name the duration, or write `as long as`"),
    ("whoever", "say who"),
    ("somebody", "say who"),
    ("nobody", "say who does not"),
    ("anybody", "say who"),
];

/// The rules for one paragraph of the file at `path`.
pub(super) fn check(path: &str, paragraph: &Paragraph, findings: &mut Vec<Finding>) {
    let text = paragraph.text();
    let opening = if paragraph.kind == Kind::Body { opening(&text) } else { None };
    if let Some(opening) = opening {
        let what = format!("opens with `{opening}`; name the subject first");
        findings.push(Finding::new(format!("{path}:{}", paragraph.line()), what));
    }
    let lower = text.to_ascii_lowercase();
    for (vague, instead) in VAGUE {
        for at in places(&lower, vague) {
            let what = format!("says `{vague}`; {instead}");
            findings.push(Finding::new(format!("{path}:{}", paragraph.line_of(at)), what));
        }
    }
}

fn opening(text: &str) -> Option<&'static str> {
    let text = text.trim_start_matches(['*', '_', '(', '"']);
    let begins = |word: &str| text.strip_prefix(word).is_some_and(|rest| !begins_inside_a_word(rest));
    let this =
        || text.strip_prefix("This ").is_some_and(|rest| VERBS.iter().any(|verb| first_word(rest) == *verb));
    OPENINGS.into_iter().find(|word| begins(word)).or_else(|| this().then_some("This"))
}

fn first_word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default()
}

fn begins_inside_a_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphanumeric() || "_-".contains(c))
}

/// Where `text` has `words` as whole words.
pub(super) fn places(text: &str, words: &str) -> Vec<usize> {
    let whole = |at: &usize| {
        let before = text[..*at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
            && !begins_inside_a_word(&text[at + words.len()..])
    };
    text.match_indices(words).map(|(at, _)| at).filter(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::super::prose::paragraphs;
    use super::*;
    use crate::root::Text;

    fn said(path: &str, text: &str) -> Vec<String> {
        let text = Text { path: path.to_owned(), text: text.to_owned() };
        let mut findings = Vec::new();
        paragraphs(&text).iter().for_each(|paragraph| check(path, paragraph, &mut findings));
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_paragraph_opens_with_its_subject() {
        for wrong in [
            "It waits.",
            "What is due.",
            "Of two the first.",
            "The same of a queue.",
            "This is one.",
            "**Those** go.",
        ] {
            assert_eq!(said("a.rs", &format!("fn f() {{}}\n    // {wrong}\n")).len(), 1, "{wrong}");
        }
        for right in [
            "Items wait.",
            "This test waits.",
            "The task. It waits.",
            "Whatever comes.",
            "Often.",
            "`It` is a type.",
        ] {
            assert_eq!(said("a.md", right), Vec::<String>::new(), "{right}");
        }
        assert_eq!(
            said("a.md", "one\nIt goes on.\n\n## What a timer costs\n\n| It |\n"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn vague_words_are_told_with_their_line() {
        let found = said("a.md", "One waits for so\nlong, and Somebody\nasks.\n| nobody |\n");
        let expected = [
            "error: a.md:1: says `so long`; name the duration, or write `as long as`",
            "error: a.md:2: says `somebody`; say who",
            "error: a.md:4: says `nobody`; say who does not",
        ];
        assert_eq!(found, expected);
        assert_eq!(
            said("a.rs", "let so_long = nobody();\n/// `nobody` and nobody_else.\n"),
            Vec::<String>::new()
        );
    }
}

//! Figures and names as YAML. The form is plain enough for clients that split lines or match regular expressions instead of parsing YAML.

use std::fmt::Display;
use std::io::Write;

use super::terms::Tube;

const BEGIN: &[u8] = b"---\n";

/// A map: one `key: value` a line.
#[derive(Debug)]
pub struct YamlMap(Vec<u8>);

impl Default for YamlMap {
    fn default() -> Self {
        Self(BEGIN.to_vec())
    }
}

impl YamlMap {
    /// Adds a value without quotes: a number, or a word that YAML reads as text.
    #[must_use]
    pub fn bare(mut self, key: &str, value: impl Display) -> Self {
        writeln!(self.0, "{key}: {value}").expect("memory takes all");
        self
    }

    /// Adds a duration, given in microseconds, as seconds with six decimals.
    #[must_use]
    pub fn seconds(self, key: &str, micros: u64) -> Self {
        self.bare(key, format_args!("{}.{:06}", micros / 1_000_000, micros % 1_000_000))
    }

    /// Adds a text in quotes. Quotes, backslashes and control characters in it become `_`.
    #[must_use]
    pub fn quoted(self, key: &str, value: &str) -> Self {
        let safe: String =
            value.chars().map(|c| if c == '"' || c == '\\' || c.is_control() { '_' } else { c }).collect();
        self.bare(key, format_args!("\"{safe}\""))
    }

    /// Adds the name of a tube. Quotes are written only where YAML needs them, because a client that splits lines would treat them as a
    /// part of the name.
    #[must_use]
    pub fn tube(self, key: &str, tube: &Tube) -> Self {
        if reads_as_another(tube.as_str()) { self.quoted(key, tube.as_str()) } else { self.bare(key, tube) }
    }

    /// The whole text.
    #[must_use]
    pub fn text(self) -> Vec<u8> {
        self.0
    }
}

/// A list: one `- name` a line.
#[derive(Debug)]
pub struct YamlList(Vec<u8>);

impl Default for YamlList {
    fn default() -> Self {
        Self(BEGIN.to_vec())
    }
}

impl YamlList {
    /// Adds a name.
    #[must_use]
    pub fn tube(mut self, tube: &Tube) -> Self {
        let quote = if reads_as_another(tube.as_str()) { "\"" } else { "" };
        writeln!(self.0, "- {quote}{tube}{quote}").expect("memory takes all");
        self
    }

    /// The whole text.
    #[must_use]
    pub fn text(self) -> Vec<u8> {
        self.0
    }
}

/// Whether YAML 1.1 or 1.2 may read the bare name as a number, a date, a boolean or null.
fn reads_as_another(name: &str) -> bool {
    const WORDS: [&str; 12] =
        ["true", "false", "yes", "no", "on", "off", "null", "y", "n", ".inf", ".nan", "+.inf"];
    let lower = name.to_ascii_lowercase();
    let unsigned = lower.strip_prefix(['+', '-']).unwrap_or(&lower);
    let by_base = ["0x", "0o", "0b"].iter().any(|base| {
        let digits = unsigned.strip_prefix(base);
        digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'_'))
    });
    let numeric = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && unsigned.bytes().any(|byte| byte.is_ascii_digit())
        && unsigned.bytes().all(|byte| byte.is_ascii_digit() || b"._e+-".contains(&byte));
    WORDS.contains(&&lower[..]) || by_base || numeric
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tube(name: &str) -> Tube {
        Tube::new(name.as_bytes()).expect(name)
    }

    #[test]
    fn what_a_parser_would_misread_is_in_quotes_and_nothing_else() {
        for name in [
            "123",
            "1.5",
            "1e9",
            "12e4",
            "0x1F",
            "0o17",
            "0b11",
            "1_000",
            "+7",
            "2026-11-23",
            ".5",
            ".inf",
            "true",
            "No",
            "NULL",
            "y",
            "+1.5e-3",
        ] {
            assert!(reads_as_another(name), "{name}");
        }
        for name in [
            "default",
            "orders",
            "v1.2-rc",
            "1st",
            "12ab",
            "a1",
            "e",
            "0xyz",
            "none",
            "nullable",
            "on-call",
            ".",
            "+",
            "$x",
            "(a)",
            "a/b",
            "2026-11-23T",
        ] {
            assert!(!reads_as_another(name), "{name}");
        }
        let list = YamlList::default().tube(&tube("default")).tube(&tube("1"));
        assert_eq!(list.text(), b"---\n- default\n- \"1\"\n");
    }

    #[test]
    fn figures_are_lines() {
        let map = YamlMap::default()
            .bare("id", 7)
            .tube("tube", &tube("default"))
            .tube("name", &tube("yes"))
            .seconds("rusage-utime", 1_000_007)
            .quoted("os", "#1 \"SMP\"");
        let text = String::from_utf8(map.text()).expect("UTF-8");
        assert_eq!(
            text,
            "---\nid: 7\ntube: default\nname: \"yes\"\nrusage-utime: 1.000007\nos: \"#1 _SMP_\"\n"
        );
    }
}

//! The command that resumes an import that stopped, in shell syntax.

use std::path::Path;

/// The words of a command, quoted where a shell needs it.
#[derive(Debug)]
pub(crate) struct Words(Vec<String>);

impl Words {
    /// A command that begins with these words.
    pub(crate) fn new(words: &[&str]) -> Self {
        Self(words.iter().map(|word| quoted(word)).collect())
    }

    /// Adds a word.
    pub(crate) fn word(&mut self, word: &str) {
        self.0.push(quoted(word));
    }

    /// Adds an option with its value.
    pub(crate) fn option(&mut self, name: &str, value: &str) {
        self.word(name);
        self.word(value);
    }

    /// Adds an option with a path.
    pub(crate) fn path(&mut self, name: &str, path: &Path) {
        self.option(name, &path.display().to_string());
    }

    /// The command in one line.
    pub(crate) fn line(&self) -> String {
        self.0.join(" ")
    }
}

fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_each_word_as_it_was_given() {
        let mut words = Words::new(&["printf", "%s\n"]);
        let given = ["a.ndjson", "my file", "it's", "$HOME", "", "--data", "https://h:1/x", "a;b", "\u{e4}"];
        given.iter().for_each(|word| words.word(word));
        words.path("-d", Path::new("a b/c"));
        let output = std::process::Command::new("sh").args(["-c", &words.line()]).output().expect("a shell");
        let expected = [&given[..], &["-d", "a b/c"]].concat().join("\n") + "\n";
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{}", words.line());
    }
}

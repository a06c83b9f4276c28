//! [`PushLines`]: the lines of the tables `[push.*]` in their file.

use std::collections::BTreeMap;

use toml::de::DeValue;

/// The lines of the tables `[push.*]` in their file. Empty for tables that come from no file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct PushLines {
    /// By the name of the table of tables (`connections`), the name of the table, and the member; `None`: the table itself.
    lines: BTreeMap<(String, String, Option<String>), usize>,
}

impl PushLines {
    /// Returns the lines in `push`, the value of the key of that name. `line_of`: the line of a byte of the file.
    pub(crate) fn of(push: &DeValue<'_>, line_of: impl Fn(usize) -> usize) -> Self {
        let mut lines = BTreeMap::new();
        for (table, named) in push.as_table().into_iter().flatten() {
            for (name, members) in named.get_ref().as_table().into_iter().flatten() {
                let mut put = |member: Option<&str>, at: usize| {
                    let key =
                        (table.get_ref().to_string(), name.get_ref().to_string(), member.map(str::to_owned));
                    lines.insert(key, line_of(at));
                };
                put(None, name.span().start);
                for (member, _) in members.get_ref().as_table().into_iter().flatten() {
                    put(Some(member.get_ref()), member.span().start);
                }
            }
        }
        Self { lines }
    }

    /// Returns the line of a member of `[push.TABLE.NAME]`, or else that of the table; `None`: neither is in a file.
    pub(crate) fn of_member(&self, table: &str, name: &str, member: &str) -> Option<usize> {
        let key = |member| (table.to_owned(), name.to_owned(), member);
        self.lines.get(&key(Some(member.to_owned()))).or_else(|| self.lines.get(&key(None))).copied()
    }
}

#[cfg(test)]
mod tests {
    use toml::de::DeTable;

    use super::*;

    #[test]
    fn a_member_has_a_line_and_an_absent_one_has_that_of_its_table() {
        let text =
            "listen = \"a\"\n[push.secrets]\na = { file = \"x\" }\n\n[push.tls.a]\n# a comment\nca = \"x\"\n";
        let table = DeTable::parse(text).expect(text);
        let push = table.get_ref().get("push").expect("a table");
        let lines = PushLines::of(push.get_ref(), |at| 1 + text[..at].matches('\n').count());
        for (table, name, member, line) in [
            ("secrets", "a", "file", Some(3)),
            ("tls", "a", "ca", Some(7)),
            ("tls", "a", "cert", Some(5)),
            ("tls", "b", "ca", None),
            ("connections", "a", "kind", None),
        ] {
            assert_eq!(lines.of_member(table, name, member), line, "{table}.{name}.{member}");
        }
    }
}

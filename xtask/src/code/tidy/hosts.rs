//! The hosts that our files may name: public ones that are on a list, and names that are reserved for examples.

use crate::finding::Finding;
use crate::root::Text;

/// Public places that we refer to; the last one names the format of pictures.
const PUBLIC: [&str; 19] = [
    "crates.io",
    "doc.rust-lang.org",
    "docs.amazonaws.cn",
    "docs.aws.amazon.com",
    "docs.rs",
    "docs.temporal.io",
    "doi.org",
    "github.com",
    "lwn.net",
    "manpages.ubuntu.com",
    "postgresql.org",
    "redis.antirez.com",
    "redis.io",
    "riverqueue.com",
    "www.apache.org",
    "www.confluent.io",
    "www.rfc-editor.org",
    "www.standardwebhooks.com",
    "www.w3.org",
];
/// Endings set aside for examples, and loopback.
const NOBODYS: [&str; 9] = [
    "example",
    "example.com",
    "example.net",
    "example.org",
    "invalid",
    "localhost",
    "test",
    "127.0.0.1",
    "[::1]",
];

/// Every address in the text whose host is neither.
pub(super) fn check(text: &Text, findings: &mut Vec<Finding>) {
    for (number, line) in (1..).zip(text.text.lines()) {
        for host in hosts(line).filter(|host| !is_known(host)) {
            let what =
                format!("names the host {host}; if it is public and needed, add it to the list in xtask");
            findings.push(Finding::new(format!("{}:{number}", text.path), what));
        }
    }
}

/// The hosts of the addresses in a line. A placeholder is none.
fn hosts(line: &str) -> impl Iterator<Item = &str> {
    let addresses = line.match_indices("://").filter(|(at, _)| line[..*at].ends_with(['p', 's']));
    addresses.filter_map(|(at, separator)| {
        let rest = &line[at + separator.len()..];
        let rest = &rest[..rest
            .find(['/', '?', '#', '"', '`', ' ', '<', '>', '\\', '{', ')', '\''])
            .unwrap_or(rest.len())];
        let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        let host = match rest.strip_prefix('[') {
            Some(_) => &rest[..=rest.find(']')?],
            None => rest.split(':').next().unwrap_or(rest),
        };
        // One word is a placeholder or made up for a test; a real host has a domain, or is a number.
        (host.contains('.') || host.contains("::")).then_some(host)
    })
}

fn is_known(host: &str) -> bool {
    let below = |ending: &str| {
        host.strip_suffix(ending).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    PUBLIC.contains(&host) || NOBODYS.iter().any(|ending| below(ending)) || host.starts_with("[2001:db8:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> Vec<String> {
        let mut findings = Vec::new();
        check(&Text { path: "a.rs".to_owned(), text: line.to_owned() }, &mut findings);
        findings.into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn public_hosts_examples_and_placeholders_pass() {
        for line in [
            "see https://docs.rs/jiff and http://127.0.0.1:8463/v1",
            "http://[::1]:80/ http://localhost http://evil.example/x https://api.example.com",
            "format!(\"http://{addr}\") or http://HOST:PORT or `http://` or http://[2001:db8::1]:80 or http://box/",
        ] {
            assert_eq!(refused(line), Vec::<String>::new(), "{line}");
        }
    }

    #[test]
    fn other_hosts_are_named() {
        for (line, host) in [
            (["curl http", "://mirror.internal:8080/x"].concat(), "mirror.internal"),
            (["https", "://user@10.0.0.7/x"].concat(), "10.0.0.7"),
            (["https", "://notexample.com"].concat(), "notexample.com"),
            (["ws", "://[fe80::1]/"].concat(), "[fe80::1]"),
        ] {
            let refused = refused(&line);
            assert_eq!(refused.len(), 1, "{line}");
            assert!(refused[0].contains(host), "{refused:?}");
        }
    }
}

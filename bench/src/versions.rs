//! Which versions were measured: those of the lock file that this program was built with.

use std::fmt::Write as _;

const LOCK: &str = include_str!("../../Cargo.lock");
/// The packages behind the peers.
const PEERS: [&str; 5] = ["fjall", "hierarchical_hash_wheel_timer", "nexus-timer", "tokio", "tokio-util"];

/// The compiler and the peers.
pub(crate) fn describe() -> String {
    let mut versions = env!("RUSTC_VERSION").to_owned();
    for peer in PEERS {
        let _ = write!(versions, ", {peer} {}", locked(LOCK, peer).unwrap_or("of no known version"));
    }
    versions
}

/// The version of a package in a lock file.
fn locked<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let mut lines = lock.lines();
    lines.find(|line| line.strip_prefix("name = ").is_some_and(|name| name.trim_matches('"') == package))?;
    Some(lines.next()?.strip_prefix("version = ")?.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_has_a_version() {
        for peer in PEERS {
            let version = locked(LOCK, peer).expect(peer);
            assert!(version.split('.').count() >= 3, "{peer} {version}");
        }
        assert!(describe().starts_with("rustc 1."), "{}", describe());
        assert_eq!(locked("name = \"tokio-util\"\nversion = \"1.2.3\"\n", "tokio"), None);
    }
}

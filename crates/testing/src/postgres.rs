//! Where the programs of PostgreSQL are.

use std::path::{Path, PathBuf};

use crate::need::{is_at, missing};

/// Returns the folder of the programs of PostgreSQL: the one that `TICKWHEEL_POSTGRES_BIN` names, one of the search path, or one in
/// `/usr/lib/postgresql`, the newest version first. `None`: it is missing, and the running test is skipped.
///
/// # Panics
///
/// If it is missing and all programs are required.
#[track_caller]
pub fn postgres() -> Option<PathBuf> {
    let set = std::env::var_os("TICKWHEEL_POSTGRES_BIN").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = set.into_iter().chain(std::env::split_paths(&path)).chain(installed());
    let found = folders.into_iter().find(|folder| is_whole(folder));
    if found.is_none() {
        missing("postgres", "apt-get install postgresql-15, or name its folder by TICKWHEEL_POSTGRES_BIN");
    }
    found
}

/// The folders of the packages of Debian and Ubuntu, the newest version first.
fn installed() -> Vec<PathBuf> {
    const FOLDER: &str = "/usr/lib/postgresql";
    if !is_at(Path::new(FOLDER)) {
        return Vec::new();
    }
    let versions = std::fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            Some((number, entry.path().join("bin")))
        })
        .collect();
    versions.sort_unstable_by(|one, other| other.cmp(one));
    versions.into_iter().map(|(_, folder)| folder).collect()
}

fn is_whole(folder: &Path) -> bool {
    ["initdb", "postgres", "pg_basebackup", "psql"].iter().all(|program| folder.join(program).is_file())
}

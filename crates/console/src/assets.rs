//! The table of the files. A test compares it with the folder.

use crate::media::Media;

/// A file as it stands in `assets/`.
#[derive(Debug)]
pub(crate) struct Asset {
    /// The path below `assets/`.
    pub(crate) path: &'static str,
    pub(crate) bytes: &'static [u8],
}

impl Asset {
    pub(crate) fn media(&self) -> Media {
        Media::of(self.path).expect("a test asks for the type of each file")
    }
}

macro_rules! asset {
    ($path:literal) => {
        Asset { path: $path, bytes: include_bytes!(concat!("../assets/", $path)) }
    };
}

/// The page that loads all other files.
pub(crate) const INDEX: &str = include_str!("../assets/index.html");

/// All files but the page, in the order of their paths.
pub(crate) const ASSETS: &[Asset] = &[
    asset!("api/client.js"),
    asset!("api/routes.js"),
    asset!("console.css"),
    asset!("favicon.svg"),
    asset!("i18n/en.js"),
    asset!("i18n/index.js"),
    asset!("i18n/zh.js"),
    asset!("logic/duration.js"),
    asset!("logic/events.js"),
    asset!("logic/filter.js"),
    asset!("logic/horizon.js"),
    asset!("logic/instant.js"),
    asset!("logic/payload.js"),
    asset!("logic/recurrence.js"),
    asset!("logic/route.js"),
    asset!("logic/settings.js"),
    asset!("logic/story.js"),
    asset!("logic/wheel.js"),
    asset!("main.js"),
    asset!("pages/dead.js"),
    asset!("pages/horizon.js"),
    asset!("pages/jobs.js"),
    asset!("pages/leases.js"),
    asset!("pages/overview.js"),
    asset!("pages/queue.js"),
    asset!("pages/schedule.js"),
    asset!("pages/schedules.js"),
    asset!("pages/search.js"),
    asset!("pages/server.js"),
    asset!("pages/settings.js"),
    asset!("pages/target.js"),
    asset!("pages/task.js"),
    asset!("state/live.js"),
    asset!("state/location.js"),
    asset!("state/session.js"),
    asset!("ui/chart.js"),
    asset!("ui/dialog.js"),
    asset!("ui/parts.js"),
    asset!("ui/shell.js"),
    asset!("ui/table.js"),
    asset!("vendor/LICENSE-htm.txt"),
    asset!("vendor/LICENSE-preact.txt"),
    asset!("vendor/preact.js"),
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn collect(folder: &Path, root: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                collect(&path, root, found);
            } else {
                let path = path.strip_prefix(root).expect("below the root");
                found.push(path.to_str().expect("UTF-8").to_owned());
            }
        }
    }

    #[test]
    fn the_table_has_each_file_that_is_served() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let mut files = Vec::new();
        collect(&root, &root, &mut files);
        files.retain(|path| path != "index.html" && !path.ends_with(".md") && !path.ends_with(".d.ts"));
        files.sort();
        let table: Vec<&str> = ASSETS.iter().map(|asset| asset.path).collect();
        assert_eq!(table, files, "add the file to the table, or remove it");
        for asset in ASSETS {
            assert!(Media::of(asset.path).is_some(), "{} has no media type", asset.path);
        }
    }
}

//! Runs the blocks of the tutorials, of the how-to pages and of the README as a reader would, and compares what they print
//! with what the page shows.
//!
//! `DOCS_PAGE=how-to/limits` runs only the pages with this in their path. `DOCS_REWRITE=1` writes what was printed into the pages
//! where it differs.

mod likeness;
mod operations;
mod page;
mod shell;
mod unit;
mod visit;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use visit::Visit;

/// The folders whose pages run.
const FOLDERS: [&str; 2] = ["docs/tutorials", "docs/how-to"];

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The paths of all pages, or of those that the variable names.
fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned()];
    for folder in FOLDERS {
        let files = fs::read_dir(root().join(folder)).expect("a folder").map(|file| file.expect("a file"));
        pages.extend(files.map(|file| format!("{folder}/{}", file.file_name().to_string_lossy())));
    }
    let only = std::env::var("DOCS_PAGE").unwrap_or_default();
    pages.retain(|page| page.ends_with(".md") && page != operations::PATH && page.contains(&only));
    pages.sort();
    pages
}

#[test]
fn every_block_prints_what_its_page_shows() {
    let pages = pages();
    let (begun, next) = (Instant::now(), Mutex::new(pages.iter()));
    let visits = Mutex::new(Vec::new());
    // A page mostly waits.
    let threads = 2 * std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(page) = { next.lock().expect("no panic").next() } {
                    let visit = Visit::of(page);
                    visits.lock().expect("no panic").push(visit);
                }
            });
        }
    });
    let mut visits = visits.into_inner().expect("no panic");
    assert_eq!(visits.len(), pages.len());
    visits.sort_by(|a, b| a.path.cmp(&b.path));
    // `eprintln!` is not shown for a test that passes.
    let report = visit::report(&visits, begun.elapsed());
    writeln!(std::io::stderr(), "\n{report}\n").expect("write to stderr");
    let wrong: Vec<&str> = visits.iter().flat_map(|visit| &visit.wrong).map(String::as_str).collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n\n"));
}

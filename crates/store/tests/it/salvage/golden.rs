//! The golden directory.

use std::path::Path;

use tickwheel_store::{DiskStore, HistoryLimits, InlineIo, StoreOptions, conformance};

use crate::disk::Image;
use crate::salvage::history::HISTORY;
use crate::salvage::honest::salvage;
use crate::salvage::shared::Shared;

#[test]
fn a_golden_directory_is_salvaged_whole() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format-1");
    let mut image = Image::of(&dir);
    let mut options = StoreOptions::new([0; 16]);
    options.history = HistoryLimits::last(HISTORY);
    let disk = Shared::of(image.clone());
    let mut store = DiskStore::open(disk, InlineIo::new(), options).expect("it opens");
    let whole = conformance::contents(&mut store, HISTORY).expect("it reads");
    let outcome = salvage(&mut image, &whole, "the golden directory").expect("it can be read");
    assert!(outcome.report.is_whole() && outcome.is_equal, "{:#?}", outcome.report);
    assert!(outcome.report.written.schedules > 0 && outcome.report.tasks().dead > 0, "{:?}", outcome.report);
}

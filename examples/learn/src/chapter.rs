//! [`CHAPTERS`]: the chapters that have a program.

use crate::{disk, hashed, heap, hierarchical, kafka, list, purgatory, rocketmq, simple};

/// A chapter of the textbook.
pub struct Chapter {
    /// The name, which is that of the page in `docs/learn`, too.
    pub name: &'static str,
    /// Makes the worked table. The table is the same in each run.
    pub table: fn() -> String,
    /// Measures the costs. The sizes are divided by the argument, so that a test is quick.
    pub costs: fn(usize) -> String,
}

/// The chapters in their order.
pub const CHAPTERS: [Chapter; 9] = [
    Chapter { name: "list", table: list::table, costs: list::costs },
    Chapter { name: "heap", table: heap::table, costs: heap::costs },
    Chapter { name: "simple", table: simple::table, costs: simple::costs },
    Chapter { name: "hashed", table: hashed::table, costs: hashed::costs },
    Chapter { name: "hierarchical", table: hierarchical::table, costs: hierarchical::costs },
    Chapter { name: "kafka", table: kafka::table, costs: kafka::costs },
    Chapter { name: "purgatory", table: purgatory::table, costs: purgatory::costs },
    Chapter { name: "rocketmq", table: rocketmq::table, costs: rocketmq::costs },
    Chapter { name: "disk", table: disk::table, costs: disk::costs },
];

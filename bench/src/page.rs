//! [`Page`]: which tables a page of figures has.

use std::path::Path;

use anyhow::Context;

/// A page of `docs/performance`.
#[derive(Debug)]
pub(crate) struct Page {
    /// Its file is called that, and so do those of its data begin.
    pub(crate) name: &'static str,
    pub(crate) tables: &'static [Table],
    /// The implementations, in order.
    pub(crate) rows: &'static [&'static str],
    /// The ratios below them: which of ours to what.
    pub(crate) ratios: &'static [(&'static str, &'static str)],
}

/// A table: its title, and its columns.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) title: &'static str,
    /// Belongs to no other table of any page.
    pub(crate) workload: &'static str,
    /// Heading and metric. A column for each size, or one if the workload has only one.
    pub(crate) metrics: &'static [(&'static str, &'static str)],
}

/// All of them.
pub(crate) static PAGES: [Page; 2] = [WHEELS, TIMERS];

/// The page in that file, by its name.
pub(crate) fn of_file(path: &Path) -> anyhow::Result<&'static Page> {
    let name = path.file_stem().unwrap_or_default();
    PAGES.iter().find(|page| name == page.name).with_context(|| {
        let names = PAGES.each_ref().map(|page| page.name).join(" and ");
        format!("there are tables for {names}, and none for {}", path.display())
    })
}

const WHEELS: Page = Page {
    name: "wheels",
    tables: &[
        Table {
            title: "W1, cancel one and start one: ns for each pair",
            workload: "w1",
            metrics: &[("", "pair_ns")],
        },
        Table {
            title: "W2, start all, then tick by tick until all have fired: ns for each timer",
            workload: "w2",
            metrics: &[("start", "insert_ns"), ("fire", "expire_ns"), ("both", "sum_ns")],
        },
        Table {
            title: "W3, requests and their time-outs: ns for each timer",
            workload: "w3",
            metrics: &[("", "timer_ns")],
        },
        Table {
            title: "W4, few timers over 30 days: ns and stops from one to the next",
            workload: "w4",
            metrics: &[("ns", "timer_ns"), ("stops", "stops"), ("heap bytes of all", "heap_bytes")],
        },
        Table {
            title: "W5, move one: ns for each move; and ns for each timer to fire afterwards",
            workload: "w5",
            metrics: &[("any time", "random_ns"), ("later", "later_ns"), ("fire", "drain_ns")],
        },
        Table {
            title: "W6, resident bytes for each pending timer, without the array of handles",
            workload: "w6",
            metrics: &[("filled", "filled_bytes"), ("after as many pairs", "churned_bytes")],
        },
    ],
    rows: &[
        "wheel",
        "nexus-timer",
        "lazy-heap",
        "btree",
        "hhwt",
        "tokio-delay-queue",
        "tokio-sleep",
        "sorted-list",
        "heap-queue",
        "simple-wheel",
        "hashed-wheel",
        "hierarchical-wheel",
        "slab",
        "line",
        "append",
    ],
    ratios: &[("wheel", "best-peer"), ("wheel", "slab"), ("wheel", "line"), ("wheel", "append")],
};

/// The columns of the three shapes of W7.
const RING: &[(&str, &str)] = &[("Mops/s", "mops"), ("CPU ns", "cpu_ns"), ("unfiled", "unfiled")];

const TIMERS: Page = Page {
    name: "timers",
    tables: &[
        Table {
            title: "W7, schedule one and cancel the oldest of a ring: millions of both in a second (more is better), \
                    processor time for each, and the share of cancels that came before the timer had been filed",
            workload: "contention",
            metrics: RING,
        },
        Table {
            title: "W7, with rings so large that timers are filed before they are cancelled",
            workload: "filed",
            metrics: RING,
        },
        Table {
            title: "W7, with each timer cancelled as soon as it is scheduled",
            workload: "immediate",
            metrics: RING,
        },
        Table {
            title: "Lateness in us, so many timers in a second: from the requested instant, from the tick it was \
                    rounded up to, and of a thread beside them that sleeps from millisecond to millisecond",
            workload: "lateness",
            metrics: &[
                ("early", "early"),
                ("p50", "p50_us"),
                ("p99", "p99_us"),
                ("max", "max_us"),
                ("tick p50", "tick_p50_us"),
                ("tick p99", "tick_p99_us"),
                ("tick max", "tick_max_us"),
                ("beside p50", "beside_p50_us"),
                ("beside p99", "beside_p99_us"),
            ],
        },
        Table {
            title: "Idle, so many timers an hour away: processor time to schedule each, the timer's own thread \
                    included; then us of it and wake-ups in a second; and resident bytes for each timer",
            workload: "idle",
            metrics: &[("ns", "schedule_ns"), ("us", "cpu_us"), ("wake-ups", "wakes"), ("bytes", "bytes")],
        },
        Table {
            title: "Flat, resident KB before and after so many pairs, and ns for each",
            workload: "flat",
            metrics: &[
                ("before", "before_kb"),
                ("after", "after_kb"),
                ("more", "growth_kb"),
                ("ns", "pair_ns"),
            ],
        },
    ],
    rows: &[
        "timer",
        "timer-sleep",
        "timer-inline",
        "timer-100us",
        "tokio-sleep",
        "tokio-task",
        "hhwt",
        "jdk-scheduled",
        "mutex-wheel",
        "mutex-wheel-clock",
        "bare-sleep",
    ],
    ratios: &[
        ("timer", "tokio-sleep"),
        ("timer", "hhwt"),
        ("timer", "jdk-scheduled"),
        ("timer", "mutex-wheel"),
        ("timer", "mutex-wheel-clock"),
        ("timer", "bare-sleep"),
        ("timer", "beside"),
        ("timer-sleep", "tokio-sleep"),
        ("timer-inline", "tokio-sleep"),
        ("timer-inline", "bare-sleep"),
        ("timer-inline", "beside"),
        ("timer-100us", "bare-sleep"),
        ("timer-100us", "beside"),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_belongs_to_one_table() {
        let tables = || PAGES.iter().flat_map(|page| page.tables);
        for table in tables() {
            let same = tables().filter(|other| other.workload == table.workload);
            assert_eq!(same.count(), 1, "{table:?}");
        }
    }

    #[test]
    fn a_file_is_known_by_its_name() {
        let page = of_file(Path::new("docs/performance/timers.md")).expect("it is one");
        assert_eq!(page.name, "timers");
        let error = of_file(Path::new("docs/timer.md")).expect_err("no such page").to_string();
        assert_eq!(error, "there are tables for wheels and timers, and none for docs/timer.md");
    }
}

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
pub(crate) static PAGES: [Page; 8] = [WHEELS, TIMERS, STORE, HTTP, BEANSTALK, CALLS, POSTGRES, SHARDS];

/// The page in that file, by its name.
pub(crate) fn of_file(path: &Path) -> anyhow::Result<&'static Page> {
    let name = path.file_stem().unwrap_or_default();
    PAGES.iter().find(|page| name == page.name).with_context(|| {
        let names = PAGES.each_ref().map(|page| page.name).join(", ");
        format!("there are tables for {names}, and none for {}", path.display())
    })
}

const HTTP: Page = Page {
    name: "http",
    tables: &[
        Table {
            title: "Single durable puts: processor time for each put in µs, on the async threads and on all threads, the former beside the \
                    bare server and beside the one that makes bodies durable, and puts in a second on the wall",
            workload: "http-puts",
            metrics: &[
                ("async threads µs", "async_us_put"),
                ("all threads µs", "cpu_us_put"),
                ("of the bare server", "async_us_put/bare"),
                ("of the durable one", "async_us_put/durable"),
                ("puts/s", "puts_s"),
            ],
        },
        Table {
            title: "Batches of 1,000 puts: processor time of the process for each task in ns, the same beside the queue alone, and tasks \
                    in a second on the wall",
            workload: "http-batches",
            metrics: &[
                ("CPU ns", "cpu_ns_task"),
                ("of the queue alone", "cpu_ns_task/embedded"),
                ("tasks/s", "tasks_s"),
            ],
        },
        Table {
            title: "Lateness in ms, by the number of pending tasks: from the instant that a task is due to its arrival at a worker, and of a thread \
                    beside it that sleeps from millisecond to millisecond",
            workload: "http-lateness",
            metrics: &[("p50", "p50_ms"), ("p99", "p99_ms"), ("p99.9", "p99.9_ms"), ("max", "max_ms")],
        },
        Table {
            title: "A burst of tasks that are due in one millisecond, by their number: ms from their instant until all of them are ready",
            workload: "http-burst",
            metrics: &[("all ready", "all_ready_ms")],
        },
    ],
    rows: &["server", "bare", "bare-durable", "embedded", "control-sleep"],
    ratios: &[],
};

const POSTGRES: Page = Page {
    name: "postgres",
    tables: &[
        Table {
            title: "Tasks scheduled in a second, by their number: batches that are due within days",
            workload: "pg-schedule",
            metrics: &[("tasks/s", "tasks_s")],
        },
        Table {
            title: "Tasks from due to acked in a second, by their number: leased and acked in batches",
            workload: "pg-acked",
            metrics: &[("tasks/s", "tasks_s")],
        },
        Table {
            title: "One durable put at a time: the median in ms",
            workload: "pg-single",
            metrics: &[("p50 ms", "p50_ms")],
        },
        Table {
            title: "A task put, leased and acked beside a snapshot that is held open for this many seconds: the median in ms before it and in its slowest \
                    fifth, and the number of such tasks meanwhile",
            workload: "pg-held",
            metrics: &[
                ("before", "before_ms"),
                ("held", "cycle_ms"),
                ("held / before", "cycle_ms/before"),
                ("tasks", "cycles"),
            ],
        },
    ],
    rows: &["tickwheel", "keyless", "raw-1", "raw-4", "jobs"],
    ratios: &[
        ("tickwheel", "floor"),
        ("tickwheel", "raw-1"),
        ("tickwheel", "raw-4"),
        ("tickwheel", "jobs"),
        ("keyless", "floor"),
        ("keyless", "raw-1"),
        ("keyless", "jobs"),
    ],
};

const SHARDS: Page = Page {
    name: "shards",
    tables: &[
        Table {
            title: "Durable puts in batches: tasks in a second, the same without the time of the callers, and processors that the callers keep busy; for the \
                    disk, tasks that fit into its overwrites",
            workload: "shards-put",
            metrics: &[("tasks/s", "tasks_s"), ("apart", "apart_s"), ("callers", "load")],
        },
        Table {
            title: "The same for tasks that are due, from the first lease to the last durable ack",
            workload: "shards-acked",
            metrics: &[("tasks/s", "tasks_s"), ("apart", "apart_s"), ("callers", "load")],
        },
    ],
    rows: &["shards-1", "shards-2", "raw-1", "raw-2"],
    ratios: &[("shards-2", "shards-1"), ("raw-2", "raw-1")],
};

const CALLS: Page = Page {
    name: "calls",
    tables: &[Table {
        title: "The longest stretch of work on the thread of the calls during 1 call, in µs of its processor time: the median of the rounds, and \
                the longest of all",
        workload: "calls",
        metrics: &[("median", "stretch_us"), ("longest", "longest_us")],
    }],
    rows: &[
        "openapi-first",
        "openapi",
        "put-small",
        "put-names",
        "get-names",
        "put-numbers",
        "get-numbers",
        "put-escapes",
        "get-escapes",
        "put-base64",
        "get-base64",
        "put-timeline",
        "get-timeline",
        "put-timeline-bare",
        "get-timeline-bare",
        "refused-settings",
        "refused-lease",
        "refused-cancel",
        "refused-pause",
        "refused-redrive",
        "refused-schedule",
        "refused-tokens",
        "list-small",
        "list-1k",
        "list-tags",
        "lease-small",
        "extend",
        "ack",
        "lease-1k",
        "lease-tags",
        "nack",
        "redrive",
        "cancel-dry",
        "move",
        "purge",
        "forecast",
        "jobs",
        "list-tagged",
        "list-none",
        "list-dead",
        "jobs-all",
        "batch-small",
        "batch-15k",
        "batch-1m",
        "batch-refused",
        "batch-blank",
        "schedule-put",
        "preview-rare",
        "preview-often",
        "schedules",
        "schedules-all",
        "queues",
        "metrics",
        "list-tubes",
        "stats",
        "list-tubes-watched",
        "reserve",
        "put-job",
        "peek-job",
        "reserve-job",
        "delete-job",
        "put-many",
        "kick",
        "delete-many",
        "ignored",
        "watch-again",
        "ignore-watch",
        "token",
    ],
    ratios: &[],
};

/// How many in a second, and how long each took.
const PACE: &[(&str, &str)] =
    &[("a second", "jobs_s"), ("p50 ms", "p50_ms"), ("p99 ms", "p99_ms"), ("p99.9 ms", "p99.9_ms")];

const BEANSTALK: Page = Page {
    name: "beanstalk",
    tables: &[
        Table {
            title: "Puts of 200 bytes, 8 connections with 64 under way on each: how many in a second, and from sending to the answer",
            workload: "beanstalk-put",
            metrics: PACE,
        },
        Table {
            title: "Put, reserve and delete, 8 connections with 32 jobs under way on each: jobs in a second, and from the first to the last of the three",
            workload: "beanstalk-cycle",
            metrics: PACE,
        },
        Table {
            title: "Lateness in ms of jobs that are due evenly within ten seconds, by their number; 32 connections that put and 32 that wait",
            workload: "beanstalk-lateness",
            metrics: &[("p50", "p50_ms"), ("p99", "p99_ms"), ("p99.9", "p99.9_ms")],
        },
        Table {
            title: "Resident bytes for one more job of 200 bytes that is due in days, and MB of all",
            workload: "beanstalk-memory",
            metrics: &[("bytes a job", "job_bytes"), ("MB", "all_mb")],
        },
        Table {
            title: "Jobs that are due in days, by their number: wake-ups in a second while nothing happens; ms from a start after SIGKILL to the first answer",
            workload: "beanstalk-restart",
            metrics: &[("wake-ups", "wakes_s"), ("start ms", "start_ms")],
        },
    ],
    rows: &["tickwheel", "beanstalkd", "beanstalkd-sync", "beanstalkd-log"],
    ratios: &[("tickwheel", "beanstalkd"), ("tickwheel", "beanstalkd-sync"), ("tickwheel", "beanstalkd-log")],
};

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
            title: "Lateness in us, by the number of timers in a second: from the requested instant, from the tick it was \
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
            title: "Idle timers that are an hour away, by their number: processor time to schedule each, the timer's own thread \
                    included; then us of it and wake-ups in a second; and resident bytes for each timer",
            workload: "idle",
            metrics: &[("ns", "schedule_ns"), ("us", "cpu_us"), ("wake-ups", "wakes"), ("bytes", "bytes")],
        },
        Table {
            title: "Flat: resident KB before and after the pairs, by their number, and ns for each",
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

const STORE: Page = Page {
    name: "store",
    tables: &[
        Table {
            title: "The disk alone: megabytes in a second of a stream, then overwrites with a sync in a second and the longest in ms",
            workload: "disk",
            metrics: &[
                ("stream MB/s", "stream_mb_s"),
                ("4 KiB", "sync_4k_s"),
                ("worst", "worst_4k_ms"),
                ("16 KiB", "sync_16k_s"),
                ("worst", "worst_16k_ms"),
                ("256 KiB", "sync_256k_s"),
                ("worst", "worst_256k_ms"),
            ],
        },
        Table {
            title: "S1, durable puts by 64 clients, in a second; and 16 KiB overwrites with a sync by the disk beside it, and its fastest stretch by its slowest",
            workload: "s1",
            metrics: &[("puts/s", "ops_s"), ("disk", "raw_s"), ("swing", "raw_swing")],
        },
        Table {
            title: "S2, batches of 1000 puts: tasks in a second, up to the given number of tasks and beyond it; and 256 KiB overwrites by the disk",
            workload: "s2",
            metrics: &[
                ("tasks/s", "tasks_s"),
                ("disk", "raw_s"),
                ("swing", "raw_swing"),
                ("filling", "fill_s"),
            ],
        },
        Table {
            title: "S3, put and cancelled: pairs in a second, by thousands and by 64 clients that have one each",
            workload: "s3",
            metrics: &[
                ("by 1000", "pairs_s"),
                ("disk", "raw_s"),
                ("swing", "raw_swing"),
                ("clients", "client_pairs_s"),
            ],
        },
        Table {
            title: "S4, drained in due order: tasks in a second",
            workload: "s4",
            metrics: &[("tasks/s", "tasks_s"), ("disk", "raw_s"), ("swing", "raw_swing")],
        },
        Table {
            title: "S5, look-ups by key in a second, 64 at once and one by one",
            workload: "s5",
            metrics: &[("64", "lookups_s"), ("single", "single_lookups_s")],
        },
        Table {
            title: "S6, the first 10,000 tasks scanned, in ms: before and after 500,000 deletes there",
            workload: "s6",
            metrics: &[("before", "before_ms"), ("after", "after_ms"), ("first after", "first_after_ms")],
        },
        Table {
            title: "S7, a single commit while everything else goes on, in ms, and the disk's own 4 KiB overwrite with a sync",
            workload: "s7",
            metrics: &[
                ("p50", "p50_ms"),
                ("p99.9", "p999_ms"),
                ("worst", "worst_ms"),
                ("disk p50", "raw_p50_ms"),
                ("disk p99.9", "raw_p999_ms"),
                ("disk worst", "raw_worst_ms"),
                ("files made", "files_made"),
            ],
        },
        Table {
            title: "S8, resident memory with keys of the server: MB, and bytes for each task by the slope",
            workload: "s8",
            metrics: &[("MB", "resident_mb"), ("slope", "slope_bytes")],
        },
        Table {
            title: "S8, the same with keys of the owner",
            workload: "s8-own",
            metrics: &[("MB", "resident_mb"), ("slope", "slope_bytes")],
        },
        Table {
            title: "S9, bytes written in a task's life, and how many times its record that is",
            workload: "s9",
            metrics: &[
                ("record", "record_bytes"),
                ("handed", "handed_bytes"),
                ("/ record", "handed_bytes/record"),
                ("disk", "device_bytes"),
                ("/ record", "device_bytes/record"),
                ("charged", "charged_bytes"),
            ],
        },
        Table {
            title: "S10, seconds to open after a kill; then the directory at rest in MB, and bytes of it for each task",
            workload: "s10",
            metrics: &[("s", "open_s"), ("MB", "disk_mb"), ("bytes", "disk_bytes")],
        },
    ],
    rows: &["store", "queue", "queue-async", "http", "fjall", "fjall-alone", "disk"],
    ratios: &[
        ("store", "fjall"),
        ("queue", "fjall"),
        ("queue-async", "fjall"),
        ("http", "fjall"),
        ("queue", "fjall-alone"),
        ("store", "64-raw"),
        ("queue", "64-raw"),
        ("queue-async", "64-raw"),
        ("http", "64-raw"),
        ("fjall", "64-raw"),
        ("fjall-alone", "64-raw"),
        ("store", "1000-raw"),
        ("fjall", "1000-raw"),
        ("store", "before"),
        ("fjall", "before"),
        ("store", "raw"),
        ("queue", "raw"),
        ("fjall", "raw"),
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
        assert_eq!(
            error,
            "there are tables for wheels, timers, store, http, beanstalk, calls, postgres, shards, and none for docs/timer.md"
        );
    }
}

//! What the figures were taken on.

/// Processor, cores, kernel, load.
pub(crate) fn describe() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split(':').nth(1));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let model = model.unwrap_or("unknown processor").trim();
    format!("{model}, {cores} cores, Linux {}; {}", kernel.trim(), load())
}

/// Whether the system backs large memory with large pages; many gigabytes of small ones are slow to look up.
pub(crate) fn huge_pages() -> String {
    let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    format!("transparent huge pages: {}", enabled.as_deref().unwrap_or("unknown").trim())
}

/// The load of the machine: on a shared one only the ratios of one run mean something.
pub(crate) fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let minutes: Vec<&str> = load.split_whitespace().take(3).collect();
    format!("load {}", minutes.join(" "))
}

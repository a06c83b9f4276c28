//! The metrics of the process itself, under the usual names of Prometheus clients. Linux provides them; on other
//! systems there are none.

use std::fmt::{self, Write};
use std::fs;
use std::sync::OnceLock;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

use super::page::{Page, metrics};

/// The start of this process as it was first read (seconds since 1970).
static STARTED_S: OnceLock<Option<f64>> = OnceLock::new();

/// The system's data about this process at one moment. Data that the system does not provide is left out.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Process {
    stat: Option<Stat>,
    /// The start of the process by the system's wall clock (seconds since 1970).
    started_s: Option<f64>,
    open_fds: Option<u64>,
    max_fds: Option<u64>,
}

/// The fields of `/proc/self/stat`.
#[derive(Debug, PartialEq)]
pub(crate) struct Stat {
    /// The processor time in user mode and in kernel mode (µs).
    pub(crate) user_us: u64,
    pub(crate) system_us: u64,
    threads: u64,
    /// The start of the process (seconds after the start of the system).
    started_s: f64,
    virtual_bytes: u64,
    resident_bytes: u64,
}

impl Process {
    /// Reads the system's data.
    pub(crate) fn read() -> Self {
        let text = |path: &str| fs::read_to_string(path).ok();
        let stat = Stat::of_process();
        // The start is read only once. The system derives its own start from the present wall clock, so a change of the
        // clock would look like a restart.
        let started_s = *STARTED_S.get_or_init(|| {
            let system_s = text("/proc/stat").and_then(|text| system_started_s(&text));
            stat.as_ref().zip(system_s).map(|(stat, system_s)| stat.started_s + system_s)
        });
        Self {
            started_s,
            stat,
            // One of the entries is the handle of the directory that is being listed.
            open_fds: fs::read_dir("/proc/self/fd").ok().map(|all| (all.count() as u64).saturating_sub(1)),
            max_fds: getrlimit(Resource::Nofile).current,
        }
    }

    pub(crate) fn write<W: Write>(&self, page: &mut Page<W>) -> fmt::Result {
        self.stat.iter().try_for_each(|stat| page.write(STAT, stat))?;
        self.started_s.iter().try_for_each(|started_s| page.write(STARTED, started_s))?;
        self.open_fds.iter().try_for_each(|open| page.write(OPEN, open))?;
        self.max_fds.iter().try_for_each(|max| page.write(LIMIT, max))
    }
}

metrics! {
    pub(crate) const STAT: Stat;

    /// Processor time of all threads, in user and kernel mode
    ///
    /// This figure and all below exist on Linux only
    Counter process_cpu in Seconds:
        |stat, out| out.is((stat.user_us + stat.system_us) as f64 / 1e6);
    /// Resident memory: what the process has in the machine's memory
    Gauge process_resident_memory in Bytes:
        |stat, out| out.is(stat.resident_bytes);
    /// Virtual memory: what the process has mapped
    Gauge process_virtual_memory in Bytes:
        |stat, out| out.is(stat.virtual_bytes);
    /// Threads
    Gauge process_threads: |stat, out| out.is(stat.threads);
}

metrics! {
    pub(crate) const STARTED: f64;

    /// Start time of the process since 1970, by the system's clock
    Gauge process_start_time in Seconds:
        |started_s, out| out.is(*started_s);
}

metrics! {
    pub(crate) const OPEN: u64;

    /// Number of open files and connections
    Gauge process_open_fds: |open, out| out.is(*open);
}

metrics! {
    pub(crate) const LIMIT: u64;

    /// Limit on open files and connections
    Gauge process_max_fds: |max, out| out.is(*max);
}

impl Stat {
    /// The fields of this process; `None`: the system does not tell.
    pub(crate) fn of_process() -> Option<Self> {
        let text = fs::read_to_string("/proc/self/stat").ok()?;
        Self::read(&text, clock_ticks_per_second().max(1), page_size())
    }

    fn read(text: &str, ticks_per_s: u64, page_bytes: usize) -> Option<Self> {
        // The name of the program is in parentheses, and may contain spaces and parentheses itself. The third field
        // follows it.
        let (_, behind) = text.rsplit_once(')')?;
        let fields: Vec<&str> = behind.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let seconds = |ticks: u64| ticks as f64 / ticks_per_s as f64;
        Some(Self {
            user_us: field(14)? * 1_000_000 / ticks_per_s,
            system_us: field(15)? * 1_000_000 / ticks_per_s,
            threads: field(20)?,
            started_s: seconds(field(22)?),
            virtual_bytes: field(23)?,
            resident_bytes: field(24)?.saturating_mul(page_bytes as u64),
        })
    }
}

/// The start of the system (seconds since 1970).
fn system_started_s(stat: &str) -> Option<f64> {
    stat.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_have_any_name() {
        let text = "7 (a ) (b) R 1 7 7 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 5 0 1000 4096000 25 18446744073709551615 1";
        let stat = Stat::read(text, 100, 4_096).expect("understood");
        let expected = Stat {
            user_us: 1_500_000,
            system_us: 500_000,
            threads: 5,
            started_s: 10.0,
            virtual_bytes: 4_096_000,
            resident_bytes: 25 * 4_096,
        };
        assert_eq!(stat, expected);
        assert_eq!(Stat::read("7 (a) R 1", 100, 4_096), None);
        assert_eq!(system_started_s("cpu 1 2\nbtime 1764064369\nprocesses 9\n"), Some(1_764_064_369.0));
        assert_eq!(system_started_s("cpu 1 2\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_provides_all_fields() {
        let Process { stat, started_s, open_fds, max_fds } = Process::read();
        let stat = stat.expect("of this process");
        assert!(stat.resident_bytes > 100_000 && stat.virtual_bytes >= stat.resident_bytes, "{stat:?}");
        assert!(stat.threads >= 1 && started_s.is_some_and(|at| at > 1e9), "{stat:?} {started_s:?}");
        assert!(open_fds.is_some_and(|open| open >= 3), "{open_fds:?}");
        assert!(max_fds.is_none_or(|max| max >= open_fds.expect("checked")));
    }
}

//! The costs of a queue on this machine.

use std::fs;
use std::hint::black_box;
use std::time::Instant;

use tickwheel_core::TimerQueue;

use crate::sheet::Sheet;

/// How many timers the measurement of memory starts.
const MEMORY_TIMERS: usize = 1_000_000;

/// Random numbers; the same ones in each run.
pub struct Random(u64);

impl Random {
    /// The numbers begin anew.
    #[must_use]
    pub fn new() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }

    /// A number from 1 to `most`, each about as often as any other.
    pub fn up_to(&mut self, most: u64) -> u64 {
        // Xorshift (Marsaglia, 2003).
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most + 1
    }
}

impl Default for Random {
    fn default() -> Self {
        Self::new()
    }
}

/// A measurement: how much work, then how long it took.
pub struct Nanos {
    begun: Instant,
}

impl Nanos {
    /// The work begins.
    #[must_use]
    pub fn begin() -> Self {
        Self { begun: Instant::now() }
    }

    /// Nanoseconds for each of `count` pieces of work, which end now.
    #[must_use]
    pub fn each(&self, count: usize) -> f64 {
        self.begun.elapsed().as_nanos() as f64 / count.max(1) as f64
    }
}

/// Nanoseconds for each call.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// To insert a timer with a random delay.
    pub insert: f64,
    /// To cancel a random timer.
    pub cancel: f64,
    /// To let a timer fire, with the ticks until it does.
    pub fire: f64,
}

/// Starts `timers` timers that are spread over as many ticks, cancels half of them, and goes tick by tick until the others have fired.
///
/// So one timer is due in each tick on average, however many timers there are. A cost that grows with the number of timers is then not the
/// cost of firing more of them in a tick.
fn costs(mut queue: impl TimerQueue<u64>, timers: usize) -> Costs {
    let mut random = Random::new();
    let reach = timers as u64;
    let mut handles = Vec::with_capacity(timers);
    let begun = Nanos::begin();
    for value in 0..reach {
        handles.extend(queue.insert(random.up_to(reach), value).ok());
    }
    let insert = begun.each(timers);
    assert_eq!(handles.len(), timers, "the queue reaches all deadlines");

    let half = timers / 2;
    let begun = Nanos::begin();
    for &handle in &handles[..half] {
        black_box(queue.cancel(handle));
    }
    let cancel = begun.each(half);

    let mut fired = 0;
    let begun = Nanos::begin();
    for now in 1..=reach {
        fired += queue.advance(now, &mut |_, value| _ = black_box(value));
    }
    let fire = begun.each(fired);
    assert_eq!(fired, timers - half, "all others fire");
    Costs { insert, cancel, fire }
}

/// The least of each cost in three runs: what disturbs a run only makes it slower.
pub fn least<Q: TimerQueue<u64>>(make: impl Fn() -> Q, timers: usize) -> Costs {
    let runs: [Costs; 3] = std::array::from_fn(|_| costs(make(), timers));
    let least = |cost: fn(&Costs) -> f64| runs.iter().map(cost).fold(f64::INFINITY, f64::min);
    Costs {
        insert: least(|costs| costs.insert),
        cancel: least(|costs| costs.cancel),
        fire: least(|costs| costs.fire),
    }
}

/// A table of the costs by the number of timers. The queue for each number comes from `make`.
pub fn by_timers<Q: TimerQueue<u64>>(sizes: &[usize], make: impl Fn(usize) -> Q) -> String {
    let mut sheet = growing("timers");
    let mut first = None;
    for &timers in sizes {
        let costs = least(|| make(timers), timers);
        row(&mut sheet, grouped(timers), costs, *first.get_or_insert(costs));
    }
    sheet.to_string()
}

/// An empty table of costs: each in nanoseconds, and compared with the first row.
#[must_use]
pub fn growing(title: &str) -> Sheet {
    Sheet::of_numbers([title, "insert", "", "cancel", "", "fire", ""])
}

/// Adds the costs to a table that [`growing`] began.
pub fn row(sheet: &mut Sheet, title: String, costs: Costs, first: Costs) {
    let pairs = [(costs.insert, first.insert), (costs.cancel, first.cancel), (costs.fire, first.fire)];
    let cells = pairs.into_iter().flat_map(|(now, first)| [nanos(now), times(now / first)]);
    sheet.row([title].into_iter().chain(cells));
}

/// Resident memory for each pending timer, if the system says it.
pub fn memory(queue: &mut impl TimerQueue<u64>, share: usize) -> String {
    let timers = MEMORY_TIMERS / share;
    let Some(before) = resident() else { return String::new() };
    for value in 1..=timers as u64 {
        black_box(queue.insert(value, value).is_ok());
    }
    let bytes = resident().map_or(0, |after| after.saturating_sub(before)) / timers;
    format!("memory: {bytes} bytes for each of {} pending timers\n", grouped(timers))
}

/// The resident bytes of this process.
fn resident() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Nanoseconds, as text.
#[must_use]
pub fn nanos(nanos: f64) -> String {
    match nanos {
        ..10.0 => format!("{nanos:.1} ns"),
        ..10_000.0 => format!("{nanos:.0} ns"),
        _ => format!("{:.0} us", nanos / 1_000.0),
    }
}

/// A ratio, as text.
#[must_use]
pub fn times(ratio: f64) -> String {
    if ratio < 0.1 {
        format!("x{ratio:.2}")
    } else if ratio < 10.0 {
        format!("x{ratio:.1}")
    } else {
        format!("x{ratio:.0}")
    }
}

/// A number with a comma between its thousands.
#[must_use]
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
    groups.join(",")
}

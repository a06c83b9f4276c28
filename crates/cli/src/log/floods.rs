//! Repeated lines: the first line of a kind is written, and the lines after it are counted until the window ends. Then the count is
//! reported.
//!
//! This module is pure: time is an argument, and the caller writes the lines.

use std::collections::BTreeMap;
use std::time::Duration;

/// The features that two lines of one kind share.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Kind {
    pub(crate) target: String,
    pub(crate) event: String,
    /// The share of a line: each share has its own limit of kinds, so one share cannot use up the limit of another.
    pub(crate) share: String,
    /// The subject of the line as text: `token="ops" address="192.0.2.7"`.
    pub(crate) about: String,
    /// The place in the source code that writes the line. Lines of one event may come from several places and have different meanings.
    pub(crate) site: &'static str,
}

/// The measure of a line, such as its duration: the name of the field, and the number.
pub(crate) type Measure = Option<(&'static str, u64)>;

/// Lines that were left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Repeated {
    pub(crate) kind: Kind,
    /// The number of lines after the first.
    pub(crate) times: u64,
    /// The largest measure of the lines left out.
    pub(crate) max: Measure,
    /// The duration in which the lines were counted.
    pub(crate) over: Duration,
}

/// Counts the lines of each kind.
#[derive(Debug)]
pub(crate) struct Floods {
    window: Duration,
    kinds_max: usize,
    /// The kinds with a line written in the last window.
    seen: BTreeMap<Kind, Seen>,
    /// Counts of ended windows that the caller has not taken yet.
    ended: Vec<Repeated>,
}

#[derive(Copy, Clone, Debug)]
struct Seen {
    since: Duration,
    left_out: u64,
    /// The largest measure among the written lines.
    written: u64,
    /// The largest measure among the lines left out.
    max: Measure,
}

impl Seen {
    fn begin(since: Duration, measure: Measure) -> Self {
        Self { since, left_out: 0, written: measure.map_or(0, |(_, value)| value), max: None }
    }
}

/// A repeated line is written if its measure is at least this multiple of the largest measure that its kind has written in the window.
/// Otherwise it is only counted.
const MUCH_WORSE: u64 = 2;

/// The subject of the kind that stands for all further kinds of an event and share, beyond `kinds_max`.
const OTHERS: &str = "others";

impl Floods {
    /// Counts the lines of each kind for `window`. For one event and share, at most `kinds_max` kinds are counted separately in that time;
    /// all other kinds are counted as one, so that a client with many names or addresses cannot fill the log.
    pub(crate) fn new(window: Duration, kinds_max: usize) -> Self {
        Self { window, kinds_max, seen: BTreeMap::new(), ended: Vec::new() }
    }

    /// Takes a line of `kind` at the time `now`. True if the line is to be written.
    pub(crate) fn is_written(&mut self, kind: Kind, measure: Measure, now: Duration) -> bool {
        let kind = if self.seen.contains_key(&kind) || !self.has_many(&kind) {
            kind
        } else {
            Kind { about: OTHERS.to_owned(), site: "", ..kind }
        };
        match self.seen.get_mut(&kind) {
            Some(seen) if now.saturating_sub(seen.since) < self.window => {
                let value = measure.map_or(0, |(_, value)| value);
                if value >= MUCH_WORSE.saturating_mul(seen.written.max(1)) {
                    seen.written = value;
                    return true;
                }
                seen.left_out += 1;
                seen.max = seen.max.max(measure);
                false
            }
            Some(seen) => {
                let over = std::mem::replace(seen, Seen::begin(now, measure));
                self.ended.extend(repeated(kind, over, self.window));
                true
            }
            None => {
                self.seen.insert(kind, Seen::begin(now, measure));
                true
            }
        }
    }

    /// Whether `kinds_max` kinds of this event and share are counted separately already.
    fn has_many(&self, kind: &Kind) -> bool {
        let first = Kind { about: String::new(), site: "", ..kind.clone() };
        let of_event = self.seen.range(first..).take_while(|(other, _)| {
            (&other.target, &other.event, &other.share) == (&kind.target, &kind.event, &kind.share)
        });
        of_event.count() >= self.kinds_max
    }

    /// The counts to report at the time `now`: one for each kind whose window is over and that had lines left out.
    pub(crate) fn ended(&mut self, now: Duration) -> Vec<Repeated> {
        let mut ended = std::mem::take(&mut self.ended);
        let window = self.window;
        self.seen.retain(|kind, seen| {
            let is_over = now.saturating_sub(seen.since) >= window;
            if is_over {
                ended.extend(repeated(kind.clone(), *seen, window));
            }
            !is_over
        });
        ended
    }

    /// The counts to report at the end of the process. All kinds are forgotten.
    pub(crate) fn flush(&mut self, now: Duration) -> Vec<Repeated> {
        let mut ended = self.ended(now);
        for (kind, seen) in std::mem::take(&mut self.seen) {
            ended.extend(repeated(kind, seen, now.saturating_sub(seen.since)));
        }
        ended
    }
}

fn repeated(kind: Kind, seen: Seen, over: Duration) -> Option<Repeated> {
    (seen.left_out > 0).then_some(Repeated { kind, times: seen.left_out, max: seen.max, over })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(60);

    fn kind(event: &str, about: &str) -> Kind {
        let share = String::new();
        Kind { target: "t".to_owned(), event: event.to_owned(), share, about: about.to_owned(), site: "here" }
    }

    fn at(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    #[test]
    fn the_first_is_written_and_the_rest_is_told_once() {
        let mut floods = Floods::new(WINDOW, 10);
        let refused = || kind("refused", "a");
        assert!(floods.is_written(refused(), None, at(0)));
        for s in 1..60 {
            assert!(!floods.is_written(refused(), None, at(s)));
            assert_eq!(floods.ended(at(s)), []);
        }
        assert!(floods.is_written(kind("refused", "b"), None, at(59)), "another kind");
        let told = vec![Repeated { kind: refused(), times: 59, max: None, over: WINDOW }];
        assert_eq!(floods.ended(at(60)), told);
        assert_eq!(floods.ended(at(61)), [], "it is told once");
        assert!(floods.is_written(refused(), None, at(61)), "a new window");
    }

    #[test]
    fn a_window_that_ends_with_the_next_line_is_told_too() {
        let mut floods = Floods::new(WINDOW, 10);
        let written: Vec<bool> =
            [0, 1, 60, 61].map(|s| floods.is_written(kind("e", ""), None, at(s))).to_vec();
        assert_eq!(written, [true, false, true, false]);
        let times: Vec<_> = floods.flush(at(70)).into_iter().map(|told| (told.times, told.over)).collect();
        assert_eq!(times, [(1, WINDOW), (1, at(10))]);
    }

    #[test]
    fn a_measure_that_is_much_worse_is_written_and_the_worst_of_the_others_is_told() {
        let mut floods = Floods::new(WINDOW, 10);
        let slow = || kind("slow", "");
        let written: Vec<u64> = [300, 310, 599, 600, 1_000, 40_000, 700, 0]
            .into_iter()
            .filter(|took| floods.is_written(slow(), Some(("took_ms", *took)), at(1)))
            .collect();
        assert_eq!(written, [300, 600, 40_000]);
        let told: Vec<_> = floods.flush(at(2)).into_iter().map(|told| (told.times, told.max)).collect();
        assert_eq!(told, [(5, Some(("took_ms", 1_000)))]);
    }

    #[test]
    fn kinds_of_one_share_do_not_hide_lines_of_another() {
        let mut floods = Floods::new(WINDOW, 10);
        let of = |token: &str, n| Kind { share: token.to_owned(), ..kind("act", &format!("{token} {n}")) };
        let written = (0..100).filter(|n| floods.is_written(of("a", *n), None, at(1))).count();
        assert_eq!(written, 11, "ten kinds and the others");
        let written = (0..3).filter(|n| floods.is_written(of("b", *n), None, at(1))).count();
        assert_eq!(written, 3, "another token has kinds of its own");
    }

    /// A random sequence of lines. No line is lost, none is reported twice, and a flood of new kinds writes a bounded number of lines.
    #[test]
    fn each_line_is_written_or_counted_and_few_are_written() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut draw = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        for _ in 0..200 {
            let kinds_max = usize::try_from(1 + draw(5)).expect("it is small");
            let mut floods = Floods::new(WINDOW, kinds_max);
            let (mut now, mut lines, mut told) = (Duration::ZERO, 0, 0);
            let mut written: BTreeMap<(String, String), Vec<Duration>> = BTreeMap::new();
            for _ in 0..500 {
                now += Duration::from_millis(draw(4_000));
                let (event, about) = (format!("e{}", draw(3)), format!("a{}", draw(20)));
                lines += 1;
                if floods.is_written(kind(&event, &about), None, now) {
                    written.entry((event, about)).or_default().push(now);
                }
                if draw(10) == 0 {
                    told += floods.ended(now).iter().map(|told| told.times).sum::<u64>();
                }
            }
            told += floods.flush(now).iter().map(|told| told.times).sum::<u64>();
            let count: usize = written.values().map(Vec::len).sum();
            assert_eq!(lines, told + count as u64, "each line is written or counted, and once");
            assert_eq!(floods.flush(now), [], "nothing is left");
            for event in 0..3 {
                let mut times: Vec<Duration> = written
                    .iter()
                    .filter(|((of, _), _)| *of == format!("e{event}"))
                    .flat_map(|(_, times)| times.clone())
                    .collect();
                times.sort_unstable();
                // In a window, each separate kind writes one line, and all other kinds together write one. A time span that touches two
                // windows may have twice that number.
                let most = times
                    .iter()
                    .map(|from| times.iter().filter(|at| *at >= from && **at - *from < WINDOW).count())
                    .max();
                assert!(
                    most.unwrap_or(0) <= 2 * (kinds_max + 1),
                    "{most:?} lines of one event, {kinds_max} kinds"
                );
            }
        }
    }
}

//! The part of `/metrics` that people watch.

use std::time::Duration;

use serde::{Serialize, Serializer};

/// Counts of the server's work, since its start or per second.
#[derive(Serialize, Clone, Copy, PartialEq, Debug, Default)]
struct Done {
    scheduled: f64,
    fired: f64,
    leased: f64,
    acked: f64,
    nacked: f64,
    expired: f64,
    cancelled: f64,
    dead: f64,
}

/// Some of the figures.
#[derive(Serialize, Clone, PartialEq, Debug, Default)]
pub(crate) struct Figures {
    #[serde(flatten)]
    done: Done,
    oldest_due_s: f64,
    waiting_leases: f64,
    #[serde(skip)]
    lateness: Histogram,
    #[serde(skip)]
    commits: Histogram,
}

/// Cumulative counts by the bound of their bucket (s), in rising order.
#[derive(Clone, PartialEq, Debug, Default)]
struct Histogram(Vec<(f64, f64)>);

/// Rates per second and latenesses between two readings.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub(crate) struct Rates {
    #[serde(flatten)]
    done: Done,
    /// The median lateness of fired tasks (s), as the bound of a bucket; `"beyond"` if it is above all bounds. `None`: no task fired.
    #[serde(serialize_with = "write_bound")]
    late_p50_s: Option<f64>,
    /// The 99th percentile of the lateness (s).
    #[serde(serialize_with = "write_bound")]
    late_p99_s: Option<f64>,
    /// The 99th percentile of the duration of commits (s).
    #[serde(serialize_with = "write_bound")]
    commit_p99_s: Option<f64>,
}

impl Done {
    fn per_second(&self, before: &Self, passed: Duration) -> Self {
        // The counts of a restarted server begin at 0 again.
        let rate = |of: fn(&Self) -> f64| (of(self) - of(before)).max(0.0) / passed.as_secs_f64().max(0.001);
        Self {
            scheduled: rate(|done| done.scheduled),
            fired: rate(|done| done.fired),
            leased: rate(|done| done.leased),
            acked: rate(|done| done.acked),
            nacked: rate(|done| done.nacked),
            expired: rate(|done| done.expired),
            cancelled: rate(|done| done.cancelled),
            dead: rate(|done| done.dead),
        }
    }
}

impl Figures {
    /// Reads the figures from a page of OpenMetrics. A figure that the page does not have is 0.
    pub(crate) fn read(page: &str) -> Self {
        let of = |name: &str| value(page, &format!("tickwheel_{name}"));
        let done = Done {
            scheduled: of("scheduled_total"),
            fired: of("fired_total"),
            leased: of("leased_total"),
            acked: of("delivered_total{result=\"acked\"}"),
            nacked: of("delivered_total{result=\"nacked\"}"),
            expired: of("delivered_total{result=\"expired\"}"),
            cancelled: of("cancelled_total"),
            dead: of("dead_lettered_total"),
        };
        Self {
            done,
            oldest_due_s: of("oldest_due_age_seconds"),
            waiting_leases: of("waiting_leases"),
            lateness: Histogram::read(page, "tickwheel_fire_lateness_seconds_bucket"),
            commits: Histogram::read(page, "tickwheel_commit_seconds_bucket"),
        }
    }

    pub(crate) fn line(&self, rates: &Rates) -> String {
        let within = |part: Option<f64>| part.map_or("-".to_owned(), shown);
        let workers = if self.waiting_leases == 1.0 { "worker" } else { "workers" };
        format!(
            "late: p50 {}, p99 {}   commits: p99 {}   oldest due for {}   {} waiting {workers}",
            within(rates.late_p50_s),
            within(rates.late_p99_s),
            within(rates.commit_p99_s),
            shown(self.oldest_due_s),
            self.waiting_leases,
        )
    }

    /// The lines to show while there are no rates yet: the lateness since the server's start.
    pub(crate) fn first_lines(&self) -> [String; 2] {
        let since_start = Rates::between(&Self::default(), self, Duration::from_secs(1));
        let line = format!("since the server was started:  {}", self.line(&since_start));
        ["in a second: ...".to_owned(), line]
    }
}

impl Rates {
    pub(crate) fn between(before: &Figures, now: &Figures, passed: Duration) -> Self {
        let late = now.lateness.since(&before.lateness);
        Self {
            done: now.done.per_second(&before.done, passed),
            late_p50_s: late.quantile(0.5),
            late_p99_s: late.quantile(0.99),
            commit_p99_s: now.commits.since(&before.commits).quantile(0.99),
        }
    }

    pub(crate) fn line(&self) -> String {
        let Done { scheduled, fired, leased, acked, nacked, expired, cancelled, dead } = self.done;
        let rates = [
            ("puts", scheduled),
            ("fired", fired),
            ("leased", leased),
            ("acked", acked),
            ("nacked", nacked),
            ("expired", expired),
            ("cancelled", cancelled),
            ("dead", dead),
        ];
        let shown = rates.map(|(name, rate)| {
            format!("{name} {}", if rate < 10.0 { format!("{rate:.1}") } else { format!("{rate:.0}") })
        });
        format!("in a second: {}", shown.join("  "))
    }
}

/// Writes a bound. JSON has no infinite number, so an infinite bound is written as `"beyond"`.
#[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
fn write_bound<S: Serializer>(bound: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match bound {
        Some(bound) if bound.is_infinite() => serializer.serialize_str("beyond"),
        bound => bound.serialize(serializer),
    }
}

impl Histogram {
    fn read(page: &str, name: &str) -> Self {
        let buckets = page.lines().filter_map(|line| {
            let (bound, rest) = line.strip_prefix(name)?.strip_prefix("{le=\"")?.split_once("\"}")?;
            let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? };
            Some((bound, rest.split_whitespace().next()?.parse().ok()?))
        });
        Self(buckets.collect())
    }

    fn since(&self, before: &Self) -> Self {
        let earlier = |index: usize| before.0.get(index).map_or(0.0, |(_, count)| *count);
        Self(
            self.0
                .iter()
                .enumerate()
                .map(|(index, (bound, count))| (*bound, count - earlier(index)))
                .collect(),
        )
    }

    /// The lowest bound below which at least this part of all values lies (0.5 is the median); `None`: there are no values.
    fn quantile(&self, part: f64) -> Option<f64> {
        let all = self.0.last().map(|(_, count)| *count).filter(|count| *count > 0.0)?;
        self.0.iter().find(|(_, count)| *count >= all * part).map(|(bound, _)| *bound)
    }
}

fn value(page: &str, name: &str) -> f64 {
    let found = page
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.split(' ').next()?.parse().ok());
    found.unwrap_or_default()
}

/// A duration as text for people.
fn shown(seconds: f64) -> String {
    match seconds {
        _ if seconds.is_infinite() => "beyond all bounds".to_owned(),
        _ if seconds >= 1.0 => format!("{seconds:.1} s"),
        _ => format!("{} ms", (seconds * 1e6).round() / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# TYPE tickwheel_scheduled counter
tickwheel_scheduled_total 100
tickwheel_delivered_total{result=\"acked\"} 40
tickwheel_fire_lateness_seconds_bucket{le=\"0.001\"} 50
tickwheel_fire_lateness_seconds_bucket{le=\"0.01\"} 99
tickwheel_fire_lateness_seconds_bucket{le=\"+Inf\"} 100
";

    #[test]
    fn one_worker_waits_and_two_workers_wait() {
        for (waiting, told) in
            [("0", "0 waiting workers"), ("1", "1 waiting worker"), ("2", "2 waiting workers")]
        {
            let [_, line] = Figures::read(&format!("tickwheel_waiting_leases {waiting}\n")).first_lines();
            assert!(line.ends_with(&format!("   {told}")), "{line}");
        }
    }

    #[test]
    fn lateness_is_known_from_the_start() {
        let [rates, late] = Figures::read(PAGE).first_lines();
        assert!(!rates.contains("puts"), "{rates}");
        assert!(late.starts_with("since the server was started:  late: p50 1 ms, p99 10 ms"), "{late}");
        let [_, unknown] = Figures::default().first_lines();
        assert!(unknown.contains("late: p50 -, p99 -"), "{unknown}");
    }

    #[test]
    fn rates_and_quantiles_are_of_what_happened_in_between() {
        let now = Figures::read(PAGE);
        let rates = Rates::between(&Figures::default(), &now, Duration::from_secs(2));
        assert_eq!((rates.done.scheduled, rates.done.acked, rates.done.nacked), (50.0, 20.0, 0.0));
        assert_eq!((rates.late_p50_s, rates.late_p99_s, rates.commit_p99_s), (Some(0.001), Some(0.01), None));
        let quiet = Rates::between(&now, &now, Duration::from_secs(2));
        assert_eq!((quiet.done.scheduled, quiet.late_p50_s), (0.0, None));
        let anew = Rates::between(&now, &Figures::default(), Duration::from_secs(2));
        assert_eq!(anew.done.scheduled, 0.0, "no rate is negative");
    }
}

//! The printed account at the end.

use std::fmt::{self, Display, Write};
use std::io::Write as _;

use anyhow::{Context, Result};

use super::histogram::Histogram;
use super::plan::ORDERS;
use super::server::Outage;
use super::verdict::Verdict;
use crate::output::{STDOUT, stdout};

/// The longest bar of the histogram (characters).
const BAR_MAX: usize = 40;

/// Prints the account to stdout.
///
/// # Errors
/// Stdout cannot be written.
pub(super) fn print(verdict: &Verdict, outage: &Outage, seconds: f64) -> Result<()> {
    let mut out = stdout();
    let text = Report { verdict, outage, seconds };
    writeln!(out, "{text}").and_then(|()| out.flush()).context(STDOUT)
}

struct Report<'a> {
    verdict: &'a Verdict,
    outage: &'a Outage,
    seconds: f64,
}

impl Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verdict, outage, seconds } = *self;
        let closed = verdict.closed_unpaid + verdict.closed_paid_late;
        writeln!(f, "orders placed            {:>6}", verdict.placed)?;
        writeln!(f, "  paid in time           {:>6}   their close was cancelled", verdict.paid_in_time)?;
        writeln!(
            f,
            "  closed                 {closed:>6}   {} never paid, {} paid too late",
            verdict.closed_unpaid, verdict.closed_paid_late
        )?;
        if verdict.cancelled_after_crash > 0 {
            let count = verdict.cancelled_after_crash;
            writeln!(
                f,
                "  paid after the crash   {count:>6}   a close had begun; the kill set it free and it was cancelled"
            )?;
        }
        writeln!(f, "lost                     {:>6}", verdict.lost)?;
        writeln!(f, "early                    {:>6}", verdict.early)?;
        writeln!(f, "closed though paid       {:>6}", verdict.closed_though_paid)?;
        writeln!(
            f,
            "delivered twice          {:>6}   allowed after a crash: at least once",
            verdict.duplicates
        )?;
        writeln!(
            f,
            "kills (SIGKILL)          {:>6}   with {} calls under way; ready again after {} ms",
            1,
            outage.in_flight,
            outage.lasted.as_millis()
        )?;
        if verdict.placed < ORDERS {
            writeln!(f, "\nThis machine was too slow for all {ORDERS} orders; the shop closed its doors.")?;
        }
        writeln!(f, "\nlateness, from due to the worker's answer")?;
        histogram(f, &verdict.lateness)?;
        let waited = &verdict.lateness_in_outage;
        if let Some(max_ms) = waited.max_ms() {
            let count = waited.count();
            writeln!(f, "  and {count} that were due while no server ran, at most {max_ms} ms late")?;
        }
        let end = if verdict.is_clean() { "Every promise was kept." } else { "A PROMISE WAS BROKEN." };
        write!(f, "\n{end} {seconds:.1} s")
    }
}

fn histogram(f: &mut fmt::Formatter<'_>, lateness: &Histogram) -> fmt::Result {
    let buckets = lateness.buckets();
    let most = buckets.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    for (name, count) in buckets {
        let bar = (count * BAR_MAX).div_ceil(most);
        let mut line = format!("  {name:>10} {count:>6}  ");
        let _infallible = write!(line, "{}", "█".repeat(bar));
        writeln!(f, "{}", line.trim_end())?;
    }
    let shown = |ms: Option<i64>| ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms"));
    writeln!(
        f,
        "  median {}, 99 % {}, worst {}",
        shown(lateness.percentile_ms(50)),
        shown(lateness.percentile_ms(99)),
        shown(lateness.max_ms())
    )
}

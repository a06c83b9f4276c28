//! [`Progress`]: the counts of a bridge, for people.

use std::sync::Arc;
use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use tickwheel_push::bridge::{BridgeCounts, BridgeFigures};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::keeper::{Keeper, Tasks};
use crate::output::say;
use crate::printable::one_line;

/// The time between two lines.
const LINE: Duration = Duration::from_secs(10);
/// The time between two looks at the state.
const LOOK: Duration = Duration::from_secs(1);

/// Tells the counts: in one line that changes on a terminal, and as a line every 10 s elsewhere. A new reason for which the bridge does not
/// work is told within a second.
pub(crate) struct Progress {
    figures: Arc<BridgeFigures>,
    bar: Option<ProgressBar>,
    trouble: Option<String>,
}

impl Progress {
    pub(crate) fn new(figures: Arc<BridgeFigures>) -> Self {
        let style = ProgressStyle::with_template("{spinner} {msg}").expect("the template is ours");
        let bar = ProgressBar::new_spinner().with_style(style);
        // Without a terminal the bar is hidden.
        let bar = (!bar.is_hidden()).then_some(bar);
        Self { figures, bar, trouble: None }
    }

    /// Tells the counts until the future is dropped. `begun` is called after the first start of the work.
    pub(crate) async fn run(&mut self, keeper: &Keeper, begun: impl FnOnce()) {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut begun = Some(begun);
        let mut last = (Instant::now(), self.figures.counts());
        loop {
            looks.tick().await;
            let counts = self.figures.counts();
            if counts.sessions > 0
                && let Some(begun) = begun.take()
            {
                match &self.bar {
                    Some(bar) => bar.suspend(begun),
                    None => begun(),
                }
            }
            self.tell_trouble(keeper);
            let (at, before) = last;
            let is_due = at.elapsed() >= LINE;
            if !is_due && self.bar.is_none() {
                continue;
            }
            let rate = (counts.stored - before.stored) as f64 / at.elapsed().as_secs_f64().max(0.001);
            let text = format!("{}, {rate:.0}/s", line(&counts, keeper.repeatable(), keeper.tasks().await));
            match &self.bar {
                Some(bar) => {
                    bar.set_message(one_line(&text));
                    bar.tick();
                }
                None => say(&text),
            }
            if is_due {
                last = (Instant::now(), counts);
            }
        }
    }

    fn tell_trouble(&mut self, keeper: &Keeper) {
        let trouble = self.figures.trouble().map(|reason| reason.to_string()).or_else(|| keeper.trouble());
        if trouble == self.trouble {
            return;
        }
        let text = match &trouble {
            Some(reason) => format!("the bridge waits: {reason}"),
            None => "the bridge works".to_owned(),
        };
        match &self.bar {
            Some(bar) => bar.suspend(|| say(&text)),
            None => say(&text),
        }
        self.trouble = trouble;
    }

    /// Returns the last counts, as a line.
    pub(crate) async fn end(self, keeper: &Keeper) -> String {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        line(&self.figures.counts(), keeper.repeatable(), keeper.tasks().await)
    }
}

fn line(counts: &BridgeCounts, repeatable: u64, tasks: Option<Tasks>) -> String {
    let BridgeCounts { received, stored, cancelled, refused, redelivered, redelivered_without_key, .. } =
        *counts;
    let tasks = tasks.map_or_else(
        || "waiting unknown".to_owned(),
        |tasks| format!("waiting {}, dead {}", HumanCount(tasks.waiting), HumanCount(tasks.dead)),
    );
    format!(
        "received {}, kept {}, cancelled {}, refused {}, {tasks}, delivered again {} (perhaps twice {})",
        HumanCount(received),
        HumanCount(stored),
        HumanCount(cancelled),
        HumanCount(refused),
        HumanCount(redelivered),
        HumanCount(redelivered_without_key + repeatable),
    )
}

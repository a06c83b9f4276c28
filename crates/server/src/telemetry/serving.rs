//! [`Serving`]: tells the log when the server begins and ends to answer for its shards.
//!
//! The shards of a database may be with another server, and a database may be away for a time. Both begin and end without a call.

use std::time::Duration;

use tickwheel_queue::Queue;

use crate::events;

/// The time between two looks.
const EVERY: Duration = Duration::from_secs(1);
/// While the server does not answer, another reason is told after this number of looks at the earliest: reasons may follow one another quickly.
const LOOKS_PER_REASON: u32 = 10;

/// Looks at the shards of a queue each second, until the future is dropped.
pub(crate) async fn watch(queue: Queue) {
    let mut serving = Serving::default();
    let mut looks = tokio::time::interval(EVERY);
    let mut adopted = 0;
    loop {
        looks.tick().await;
        let adopted_before = std::mem::replace(&mut adopted, queue.health().adopted);
        if adopted != adopted_before {
            tracing::warn!(
                event = events::SHARDS_ADOPTED,
                "`tickwheel cluster adopt` has taken the shards from this server, and it takes them again unless another server has them"
            );
        }
        if let Some(line) = serving.look(Shards::of(&queue)) {
            line.write();
        }
    }
}

/// The shards at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Shards {
    count: usize,
    /// The shards that take calls, changes included.
    served: usize,
    /// The first reason why one does not, or why it may not for long.
    why: Option<String>,
}

impl Shards {
    fn of(queue: &Queue) -> Self {
        let shards = queue.health_of_shards();
        let served = shards.iter().filter(|(_, health)| health.ready && health.read_only.is_none()).count();
        let mut reasons = shards.iter().filter_map(|(_, health)| {
            let failed = health.read_only.as_ref().map(|why| format!("the store failed: {why}"));
            failed.or_else(|| health.waits_for.as_deref().map(str::to_owned))
        });
        Self { count: shards.len(), served, why: reasons.next() }
    }
}

/// The last line that was told, and what has changed since.
#[derive(Debug, Default)]
struct Serving {
    /// `None`: all shards are served, and always were.
    told: Option<Shards>,
    looks: u32,
}

/// A line of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Line {
    Served {
        count: usize,
    },
    Unserved(Shards),
    /// All shards are served, and something is in the way of one.
    Hindered {
        why: String,
    },
}

impl Serving {
    fn look(&mut self, now: Shards) -> Option<Line> {
        self.looks = self.looks.saturating_add(1);
        let was_served = self.told.as_ref().is_none_or(|told| told.served == told.count);
        let is_served = now.served == now.count;
        let is_new = self.told.as_ref().map_or(now.why.is_some(), |told| told.why != now.why);
        let line = match (was_served, is_served) {
            (false, true) => Line::Served { count: now.count },
            (true, false) => Line::Unserved(now.clone()),
            (false, false) if is_new && self.looks >= LOOKS_PER_REASON => Line::Unserved(now.clone()),
            (true, true) if is_new => match &now.why {
                Some(why) => Line::Hindered { why: why.clone() },
                None => {
                    self.told = Some(now);
                    return None;
                }
            },
            _ => return None,
        };
        (self.told, self.looks) = (Some(now), 0);
        Some(line)
    }
}

impl Line {
    fn write(self) {
        match self {
            Self::Served { count } => {
                tracing::info!(
                    event = events::SHARDS_SERVED,
                    shards = count,
                    "the server answers for all shards"
                );
            }
            Self::Unserved(Shards { count, served, why }) => tracing::warn!(
                event = events::SHARDS_UNSERVED,
                shards = count,
                served,
                why,
                "the server does not answer for all shards"
            ),
            Self::Hindered { why } => {
                tracing::warn!(
                    event = events::SHARDS_HINDERED,
                    why,
                    "the server answers for all shards, and something fails"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards(served: usize, why: Option<&str>) -> Shards {
        Shards { count: 2, served, why: why.map(str::to_owned) }
    }

    #[test]
    fn each_change_is_told_once() {
        let mut serving = Serving::default();
        assert_eq!(serving.look(shards(2, None)), None, "a start tells enough");
        let lost = shards(0, Some("`b` has the shard"));
        assert_eq!(serving.look(lost.clone()), Some(Line::Unserved(lost.clone())));
        assert_eq!(serving.look(lost), None);
        assert_eq!(serving.look(shards(1, Some("`b` has the shard"))), None, "half is not all");
        assert_eq!(serving.look(shards(2, None)), Some(Line::Served { count: 2 }));
        assert_eq!(serving.look(shards(2, None)), None);
        let why = "the inbox is not read";
        assert_eq!(serving.look(shards(2, Some(why))), Some(Line::Hindered { why: why.to_owned() }));
        assert_eq!(serving.look(shards(2, Some(why))), None);
        assert_eq!(serving.look(shards(2, None)), None);
        assert_eq!(serving.look(shards(2, Some(why))), Some(Line::Hindered { why: why.to_owned() }));
    }

    #[test]
    fn other_reasons_are_told_after_a_time() {
        let mut serving = Serving::default();
        assert!(serving.look(shards(0, Some("a"))).is_some());
        for _ in 1..LOOKS_PER_REASON {
            assert_eq!(serving.look(shards(0, Some("b"))), None);
        }
        assert_eq!(serving.look(shards(0, Some("b"))), Some(Line::Unserved(shards(0, Some("b")))));
    }
}

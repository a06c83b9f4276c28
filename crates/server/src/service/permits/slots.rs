//! The permits of large bodies, batches, exports, subscriptions, and searches in all queues, and the memory of answers.

use std::time::Duration;

use tickwheel_api::Problem;

use crate::access::producer::Producer;
use crate::service::answers::Answers;
use crate::service::permits::limits::Limits;
use crate::service::permits::shares::{Full, Permit, Rules, Shares};

/// The longest wait of a batch: longer than the 5 s after which a silent batch is known to be slow.
const BATCH_WAIT_MAX: Duration = Duration::from_secs(6);
/// The longest wait of a large body, or of an export for one that makes way. After it the client should be told.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// The largest number of waiting batches.
const BATCHES_WAITING_MAX: usize = 256;

/// The number of searches in all queues at one time; each may look into 10,000 queues.
const SEARCHES_MAX: usize = 4;
/// The number of such searches of one caller.
const SEARCHES_OF_ONE_MAX: usize = 2;
/// The largest number of waiting searches.
const SEARCHES_WAITING_MAX: usize = 64;

/// The number of exports at one time; each reads the store as fast as its client takes the data.
const EXPORTS_MAX: usize = 4;
/// The number of exports of one caller. It is more than one, because a client whose connection broke begins again
/// before the server has noticed.
const EXPORTS_OF_ONE_MAX: usize = 2;
/// The number of exports of callers whose token has no `admin` for all queues.
const EXPORTS_OF_OTHERS_MAX: usize = EXPORTS_MAX - 1;

/// The largest number of open subscriptions.
const SUBSCRIPTIONS_MAX: usize = 64;
/// The largest number of open subscriptions of one token.
const SUBSCRIPTIONS_OF_TOKEN_MAX: usize = 8;

/// The permits of calls; each server has one set.
pub(crate) struct Slots {
    pub(crate) large_bodies: Shares,
    /// The permits of batches and imports. A slow one makes way.
    pub(crate) batches: Shares,
    pub(crate) exports: Exports,
    pub(crate) searches: Shares,
    /// The permits of open subscriptions.
    pub(crate) subscriptions: Shares,
    pub(crate) answers: Answers,
}

impl Slots {
    pub(crate) fn new(limits: &Limits) -> Self {
        let large_bodies = Rules {
            max: limits.large_bodies,
            share_max: limits.large_bodies_per_caller,
            waiting_max: usize::MAX,
            wait_max: WAIT_MAX,
            refusal: body_refused,
        };
        let batches = Rules {
            max: limits.batches,
            share_max: limits.batches_per_caller,
            waiting_max: BATCHES_WAITING_MAX,
            wait_max: BATCH_WAIT_MAX,
            refusal: batch_refused,
        };
        let searches = Rules {
            max: SEARCHES_MAX,
            share_max: SEARCHES_OF_ONE_MAX,
            waiting_max: SEARCHES_WAITING_MAX,
            wait_max: WAIT_MAX,
            refusal: search_refused,
        };
        let subscriptions = Rules {
            max: SUBSCRIPTIONS_MAX,
            share_max: SUBSCRIPTIONS_OF_TOKEN_MAX,
            waiting_max: 0,
            wait_max: Duration::ZERO,
            refusal: subscription_refused,
        };
        Self {
            large_bodies: Shares::new(large_bodies),
            batches: Shares::new(batches),
            exports: Exports::new(),
            searches: Shares::new(searches),
            subscriptions: Shares::new(subscriptions),
            answers: Answers::new(limits.answer_bytes),
        }
    }
}

fn body_refused(full: Full) -> Problem {
    let what = match full {
        Full::Share(max) => format!(
            "{max} large bodies of the caller are being read, which is the limit for one caller (--max-large-bodies-per-caller)"
        ),
        Full::All(max) => format!("the server is reading {max} large bodies already (--max-large-bodies)"),
    };
    Problem::busy(what, 1)
}

fn batch_refused(full: Full) -> Problem {
    Problem::busy(full.limit_of("open batches", "batches"), 1)
        .with_hint("try again later, or put more lines into each batch")
}

fn search_refused(full: Full) -> Problem {
    let what = match full {
        Full::Share(max) => {
            format!(
                "{max} searches of the caller in all queues are under way, which is the limit for one caller"
            )
        }
        Full::All(max) => format!("the server does {max} searches in all queues already"),
    };
    Problem::busy(what, 1).with_hint("try again later, or look for the key in one queue")
}

fn subscription_refused(full: Full) -> Problem {
    let what = match full {
        Full::Share(max) => format!("{max} streams of events of the token are open, which is its limit"),
        Full::All(max) => format!("{max} streams of events are open, which is the limit of the server"),
    };
    let hint = "close a stream, such as a page of the console that nobody looks at, and try again";
    Problem::busy(what, 5).with_hint(hint)
}

/// The permits of exports. The last one is for administrators only. An export whose client takes no data makes way.
pub(crate) struct Exports {
    all: Shares,
    /// The permits of callers without `admin`. Each of their exports needs one of `all`, too.
    others: Shares,
}

/// The permit of an export. Dropping it frees the permit.
#[derive(Debug)]
pub(crate) struct ExportPermit {
    of_all: Permit,
    of_others: Option<Permit>,
}

impl Exports {
    fn new() -> Self {
        let all = Rules {
            max: EXPORTS_MAX,
            share_max: EXPORTS_OF_ONE_MAX,
            waiting_max: 0,
            // An export may wait for two permits, one after the other.
            wait_max: WAIT_MAX / 2,
            refusal: export_refused,
        };
        let others = Rules { max: EXPORTS_OF_OTHERS_MAX, ..all };
        Self { all: Shares::new(all), others: Shares::new(others) }
    }

    /// Takes a permit for one more export. If there is none, an export whose client stands still loses its permit.
    ///
    /// # Errors
    /// 429, which names the limit.
    pub(crate) async fn enter(&self, producer: Producer, is_admin: bool) -> Result<ExportPermit, Problem> {
        let of_others = if is_admin { None } else { Some(self.others.enter(producer).await?) };
        Ok(ExportPermit { of_all: self.all.enter(producer).await?, of_others })
    }
}

fn export_refused(full: Full) -> Problem {
    let (what, hint) = match full {
        Full::Share(max) => (
            format!("the caller has {max} exports under way, which is the limit for one caller"),
            "read them to their end, or close their connections",
        ),
        Full::All(EXPORTS_OF_OTHERS_MAX) => (
            format!(
                "{EXPORTS_OF_OTHERS_MAX} exports are under way; the last permit is kept for administrators"
            ),
            "try again when one of them is over",
        ),
        Full::All(max) => {
            (format!("{max} exports are under way, which is the limit"), "try again when one of them is over")
        }
    };
    Problem::busy(what, 5).with_hint(hint)
}

impl ExportPermit {
    /// Notes whether the client stands still.
    pub(crate) fn stands_still(&self, stands_still: bool) {
        [&self.of_all].into_iter().chain(&self.of_others).for_each(|permit| permit.makes_way(stands_still));
    }

    /// Waits until the export must give up its permit.
    pub(crate) async fn leaves(&self) {
        match &self.of_others {
            Some(of_others) => tokio::select! {
                () = of_others.leaves() => {}
                () = self.of_all.leaves() => {}
            },
            None => self.of_all.leaves().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::permits::shares::tests::{A, B, refused};

    fn slots() -> Slots {
        let limits = Limits {
            large_bodies: 2,
            large_bodies_per_caller: 1,
            batches: 2,
            batches_per_caller: 1,
            ..Limits::default()
        };
        Slots::new(&limits)
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_names_the_limit() {
        let Slots { large_bodies, batches, .. } = slots();
        let _held = (large_bodies.enter(A).await.expect("free"), batches.enter(A).await.expect("free"));
        let body = "1 large bodies of the caller are being read, which is the limit for one caller (--max-large-bodies-per-caller)";
        let batch = "the caller has 1 open batches, which is its limit (--max-batches-per-caller)";
        assert_eq!((&*refused(&large_bodies, A).await, &*refused(&batches, A).await), (body, batch));
        let _other = (large_bodies.enter(B).await.expect("free"), batches.enter(B).await.expect("free"));
        let body = "the server is reading 2 large bodies already (--max-large-bodies)";
        let batch = "the server has 2 open batches, which is its limit (--max-batches)";
        let local = Producer::Local;
        assert_eq!((&*refused(&large_bodies, local).await, &*refused(&batches, local).await), (body, batch));
        let problem = batches.enter(local).await.expect_err("no free permit");
        assert_eq!(problem.retry_after_s, Some(1));
        assert_eq!(large_bodies.enter(local).await.expect_err("no free permit").retry_after_s, Some(1));
    }

    /// A caller with a used-up share and many waiting calls must not keep other callers from a free permit.
    #[tokio::test(start_paused = true)]
    async fn bodies_that_wait_for_their_share_do_not_block_others() {
        let bodies = slots().large_bodies;
        let held = bodies.enter(A).await.expect("free");
        let waiting: Vec<_> = (0..1_000)
            .map(|_| {
                let bodies = bodies.clone();
                tokio::spawn(async move { bodies.enter(A).await.is_ok() })
            })
            .collect();
        tokio::task::yield_now().await;
        let begun = tokio::time::Instant::now();
        assert!(bodies.enter(B).await.is_ok());
        assert_eq!(begun.elapsed(), Duration::ZERO, "it need not wait");
        drop(held);
        for call in waiting {
            assert!(call.await.expect("it did not panic"), "each had its permit after another");
        }
    }

    #[test]
    fn a_token_has_eight_subscriptions_and_all_callers_have_sixty_four() {
        let permits = slots().subscriptions;
        let enter = |producer| permits.enter_now(producer);
        let mut held: Vec<_> = (0..8).map(|_| enter(A).expect("a permit")).collect();
        let refused = Problem::from(enter(A).expect_err("the ninth of a token"));
        assert!(refused.detail.starts_with("8 streams of events of the token"), "{}", refused.detail);
        assert_eq!(refused.retry_after_s, Some(5));
        let local = Producer::Local;
        held.extend((0..56).map(|_| enter(local).expect("a server without tokens has one limit")));
        for producer in [local, B] {
            let refused = Problem::from(enter(producer).expect_err("the 65th"));
            assert!(refused.detail.starts_with("64 streams of events are open"), "{}", refused.detail);
        }
        held.remove(0);
        held.push(enter(A).expect("a permit is free again"));
    }

    fn token(number: u8) -> Producer {
        Producer::Token([number; 32])
    }

    async fn export(exports: &Exports, producer: Producer, is_admin: bool) -> ExportPermit {
        exports.enter(producer, is_admin).await.expect("a permit")
    }

    async fn no_export(exports: &Exports, producer: Producer, is_admin: bool) -> String {
        let begun = tokio::time::Instant::now();
        let problem = exports.enter(producer, is_admin).await.expect_err("no permit");
        assert_eq!((problem.retry_after_s, begun.elapsed()), (Some(5), Duration::ZERO), "it did not wait");
        problem.detail
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_has_its_share_and_the_last_permit_is_for_administrators() {
        let exports = slots().exports;
        let first = export(&exports, token(1), false).await;
        let _second = export(&exports, token(1), false).await;
        assert!(no_export(&exports, token(1), false).await.contains("the caller has 2 exports"));
        let third = export(&exports, token(2), false).await;
        assert!(no_export(&exports, token(3), false).await.contains("kept for administrators"));
        let _admin = export(&exports, token(9), true).await;
        assert!(no_export(&exports, token(8), true).await.contains("4 exports are under way"));
        drop(first);
        drop(export(&exports, token(3), false).await);
        drop(third);
        let _admins = [export(&exports, token(9), true).await, export(&exports, token(8), true).await];
        assert!(no_export(&exports, token(3), false).await.contains("4 exports are under way"));
    }

    #[tokio::test(start_paused = true)]
    async fn callers_of_this_machine_have_all_exports() {
        let exports = slots().exports;
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(export(&exports, Producer::Local, true).await);
        }
        assert!(no_export(&exports, Producer::Local, true).await.contains("4 exports are under way"));
        drop(held);
        export(&exports, Producer::Local, true).await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_export_that_stands_still_makes_way_for_another() {
        let exports = slots().exports;
        let mut held = Vec::new();
        for number in [1, 1, 2] {
            held.push(export(&exports, token(number), false).await);
        }
        no_export(&exports, token(3), false).await;
        held[2].stands_still(true);
        let refused = no_export(&exports, token(1), false).await;
        assert!(refused.contains("the caller has 2"), "another's permit is no help: {refused}");
        held[2].stands_still(false);
        no_export(&exports, token(3), false).await;
        held[1].stands_still(true);
        let slow = held.remove(1);
        let (_third, ()) = tokio::join!(export(&exports, token(3), false), async {
            slow.leaves().await;
            drop(slow);
        });
        no_export(&exports, token(4), false).await;
    }

    /// Two administrators and two others have all permits, so that the export of another needs the permit of any.
    #[tokio::test(start_paused = true)]
    async fn an_export_of_an_administrator_makes_way_for_another_caller() {
        let exports = slots().exports;
        let admin = export(&exports, token(8), true).await;
        let _held = [
            export(&exports, token(9), true).await,
            export(&exports, token(1), false).await,
            export(&exports, token(1), false).await,
        ];
        admin.stands_still(true);
        tokio::join!(export(&exports, token(2), false), async {
            admin.leaves().await;
            drop(admin);
        });
    }
}

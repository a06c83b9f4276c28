//! Deliveries and their times: pauses that end, rates, leases that wait, forecasts.

use super::*;
use crate::oracle::Buckets;

/// Two tasks, `a` and `b`, that are due.
fn two_due(play: &mut Play) -> Result<(), Violation> {
    play.put("a", WALL, ready("a", 1, 5, WALL))?;
    play.put("b", WALL, ready("b", 2, 6, WALL))
}

fn limited_to(rate: Rate) -> Verb {
    Verb::Settle(Limits { rate: Some(rate), ..Limits::default() })
}

const ONE_IN_100: Rate = Rate { tasks: 1, per_ms: 100, burst: 1 };

#[test]
fn a_pause_ends_by_itself() {
    holds(|play| {
        two_due(play)?;
        play.call(None, Verb::Pause(Pause::For(1_000)), Answer::Laid)?;
        play.lease(1, vec![])?;
        play.pass(990);
        // The pause may have begun with the call or with its answer.
        play.lease(1, vec![])?;
        play.lease(1, vec![])?;
        play.pass(10);
        play.lease(1, vec![found("a", 1, WALL, "t1")])?;
        // A pause that was over before the clock was set back may be forgotten or may go on.
        play.step(-500);
        play.lease(1, vec![])?;
        play.lease(1, vec![found("b", 2, WALL, "t2")])
    });
    breaks("limits", |play| {
        two_due(play)?;
        play.call(None, Verb::Pause(Pause::For(1_000)), Answer::Laid)?;
        play.pass(900);
        Ok(play.lease(1, vec![found("a", 1, WALL, "t1")]))
    });
    breaks("P4", |play| {
        two_due(play)?;
        play.call(None, Verb::Pause(Pause::For(1_000)), Answer::Laid)?;
        play.pass(1_010);
        Ok(play.lease(1, vec![]))
    });
}

#[test]
fn a_rate_is_not_passed_and_holds_nothing_up_for_longer() {
    holds(|play| {
        two_due(play)?;
        play.call(None, limited_to(ONE_IN_100), Answer::Laid)?;
        play.lease(2, vec![found("a", 1, WALL, "t1")])?;
        play.lease(2, vec![])?;
        play.pass(100);
        play.lease(2, vec![found("b", 2, WALL, "t2")])
    });
    // A delivery that reached no worker may be made again at once.
    holds(|play| {
        two_due(play)?;
        play.call(None, limited_to(ONE_IN_100), Answer::Laid)?;
        play.lease(1, vec![found("a", 1, WALL, "t1")])?;
        play.tokens(|tokens| Verb::Return { tokens }, "t1", TokenAnswer::Returned)?;
        play.lease(1, vec![found("a", 1, WALL, "t2")])
    });
    // The content of the token bucket after a crash is unknown.
    holds(|play| {
        two_due(play)?;
        play.call(None, limited_to(ONE_IN_100), Answer::Laid)?;
        play.pass(100);
        play.crash()?;
        play.lease(1, vec![])
    });
    breaks("limits", |play| {
        two_due(play)?;
        play.call(None, limited_to(ONE_IN_100), Answer::Laid)?;
        play.lease(1, vec![found("a", 1, WALL, "t1")])?;
        play.pass(80);
        Ok(play.lease(1, vec![found("b", 2, WALL, "t2")]))
    });
    breaks("P4", |play| {
        two_due(play)?;
        play.call(None, limited_to(ONE_IN_100), Answer::Laid)?;
        play.lease(1, vec![found("a", 1, WALL, "t1")])?;
        play.pass(104);
        Ok(play.lease(1, vec![]))
    });
    breaks("P4", |play| {
        two_due(play)?;
        play.call(None, limited_to(Rate { burst: 2, ..ONE_IN_100 }), Answer::Laid)?;
        play.pass(300);
        Ok(play.lease(2, vec![found("a", 1, WALL, "t1")]))
    });
}

/// Sends a lease call that waits in the server. Returns a set with the number of this call. With it a test asks the
/// oracle about a server that sleeps.
fn waits(play: &mut Play) -> BTreeSet<CallId> {
    BTreeSet::from([play.send(None, Verb::Lease { max: 1, lease_ms: 1_000 })])
}

#[test]
fn a_lease_that_waits_is_answered_when_something_is_ready() {
    holds(|play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        let waiting = waits(play);
        assert_eq!(play.oracle.keeps_waiting(&waiting), None, "nothing is due");
        play.pass(10_000);
        assert_eq!(play.oracle.keeps_waiting(&BTreeSet::new()), None, "it is still on its way");
        assert_eq!(play.oracle.keeps_waiting(&waiting), Some(("q", "a")));
        Ok(())
    });
    holds(|play| {
        two_due(play)?;
        play.call(None, Verb::Pause(Pause::For(1_000)), Answer::Laid)?;
        let waiting = waits(play);
        play.pass(990);
        assert_eq!(play.oracle.keeps_waiting(&waiting), None, "it is paused");
        play.pass(15);
        assert!(play.oracle.keeps_waiting(&waiting).is_some(), "the pause is over");
        Ok(())
    });
    holds(|play| {
        two_due(play)?;
        play.call(None, limited_to(ONE_IN_100), Answer::Laid)?;
        play.lease(1, vec![found("a", 1, WALL, "t1")])?;
        let waiting = waits(play);
        play.pass(90);
        assert_eq!(play.oracle.keeps_waiting(&waiting), None, "the rate allows none");
        play.pass(15);
        assert_eq!(play.oracle.keeps_waiting(&waiting), Some(("q", "b")));
        Ok(())
    });
}

#[test]
fn a_forecast_counts_what_falls_due() {
    let even = |count: usize| Buckets::Even { width_ms: 1_000, count: count as i64 };
    let story = |counts: [u64; 3]| {
        move |play: &mut Play| {
            play.put("a", DUE, view("a", 1, 5, DUE))?;
            play.put("b", DUE + 999, view("b", 2, 6, DUE + 999))?;
            play.put("c", WALL, ready("c", 3, 7, WALL))?;
            play.put("d", DUE + 1_000, view("d", 4, 8, DUE + 1_000))?;
            play.pass(9_500);
            Ok(play.oracle.forecast(Some("q"), None, DUE - 1_000, &even(counts.len()), &counts))
        }
    };
    holds(|play| story([0, 2, 1])(play)?);
    breaks("counts", story([1, 2, 1]));
    breaks("counts", story([0, 1, 1]));
    breaks("counts", story([0, 2, 2]));
    breaks("counts", |play| Ok(play.oracle.forecast(Some("unused"), None, WALL, &even(2), &[0, 1])));
    breaks("counts", |play| Ok(play.oracle.forecast(None, None, WALL + 1, &even(0), &[])));
    let uneven = |from: i64, counts: [u64; 2]| {
        move |play: &mut Play| {
            play.put("a", DUE, view("a", 1, 5, DUE))?;
            play.put("b", DUE + 999, view("b", 2, 6, DUE + 999))?;
            Ok(play.oracle.forecast(None, Some(from), from, &Buckets::Ends(vec![1, 1_000]), &counts))
        }
    };
    holds(|play| uneven(DUE, [1, 1])(play)?);
    breaks("counts", uneven(DUE, [2, 0]));
    holds(|play| uneven(DUE - 1, [0, 1])(play)?);
}

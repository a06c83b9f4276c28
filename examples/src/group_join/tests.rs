//! The behaviours of a group.

use std::time::Duration;

use tickwheel::{Job, ManualClock, Timer};

use super::state::{Member, Phase};
use super::{Beat, Group, Joined, Plan, Rules, SyncError};
use crate::story::pass;

const RULES: Rules = Rules { initial_delay: s(3), rebalance: s(10) };

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn world() -> (ManualClock, Timer, Group) {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build().expect("a timer");
    let group = Group::new(&timer, RULES);
    (clock, timer, group)
}

/// A group of a, b and c that has just come together; a leads.
fn three() -> (ManualClock, Timer, Group) {
    let (clock, timer, group) = world();
    let joins = ["a", "b", "c"].map(|name| group.join(name));
    pass(&clock, s(6));
    let members = ["a", "b", "c"].map(str::to_owned).to_vec();
    let expected = Joined { generation: 1, leader: "a".to_owned(), members };
    for join in joins {
        assert_eq!(join.try_iter().collect::<Vec<_>>(), std::slice::from_ref(&expected));
    }
    (clock, timer, group)
}

fn plan() -> Option<Plan> {
    let part = |name: &str| (name.to_owned(), format!("work of {name}"));
    Some(Plan::from(["a", "b", "c"].map(part)))
}

fn beats(group: &Group) -> [Beat; 3] {
    ["a", "b", "c"].map(|name| group.heartbeat(name))
}

#[test]
fn g24_the_first_member_waits_for_company_and_no_longer() {
    let (clock, timer, group) = world();
    let join = group.join("a");
    clock.advance(s(3) / 2);
    assert_eq!(join.try_iter().count(), 0, "at half of the initial delay");
    clock.advance(s(3) / 2 - Duration::from_millis(1));
    assert_eq!(join.try_iter().count(), 0, "just before its end");
    clock.advance(Duration::from_millis(1));
    assert_eq!(join.try_iter().count(), 1);
    assert_eq!(timer.pending(), 1, "the sync is awaited now");
}

#[test]
fn g24_company_extends_the_wait_up_to_the_rebalance_time() {
    // The group looks at 3, 6, 9 and, at the latest, at 10: did a member come since the last look?
    let comers: [(&[u64], u64); 7] = [
        (&[], 3),
        (&[1], 6),
        (&[4], 3),
        (&[1, 2], 6),
        (&[1, 4], 9),
        (&[1, 4, 7], 10),
        (&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 10),
    ];
    for (seconds, end) in comers {
        let (clock, _timer, group) = world();
        let first = group.join("first");
        let answered = (0..12).find(|second| {
            if seconds.contains(second) {
                drop(group.join(&format!("of second {second}")));
            }
            clock.advance(s(1));
            first.try_recv().is_ok()
        });
        assert_eq!(answered, Some(end - 1), "when they come at {seconds:?}");
    }
}

#[test]
fn g24_who_asks_again_is_no_company_and_is_answered_the_second_time() {
    let (clock, _timer, group) = world();
    let first = group.join("a");
    clock.advance(s(2));
    let second = group.join("a");
    clock.advance(s(1));
    assert!(first.try_recv().is_err());
    assert_eq!(second.try_recv().map(|joined| joined.members.len()), Ok(1));
}

#[test]
fn g25_members_who_do_not_sync_are_fine_for_a_while_and_then_unknown() {
    let (clock, timer, group) = three();
    pass(&clock, s(5));
    assert_eq!(beats(&group), [Beat::Fine; 3]);
    pass(&clock, s(5));
    assert_eq!(beats(&group), [Beat::Unknown; 3]);
    assert_eq!(timer.pending(), 0, "the group is empty");
    assert_eq!(group.sync("a", plan()).err(), Some(SyncError::Unknown));
}

#[test]
fn g25_if_only_the_leader_syncs_the_others_go_and_it_joins_again() {
    let (clock, _timer, group) = three();
    let part = group.sync("a", plan()).expect("it is a member");
    assert_eq!(part.try_recv(), Ok(Ok("work of a".to_owned())));
    pass(&clock, s(10));
    assert_eq!(beats(&group), [Beat::Rebalance, Beat::Unknown, Beat::Unknown]);
    assert_eq!(group.sync("a", None).err(), Some(SyncError::Rebalance));
    let again = group.join("a").try_recv().expect("it waits for nobody");
    assert_eq!((again.generation, again.members), (2, vec!["a".to_owned()]));
}

#[test]
fn g25_if_only_the_leader_is_missing_it_goes_and_the_others_join_again() {
    for leader_asks in [false, true] {
        let (clock, _timer, group) = three();
        let parts = ["b", "c"].map(|name| group.sync(name, None).expect("it is a member"));
        // A leader that asks and brings no plan is as good as missing.
        let asked = leader_asks.then(|| group.sync("a", None).expect("it is a member"));
        pass(&clock, s(10));
        assert_eq!(beats(&group), [Beat::Unknown, Beat::Rebalance, Beat::Rebalance]);
        for part in parts {
            assert_eq!(part.try_recv(), Ok(Err(SyncError::Rebalance)));
        }
        assert!(asked.is_none_or(|asked| asked.try_recv().is_err()));
        let (b, c) = (group.join("b"), group.join("c"));
        assert_eq!(b.try_recv().map(|joined| joined.leader), Ok("b".to_owned()));
        assert!(c.try_recv().is_ok());
    }
}

#[test]
fn a_group_that_has_its_plan_waits_for_nothing() {
    let (clock, timer, group) = three();
    let parts = [("a", plan()), ("b", None), ("c", None)]
        .map(|(name, plan)| group.sync(name, plan).expect("it is a member"));
    for (part, name) in parts.iter().zip(["a", "b", "c"]) {
        assert_eq!(part.try_recv(), Ok(Ok(format!("work of {name}"))));
    }
    assert_eq!((timer.pending(), group.waits()), (0, 0));
    pass(&clock, s(100));
    assert_eq!(beats(&group), [Beat::Fine; 3]);

    // Another one comes: all join again, and who does not is out.
    let joins = ["d", "b", "c"].map(|name| group.join(name));
    assert_eq!(beats(&group), [Beat::Rebalance; 3]);
    pass(&clock, s(10));
    assert_eq!(beats(&group), [Beat::Unknown, Beat::Fine, Beat::Fine]);
    for join in joins {
        assert_eq!(join.try_recv().map(|joined| joined.leader), Ok("b".to_owned()));
    }
    // The plan of the generation before is not theirs.
    let part = group.sync("c", None).expect("it is a member");
    assert!(part.try_recv().is_err());
    drop(group.sync("b", Some(Plan::from([("c".to_owned(), "other work".to_owned())]))));
    assert_eq!(part.try_recv(), Ok(Ok("other work".to_owned())));
}

/// Whatever members do: a group that waits has one timeout, one that does not has none, and silence ends every wait.
#[test]
fn g26_every_phase_that_waits_has_a_timeout() {
    // Numbers that look drawn and are the same in each run: Knuth's generator, its high bits.
    let mut seed = 26_u64;
    let mut below = |end: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % end
    };
    let mut waits = [0; 4];
    for _ in 0..300 {
        let (clock, timer, group) = world();
        for _ in 0..below(40) {
            let name = ["a", "b", "c", "d"][usize::try_from(below(4)).expect("small")];
            match below(4) {
                0 => drop(group.join(name)),
                1 => drop(group.sync(name, None)),
                2 => drop(group.sync(name, plan())),
                _ => drop(clock.advance(Duration::from_millis(below(4_000)))),
            }
            let phase = group.inner.state().phase;
            let expected = usize::from(matches!(phase, Phase::Joining | Phase::Syncing));
            assert_eq!((timer.pending(), group.waits()), (expected, expected), "{group:?}");
            waits[phase as usize] += 1;
        }
        for _ in 0..4 {
            clock.advance(RULES.rebalance);
        }
        let state = group.inner.state();
        assert!(matches!(state.phase, Phase::Empty | Phase::Stable), "{:?}", state.phase);
        assert_eq!(timer.pending(), 0);
        let unanswered = |member: &Member| member.joining.is_some() || member.syncing.is_some();
        assert!(!state.members.values().any(unanswered));
    }
    assert!(waits.iter().all(|&seen| seen > 50), "each phase was there: {waits:?}");
}

#[test]
fn a_group_whose_timer_is_gone_is_soon_empty() {
    let (_clock, timer, group) = world();
    let join = group.join("a");
    drop(timer.shutdown());
    assert!(join.try_recv().is_ok(), "it was alone");
    assert_eq!(group.heartbeat("a"), Beat::Unknown);
    assert_eq!(group.join("b").try_recv().map(|joined| joined.members), Ok(vec!["b".to_owned()]));
    assert_eq!(group.heartbeat("b"), Beat::Unknown);
}

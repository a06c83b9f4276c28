use std::pin::{Pin, pin};

use tokio::time::{Instant, sleep};

use super::*;

pub(crate) const A: Producer = Producer::Token([1; 32]);
pub(crate) const B: Producer = Producer::Token([2; 32]);
const C: Producer = Producer::Earlier;

/// The largest number of waiting calls, and of those of one caller.
const WAITING_MAX: usize = 256;
const WAITING_OF_ONE_MAX: usize = WAITING_MAX / LINE_SHARE;
const WAIT_MAX: Duration = Duration::from_secs(6);

fn shares(max: usize, share_max: usize) -> Shares {
    let refusal = |full: Full| Problem::busy(full.limit_of("things", "things"), 1);
    Shares::new(Rules { max, share_max, waiting_max: WAITING_MAX, wait_max: WAIT_MAX, refusal })
}

async fn permits(shares: &Shares, producer: Producer, count: usize) -> Vec<Permit> {
    let mut permits = Vec::new();
    for _ in 0..count {
        permits.push(shares.enter(producer).await.expect("a free permit"));
    }
    permits
}

/// The text of the refusal of a call that gets no permit.
pub(crate) async fn refused(shares: &Shares, producer: Producer) -> String {
    let begun = Instant::now();
    let problem = shares.enter(producer).await.expect_err("no free permit");
    assert_eq!((problem.status, begun.elapsed()), (429, shares.rules.wait_max));
    problem.detail
}

type Waits<'a> = Pin<Box<dyn Future<Output = Permit> + 'a>>;

/// A call that waits.
async fn waits(shares: &Shares, producer: Producer) -> Waits<'_> {
    let mut waiting: Waits<'_> = Box::pin(async move { shares.enter(producer).await.expect("its permit") });
    assert!(timeout(Duration::ZERO, &mut waiting).await.is_err(), "it did not wait");
    waiting
}

async fn is_refused_at_once(shares: &Shares, producer: Producer) -> bool {
    let refused = timeout(Duration::ZERO, shares.enter(producer)).await;
    refused.is_ok_and(|refused| refused.is_err_and(|problem| problem.status == 429))
}

async fn is_told_to_leave(permit: &Permit) -> bool {
    timeout(Duration::ZERO, permit.leaves()).await.is_ok()
}

fn is_empty(shares: &Shares) -> bool {
    let state = shares.state();
    let counts = (state.taken, state.waiting, state.callers.len(), state.line.len());
    counts == (0, 0, 0, 0) && state.make_way.is_empty() && state.leaving.is_empty()
}

#[tokio::test(start_paused = true)]
async fn one_caller_has_its_share_and_others_the_rest() {
    let shares = shares(3, 2);
    let mut held = permits(&shares, A, 2).await;
    assert_eq!(
        refused(&shares, A).await,
        "the caller has 2 things, which is its limit (--max-things-per-caller)"
    );
    let other = permits(&shares, B, 1).await;
    assert_eq!(refused(&shares, B).await, "the server has 3 things, which is its limit (--max-things)");
    let first = held.pop().expect("two");
    let mut next = pin!(shares.enter(A));
    tokio::select! {
        biased;
        _ = &mut next => panic!("it did not wait"),
        () = sleep(Duration::from_secs(1)) => drop(first),
    }
    let next = next.await.expect("its own permit is free again");
    drop((held, other, next));
    assert!(is_empty(&shares));
}

/// All clients of a proxy on this computer have one address.
#[tokio::test(start_paused = true)]
async fn callers_of_this_machine_share_all_permits() {
    let shares = shares(3, 1);
    let from = |address: &str| Producer::new(None, Some(address.parse().expect("an address")));
    let _held = permits(&shares, from("127.0.0.1"), 2).await;
    let _other = permits(&shares, Producer::new(None, None), 1).await;
    assert!(refused(&shares, from("::1")).await.contains("--max-things)"));
}

/// A client sent its next bytes at the moment in which its call was told to leave.
#[tokio::test(start_paused = true)]
async fn a_holder_that_makes_way_no_more_stays_and_another_leaves() {
    let shares = shares(2, 2);
    let held = permits(&shares, A, 2).await;
    let mut waiting = pin!(shares.enter(B));
    held.iter().for_each(|permit| permit.makes_way(true));
    assert!(timeout(Duration::from_secs(1), &mut waiting).await.is_err());
    held[0].makes_way(false);
    assert!(!is_told_to_leave(&held[0]).await && is_told_to_leave(&held[1]).await);
    held[1].makes_way(false);
    held[0].makes_way(true);
    assert!(is_told_to_leave(&held[0]).await && !is_told_to_leave(&held[1]).await);
}

#[tokio::test(start_paused = true)]
async fn a_permit_that_makes_way_leaves_for_a_waiting_call() {
    let shares = shares(2, 2);
    let mut held = permits(&shares, A, 2).await;
    held[0].makes_way(true);
    assert!(!is_told_to_leave(&held[0]).await, "no call waits");
    held[0].makes_way(false);
    assert!(timeout(Duration::from_secs(1), shares.enter(B)).await.is_err());
    held[1].makes_way(true);
    assert!(!is_told_to_leave(&held[1]).await, "the one that waited has left");
    let slow = held.pop().expect("two");
    let mut waiting = pin!(shares.enter(B));
    assert!(timeout(Duration::from_secs(1), &mut waiting).await.is_err());
    assert!(is_told_to_leave(&slow).await && !is_told_to_leave(&held[0]).await);
    slow.makes_way(true);
    assert!(!is_told_to_leave(&slow).await, "it knows");
    drop(slow);
    let permit = waiting.await.expect("its permit");
    assert!(!is_told_to_leave(&permit).await);
    drop((held, permit));
    assert!(is_empty(&shares));
}

#[tokio::test(start_paused = true)]
async fn one_permit_leaves_for_each_waiting_call() {
    let shares = shares(3, 3);
    let held = permits(&shares, A, 3).await;
    held.iter().for_each(|permit| permit.makes_way(true));
    let _first = waits(&shares, B).await;
    assert_eq!(shares.state().leaving.len(), 1);
    let _second = waits(&shares, B).await;
    assert_eq!(shares.state().leaving.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn for_a_caller_with_its_share_only_its_own_permit_makes_way() {
    let shares = shares(4, 1);
    let (own, other) = (permits(&shares, A, 1).await, permits(&shares, B, 1).await);
    other[0].makes_way(true);
    assert!(timeout(Duration::from_secs(1), shares.enter(A)).await.is_err());
    assert!(!is_told_to_leave(&other[0]).await, "that would not help");
    own[0].makes_way(true);
    assert!(timeout(Duration::from_secs(1), shares.enter(A)).await.is_err());
    assert!(is_told_to_leave(&own[0]).await);
}

#[tokio::test(start_paused = true)]
async fn a_permit_that_comes_too_late_goes_on_to_the_next() {
    let shares = shares(1, 1);
    let held = permits(&shares, A, 1).await;
    let first = waits(&shares, B).await;
    drop(held);
    // The call got its permit and leaves without using it.
    drop(first);
    assert!(shares.enter(A).await.is_ok());
    assert!(is_empty(&shares));
}

#[tokio::test(start_paused = true)]
async fn the_number_of_waiting_calls_is_limited() {
    let shares = shares(1, 1);
    let held = permits(&shares, Producer::Local, 1).await;
    let mut waiting = Vec::new();
    for _ in 0..WAITING_MAX {
        waiting.push(waits(&shares, Producer::Local).await);
    }
    assert!(is_refused_at_once(&shares, Producer::Local).await);
    assert!(is_refused_at_once(&shares, A).await);
    // Each call that is gone is skipped at once.
    let last = waiting.pop().expect("many");
    drop(waiting);
    drop(held);
    drop(timeout(Duration::ZERO, last).await.expect("it has the permit"));
    assert!(is_empty(&shares));
}

/// A bug that was found: one producer had its full share of batches and 256 waiting calls. All other callers were
/// refused, although most permits were free.
#[tokio::test(start_paused = true)]
async fn many_waiting_calls_of_one_caller_do_not_block_others() {
    let shares = shares(5, 1);
    let (mut held, mut waiting) = (Vec::new(), Vec::new());
    for token in 10..14 {
        let producer = Producer::Token([token; 32]);
        held.extend(permits(&shares, producer, 1).await);
        for _ in 0..WAITING_OF_ONE_MAX {
            waiting.push(waits(&shares, producer).await);
        }
        assert!(is_refused_at_once(&shares, producer).await, "it has its share of the line, too");
    }
    assert_eq!(shares.state().waiting, WAITING_MAX);
    let free = timeout(Duration::ZERO, shares.enter(B)).await.expect("it need not wait");
    assert!(free.is_ok(), "there is a free permit");
}

#[tokio::test(start_paused = true)]
async fn without_waiting_calls_a_call_waits_only_for_a_permit_that_makes_way() {
    let rules = Rules { waiting_max: 0, ..shares(1, 1).rules };
    let shares = Shares::new(rules);
    let held = permits(&shares, A, 1).await;
    assert!(is_refused_at_once(&shares, B).await);
    held[0].makes_way(true);
    let waiting = waits(&shares, B).await;
    assert!(is_refused_at_once(&shares, B).await, "the permit leaves for one call only");
    drop(held);
    let held = waiting.await;
    held.makes_way(true);
    let _waiting = waits(&shares, B).await;
    assert!(is_refused_at_once(&shares, A).await);
}

#[tokio::test(start_paused = true)]
async fn a_permit_beyond_the_limit_counts() {
    let shares = shares(1, 1);
    let beyond = [shares.take_anyway(A), shares.take_anyway(A)];
    assert_eq!(beyond[0].producer(), A);
    let waiting = waits(&shares, B).await;
    let [first, second] = beyond;
    drop(first);
    let mut waiting = waiting;
    assert!(timeout(Duration::ZERO, &mut waiting).await.is_err(), "one is still taken");
    drop(second);
    drop(waiting.await);
    assert!(is_empty(&shares));
}

/// A bug that was found: the jobs of one caller took all permits. The jobs of other callers were refused until
/// one of them ended.
#[tokio::test(start_paused = true)]
async fn callers_have_their_turns_one_after_the_other() {
    let shares = shares(1, usize::MAX);
    let mut permit = shares.take(A).await;
    let mut waiting = Vec::new();
    for (name, caller) in [("a1", A), ("a2", A), ("a3", A), ("b1", B), ("b2", B), ("c1", C)] {
        waiting.push((name, waits(&shares, caller).await));
    }
    let mut order = Vec::new();
    while !waiting.is_empty() {
        drop(permit);
        let mut granted = None;
        for at in 0..waiting.len() {
            if let Ok(permit) = timeout(Duration::ZERO, &mut waiting[at].1).await {
                order.push(waiting.remove(at).0);
                granted = Some(permit);
                break;
            }
        }
        permit = granted.expect("one has the permit");
    }
    assert_eq!(order, ["a1", "b1", "c1", "a2", "b2", "a3"]);
    drop(permit);
    assert!(is_empty(&shares));
}

/// Numbers that look random, always the same for one seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, max: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % max as u64).expect("it is below `max`")
    }
}

/// After each of many steps: the limits hold, no free permit is left to a waiting call that may have it, and a permit
/// that makes way leaves if a call waits.
#[tokio::test(start_paused = true)]
async fn the_limits_hold_and_no_free_permit_is_left() {
    for seed in 0..200 {
        let mut dice = Dice(seed);
        let (max, share_max) = (1 + dice.below(6), 1 + dice.below(4));
        let shares = shares(max, share_max);
        let producers = [A, B, Producer::Token([3; 32]), Producer::Local];
        let (mut held, mut waiting): (Vec<Permit>, Vec<Waits<'_>>) = Default::default();
        let mut leaving = 0;
        for _ in 0..200 {
            match dice.below(6) {
                0..=2 => waiting.push(Box::pin(shares.take(producers[dice.below(4)]))),
                3 if !held.is_empty() => drop(held.swap_remove(dice.below(held.len()))),
                4 if !waiting.is_empty() => drop(waiting.swap_remove(dice.below(waiting.len()))),
                5 if !held.is_empty() => held[dice.below(held.len())].makes_way(dice.below(3) > 0),
                _ => {}
            }
            for at in (0..waiting.len()).rev() {
                if let Ok(permit) = timeout(Duration::ZERO, &mut waiting[at]).await {
                    held.push(permit);
                    drop(waiting.remove(at));
                }
            }
            let state = shares.state();
            assert_eq!((state.taken, state.waiting), (held.len(), waiting.len()), "seed {seed}");
            assert!(state.taken <= max, "seed {seed}");
            for producer in producers {
                let of_one = held.iter().filter(|permit| permit.producer == producer).count();
                assert!(!producer.has_share() || of_one <= share_max, "seed {seed}");
                let waits = state.callers.get(&producer).is_some_and(|share| !share.waiting.is_empty());
                let may = of_one < share_max || !producer.has_share();
                assert!(!waits || !may || state.taken == max, "seed {seed}: a free permit is left");
                let stays = state.make_way.values().any(|(other, _)| may || *other == producer);
                assert!(!waits || !stays || !state.leaving.is_empty(), "seed {seed}: no permit leaves");
            }
            let told = state.leaving.len().saturating_sub(leaving);
            assert!(told <= state.waiting, "seed {seed}: no call waits for a permit that leaves");
            leaving = state.leaving.len();
        }
        drop((held, waiting));
        assert!(is_empty(&shares), "seed {seed}");
    }
}

//! Orders of events that seeds seldom meet: only the comparison of the epochs keeps a former owner from a commit, and only the comparison of
//! the heartbeats keeps a process from ending another one that has just beaten.

use tickwheel_postgres::database::{Acquire, Acquisition, Claim, Database, NodeEntry, Session, ShardBatch};
use tickwheel_sim::bugs::STATEMENTS;
use tickwheel_sim::database::{Faults, SimDatabase, SimSession, Wrong};

fn join(database: &SimDatabase, name: &str) -> SimSession {
    let mut session = database.connect(name).expect("it answers");
    let entry = NodeEntry {
        incarnation: name.to_owned(),
        name: name.to_owned(),
        address: String::new(),
        version: "1".to_owned(),
    };
    session.join(&entry).expect("the name is new");
    session
}

/// Takes the shard, also on the second timeline, and returns the claim and the number of the batch of the acquisition.
fn take(session: &mut SimSession, name: &str) -> (Claim, i64) {
    let take = Acquire { shard: 0, incarnation: name.to_owned(), wall: 0, after_loss: Some(2) };
    let Ok(Acquisition::Acquired(snapshot)) = session.acquire(&take) else { panic!("the shard is free") };
    let last = snapshot.batches.last().expect("the taking is a batch");
    (Claim { shard: 0, epoch: snapshot.epoch }, last.no)
}

fn batch(claim: Claim, no: i64) -> ShardBatch {
    ShardBatch {
        claim,
        no,
        seq: no,
        wall: 0,
        counters: None,
        counts: Vec::new(),
        ended: Vec::new(),
        ends: Vec::new(),
        keyless: Vec::new(),
        puts: Vec::new(),
        rules: Vec::new(),
        taken: Vec::new(),
    }
}

/// A fail-over loses the last batch of an owner, and the acquisition of the next owner gets the number of that batch. So the next batch of the
/// former owner fits. Returns the batch that stands in the wrong place.
fn stale_commit(wrong: Wrong) -> Option<String> {
    let database = SimDatabase::new(1, 1, [0; 16], 1_500_000_000_000);
    database.set_faults(Faults { asynchronous: true, ..Faults::default() });
    database.set_wrong(wrong);
    let mut former = join(&database, "former");
    let (claim, no) = take(&mut former, "former");
    for no in [no + 1, no + 2] {
        assert_eq!(former.commit(&[&batch(claim, no)]), Ok(vec![0]));
    }
    assert_eq!(database.fail_over(1, 0), 1);
    let mut next = join(&database, "next");
    assert_eq!(next.end("former", 0), Ok(true));
    for after_loss in [None, Some(1)] {
        let soon = Acquire { shard: 0, incarnation: "next".to_owned(), wall: 0, after_loss };
        assert_eq!(next.acquire(&soon), Ok(Acquisition::TooSoon), "an owner may be lost that still answers");
    }
    assert_eq!(take(&mut next, "next").1, no + 2);
    let mut former = database.connect("former").expect("it answers");
    let took_part = former.commit(&[&batch(claim, no + 3)]).expect("it answers");
    assert_eq!(took_part.is_empty(), database.disorder().is_none());
    database.disorder()
}

#[test]
fn a_commit_that_does_not_compare_the_epoch_lets_a_former_owner_in() {
    assert_eq!(stale_commit(Wrong::Nothing), None);
    let bug = STATEMENTS.iter().find(|bug| bug.name == "no-fence").expect("it is one");
    assert_eq!(bug.breaks, ["log"]);
    let found = stale_commit(Wrong::NoFence).expect("the former owner commits");
    assert!(found.contains("has epoch 1, and the shard 1025"), "{found}");
}

/// Another process saw a heartbeat for a lease, and its request to end the incarnation arrives behind the next beat. Returns whether the shard
/// is taken from an owner that is valid.
fn end_of_the_living(wrong: Wrong) -> bool {
    let database = SimDatabase::new(1, 1, [0; 16], 1_500_000_000_000);
    database.set_wrong(wrong);
    let mut living = join(&database, "living");
    let (claim, _) = take(&mut living, "living");
    let mut other = join(&database, "other");
    let seen = other.heartbeat("other").expect("it answers").others;
    assert_eq!(seen, [("living".to_owned(), 0)]);
    assert!(living.heartbeat("living").expect("it answers").wall_ns.is_some(), "it is valid from now on");
    let has_ended = other.end("living", 0).expect("it answers");
    let asked = Acquire { shard: 0, incarnation: "other".to_owned(), wall: 0, after_loss: None };
    let is_taken = matches!(other.acquire(&asked), Ok(Acquisition::Acquired(_)));
    assert_eq!(has_ended, is_taken);
    assert_eq!(database.owner(0).0 > claim.epoch, is_taken);
    is_taken
}

#[test]
fn an_end_that_does_not_compare_the_beat_takes_the_shard_from_a_valid_owner() {
    assert!(!end_of_the_living(Wrong::Nothing));
    assert!(end_of_the_living(Wrong::EndWithoutBeat));
}

//! A commit on a real PostgreSQL lets in only the batches of owners that still own, each once and without a gap.

use tickwheel_engine::{Key, QueueName};
use tickwheel_postgres::database::{
    Acquire, Acquisition, Claim, Database as _, NodeEntry, PutRow, Session as _, ShardBatch,
};
use tickwheel_postgres::{ClusterClock, Plan, Postgres, PostgresSession};

const SHARDS: u32 = 3;

fn take(session: &mut PostgresSession, shard: u32) -> (Claim, i64) {
    let take = Acquire { shard, incarnation: "one".to_owned(), wall: 1, after_loss: None };
    match session.acquire(&take) {
        Ok(Acquisition::Acquired(snapshot)) => {
            let no = snapshot.batches.last().expect("the batch of the taking").no;
            (Claim { shard, epoch: snapshot.epoch }, no)
        }
        other => panic!("{other:?}"),
    }
}

fn put(id: i64) -> PutRow {
    PutRow {
        id,
        is_new: true,
        queue: QueueName::new("mail").expect("a name"),
        key: (id % 2 == 0).then(|| Key::new(&format!("order:{id}")).expect("a key")),
        due_at: 1_000,
        put_seq: id,
        seq: id,
        dead: false,
        leased: false,
        record: vec![1, 2, 3],
        body: Some(vec![4; 10]),
    }
}

fn batch(claim: Claim, no: i64, ids: impl IntoIterator<Item = i64>) -> ShardBatch {
    ShardBatch {
        claim,
        no,
        seq: no,
        wall: 77,
        counters: Some([7; 16]),
        counts: vec![8],
        ended: vec![9, 9],
        ends: Vec::new(),
        keyless: Vec::new(),
        puts: ids.into_iter().map(put).collect(),
        rules: Vec::new(),
        taken: Vec::new(),
    }
}

#[test]
fn a_batch_that_does_not_follow_drops_out_alone() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let postgres = Postgres::at(&database.url()).expect("a URL");
    let clock = ClusterClock::Real;
    let plan = Plan { shards: Some(SHARDS), clock, lease_ms: 60_000, migrates: true };
    postgres.prepare(&plan).expect("a schema");
    let mut session = postgres.connect("one").expect("a session");
    let entry = NodeEntry {
        incarnation: "one".to_owned(),
        name: String::new(),
        address: String::new(),
        version: String::new(),
    };
    session.join(&entry).expect("joined");
    let (claim, mut no) = take(&mut session, 0);
    let (beside, mut beside_no) = take(&mut session, 1);
    let tasks = || database.psql("SELECT string_agg(id::text, ' ' ORDER BY id) FROM tickwheel.task");
    let old = Claim { epoch: claim.epoch - 1, ..claim };
    let later = Claim { epoch: claim.epoch + 1, ..claim };
    let mut there = Vec::new();
    let mut next_id = 0;
    let mut id = |shard: u32| {
        next_id += 1;
        i64::from(SHARDS) * next_id + i64::from(shard)
    };
    // One put is a statement of its own, and several puts are another one.
    for puts in [1, 3] {
        for is_alone in [true, false] {
            for (claim, no) in [(old, no + 1), (later, no + 1), (claim, no), (claim, no + 2)] {
                let wrong = batch(claim, no, (0..puts).map(|_| id(0)));
                if is_alone {
                    assert_eq!(session.commit(&[&wrong]), Ok(vec![]), "{wrong:?}");
                } else {
                    let right = batch(beside, beside_no + 1, [id(1)]);
                    assert_eq!(session.commit(&[&wrong, &right]), Ok(vec![1]), "{wrong:?}");
                    beside_no += 1;
                    there.push(right.puts[0].id);
                }
            }
            no += 1;
            let right = batch(claim, no, (0..puts).map(|_| id(0)));
            assert_eq!(session.commit(&[&right]), Ok(vec![0]));
            there.extend(right.puts.iter().map(|put| put.id));
        }
    }
    there.sort_unstable();
    let there: Vec<String> = there.iter().map(i64::to_string).collect();
    assert_eq!(tasks(), there.join(" "));
    // The two forms of a row are the same.
    let rows = "SELECT count(DISTINCT (queue, due_at, put_seq - id, seq - id, dead, leased, record, body, key IS NULL = (id % 2 = 1))) FROM tickwheel.task";
    assert_eq!(database.psql(rows), "1");
    let batches = "SELECT count(*) FROM tickwheel.batch WHERE counters = decode('07070707070707070707070707070707', 'hex') \
                   AND encode(counts, 'hex') = '08' AND encode(ended, 'hex') = '0909' AND seq = no AND wall = 77";
    assert_eq!(database.psql(batches), format!("{}", 4 + 8));
}

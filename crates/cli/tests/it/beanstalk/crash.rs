//! A server that is killed under load keeps everything that it answered.

use std::collections::BTreeSet;
use std::thread;
use std::time::Instant;

use crate::beanstalk::conversation::Client;
use crate::beanstalk::door::Door;

const LIVES: u64 = 6;
const WORKERS: u64 = 4;

/// The jobs whose state a client knows, and the jobs whose state it cannot know.
#[derive(Default)]
struct Known {
    put: BTreeSet<u64>,
    deleted: BTreeSet<u64>,
    buried: BTreeSet<u64>,
    /// Jobs with a delete or bury that was not answered.
    unsure: BTreeSet<u64>,
}

fn id_of(line: &str) -> u64 {
    line.split(' ').nth(1).and_then(|id| id.parse().ok()).expect("an id")
}

/// Puts, reserves, deletes and buries until the server is gone.
fn live(address: &str, seed: u64) -> Known {
    let (mut client, mut known) = (Client::open(address), Known::default());
    for n in seed.. {
        let delay = if n % 3 == 0 { 10_000 } else { 0 };
        let Some(reply) = client.ask(&format!("put {} {delay} 60 3\r\nabc", n % 7)) else { break };
        known.put.insert(id_of(&reply));
        let Some(reply) = client.ask("reserve-with-timeout 0") else { break };
        if !reply.starts_with("RESERVED") {
            continue;
        }
        let id = id_of(&reply);
        known.unsure.insert(id);
        let asked = match n % 5 {
            0 => client.ask(&format!("release {id} 5 0")),
            1 => client.ask(&format!("bury {id} 5")),
            _ => client.ask(&format!("delete {id}")),
        };
        match asked.as_deref() {
            Some("DELETED") => drop(known.deleted.insert(id)),
            Some("BURIED") => drop(known.buried.insert(id)),
            Some("RELEASED") => {}
            Some(other) => panic!("{id} was answered {other}"),
            None => break,
        }
        known.unsure.remove(&id);
    }
    known
}

#[test]
fn no_answered_put_is_lost_and_no_deleted_job_comes_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut all = Known::default();
    for life in 0..LIVES {
        let door = Door::durable(directory.path());
        let address = door.address.clone();
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let address = address.clone();
                thread::spawn(move || live(&address, worker * 1_000 + life))
            })
            .collect();
        // The kill comes when enough calls were made, independent of the time.
        let mut watch = Client::open(&address);
        let begun = Instant::now();
        while watch.ask("peek-buried").expect("it runs") == "NOT_FOUND" {
            assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "nothing is buried");
        }
        for _ in 0..200 {
            watch.ask("peek-ready").expect("it runs");
        }
        door.kill();
        for worker in workers {
            let known = worker.join().expect("a worker does not panic");
            all.put.extend(known.put);
            all.deleted.extend(known.deleted);
            all.buried.extend(known.buried);
            all.unsure.extend(known.unsure);
        }
    }
    let door = Door::durable(directory.path());
    let mut client = Client::open(&door.address);
    assert!(all.put.len() > 200 && all.deleted.len() > 20 && all.buried.len() > 5, "there was a load");
    for id in all.put {
        let found = client.ask(&format!("peek {id}")).expect("it runs");
        match found.starts_with("FOUND") {
            _ if all.unsure.contains(&id) => {}
            true => assert!(!all.deleted.contains(&id), "{id} was deleted, and is back"),
            false => assert!(all.deleted.contains(&id), "{id} was put, and is lost"),
        }
    }
    for id in all.buried.difference(&all.deleted) {
        assert_eq!(client.ask(&format!("kick-job {id}")).as_deref(), Some("KICKED"), "{id} was buried");
    }
}

//! Workers that send nothing. Their jobs are given back all the same.

use std::time::{Duration, Instant};

use crate::beanstalk::conversation::Client;
use crate::beanstalk::door::Door;

/// Eight workers reserve a job each and send nothing more. Each job is ready again after its ttr (3 s), independent of
/// any client. Beanstalkd forgets some of these jobs until their workers send something.
#[test]
fn every_job_of_a_silent_holder_comes_back_in_time() {
    let door = Door::ours(&["--memory"]);
    let mut producer = Client::open(&door.address);
    for _ in 0..8 {
        assert!(producer.ask("put 0 0 3 1\r\nx").is_some_and(|reply| reply.starts_with("INSERTED")));
    }
    let mut silent: Vec<_> = (0..8).map(|_| Client::open(&door.address)).collect();
    let mut taken = Instant::now();
    for holder in &mut silent {
        taken = Instant::now();
        assert!(holder.ask("reserve").is_some_and(|reply| reply.starts_with("RESERVED")));
    }
    // Beanstalkd may wait until the silent workers send a command, which they never do. Then no job comes here.
    let mut worker = Client::open(&door.address);
    for _ in 0..8 {
        let reply = worker.ask("reserve").expect("a job");
        let id = reply.split(' ').nth(1).expect("an id");
        assert_eq!(worker.ask(&format!("delete {id}")).as_deref(), Some("DELETED"), "after {reply}");
    }
    let took = taken.elapsed();
    // The server's clock counts whole milliseconds.
    assert!(took >= Duration::from_millis(2_998), "not before their time, but after {took:?}");
}

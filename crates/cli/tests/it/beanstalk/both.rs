//! One server, two doors: a job is a task and a task is a job.

use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use tickwheel_api::{
    DeathReason, LeaseBody, ListQuery, PayloadBody, PutBody, PutQuery, RedriveBody, TaskState,
};
use tickwheel_client::ClientError;
use tickwheel_client::blocking::Client;

use crate::beanstalk::conversation::lead;
use crate::beanstalk::door::Door;

/// Polls until the condition is true.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "it never came true that {what}");
        std::thread::yield_now();
    }
}

/// Runs the script of one client, and returns the last answer.
fn say(door: &Door, said: &[&str]) -> String {
    let script: String = said.iter().map(|said| format!("A> {said}\nA<\n")).collect();
    let heard = lead(&door.address, &script);
    let last = heard.rsplit("\nA> ").next().unwrap_or(&heard);
    last.split_once('\n').map_or(last, |(_, heard)| heard).trim_end().to_owned()
}

#[test]
fn a_job_is_a_task_at_both_doors() {
    let door = Door::ours(&["--memory"]);
    let http = Client::new(&door.http).expect("a client");
    // A job's key is its id.
    assert_eq!(say(&door, &["use close", "put 7 0 45 5\\r\\n12345"]), "A< INSERTED 1");
    let task = http.get("close", "1").expect("it is a task");
    assert_eq!((task.id, task.priority, task.state), (1, 7, TaskState::Ready));
    assert_eq!(task.payload.map(|payload| payload.bytes).as_deref(), Some(&b"12345"[..]));
    let leased = http.lease("close", &LeaseBody::default()).expect("leased");
    let lasts_ms = leased[0].lease_until_ms - leased[0].due_at_ms;
    assert!(lasts_ms >= 40_000, "for as long as its producer said");
    assert_eq!(say(&door, &["reserve-job 1"]), "A< NOT_FOUND", "it is in a worker's hands");
    http.ack("close", vec![leased[0].token.clone()]).expect("acked");
    assert_eq!(say(&door, &["peek 1"]), "A< NOT_FOUND");
    // A task has an id, and its queue's lease duration as its ttr.
    let body = PutBody { payload: PayloadBody::json(b"{}".to_vec()), ..PutBody::default() };
    let put = http.put("close", "order:2", &body, PutQuery::default(), None).expect("put");
    let id = put.task.id;
    let watched = ["watch close", "ignore default", "reserve"];
    assert_eq!(say(&door, &watched), format!("A< RESERVED {id} 2 {{}}"));
    // The worker's connection is closed, and the worker with it. The server notices this a moment
    // later.
    let task = || http.get("close", "order:2").expect("it is there");
    until("it is ready again", || task().state == TaskState::Ready);
    assert_eq!(task().attempt, 1);
    // A buried job is a dead task.
    let bury = format!("bury {id} 3");
    assert_eq!(say(&door, &["watch close", "ignore default", "reserve", &bury]), "A< BURIED");
    let dead = http.dead("close", &ListQuery::default()).expect("a page").tasks;
    assert_eq!(dead[0].dead.map(|death| death.reason), Some(DeathReason::Buried));
    http.redrive("close", &RedriveBody::Key("order:2".to_owned())).expect("redriven");
    assert_eq!(say(&door, &["use close", "peek-ready"]), format!("A< FOUND {id} 2 {{}}"));
    assert!(say(&door, &[&format!("stats-job {id}")]).contains("kicks: 1"));
    // The server's own queue is no tube.
    assert_eq!(say(&door, &["use $jobs"]), "A< BAD_FORMAT");
}

#[test]
fn a_door_of_one_namespace_shows_nothing_of_the_others() {
    let door = Door::ours(&["--memory", "--beanstalk-namespace", "shop"]);
    let http = Client::new(&door.http).expect("a client");
    let body = PutBody { payload: PayloadBody::json(b"1".to_vec()), ..PutBody::default() };
    let put = |queue: &str| http.put(queue, "k", &body, PutQuery::default(), None).expect("put").task.id;
    let (ours, other) = (put("shop/close"), put("bank/close"));
    assert_eq!(say(&door, &["list-tubes"]), "A< OK\nA| ---\nA| - close\nA| - default");
    assert_eq!(say(&door, &[&format!("peek {ours}")]), format!("A< FOUND {ours} 1 1"));
    for verb in ["peek", "delete", "kick-job", "reserve-job", "stats-job"] {
        assert_eq!(say(&door, &[&format!("{verb} {other}")]), "A< NOT_FOUND", "{verb}");
    }
    assert!(say(&door, &["stats"]).contains("current-jobs-ready: 1\n"));
    assert!(say(&door, &["stats-tube close"]).contains("name: close\n"));
    say(&door, &["use mail", "put 0 0 60 1\\r\\nx"]);
    assert_eq!(http.queue("shop/mail").expect("a queue").counts.ready, 1);
    // The namespace and the name together may not be longer than a queue's name.
    assert_eq!(say(&door, &["use \\{196*t}"]), "A< BAD_FORMAT");
    assert!(say(&door, &["use \\{195*t}"]).starts_with("A< USING ttt"));
}

#[test]
fn a_server_that_drains_takes_no_new_tasks_and_works_off_those_it_has() {
    let door = Door::ours(&["--memory", "--max-job-size", "10"]);
    let http = Client::new(&door.http).expect("a client");
    assert_eq!(say(&door, &["put 0 0 60 1\\r\\na"]), "A< INSERTED 1");
    assert_eq!(say(&door, &["put 0 0 60 11\\r\\n\\{11*x}"]), "A< JOB_TOO_BIG");
    assert!(say(&door, &["stats"]).contains("draining: false"));
    let id = i32::try_from(door.id()).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(id, Signal::USR1).expect("told");
    until("it drains", || say(&door, &["stats"]).contains("draining: true"));
    assert_eq!(say(&door, &["put 0 0 60 1\\r\\nb"]), "A< DRAINING");
    assert_eq!(say(&door, &["put 0 0 60 11\\r\\n\\{11*x}"]), "A< JOB_TOO_BIG");
    match http.post("q", &PutBody::default()) {
        Err(ClientError::Problem(problem)) => assert_eq!(problem.status, 503, "{problem:?}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(say(&door, &["reserve", "delete 1"]), "A< DELETED");
}

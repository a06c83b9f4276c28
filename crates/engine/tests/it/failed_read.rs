//! A store that cannot read what it has.

use tickwheel_engine::{
    Acquired, AcquiredPage, Answer, CallId, Command, Due, Effect, Engine, EngineConfig, EngineState, Epoch,
    Get, Input, Key, List, Now, Ownership, Page, Put, QueueName, Reply, Request, RequestId, Seq, ShardId,
    Timestamp,
};

const NOW: Now = Now { mono_ns: 0, wall: Timestamp::EPOCH, wall_sub_ns: 0, wall_width_ns: 0, held_ms: 0 };

fn engine() -> Engine {
    let ownership = Ownership { shard: ShardId::ONLY, epoch: Epoch(1), last_seq: Seq::ZERO };
    let acquired = Acquired {
        ownership,
        last_wall: Timestamp::EPOCH,
        state: EngineState::default(),
        secret: [7; 16],
        page: AcquiredPage::default(),
        room: 1 << 30,
    };
    let mut engine = Engine::new(EngineConfig::default(), acquired, NOW);
    // The scans of a start find nothing.
    let mut out = Vec::new();
    engine.flush(NOW, &mut out);
    while let Some(Effect::Request { id, .. }) = out.pop() {
        let reply = Reply::Page(Page::default());
        engine.step(NOW, Input::Store { request: id, reply }, &mut out);
    }
    assert!(engine.is_loaded());
    engine
}

/// Ends the turn. What the store is asked for.
fn requests(engine: &mut Engine) -> Vec<(RequestId, Request)> {
    let mut out = Vec::new();
    engine.flush(NOW, &mut out);
    let asked = out.into_iter().filter_map(|effect| match effect {
        Effect::Request { id, request } => Some((id, request)),
        Effect::Answer { .. } | Effect::Ask { .. } | Effect::Stopped => None,
    });
    asked.collect()
}

fn reply(engine: &mut Engine, request: RequestId, reply: Reply) -> Vec<(CallId, Answer)> {
    let mut out = Vec::new();
    engine.step(NOW, Input::Store { request, reply }, &mut out);
    let answers = out.into_iter().filter_map(|effect| match effect {
        Effect::Answer { call, answer } => Some((call, answer)),
        Effect::Request { .. } | Effect::Ask { .. } | Effect::Stopped => None,
    });
    answers.collect()
}

fn call(engine: &mut Engine, number: u64, command: Command) {
    engine.step(NOW, Input::Call { call: CallId(number), command }, &mut Vec::new());
}

fn failed() -> Reply {
    Reply::Failed { why: "read segment: input/output error".to_owned() }
}

/// The simulator's find: a page of a list could not be read, and its caller waited for ever, as did a stop.
#[test]
fn who_waits_for_a_read_that_fails_is_told() {
    let mut engine = engine();
    let queue = QueueName::new("q").expect("a name");
    call(&mut engine, 1, Command::List(List::new(&queue)));
    call(&mut engine, 2, Command::Get(Get { queue: queue.clone(), key: Key::new("a").expect("a key") }));
    let mut put = Put::new(&queue, Key::new("b").expect("a key"));
    put.due = Due::After { ms: 5 };
    call(&mut engine, 3, Command::Put(put));
    let asked = requests(&mut engine);
    assert_eq!(asked.len(), 2, "one look-up and one scan: {asked:?}");
    let mut answered: Vec<(CallId, Answer)> = Vec::new();
    for (id, _) in asked {
        answered.extend(reply(&mut engine, id, failed()));
    }
    answered.sort_by_key(|(call, _)| *call);
    assert_eq!(answered.len(), 3, "{answered:?}");
    assert!(matches!(&answered[0].1, Answer::List(Err(_))), "{answered:?}");
    assert!(matches!(&answered[1].1, Answer::Get(Err(_))), "{answered:?}");
    assert!(matches!(&answered[2].1, Answer::Put(Err(_))), "{answered:?}");
    assert!(engine.failure().is_some());
    assert!(engine.is_idle(), "a stop could not end");
}

/// A database that needs too long for a list is no reason to refuse changes.
#[test]
fn a_list_that_is_not_answered_refuses_its_call_only() {
    let mut engine = engine();
    let queue = QueueName::new("q").expect("a name");
    call(&mut engine, 1, Command::List(List::new(&queue)));
    let asked = requests(&mut engine);
    let [(id, Request::ScanFilter { .. })] = &asked[..] else { panic!("one scan: {asked:?}") };
    let answers = reply(&mut engine, *id, Reply::Unanswered { why: "it takes too long".to_owned() });
    let [(CallId(1), Answer::List(Err(why)))] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(why.to_string(), "it takes too long; the call had no effect, and it can be made again");
    assert!(engine.failure().is_none());
    assert!(engine.is_idle());
}

/// A read fails beside a commit in flight: the commit is answered first, as the store answers it.
#[test]
fn a_read_that_fails_beside_a_commit_does_not_take_its_answer() {
    let mut engine = engine();
    let queue = QueueName::new("q").expect("a name");
    call(&mut engine, 1, Command::Put(Put::new(&queue, Key::new("a").expect("a key"))));
    let (look_up, _) = requests(&mut engine).pop().expect("a look-up");
    reply(&mut engine, look_up, Reply::Found(vec![tickwheel_engine::Found::Absent]));
    let (commit, request) = requests(&mut engine).pop().expect("a commit");
    assert!(matches!(request, Request::Commit { .. }), "{request:?}");
    call(&mut engine, 2, Command::Get(Get { queue, key: Key::new("b").expect("a key") }));
    let (read, _) = requests(&mut engine).pop().expect("a look-up");
    assert_eq!(reply(&mut engine, read, failed()).len(), 0, "what it saw is not durable yet");
    let answered = reply(&mut engine, commit, Reply::Done { room: 1 << 30 });
    assert!(
        matches!(&answered[..], [(CallId(1), Answer::Put(Ok(_))), (CallId(2), Answer::Get(Err(_)))]),
        "{answered:?}"
    );
    engine.step(NOW, Input::StoreFailed { why: "it".to_owned() }, &mut Vec::new());
    assert!(engine.failure().is_some());
}

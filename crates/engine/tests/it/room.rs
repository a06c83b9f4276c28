//! A store whose room runs out and comes back.

use tickwheel_engine::{
    Acquired, AcquiredPage, Answer, Body, CallId, ChangeJob, ChangeQueue, Command, Due, Effect, Engine,
    EngineConfig, EngineState, Epoch, Found, Input, JobError, Key, Now, Ownership, Page, Put, PutError,
    QueueChange, QueueError, QueueName, QueueSettings, Reply, Request, RequestId, RoomPace, RowAct, Seq,
    ShardId, TakeRow, TargetRecord, Timestamp, Unavailable,
};

const NOW: Now = Now { mono_ns: 0, wall: Timestamp::EPOCH, wall_sub_ns: 0, wall_width_ns: 0, held_ms: 0 };
const MIB: u64 = 1 << 20;

/// An engine over a store that is answered by hand, with this much room at its start (bytes).
struct World {
    engine: Engine,
    out: Vec<Effect>,
    calls: u64,
}

impl World {
    fn new(room: u64) -> Self {
        let acquired = Acquired {
            ownership: Ownership { shard: ShardId::ONLY, epoch: Epoch(1), last_seq: Seq::ZERO },
            last_wall: Timestamp::EPOCH,
            state: EngineState::default(),
            secret: [7; 16],
            page: AcquiredPage::default(),
            room,
        };
        let mut world =
            Self { engine: Engine::new(EngineConfig::default(), acquired, NOW), out: Vec::new(), calls: 0 };
        while let Some((id, _)) = world.request() {
            world.reply(id, Reply::Page(Page::default()));
        }
        assert!(world.engine.is_loaded());
        world
    }

    /// The next request to the store.
    fn request(&mut self) -> Option<(RequestId, Request)> {
        self.engine.flush(NOW, &mut self.out);
        let at = self.out.iter().position(|effect| matches!(effect, Effect::Request { .. }))?;
        match self.out.remove(at) {
            Effect::Request { id, request } => Some((id, request)),
            other => unreachable!("{other:?} is no request"),
        }
    }

    fn reply(&mut self, request: RequestId, reply: Reply) {
        self.engine.step(NOW, Input::Store { request, reply }, &mut self.out);
    }

    /// Puts a task with this many bytes, while the store has `room` bytes left after each commit.
    fn put(&mut self, bytes: usize, room: u64) -> Result<(), PutError> {
        self.calls += 1;
        let queue = QueueName::new("q").expect("a name");
        let mut put = Put::new(&queue, Key::new(&format!("k{}", self.calls)).expect("a key"));
        put.due = Due::After { ms: 60_000 };
        let put = put.payload(vec![0; bytes]);
        let call = CallId(self.calls);
        self.engine.step(NOW, Input::Call { call, command: Command::Put(put) }, &mut self.out);
        while let Some((id, request)) = self.request() {
            let reply = match request {
                Request::GetMany(wanted) => Reply::Found(wanted.iter().map(|_| Found::Absent).collect()),
                Request::Commit { .. } => Reply::Done { room },
                other => panic!("{other:?} was not to be asked"),
            };
            self.reply(id, reply);
        }
        let answer = self.out.drain(..).find_map(|effect| match effect {
            Effect::Answer { call: of, answer: Answer::Put(result) } if of == call => Some(result.map(drop)),
            _ => None,
        });
        answer.expect("a put is answered")
    }

    /// Changes a job, while the store has no room.
    fn change_job(&mut self, change: ChangeJob) -> Result<u64, JobError> {
        self.calls += 1;
        let (call, command) = (CallId(self.calls), Command::ChangeJob(change));
        self.engine.step(NOW, Input::Call { call, command }, &mut self.out);
        while let Some((id, _)) = self.request() {
            self.reply(id, Reply::Done { room: 0 });
        }
        let answer = self.out.drain(..).find_map(|effect| match effect {
            Effect::Answer { answer: Answer::ChangeJob(result), .. } => Some(result),
            _ => None,
        });
        answer.expect("a change of a job is answered")
    }

    /// Changes the target of the queue `t`, while the store has `room` bytes left after each commit. A target has a value of this many bytes.
    fn change_target(&mut self, bytes: Option<usize>, room: u64) -> Result<(), QueueError> {
        let target = bytes.map(|bytes| TargetRecord { value: vec![7; bytes].into(), retry: None });
        self.change_queue(QueueChange::Target(target), room)
    }

    fn change_queue(&mut self, change: QueueChange, room: u64) -> Result<(), QueueError> {
        self.calls += 1;
        let queue = QueueName::new("t").expect("a name");
        let command = Command::ChangeQueue(ChangeQueue { queue, change });
        self.engine.step(NOW, Input::Call { call: CallId(self.calls), command }, &mut self.out);
        while let Some((id, _)) = self.request() {
            self.reply(id, Reply::Done { room });
        }
        let answer = self.out.drain(..).find_map(|effect| match effect {
            Effect::Answer { answer: Answer::ChangeQueue(result), .. } => Some(result),
            _ => None,
        });
        answer.expect("a change of a queue is answered")
    }

    /// Looks for room, as a driver does now and then; the store has `room` bytes. Returns whether the store was asked.
    fn look(&mut self, room: u64) -> bool {
        self.engine.step(NOW, Input::LookForRoom, &mut self.out);
        let Some((id, request)) = self.request() else { return false };
        let Request::Commit { batch, .. } = request else { panic!("{request:?} asks for no room") };
        assert!(batch.effects.is_empty() && batch.rules.is_empty(), "a question changes nothing: {batch:?}");
        self.reply(id, Reply::Done { room });
        true
    }
}

/// Whether the engine wants to look for room several times a second.
fn asks_fast(world: &World) -> bool {
    world.engine.room_pace() == Some(RoomPace::Fast)
}

fn is_full(result: &Result<(), PutError>) -> bool {
    matches!(result, Err(PutError::Unavailable(Unavailable::Full { .. })))
}

/// The story: a disk was full, space came back, and the next put was refused none the less, for only a refused one had the store asked.
#[test]
fn room_that_comes_back_is_noticed_without_a_refused_put() {
    let mut world = World::new(1 << 30);
    assert!(!world.look(0), "with room there is nothing to ask");
    assert_eq!(world.put(100, 0), Ok(()), "and behind it there is no room any more");
    assert_eq!((world.engine.shortage(), asks_fast(&world)), (Some(0), true));
    assert!(world.look(0) && asks_fast(&world));
    assert!(world.look(1 << 30));
    assert_eq!((world.engine.shortage(), asks_fast(&world)), (None, false));
    assert_eq!(world.put(100, 1 << 30), Ok(()), "the first put is taken");
}

/// The story: a server without a free descriptor could not open its next file, and failed. Now growth is refused for that reason, and the store is
/// asked again.
#[test]
fn growth_without_a_descriptor_is_refused_for_that_reason() {
    let mut world = World::new(1 << 30);
    assert_eq!(world.put(100, 0), Ok(()));
    world.engine.step(NOW, Input::LookForRoom, &mut world.out);
    let (id, _) = world.request().expect("it asks");
    world.reply(id, Reply::DoneWithoutDescriptor);
    assert!(world.engine.lacks_descriptor());
    assert_eq!((world.engine.shortage(), asks_fast(&world)), (Some(0), true));
    assert_eq!(world.put(1, 0), Err(PutError::Unavailable(Unavailable::NoDescriptors)));
    assert!(world.look(1 << 30) && !world.engine.lacks_descriptor());
    assert_eq!(world.put(100, 1 << 30), Ok(()));
}

/// Jobs make room: one begins, goes on and is forgotten without any.
#[test]
fn a_full_disk_refuses_no_job() {
    let mut world = World::new(0);
    assert!(is_full(&world.put(1, 0)));
    let value: std::sync::Arc<[u8]> = vec![7; 60_000].into();
    let id = world.change_job(ChangeJob::Begin { value: std::sync::Arc::clone(&value) }).expect("begun");
    let next = world.change_job(ChangeJob::Begin { value: std::sync::Arc::clone(&value) }).expect("begun");
    assert_eq!(world.change_job(ChangeJob::Keep { id, value }), Ok(id));
    assert_eq!(world.change_job(ChangeJob::Forget { id }), Ok(id));
    assert!(next > id && is_full(&world.put(1, 0)), "there is still no room");
}

/// A row of the inbox has its room already: the commit deletes it from the same store.
#[test]
fn a_row_of_the_inbox_needs_no_room() {
    let mut world = World::new(0);
    assert!(is_full(&world.put(1, 0)));
    let (queue, key) = (QueueName::new("q").expect("a name"), Key::new("a").expect("a key"));
    for (due_at, is_taken) in [(Timestamp::EPOCH, true), (Timestamp::MAX, false)] {
        world.calls += 1;
        let act = RowAct::Put { due_at, put_at: Timestamp::EPOCH, body: Body::bytes("x") };
        let command = Command::TakeRow(TakeRow { row: 1, queue: queue.clone(), key: key.clone(), act });
        world.engine.step(NOW, Input::Call { call: CallId(world.calls), command }, &mut world.out);
        while let Some((id, request)) = world.request() {
            let reply = match request {
                Request::GetMany(wanted) => Reply::Found(wanted.iter().map(|_| Found::Absent).collect()),
                _ => Reply::Done { room: 0 },
            };
            world.reply(id, reply);
        }
        let answer = world.out.drain(..).find_map(|effect| match effect {
            Effect::Answer { answer: Answer::TakeRow(result), .. } => Some(result.is_ok()),
            _ => None,
        });
        assert_eq!(answer, Some(is_taken), "only an instant too far ahead is a reason");
    }
}

/// An owner may have to stop or redirect a target because the disk is full.
#[test]
fn a_first_target_needs_room_and_a_small_change_of_one_needs_none() {
    let no_room = |result: Result<(), QueueError>, bytes: u64| {
        let wants = |why: &Unavailable| matches!(why, Unavailable::Full { needed, .. } if *needed == bytes);
        assert!(matches!(&result, Err(QueueError::Unavailable(why)) if wants(why)), "{result:?} of {bytes}");
    };
    let mut world = World::new(2_511);
    no_room(world.change_target(Some(2_000), 2_511), 2_512);
    assert_eq!(world.change_queue(QueueChange::Drain, 1_999), Ok(()), "a drain needs no room");
    no_room(world.change_target(Some(2_000), 1_999), 2_000);
    assert_eq!(world.change_queue(QueueChange::Resume, 2_512), Ok(()));
    assert_eq!(world.change_target(Some(2_000), 0), Ok(()));
    assert_eq!(world.change_target(Some(3_024), 0), Ok(()), "a little longer");
    no_room(world.change_target(Some(4_049), 0), 1_025);
    assert_eq!(world.change_queue(QueueChange::Settings(QueueSettings::default()), 0), Ok(()));
    assert_eq!(world.change_target(Some(10), 0), Ok(()));
    assert_eq!(world.change_target(None, 0), Ok(()));
    no_room(world.change_target(Some(0), 0), 512);
}

#[test]
fn growth_is_never_taken_before_the_store_says_that_there_is_room() {
    let mut world = World::new(0);
    for _ in 0..3 {
        assert!(is_full(&world.put(100, 0)));
        assert!(world.look(0));
    }
    assert!(world.look(50));
    assert!(is_full(&world.put(100, 50)), "fifty bytes are no room for it");
    assert!(world.look(1 << 30));
    assert_eq!(world.put(100, 1 << 30), Ok(()));
}

#[test]
fn a_shortage_lasts_until_what_was_refused_would_be_taken() {
    let mut world = World::new(3 * MIB);
    assert_eq!(world.engine.shortage(), None);
    assert!(asks_fast(&world), "it is low");
    let much = usize::try_from(5 * MIB).expect("it fits");
    assert!(is_full(&world.put(much, 3 * MIB)));
    assert!(world.look(4 * MIB) && world.engine.shortage().is_some());
    assert_eq!(world.put(100, 4 * MIB), Ok(()), "small ones are taken meanwhile");
    assert!(world.look(100 * MIB));
    assert_eq!(world.engine.shortage(), None);
    assert_eq!(world.put(much, 100 * MIB), Ok(()));
}

/// The story: the last commit of the evening left 5 MiB, the disk was cleared, and of the first puts of the morning some were refused. No
/// call was too big for 5 MiB; all calls of a turn in sum were.
#[test]
fn what_one_turn_needs_in_sum_is_not_refused_for_room_that_has_come_back() {
    let mut world = World::new(5 * MIB);
    assert_eq!((world.engine.shortage(), world.engine.room_pace()), (None, Some(RoomPace::Slow)));
    assert!(world.look(1 << 30), "the driver looks once a second");
    assert_eq!(world.engine.room_pace(), None, "there is enough");
    let queue = QueueName::new("q").expect("a name");
    for call in 1..=6 {
        let mut put = Put::new(&queue, Key::new(&format!("k{call}")).expect("a key"));
        put.due = Due::After { ms: 60_000 };
        let command = Command::Put(put.payload(vec![0; 1 << 20]));
        world.engine.step(NOW, Input::Call { call: CallId(call), command }, &mut world.out);
    }
    while let Some((id, request)) = world.request() {
        let reply = match request {
            Request::GetMany(wanted) => Reply::Found(wanted.iter().map(|_| Found::Absent).collect()),
            Request::Commit { .. } => Reply::Done { room: 1 << 30 },
            other => panic!("{other:?} was not to be asked"),
        };
        world.reply(id, reply);
    }
    let answers = world.out.iter().filter_map(|effect| match effect {
        Effect::Answer { answer: Answer::Put(result), .. } => Some(result.is_ok()),
        _ => None,
    });
    assert_eq!(answers.collect::<Vec<_>>(), [true; 6]);
}

#[test]
fn who_stops_or_has_failed_asks_no_more() {
    let mut world = World::new(0);
    assert!(asks_fast(&world));
    world.engine.step(NOW, Input::StoreFailed { why: "it".to_owned() }, &mut Vec::new());
    assert!(!asks_fast(&world) && !world.look(1 << 30));
    let mut world = World::new(0);
    world.engine.step(NOW, Input::Stop, &mut Vec::new());
    assert!(!asks_fast(&world));
}

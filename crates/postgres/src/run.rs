//! The threads of a [`Node`].

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::beats::Beats;
use crate::database::{Database, Failure, NodeEntry, Session};
use crate::lane::{Lane, Rest};
use crate::node::{Event, Node, ReadJob};
use crate::polls::Polls;

/// The time before a reader tries again to make a session.
const READ_AGAIN: Duration = Duration::from_millis(100);
/// The name of a thread has at most 15 bytes on Linux.
const NAME_PREFIX: &str = "tw-pg-";

/// The running threads of a node. Dropping the value ends them and waits for them.
#[derive(Debug)]
pub struct Threads {
    node: Arc<Node>,
    beats: Arc<crate::mailbox::Mailbox<()>>,
    beat: Option<JoinHandle<()>>,
    others: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts the threads: one for the beats, one for the inbox, one for each lane, and `readers` for reads. `random_name` makes a random name for an
    /// incarnation. The first beat is sent before this call returns, so that the process can take shards at once.
    ///
    /// # Errors
    /// A thread cannot be started, or the database refuses this process.
    pub fn start<D: Database + 'static>(
        database: &Arc<D>,
        node: &Arc<Node>,
        entry: NodeEntry,
        readers: usize,
        random_name: impl Fn() -> String + Send + 'static,
    ) -> Result<Self, String>
    where
        D::Session: 'static,
    {
        let mut beats = Beats::new(Arc::clone(database), Arc::clone(node), entry);
        let wait = beats.turn(&random_name)?;
        if let Some(why) = node.trouble() {
            return Err(why);
        }
        let mut threads =
            Self { node: Arc::clone(node), beats: Arc::default(), beat: None, others: Vec::new() };
        let end = Arc::clone(&threads.beats);
        let beat = spawn("beat".to_owned(), move || {
            let mut wait = wait;
            while !end.is_closed() {
                end.wait(Some(wait));
                if end.is_closed() {
                    break;
                }
                // A refusal may end, for example when an operator gives the role its rights back.
                wait = beats.turn(&random_name).unwrap_or(Duration::from_secs(1));
            }
            beats.leave();
        })?;
        threads.beat = Some(beat);
        let (mut polls, of) = (Polls::new(Arc::clone(database), Arc::clone(node)), Arc::clone(node));
        threads.others.push(spawn("inbox".to_owned(), move || while of.inbox().wait(polls.turn()) {})?);
        for index in 0..node.lanes() {
            let (database, of) = (Arc::clone(database), Arc::clone(node));
            threads.others.push(spawn(format!("lane-{index}"), move || run_lane(index, database, &of))?);
        }
        for index in 0..readers.max(1) {
            let (database, of) = (Arc::clone(database), Arc::clone(node));
            threads.others.push(spawn(format!("read-{index}"), move || run_reader(&*database, &of, index))?);
        }
        Ok(threads)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // The beats go on until the lanes have given up the shards: otherwise another process would wait for a lease.
        self.node.close();
        for thread in self.others.drain(..) {
            let _panicked = thread.join();
        }
        self.beats.close();
        if let Some(beat) = self.beat.take() {
            let _panicked = beat.join();
        }
    }
}

fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, String> {
    let thread = std::thread::Builder::new().name(format!("{NAME_PREFIX}{name}"));
    thread.spawn(run).map_err(|error| format!("start the thread {name}: {error}"))
}

fn run_lane<D: Database>(index: usize, database: Arc<D>, node: &Node) {
    let mut lane = Lane::new(database);
    let mut rest = Rest::Idle;
    let mut outcomes = Vec::new();
    let name = format!("lane {index}");
    loop {
        let jobs = match rest {
            Rest::Idle => node.lane(index).wait(None),
            Rest::Work => node.lane(index).take_all(),
            Rest::Again(after) => node.lane(index).wait(Some(after)),
        };
        let has_ended = node.lane(index).is_closed() && jobs.is_empty();
        jobs.into_iter().for_each(|(shard, job)| lane.push(shard, job));
        let Some(incarnation) = node.incarnation() else {
            if has_ended {
                return;
            }
            rest = Rest::Again(READ_AGAIN);
            continue;
        };
        rest = lane.turn(&incarnation, &mut outcomes);
        node.set_trouble(&name, lane.trouble());
        for (shard, outcome) in outcomes.drain(..) {
            node.tell(shard, Event::Job(outcome));
        }
        // A stop does not wait for a database that does not answer. The commits that are left were not acknowledged.
        if has_ended && rest != Rest::Work {
            return;
        }
    }
}

fn run_reader<D: Database>(database: &D, node: &Node, index: usize) {
    let mut session: Option<(String, D::Session)> = None;
    let name = format!("reader {index}");
    while let Some(ReadJob { shard, no, read }) = node.reads().wait_one() {
        loop {
            let Some(incarnation) = node.incarnation() else {
                // The shards of this process are lost, so the answer is of no use.
                node.tell(
                    shard,
                    Event::Read(no, Err("read: this process has no shards any more".to_owned())),
                );
                break;
            };
            let made = match session.take().filter(|(of, _)| *of == incarnation) {
                Some((_, session)) => Ok(session),
                None => database.connect(&incarnation).map_err(|failure| failure.to_string()),
            };
            let why = match made {
                Err(why) => why,
                Ok(mut made) => match made.read(shard, &read) {
                    Ok(seen) => {
                        session = Some((incarnation, made));
                        node.set_trouble(&name, None);
                        node.tell(shard, Event::Read(no, Ok(seen)));
                        break;
                    }
                    Err(Failure::Refused { why, again: false }) => {
                        session = Some((incarnation, made));
                        node.tell(shard, Event::Read(no, Err(why)));
                        break;
                    }
                    Err(Failure::Refused { why, again: true } | Failure::Gone { why }) => why,
                },
            };
            node.set_trouble(&name, Some(&why));
            if node.reads().is_closed() {
                node.tell(shard, Event::Read(no, Err(why)));
                break;
            }
            // The engine waits for the answer. A failure would stop its changes, and a database that restarts is no reason for that.
            node.reads().wait_for_close(READ_AGAIN);
        }
    }
}

//! One connection: the tubes that it uses and watches, the jobs that it has reserved, and its commands.

mod job;
mod put;
mod reserve;

use std::fmt;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;

use tickwheel_api::beanstalk::{Command, Event, Fault, Reply, Tube, When};
use tickwheel_queue::{
    Act, ChangeQueue, Due, Nack, NackHow, QueueChange, QueueName, State, TaskView, Timestamp,
};

use super::budget::Watching;
use super::command_error::{CommandError, End};
use super::config::DEFAULT;
use super::counters::Counted;
use super::door::BeanstalkDoor;
use super::reserved::Reserved;
use super::tubes::Interest;
use super::wire::Wire;
use super::{inspect, stats};
use crate::access::tokens::Right;
use crate::base::aside::{Steps, discard};
use crate::events;
use crate::listen::door::Connection;

/// The largest number of commands of one kind that are carried out together.
const TOGETHER_MAX: usize = 256;
/// The largest number of tubes that a connection may watch. It is bounded because each reserve looks at all of them.
const WATCHED_MAX: usize = 1_000;
/// The work of looking at one watched tube, in bytes of [`Steps`].
const LOOK_BYTES: usize = 4;
/// The longest delay of a job (ms), 100 years. The queue takes no longer delay, although beanstalkd takes 136 years.
const DELAY_MS_MAX: u64 = (100 * 365 + 25) * 86_400_000;

/// The address of a connection, as the audit writes it.
#[derive(Copy, Clone, Debug)]
pub(super) struct From(pub(super) Option<IpAddr>);

impl fmt::Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(from) => from.to_canonical().fmt(f),
            None => f.write_str("unix"),
        }
    }
}

/// Serves one connection to its end.
pub(super) async fn serve(connection: Connection, door: &BeanstalkDoor) {
    let Connection { stream, standing } = connection;
    let mut wire = Wire::new(stream, door.job_bytes_max, &door.counters);
    let mut session = Session::new(door, From(standing.from()));
    let served = session.run(&mut wire).await;
    drop(session);
    match served {
        Ok(()) | Err(End::Stop) => wire.close().await,
        Err(End::Refused(reply)) => {
            if wire.say(&reply).await.is_ok() {
                wire.close().await;
            }
        }
        Err(End::Socket(error)) => {
            tracing::debug!(%error, "a connection of beanstalkd's protocol ended early");
        }
    }
}

/// A tube with both its names.
#[derive(Clone, Debug)]
struct NamedTube {
    tube: Tube,
    queue: QueueName,
}

struct Session<'a> {
    door: &'a BeanstalkDoor,
    from: From,
    /// The address of the connection as the name of a worker.
    name: Arc<str>,
    used: NamedTube,
    watched: Vec<NamedTube>,
    /// Memory for the watched tubes, except for the default tube.
    watching: Watching<'a>,
    /// The queues of the watched tubes.
    queues: Arc<[QueueName]>,
    reserved: Reserved,
    steps: Steps,
    producer: Option<Counted<'a>>,
    worker: Option<Counted<'a>>,
    #[expect(dead_code, reason = "kept for its drop, not read")]
    connection: Counted<'a>,
}

impl<'a> Session<'a> {
    fn new(door: &'a BeanstalkDoor, from: From) -> Self {
        let tube = Tube::new(DEFAULT.as_bytes()).expect("it is a name");
        let queue = door.queue_of(&tube).expect("a namespace leaves room for it");
        door.tubes.keep(&queue, Interest::Use);
        door.tubes.keep(&queue, Interest::Watch);
        door.counters.connections_total.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let used = NamedTube { tube, queue };
        Self {
            door,
            from,
            name: from.to_string().into(),
            watched: vec![used.clone()],
            watching: door.watches.begin(),
            queues: [used.queue.clone()].into(),
            used,
            reserved: Reserved::default(),
            steps: Steps::default(),
            producer: None,
            worker: None,
            connection: Counted::new(&door.counters.connections),
        }
    }

    async fn run(&mut self, wire: &mut Wire<'_>) -> Result<(), End> {
        let stopping = self.door.stopping.clone();
        let mut stop = pin!(stopping.wait());
        loop {
            // The command under way is answered, and no new command begins.
            let next = tokio::select! {
                biased;
                () = &mut stop => return Err(End::Stop),
                next = wire.next(&self.door.budget) => next?,
            };
            let Some(event) = next else { return Ok(()) };
            // Reading commands that have arrived already does not yield, so the steps yield.
            self.steps.did(self.looked_through(&event)).await;
            match event {
                Err(Fault::JobTooBig | Fault::ExpectedCrlf) => self.puts(event, wire).await?,
                Err(fault) => {
                    wire.say(&Reply::Fault(fault)).await?;
                    if fault == Fault::Http {
                        tracing::debug!("a client spoke HTTP to the door for clients of beanstalkd");
                        return Ok(());
                    }
                }
                Ok(Command::Quit) => return Ok(()),
                Ok(Command::Put { .. }) => self.puts(event, wire).await?,
                Ok(command) => {
                    self.door.counters.count(command.verb());
                    if let Err(error) = self.carry_out(command, wire).await {
                        wire.say(&error.answer()?).await?;
                    }
                }
            }
        }
    }

    /// The work of looking through all watched tubes, in bytes of [`Steps`], for the commands that do so.
    fn looked_through(&self, event: &Event) -> usize {
        match event {
            Ok(Command::Watch(_) | Command::Ignore(_)) => LOOK_BYTES * self.watched.len(),
            _ => 0,
        }
    }

    async fn carry_out(&mut self, command: Command, wire: &mut Wire<'_>) -> Result<(), CommandError> {
        let door = self.door;
        match command {
            Command::Delete(id) => self.deletes(id, wire).await?,
            Command::Reserve => self.reserve(None, wire).await?,
            Command::ReserveWithTimeout(timeout_s) => self.reserve(timeout_s, wire).await?,
            Command::ReserveBatch { max, timeout_s } => {
                self.reserve_batch(max.get(), timeout_s, wire).await?
            }
            Command::ReserveJob(id) => self.reserve_job(id, wire).await?,
            Command::Use(tube) => {
                let used = self.named(tube)?;
                door.tubes.keep(&used.queue, Interest::Use);
                door.tubes.release(&self.used.queue, Interest::Use);
                self.used = used;
                wire.say(&Reply::Using(&self.used.tube)).await?;
            }
            Command::Watch(tube) => wire.say(&self.watch(self.named(tube)?)).await?,
            Command::Ignore(tube) => wire.say(&self.ignore(&tube)).await?,
            Command::ListTubeUsed => wire.say(&Reply::Using(&self.used.tube)).await?,
            Command::ListTubesWatched => {
                say_text(inspect::names(self.watched.iter().map(|named| &named.tube)), wire).await?;
            }
            Command::Release { id, priority, delay_s } => {
                wire.say(&self.release(id, priority, delay_s).await?).await?;
            }
            Command::Bury { id, priority } => wire.say(&self.bury(id, priority).await?).await?,
            Command::Touch(id) => wire.say(&self.touch(id).await?).await?,
            Command::KickJob(id) => wire.say(&self.kick_job(id).await?).await?,
            Command::Kick(max) => wire.say(&self.kick(max).await?).await?,
            Command::PauseTube { tube, pause_s } => wire.say(&self.pause(&tube, pause_s).await?).await?,
            Command::DeleteKey(key) => wire.say(&self.delete_key(&key).await?).await?,
            Command::DelayKey { key, when } => wire.say(&self.delay_key(&key, when).await?).await?,
            Command::ListTubes => say_text(stats::tubes(door).await?, wire).await?,
            Command::Stats => say_text(stats::server(door).await?, wire).await?,
            Command::StatsTube(tube) => say_text(stats::tube(door, &tube).await?, wire).await?,
            Command::StatsJob(id) => {
                say_text(stats::job(door, inspect::by_id(door, id).await?).await?, wire).await?
            }
            Command::StatsKey(key) => {
                let task = inspect::by_key(door, &self.used.queue, &key).await?;
                say_text(stats::job(door, task).await?, wire).await?;
            }
            Command::Peek(id) => say_job(door, &inspect::by_id(door, id).await?, wire).await?,
            Command::PeekKey(key) => {
                say_job(door, &inspect::by_key(door, &self.used.queue, &key).await?, wire).await?;
            }
            Command::PeekReady => {
                say_job(door, &inspect::first_ready(door, &self.used.queue).await?, wire).await?;
            }
            Command::PeekDelayed => self.peek_first(State::Scheduled, wire).await?,
            Command::PeekBuried => self.peek_first(State::Dead, wire).await?,
            Command::Put { .. } | Command::Quit => unreachable!("these are answered before"),
        }
        Ok(())
    }

    /// The tube with its queue, for a tube that a client may use or watch.
    fn named(&self, tube: Tube) -> Result<NamedTube, CommandError> {
        let queue = self.door.queue_of(&tube).ok_or(Reply::Fault(Fault::BadFormat))?;
        Ok(NamedTube { tube, queue })
    }

    fn watch(&mut self, named: NamedTube) -> Reply<'static> {
        if self.watched.iter().all(|watched| watched.queue != named.queue) {
            if self.watched.len() >= WATCHED_MAX {
                tracing::debug!("a connection watches {WATCHED_MAX} tubes and wanted one more");
                return Reply::OutOfMemory;
            }
            // The default tube needs almost no memory, because all connections share it.
            let is_default = named.tube.as_str() == DEFAULT;
            if !is_default && !self.watching.take(named.queue.as_str()) {
                self.door.warn_of_watches();
                return Reply::OutOfMemory;
            }
            self.door.tubes.keep(&named.queue, Interest::Watch);
            self.watched.push(named);
            self.queues = self.watched.iter().map(|named| named.queue.clone()).collect();
        }
        Reply::Watching(self.watched.len())
    }

    fn ignore(&mut self, tube: &Tube) -> Reply<'static> {
        let at = self.watched.iter().position(|named| named.tube == *tube);
        match at {
            Some(_) if self.watched.len() == 1 => return Reply::NotIgnored,
            Some(at) => {
                let gone = self.watched.remove(at);
                if gone.tube.as_str() != DEFAULT {
                    self.watching.give_back(gone.queue.as_str());
                }
                self.door.tubes.release(&gone.queue, Interest::Watch);
                self.queues = self.watched.iter().map(|named| named.queue.clone()).collect();
            }
            None => {}
        }
        Reply::Watching(self.watched.len())
    }

    async fn kick(&self, max: u32) -> Result<Reply<'static>, CommandError> {
        let queue = &self.used.queue;
        let kicked = inspect::kick(self.door, queue, u64::from(max)).await?;
        let (queue, address) = (queue.as_str(), self.from);
        tracing::info!(target: events::AUDIT, event = events::TUBE_KICKED, queue, kicked, %address, "a client of beanstalkd kicked jobs of a tube");
        Ok(Reply::Kicked(kicked))
    }

    async fn kick_job(&self, id: u64) -> Result<Reply<'static>, CommandError> {
        self.door.caller.by_id(Right::Admin, id, Act::Run, None)?.await?;
        let address = self.from;
        tracing::info!(target: events::AUDIT, event = events::JOB_KICKED, id, %address, "a client of beanstalkd kicked a job");
        Ok(Reply::KickedOne)
    }

    async fn pause(&self, tube: &Tube, pause_s: u32) -> Result<Reply<'static>, CommandError> {
        let Some(queue) = self.door.queue_of(tube) else { return Ok(Reply::NotFound) };
        if !self.door.caller.queue(Right::Admin, &queue)?.await?.exists {
            return Ok(Reply::NotFound);
        }
        let now = self.door.caller.now();
        let change = QueueChange::Pause { ms: Some(u64::from(pause_s) * 1_000) };
        self.door.caller.change_queue(ChangeQueue { queue: queue.clone(), change })?.await?;
        self.door.tubes.paused(&queue, pause_s, now);
        let (queue, address) = (queue.as_str(), self.from);
        tracing::info!(target: events::AUDIT, event = events::TUBE_PAUSED, queue, pause_s, %address, "a client of beanstalkd paused a tube");
        Ok(Reply::Paused)
    }

    async fn peek_first(&self, state: State, wire: &mut Wire<'_>) -> Result<(), CommandError> {
        say_job(self.door, &inspect::first_in(self.door, &self.used.queue, state).await?, wire).await
    }
}

impl Drop for Session<'_> {
    /// Gives the jobs back and releases the tubes.
    fn drop(&mut self) {
        for (queue, tokens) in self.reserved.take_all() {
            if self.door.stopping.is_given() {
                // The server ends the lease, not the client, so it does not count as an attempt.
                self.door.caller.give_back(tokens);
                continue;
            }
            let nack = Nack { how: NackHow::Gone, ..Nack::new(&queue, tokens) };
            // The call is sent; no client waits for its answer.
            drop(self.door.caller.nack(nack));
        }
        self.door.tubes.release(&self.used.queue, Interest::Use);
        for named in &self.watched {
            self.door.tubes.release(&named.queue, Interest::Watch);
        }
    }
}

/// The due time; `None`: no task can be due then.
fn due_of(when: When) -> Option<Due> {
    match when {
        When::AfterMs(0) => Some(Due::Now),
        When::AfterMs(ms) => Some(Due::After { ms: ms.min(DELAY_MS_MAX) }),
        When::AtMs(ms) => Timestamp::from_ms(ms).map(Due::At),
    }
}

async fn say_text(text: Vec<u8>, wire: &mut Wire<'_>) -> Result<(), CommandError> {
    let said = wire.say(&Reply::Ok(&text)).await;
    discard(text);
    Ok(said?)
}

async fn say_job(door: &BeanstalkDoor, task: &TaskView, wire: &mut Wire<'_>) -> Result<(), CommandError> {
    let (body, _) = task.body.payload_at(task.step());
    let _held = door.caller.hold(body.len())?;
    Ok(wire.say(&Reply::Found { id: task.id, body }).await?)
}

//! One connection: the tubes that it uses and watches, the jobs that it has reserved, and its commands.

mod job;
mod put;
mod reserve;

use std::fmt;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;

use tickwheel_api::beanstalk::{Command, Event, Fault, Reply, Tube, When};
use tickwheel_queue::{Act, Acted, ChangeQueue, Due, Nack, NackHow, QueueChange, QueueName, Timestamp};

use super::budget::Watching;
use super::connection_end::{ConnectionEnd, unavailable};
use super::counters::Counted;
use super::door::{BeanstalkDoor, DEFAULT};
use super::reply_body::ReplyBody;
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
/// The largest number of tubes that a connection may watch, because each reserve looks at all of them.
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
        Ok(()) | Err(ConnectionEnd::Stop) => wire.close().await,
        Err(ConnectionEnd::Refused(reply)) => {
            if wire.say(&reply).await.is_ok() {
                wire.close().await;
            }
        }
        Err(ConnectionEnd::Socket(error)) => {
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

    async fn run(&mut self, wire: &mut Wire<'_>) -> Result<(), ConnectionEnd> {
        let stopping = self.door.stopping.clone();
        let mut stop = pin!(stopping.wait());
        loop {
            // A command under way is answered, and no new one begins.
            let next = tokio::select! {
                biased;
                () = &mut stop => return Err(ConnectionEnd::Stop),
                next = wire.next(&self.door.budget) => next?,
            };
            let Some(event) = next else { return Ok(()) };
            // Commands that have arrived already do not yield by themselves.
            self.steps.did(self.looked_through(&event)).await;
            match event {
                Event::Fault(Fault::JobTooBig | Fault::ExpectedCrlf) => self.puts(event, wire).await?,
                Event::Fault(fault) => {
                    wire.say(&Reply::Fault(fault)).await?;
                    if fault == Fault::Http {
                        tracing::debug!("a client spoke HTTP to the door for clients of beanstalkd");
                        return Ok(());
                    }
                }
                Event::Command(Command::Quit) => return Ok(()),
                Event::Command(Command::Put { .. } | Command::PutKey { .. }) => {
                    self.puts(event, wire).await?
                }
                Event::Command(command) => {
                    self.door.counters.count(&command);
                    self.carry_out(command, wire).await?;
                }
            }
        }
    }

    /// The work of looking through all watched tubes, in bytes of [`Steps`], for the commands that do so.
    fn looked_through(&self, event: &Event) -> usize {
        match event {
            Event::Command(Command::Watch(_) | Command::Ignore(_)) => LOOK_BYTES * self.watched.len(),
            _ => 0,
        }
    }

    async fn carry_out(&mut self, command: Command, wire: &mut Wire<'_>) -> Result<(), ConnectionEnd> {
        let door = self.door;
        let reply = match command {
            Command::Delete(id) => return self.deletes(id, wire).await,
            Command::Reserve { timeout_s } => return self.reserve(timeout_s, wire).await,
            Command::ReserveBatch { max, timeout_s } => {
                return self.reserve_batch(max, timeout_s, wire).await;
            }
            Command::Use(tube) => {
                let Some(queue) = self.door.queue_of(&tube) else { return bad_format(wire).await };
                self.door.tubes.keep(&queue, Interest::Use);
                self.door.tubes.release(&self.used.queue, Interest::Use);
                self.used = NamedTube { tube, queue };
                Reply::Using(&self.used.tube)
            }
            Command::Watch(tube) => {
                let Some(queue) = self.door.queue_of(&tube) else { return bad_format(wire).await };
                self.watch(NamedTube { tube, queue })
            }
            Command::Ignore(tube) => self.ignore(&tube),
            Command::ListTubeUsed => Reply::Using(&self.used.tube),
            Command::ListTubesWatched => {
                let text = inspect::names(self.watched.iter().map(|named| &named.tube));
                return Ok(wire.say(&Reply::Ok(&text)).await?);
            }
            Command::ReserveJob(id) => {
                match self.act(Right::Consume, id, Act::Lease { lease_ms: None }).await? {
                    Ok(Acted::Leased(leased)) => {
                        self.is_worker();
                        return self.hand_over(&[*leased], wire).await;
                    }
                    Ok(_) => Reply::InternalError,
                    Err(reply) => reply,
                }
            }
            Command::Release { id, priority, delay_s } => self.release(id, priority, delay_s).await?,
            Command::Bury { id, priority } => self.bury(id, priority).await?,
            Command::Touch(id) => self.touch(id).await?,
            Command::KickJob(id) => self.kick_job(id).await?,
            Command::Kick(max) => self.kick(max).await?,
            Command::PauseTube { tube, pause_s } => self.pause(&tube, pause_s).await?,
            Command::DeleteKey(key) => self.delete_key(&key).await?,
            Command::DelayKey { key, when } => self.delay_key(&key, when).await?,
            Command::Put { .. } | Command::PutKey { .. } | Command::Quit => {
                unreachable!("these are answered before")
            }
            Command::ListTubes => return show(stats::tubes(door).await?, wire).await,
            Command::Stats => return show(stats::server(door).await?, wire).await,
            Command::StatsTube(tube) => return show(stats::tube(door, &tube).await?, wire).await,
            Command::StatsJob(id) => {
                let task = inspect::by_id(door, id).await?;
                return show(stats::job(door, task).await?, wire).await;
            }
            Command::StatsKey(key) => {
                let task = inspect::by_key(door, &self.used.queue, &key).await?;
                return show(stats::job(door, task).await?, wire).await;
            }
            Command::Peek(id) => return show(inspect::by_id(door, id).await?, wire).await,
            Command::PeekKey(key) => {
                return show(inspect::by_key(door, &self.used.queue, &key).await?, wire).await;
            }
            Command::PeekReady => {
                return show(inspect::first_ready(door, &self.used.queue).await?, wire).await;
            }
            Command::PeekDelayed => {
                return show(inspect::first_delayed(door, &self.used.queue).await?, wire).await;
            }
            Command::PeekBuried => {
                return show(inspect::first_buried(door, &self.used.queue).await?, wire).await;
            }
        };
        Ok(wire.say(&reply).await?)
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

    async fn kick(&self, max: u32) -> Result<Reply<'static>, ConnectionEnd> {
        let queue = &self.used.queue;
        let reply = inspect::kick(self.door, queue, u64::from(max)).await?;
        if let Reply::Kicked(kicked) = reply {
            let (queue, address) = (queue.as_str(), self.from);
            tracing::info!(target: events::AUDIT, event = events::TUBE_KICKED, queue, kicked, %address, "a client of beanstalkd kicked jobs of a tube");
        }
        Ok(reply)
    }

    async fn kick_job(&mut self, id: u64) -> Result<Reply<'static>, ConnectionEnd> {
        Ok(match self.act(Right::Admin, id, Act::Run).await? {
            Ok(_) => {
                let address = self.from;
                tracing::info!(target: events::AUDIT, event = events::JOB_KICKED, id, %address, "a client of beanstalkd kicked a job");
                Reply::KickedOne
            }
            Err(reply) => reply,
        })
    }

    async fn pause(&self, tube: &Tube, pause_s: u32) -> Result<Reply<'static>, ConnectionEnd> {
        let Some(queue) = self.door.queue_of(tube) else { return Ok(Reply::NotFound) };
        match self.door.caller.queue(Right::Admin, &queue)?.await {
            Ok(view) if !view.exists => return Ok(Reply::NotFound),
            Ok(_) => {}
            Err(why) => return unavailable(&why),
        }
        let now = self.door.queue.now();
        let change = QueueChange::Pause { ms: Some(u64::from(pause_s) * 1_000) };
        match self.door.caller.change_queue(ChangeQueue { queue: queue.clone(), change })?.await {
            Ok(()) => {
                self.door.tubes.paused(&queue, pause_s, now);
                let (queue, address) = (queue.as_str(), self.from);
                tracing::info!(target: events::AUDIT, event = events::TUBE_PAUSED, queue, pause_s, %address, "a client of beanstalkd paused a tube");
                Ok(Reply::Paused)
            }
            Err(tickwheel_queue::QueueError::Unavailable(why)) => unavailable(&why),
            Err(_) => Ok(Reply::OutOfMemory),
        }
    }
}

impl Drop for Session<'_> {
    /// Gives the jobs back and releases the tubes.
    fn drop(&mut self) {
        for (queue, tokens) in self.reserved.take_all() {
            if self.door.stopping.is_given() {
                // The server ends, not the client, so the lease does not count as an attempt.
                self.door.queue.give_back(tokens);
                continue;
            }
            let nack = Nack { how: NackHow::Gone, ..Nack::new(&queue, tokens) };
            // The call is made; no client waits for its answer.
            drop(self.door.queue.nack(nack));
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

async fn show(shown: impl Into<ReplyBody>, wire: &mut Wire<'_>) -> Result<(), ConnectionEnd> {
    let shown = shown.into();
    let said = wire.say(&shown.reply()).await;
    if let ReplyBody::Text(text) = shown {
        discard(text);
    }
    Ok(said?)
}

async fn bad_format(wire: &mut Wire<'_>) -> Result<(), ConnectionEnd> {
    Ok(wire.say(&Reply::Fault(Fault::BadFormat)).await?)
}

//! One connection: what it uses, watches and holds, and what becomes of its commands.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_api::beanstalk::{Command, Event, Fault, JobTerms, Reply, Tube, When};
use tickwheel_queue::{
    Ack, Act, Acted, Body, ById, ByIdError, Cancel, CancelError, ChangeQueue, Due, Extend, Key, Lease,
    Leased, Nack, NackHow, Patch, PatchError, Pending, Put, PutError, QueueChange, QueueName, Stored, Terms,
    Timestamp, TokenAnswer, Unavailable,
};
use tokio::io::{AsyncRead, AsyncWrite};

use super::counters::Counted;
use super::cut::{Cut, by_id_refused, unavailable};
use super::desk::{DEFAULT, Desk};
use super::held::{Held, Job};
use super::shown::Shown;
use super::tubes::Hold;
use super::wire::Wire;
use super::{look, stats};

/// Commands of one kind that are carried out together, at most.
const TOGETHER_MAX: usize = 256;
/// Tubes that a connection may watch: each reserve looks at all of them.
const WATCHED_MAX: usize = 1_000;
/// Reserves that are carried out together, at most.
const RESERVES_MAX: usize = 64;
/// Jobs that are put together have so many bytes, or are one.
const PUT_BYTES_MAX: usize = 64 << 10;
/// Jobs of this door that are given together have so many bytes, or are one: a client that reads slowly has them all wait for it.
const GIVEN_BYTES_MAX: usize = 16 << 20;
/// A job may be due so far ahead: the queue takes no more, and beanstalkd's 136 years are longer than anybody waits. 100 years, in milliseconds.
const DELAY_MS_MAX: u64 = (100 * 365 + 25) * 86_400_000;
/// Instants are rounded up to the millisecond, so that nothing is early; whoever waits is not to lose by it.
const ROUNDED_UP: Duration = Duration::from_millis(2);

/// Serves one connection to its end.
pub(super) async fn serve<S>(socket: S, desk: Arc<Desk>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut wire = Wire::new(socket, desk.job_bytes_max, &desk.counters);
    let mut session = Session::new(&desk);
    let served = session.run(&mut wire).await;
    drop(session);
    match served {
        Ok(()) => wire.close().await,
        Err(Cut::Socket(error)) => {
            tracing::debug!(%error, "a connection of beanstalkd's protocol ended early")
        }
        Err(Cut::Stop) => wire.close().await,
    }
}

/// A tube under both its names.
#[derive(Clone, Debug)]
struct Place {
    tube: Tube,
    queue: QueueName,
}

struct Session<'a> {
    desk: &'a Desk,
    used: Place,
    watched: Vec<Place>,
    /// Of those the queues.
    queues: Arc<[QueueName]>,
    held: Held,
    producer: Option<Counted<'a>>,
    worker: Option<Counted<'a>>,
    #[expect(dead_code, reason = "held, not read")]
    connection: Counted<'a>,
}

/// An answer that is there, or one that is on its way.
enum Said {
    Now(Reply<'static>),
    Put(Pending<Stored, PutError>, bool),
}

/// A delete on its way.
enum Deleting {
    /// Of a job in the connection's hands.
    Held(Job, Pending<Vec<TokenAnswer>, Unavailable>),
    Other(Pending<Acted, ByIdError>),
}

impl<'a> Session<'a> {
    fn new(desk: &'a Desk) -> Self {
        let tube = Tube::new(DEFAULT.as_bytes()).expect("it is a name");
        let queue = desk.queue_of(&tube).expect("a namespace leaves room for it");
        desk.tubes.hold(&queue, Hold::Use);
        desk.tubes.hold(&queue, Hold::Watch);
        desk.counters.connections_total.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let used = Place { tube, queue };
        Self {
            desk,
            watched: vec![used.clone()],
            queues: [used.queue.clone()].into(),
            used,
            held: Held::default(),
            producer: None,
            worker: None,
            connection: Counted::new(&desk.counters.connections),
        }
    }

    async fn run<S>(&mut self, wire: &mut Wire<'_, S>) -> Result<(), Cut>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let stopping = self.desk.stopping.clone();
        let mut stop = pin!(stopping.wait());
        loop {
            // What is under way is answered; nothing new is begun.
            let next = tokio::select! {
                biased;
                () = &mut stop => return Err(Cut::Stop),
                next = wire.next(&self.desk.budget) => next?,
            };
            let Some(event) = next else { return Ok(()) };
            match event {
                Event::Fault(Fault::JobTooBig | Fault::ExpectedCrlf) => self.puts(event, wire).await?,
                Event::Fault(fault) => {
                    wire.say(&Reply::Fault(fault)).await?;
                    if fault == Fault::Http {
                        tracing::debug!("somebody spoke HTTP to the door for clients of beanstalkd");
                        return Ok(());
                    }
                }
                Event::Command(Command::Quit) => return Ok(()),
                Event::Command(Command::Put { .. } | Command::PutKey { .. }) => {
                    self.puts(event, wire).await?
                }
                Event::Command(command) => {
                    self.desk.counters.count(&command);
                    self.carry_out(command, wire).await?;
                }
            }
        }
    }

    async fn carry_out<S>(&mut self, command: Command, wire: &mut Wire<'_, S>) -> Result<(), Cut>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let desk = self.desk;
        let reply = match command {
            Command::Delete(id) => return self.deletes(id, wire).await,
            Command::Reserve { timeout_s } => return self.reserve(timeout_s, wire).await,
            Command::ReserveBatch { max, timeout_s } => {
                return self.reserve_batch(max, timeout_s, wire).await;
            }
            Command::Use(tube) => {
                let Some(queue) = self.desk.queue_of(&tube) else { return bad_format(wire).await };
                self.desk.tubes.hold(&queue, Hold::Use);
                self.desk.tubes.release(&self.used.queue, Hold::Use);
                self.used = Place { tube, queue };
                Reply::Using(&self.used.tube)
            }
            Command::Watch(tube) => {
                let Some(queue) = self.desk.queue_of(&tube) else { return bad_format(wire).await };
                self.watch(Place { tube, queue })
            }
            Command::Ignore(tube) => self.ignore(&tube),
            Command::ListTubeUsed => Reply::Using(&self.used.tube),
            Command::ListTubesWatched => {
                let text = look::names(self.watched.iter().map(|place| &place.tube));
                return Ok(wire.say(&Reply::Ok(&text)).await?);
            }
            Command::ReserveJob(id) => match self.act(id, Act::Lease { lease_ms: None }).await? {
                Ok(Acted::Leased(leased)) => {
                    self.is_worker();
                    return self.hand_over(&[*leased], wire).await;
                }
                Ok(_) => Reply::InternalError,
                Err(reply) => reply,
            },
            Command::Release { id, priority, delay_s } => self.release(id, priority, delay_s).await?,
            Command::Bury { id, priority } => self.bury(id, priority).await?,
            Command::Touch(id) => self.touch(id).await?,
            Command::KickJob(id) => match self.act(id, Act::Run).await? {
                Ok(_) => Reply::KickedOne,
                Err(reply) => reply,
            },
            Command::Kick(max) => look::kick(self.desk, &self.used.queue, u64::from(max)).await?,
            Command::PauseTube { tube, pause_s } => self.pause(&tube, pause_s).await?,
            Command::DeleteKey(key) => self.delete_key(&key).await?,
            Command::DelayKey { key, when } => self.delay_key(&key, when).await?,
            Command::Put { .. } | Command::PutKey { .. } | Command::Quit => {
                unreachable!("these are answered before")
            }
            Command::ListTubes => return show(stats::tubes(desk).await?, wire).await,
            Command::Stats => return show(stats::server(desk).await?, wire).await,
            Command::StatsTube(tube) => return show(stats::tube(desk, &tube).await?, wire).await,
            Command::StatsJob(id) => {
                let task = look::by_id(desk, id).await?;
                return show(stats::job(desk, task).await?, wire).await;
            }
            Command::StatsKey(key) => {
                let task = look::by_key(desk, &self.used.queue, &key).await?;
                return show(stats::job(desk, task).await?, wire).await;
            }
            Command::Peek(id) => return show(look::by_id(desk, id).await?, wire).await,
            Command::PeekKey(key) => {
                return show(look::by_key(desk, &self.used.queue, &key).await?, wire).await;
            }
            Command::PeekReady => return show(look::first_ready(desk, &self.used.queue).await?, wire).await,
            Command::PeekDelayed => {
                return show(look::first_delayed(desk, &self.used.queue).await?, wire).await;
            }
            Command::PeekBuried => {
                return show(look::first_buried(desk, &self.used.queue).await?, wire).await;
            }
        };
        Ok(wire.say(&reply).await?)
    }

    fn watch(&mut self, place: Place) -> Reply<'static> {
        if self.watched.iter().all(|watched| watched.queue != place.queue) {
            if self.watched.len() >= WATCHED_MAX {
                return Reply::OutOfMemory;
            }
            self.desk.tubes.hold(&place.queue, Hold::Watch);
            self.watched.push(place);
            self.queues = self.watched.iter().map(|place| place.queue.clone()).collect();
        }
        Reply::Watching(self.watched.len())
    }

    fn ignore(&mut self, tube: &Tube) -> Reply<'static> {
        let at = self.watched.iter().position(|place| place.tube == *tube);
        match at {
            Some(_) if self.watched.len() == 1 => return Reply::NotIgnored,
            Some(at) => {
                let gone = self.watched.remove(at);
                self.desk.tubes.release(&gone.queue, Hold::Watch);
                self.queues = self.watched.iter().map(|place| place.queue.clone()).collect();
            }
            None => {}
        }
        Reply::Watching(self.watched.len())
    }

    /// Puts this job and those that follow it at once, so that one commit covers them.
    async fn puts<S>(&mut self, first: Event, wire: &mut Wire<'_, S>) -> Result<(), Cut>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.producer.get_or_insert_with(|| Counted::new(&self.desk.counters.producers));
        let mut bytes = 0;
        let mut said = Vec::new();
        let mut next = Some(first);
        while let Some(event) = next {
            match &event {
                Event::Command(command) => self.desk.counters.count(command),
                Event::Fault(_) => self.desk.counters.count_put(),
            }
            said.push(match event {
                Event::Fault(fault) => Said::Now(Reply::Fault(fault)),
                Event::Command(Command::Put { terms, body }) => {
                    bytes += body.len();
                    self.put(None, terms, body)
                }
                Event::Command(Command::PutKey { key, terms, body }) => {
                    bytes += body.len();
                    self.put(Some(key), terms, body)
                }
                Event::Command(_) => unreachable!("only puts are asked for"),
            });
            next =
                if said.len() < TOGETHER_MAX && bytes < PUT_BYTES_MAX { wire.next_if(is_put) } else { None };
        }
        for said in said {
            let reply = match said {
                Said::Now(reply) => reply,
                Said::Put(stored, keyed) => put_reply(stored.await, keyed)?,
            };
            wire.say(&reply).await?;
        }
        Ok(())
    }

    fn put(&self, key: Option<String>, terms: JobTerms, body: Vec<u8>) -> Said {
        if self.desk.is_draining() {
            return Said::Now(Reply::Draining);
        }
        let JobTerms { priority, when, ttr_s } = terms;
        let keyed = key.is_some();
        let Some(due) = due_of(when) else { return Said::Now(Reply::Fault(Fault::BadFormat)) };
        let key = match key.map(|key| Key::new(&key)).transpose() {
            Ok(key) => key,
            Err(_) => return Said::Now(Reply::Fault(Fault::BadFormat)),
        };
        let put = Put {
            key,
            due,
            body: Body::bytes(body),
            terms: Terms { priority, ..Terms::default() },
            ttr_ms: Some(u64::from(ttr_s) * 1_000),
            ..Put::without_key(&self.used.queue)
        };
        Said::Put(self.desk.queue.put(put), keyed)
    }

    /// Deletes this job and those that are to be deleted right behind it.
    async fn deletes<S>(&mut self, first: u64, wire: &mut Wire<'_, S>) -> Result<(), Cut>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut ids = vec![first];
        while ids.len() < TOGETHER_MAX
            && let Some(Event::Command(command)) =
                wire.next_if(|event| matches!(event, Event::Command(Command::Delete(_))))
        {
            self.desk.counters.count(&command);
            if let Command::Delete(id) = command {
                ids.push(id);
            }
        }
        let mut deletes = Vec::with_capacity(ids.len());
        for id in ids {
            // The same id twice: the second finds nothing, once the first is answered.
            deletes.push(match self.held.remove(id) {
                Some(job) => {
                    let acked = self.desk.queue.ack(Ack::new(&job.queue, [job.token]));
                    (id, Deleting::Held(job, acked))
                }
                None => (id, Deleting::Other(self.cancel(id))),
            });
        }
        for (id, delete) in deletes {
            let reply = self.deleted(id, delete).await?;
            wire.say(&reply).await?;
        }
        Ok(())
    }

    fn cancel(&self, id: u64) -> Pending<Acted, ByIdError> {
        self.desk.queue.by_id(ById { act: Act::Cancel, ..look::id(self.desk, id) })
    }

    async fn deleted(&mut self, id: u64, delete: Deleting) -> Result<Reply<'static>, Cut> {
        let cancelled = match delete {
            Deleting::Other(cancelled) => cancelled,
            Deleting::Held(job, acked) => match acked.await {
                Ok(answers) if answers == [TokenAnswer::Acked] => return Ok(Reply::Deleted),
                // Its time was over: it is nobody's, or another's.
                Ok(answers) if answers == [TokenAnswer::Expired] => self.cancel(id),
                // Its owner took it back, and may have made another of it.
                Ok(_) => return Ok(Reply::NotFound),
                Err(why) => {
                    self.held.put_back(id, job);
                    return unavailable(&why);
                }
            },
        };
        match cancelled.await {
            Ok(_) => Ok(Reply::Deleted),
            Err(error) => by_id_refused(&error),
        }
    }

    /// Reserves a job, and one more for each such command right behind this one as far as they are ready.
    async fn reserve<S>(&mut self, timeout_s: Option<u32>, wire: &mut Wire<'_, S>) -> Result<(), Cut>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.is_worker();
        let mut timeouts = vec![timeout_s];
        while timeouts.len() < RESERVES_MAX
            && let Some(Event::Command(command)) =
                wire.next_if(|event| matches!(event, Event::Command(Command::Reserve { .. })))
        {
            self.desk.counters.count(&command);
            if let Command::Reserve { timeout_s } = command {
                timeouts.push(timeout_s);
            }
        }
        let mut rest = timeouts.as_slice();
        while let [timeout_s, behind @ ..] = rest {
            match self.wait_for(rest.len().min(self.given_max()), *timeout_s, wire).await? {
                Ok(leased) => {
                    rest = &rest[leased.len()..];
                    self.hand_over(&leased, wire).await?;
                }
                Err(reply) => {
                    rest = behind;
                    wire.say(&reply).await?;
                }
            }
        }
        Ok(())
    }

    async fn reserve_batch<S>(&mut self, max: u32, timeout_s: u32, wire: &mut Wire<'_, S>) -> Result<(), Cut>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.is_worker();
        let max = usize::try_from(max).unwrap_or(usize::MAX).min(self.given_max());
        match self.wait_for(max, Some(timeout_s), wire).await? {
            Ok(leased) => {
                // They are this connection's before anything is said of them.
                self.take(&leased);
                wire.say(&Reply::ReservedBatch(leased.len())).await?;
                say_reserved(&leased, wire).await
            }
            Err(reply) => Ok(wire.say(&reply).await?),
        }
    }

    /// So many jobs may be given together.
    fn given_max(&self) -> usize {
        let longest = usize::try_from(self.desk.job_bytes_max).unwrap_or(usize::MAX).max(1);
        (GIVEN_BYTES_MAX / longest).clamp(1, TOGETHER_MAX)
    }

    /// Jobs, at least one: what is ready, or waited for as long as the client wants, until one of its own jobs has little time left, or until it
    /// says no more.
    async fn wait_for<S>(
        &mut self,
        max: usize,
        timeout_s: Option<u32>,
        wire: &mut Wire<'_, S>,
    ) -> Result<Result<Vec<Leased>, Reply<'static>>, Cut>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let timeout = timeout_s.map_or(Duration::MAX, |s| Duration::from_secs(s.into()));
        if !timeout.is_zero() {
            // What was said before is not kept back while it waits; and nothing is reserved for a client that does not read.
            wire.flush().await?;
        }
        let asked = self.desk.queue.now();
        let warn_in = self.held.warn_in_ms(asked).map(Duration::from_millis);
        let wait = warn_in.map_or(timeout, |warn_in| warn_in.min(timeout));
        let lease = Lease::of(Arc::clone(&self.queues)).max(max);
        let leased = if wait.is_zero() {
            self.desk.queue.lease(lease, wait).await
        } else {
            // One question for what is ready and for what comes: an answer that there is nothing yet would follow the commit that is under way,
            // and only then would the connection stand in line. What is due when the wait ends is still given, such as a job that is delayed
            // for as long as its worker waits, from a moment before.
            let mut waited = pin!(self.desk.queue.lease(lease, wait.saturating_add(ROUNDED_UP)));
            let _waits = self.desk.tubes.wait(&self.queues);
            let _waiting = Counted::new(&self.desk.counters.waiting);
            let leased = tokio::select! {
                biased;
                leased = &mut waited => leased,
                ended = wire.end() => {
                    ended?;
                    // What is ready is given, whether or not the client is there to wait.
                    waited.end_wait();
                    match waited.await {
                        Ok(leased) if leased.is_empty() => return Ok(Err(Reply::TimedOut)),
                        leased => leased,
                    }
                }
                () = self.desk.stopping.wait() => return Err(Cut::Stop),
            };
            self.desk.deliveries.count(leased.as_deref().unwrap_or_default(), asked, self.desk.queue.now());
            leased
        };
        Ok(match leased {
            Ok(leased) if !leased.is_empty() => Ok(leased),
            Ok(_) if warn_in.is_some_and(|warn_in| warn_in <= timeout) => Err(Reply::DeadlineSoon),
            Ok(_) => Err(Reply::TimedOut),
            Err(why) => Err(unavailable(&why)?),
        })
    }

    /// These are in the connection's hands: if it ends they go back.
    fn take(&mut self, leased: &[Leased]) {
        leased.iter().for_each(|one| self.held.insert(one));
    }

    async fn hand_over<S>(&mut self, leased: &[Leased], wire: &mut Wire<'_, S>) -> Result<(), Cut>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.take(leased);
        say_reserved(leased, wire).await
    }

    async fn release(&mut self, id: u64, priority: u32, delay_s: u32) -> Result<Reply<'static>, Cut> {
        let delay_ms = Some((u64::from(delay_s) * 1_000).min(DELAY_MS_MAX));
        let gives_back = |nack| Nack { delay_ms, priority: Some(priority), ..nack };
        self.give_back(id, gives_back, Reply::Released).await
    }

    async fn bury(&mut self, id: u64, priority: u32) -> Result<Reply<'static>, Cut> {
        let buries = |nack: Nack| Nack { priority: Some(priority), ..nack.buried() };
        self.give_back(id, buries, Reply::Buried).await
    }

    async fn give_back(
        &mut self,
        id: u64,
        how: impl FnOnce(Nack) -> Nack,
        done: Reply<'static>,
    ) -> Result<Reply<'static>, Cut> {
        let Some(job) = self.held.get(id) else { return Ok(Reply::NotFound) };
        let nack = how(Nack::new(&job.queue, [job.token]));
        match self.desk.queue.nack(nack).await {
            Ok(answers) => {
                self.held.remove(id);
                Ok(if answers == [TokenAnswer::Nacked] { done } else { Reply::NotFound })
            }
            Err(tickwheel_queue::NackError::Unavailable(why)) => unavailable(&why),
            Err(_) => Ok(Reply::InternalError),
        }
    }

    async fn touch(&mut self, id: u64) -> Result<Reply<'static>, Cut> {
        let Some(job) = self.held.get(id) else { return Ok(Reply::NotFound) };
        let extend = Extend { queue: job.queue.clone(), tokens: vec![job.token], lease_ms: None };
        // It begins anew somewhere between here and the answer: who is warned too early loses nothing.
        let now = self.desk.queue.now();
        match self.desk.queue.extend(extend).await {
            Ok(answers) if answers == [TokenAnswer::Extended] => {
                self.held.extended(id, now);
                Ok(Reply::Touched)
            }
            Ok(_) => {
                self.held.remove(id);
                Ok(Reply::NotFound)
            }
            Err(why) => unavailable(&why),
        }
    }

    fn is_worker(&mut self) {
        self.worker.get_or_insert_with(|| Counted::new(&self.desk.counters.workers));
    }

    async fn act(&self, id: u64, act: Act) -> Result<Result<Acted, Reply<'static>>, Cut> {
        let acted = self.desk.queue.by_id(ById { act, ..look::id(self.desk, id) }).await;
        acted.map_or_else(|error| by_id_refused(&error).map(Err), |acted| Ok(Ok(acted)))
    }

    async fn pause(&self, tube: &Tube, pause_s: u32) -> Result<Reply<'static>, Cut> {
        let Some(queue) = self.desk.queue_of(tube) else { return Ok(Reply::NotFound) };
        match self.desk.queue.queue(&queue).await {
            Ok(view) if !view.exists => return Ok(Reply::NotFound),
            Ok(_) => {}
            Err(why) => return unavailable(&why),
        }
        let now = self.desk.queue.now();
        let change = QueueChange::Pause { ms: Some(u64::from(pause_s) * 1_000) };
        match self.desk.queue.change_queue(ChangeQueue { queue: queue.clone(), change }).await {
            Ok(()) => {
                self.desk.tubes.paused(&queue, pause_s, now);
                Ok(Reply::Paused)
            }
            Err(tickwheel_queue::QueueError::Unavailable(why)) => unavailable(&why),
            Err(_) => Ok(Reply::OutOfMemory),
        }
    }

    async fn delete_key(&self, key: &str) -> Result<Reply<'static>, Cut> {
        let Ok(key) = Key::new(key) else { return Ok(Reply::NotFound) };
        match self.desk.queue.cancel(Cancel::new(&self.used.queue, key)).await {
            Ok(_) => Ok(Reply::Deleted),
            Err(CancelError::Leased) => Ok(Reply::IsReserved),
            Err(CancelError::Unavailable(why)) => unavailable(&why),
            Err(_) => Ok(Reply::NotFound),
        }
    }

    async fn delay_key(&self, key: &str, when: When) -> Result<Reply<'static>, Cut> {
        let Some(due) = due_of(when) else { return Ok(Reply::Fault(Fault::BadFormat)) };
        let Ok(key) = Key::new(key) else { return Ok(Reply::NotFound) };
        let patch = Patch { due: Some(due), ..Patch::new(&self.used.queue, key) };
        match self.desk.queue.patch(patch).await {
            Ok(_) => Ok(Reply::Delayed),
            Err(PatchError::Leased) => Ok(Reply::IsReserved),
            Err(PatchError::TooFar { .. }) => Ok(Reply::Fault(Fault::BadFormat)),
            Err(PatchError::Unavailable(why)) => unavailable(&why),
            Err(_) => Ok(Reply::NotFound),
        }
    }
}

impl Drop for Session<'_> {
    /// Its jobs go back, and it uses and watches nothing any more.
    fn drop(&mut self) {
        for (queue, tokens) in self.held.take_all() {
            if self.desk.stopping.is_given() {
                // It is the server that goes: that is no attempt.
                self.desk.queue.give_back(tokens);
                continue;
            }
            let nack = Nack { how: NackHow::Gone, ..Nack::new(&queue, tokens) };
            // The call is made; nobody is left to hear the answer.
            drop(self.desk.queue.nack(nack));
        }
        self.desk.tubes.release(&self.used.queue, Hold::Use);
        for place in &self.watched {
            self.desk.tubes.release(&place.queue, Hold::Watch);
        }
    }
}

fn is_put(event: &Event) -> bool {
    match event {
        Event::Fault(fault) => matches!(fault, Fault::JobTooBig | Fault::ExpectedCrlf),
        Event::Command(command) => matches!(command, Command::Put { .. } | Command::PutKey { .. }),
    }
}

/// `None`: no task can be due then.
fn due_of(when: When) -> Option<Due> {
    match when {
        When::AfterMs(0) => Some(Due::Now),
        When::AfterMs(ms) => Some(Due::After { ms: ms.min(DELAY_MS_MAX) }),
        When::AtMs(ms) => Timestamp::from_ms(ms).map(Due::At),
    }
}

fn put_reply(stored: Result<Stored, PutError>, keyed: bool) -> Result<Reply<'static>, Cut> {
    match stored {
        Ok(Stored { created, task }) if created || !keyed => Ok(Reply::Inserted(task.id)),
        Ok(Stored { task, .. }) => Ok(Reply::Replaced(task.id)),
        Err(PutError::Leased) => Ok(Reply::IsReserved),
        Err(PutError::Draining) => Ok(Reply::Draining),
        Err(PutError::BacklogFull { .. }) => Ok(Reply::OutOfMemory),
        Err(PutError::TooFar { .. }) => Ok(Reply::Fault(Fault::BadFormat)),
        Err(PutError::Unavailable(why)) => unavailable(&why),
        Err(_) => Ok(Reply::InternalError),
    }
}

async fn say_reserved<S>(leased: &[Leased], wire: &mut Wire<'_, S>) -> Result<(), Cut>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    for one in leased {
        let (body, _) = one.body.payload_at(one.step);
        wire.say(&Reply::Reserved { id: one.id, body }).await?;
    }
    Ok(())
}

async fn show<S>(shown: impl Into<Shown>, wire: &mut Wire<'_, S>) -> Result<(), Cut>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    Ok(wire.say(&shown.into().reply()).await?)
}

async fn bad_format<S>(wire: &mut Wire<'_, S>) -> Result<(), Cut>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    Ok(wire.say(&Reply::Fault(Fault::BadFormat)).await?)
}

//! [`Watch`]: looks at a shard after each turn, and sends notices of what is new to the operator.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tickwheel_engine::{Engine, RoomPace, ShardStore};
use tickwheel_store::{ClockNote, QueueStore};

use crate::cron::calendar::ZoneNews;
use crate::notice::{ClockChange, Listener, Notice};
use crate::shard::Shard;

/// The time between two questions to the store for its free bytes, while puts are refused for too few free bytes or may soon be. A question
/// costs no write. After space is free again, the store tries to go on after about three questions, and two kinds of tries take turns. So
/// about 600 ms pass until the first put, plus the time of the calls.
const LOOK_FOR_ROOM: Duration = Duration::from_millis(100);
/// The time between two such questions while free bytes are few but puts are taken. Bytes that are free again are then noticed before many
/// puts come.
const LOOK_FOR_ROOM_SLOWLY: Duration = Duration::from_millis(900);
/// The time between two checks that the directory still belongs to this process: there has to be one in each second.
const LOOK_AT_LOCK: Duration = Duration::from_millis(900);

/// The time between two looks at the database of time zones.
const LOOK_AT_ZONES: Duration = Duration::from_secs(50);

/// The time between two notes of the wall clock.
const NOTE_CLOCK: Duration = Duration::from_secs(60);

/// The notices that were sent already, and the times of the next looks.
#[derive(Debug)]
pub(crate) struct Watch {
    listener: Listener,
    slow_commit: Duration,
    /// When the room became too little; `None` while there is enough.
    short_since: Option<Instant>,
    is_read_only: bool,
    is_late: bool,
    /// The beginning of the last commit under way of which the listener was told (monotonic ns).
    waits_told: Option<u64>,
    begun: Instant,
    looked_for_room: Option<Instant>,
    look_at_lock: Instant,
    look_at_zones: Instant,
    /// When the wall clock was written down last, the number of commits then, and whether the shard was stopping.
    noted: Option<(Instant, u64, bool)>,
}

/// Returns the time between two questions to the store for its free bytes; `None` if there are enough free bytes or they do not matter.
fn pace<S: ShardStore>(shard: &Shard<S>) -> Option<Duration> {
    shard.running().and_then(Engine::room_pace).map(|pace| match pace {
        RoomPace::Fast => LOOK_FOR_ROOM,
        RoomPace::Slow => LOOK_FOR_ROOM_SLOWLY,
    })
}

impl Watch {
    pub(crate) fn new(listener: Listener, slow_commit: Duration) -> Self {
        let now = Instant::now();
        Self {
            listener,
            slow_commit,
            short_since: None,
            is_read_only: false,
            is_late: false,
            waits_told: None,
            begun: now,
            looked_for_room: None,
            look_at_lock: now,
            look_at_zones: now,
            noted: None,
        }
    }

    /// Returns the time from `now` until the next check of the lock or the next question for the free bytes.
    pub(crate) fn wait<S: ShardStore>(&self, shard: &Shard<S>, now: Instant) -> Duration {
        let lock = self.look_at_lock.saturating_duration_since(now);
        let room = pace(shard).map(|every| self.room_due(every).saturating_duration_since(now));
        room.map_or(lock, |room| room.min(lock))
    }

    /// Returns when to ask for the free bytes next, if `every` is the time between two questions.
    fn room_due(&self, every: Duration) -> Instant {
        self.looked_for_room.map_or(self.begun, |looked| looked + every)
    }

    /// Returns whether to ask for the free bytes now. If so, notes that the question is asked at `now`.
    pub(crate) fn looks_for_room<S: ShardStore>(&mut self, shard: &Shard<S>, now: Instant) -> bool {
        let looks = pace(shard).is_some_and(|every| now >= self.room_due(every));
        if looks {
            self.looked_for_room = Some(now);
        }
        looks
    }

    /// Lets the store check its lock, if the last check was at least [`LOOK_AT_LOCK`] ago.
    pub(crate) fn look_at_lock<S: QueueStore>(&mut self, shard: &mut Shard<S>, now: Instant) {
        if now >= self.look_at_lock {
            self.look_at_lock = now + LOOK_AT_LOCK;
            shard.store_mut().check_ownership();
        }
    }

    /// Looks at the zones of the schedules, if the last look was at least [`LOOK_AT_ZONES`] ago. Returns those with new rules.
    pub(crate) fn look_at_zones<S: ShardStore>(
        &mut self,
        shard: &mut Shard<S>,
        now: Instant,
    ) -> Vec<Arc<str>> {
        if now < self.look_at_zones {
            return Vec::new();
        }
        self.look_at_zones = now + LOOK_AT_ZONES;
        let ZoneNews { changed, missing } = shard.look_at_zones();
        for zone in &changed {
            self.listener.tell(Notice::ZoneChanged { zone: Arc::clone(zone) });
        }
        for (zone, is_kept) in missing {
            self.listener.tell(Notice::ZoneMissing { zone, is_kept });
        }
        changed
    }

    /// Has the store write the wall clock down: at first, after a step, at a stop, and once a minute while there are commits.
    pub(crate) fn note_clock<S: QueueStore>(
        &mut self,
        shard: &mut Shard<S>,
        note: Option<ClockNote>,
        (has_changed, is_stopping): (bool, bool),
        now: Instant,
    ) {
        let Some(note) = note.filter(|_| shard.is_serving()) else { return };
        let is_due = self.noted.is_none_or(|(at, commits_then, was_stopping)| {
            // The commits are summed up once the time is over, and not in each turn.
            let is_over = || now.saturating_duration_since(at) >= NOTE_CLOCK;
            has_changed || is_stopping && !was_stopping || is_over() && shard.commits().total() > commits_then
        });
        if is_due {
            self.noted = Some((now, shard.commits().total(), is_stopping));
            shard.store_mut().note_clock(note);
        }
    }

    /// Sends the listener a notice of each thing that is new. `mono_ns` is the time of the shard, and `now` is the real monotonic time.
    pub(crate) fn tell<S: QueueStore>(
        &mut self,
        shard: &mut Shard<S>,
        changes: Vec<ClockChange>,
        mono_ns: u64,
        now: Instant,
    ) {
        changes.into_iter().for_each(|change| self.listener.tell(Notice::Clock(change)));
        self.tell_of_commits(shard, mono_ns);
        let Some(engine) = shard.engine() else { return };
        let failure = engine.failure();
        let was_read_only = core::mem::replace(&mut self.is_read_only, failure.is_some());
        if let Some(why) = failure.filter(|_| !was_read_only) {
            let why = if shard.id().count() == 1 { why } else { format!("{}: {why}", shard.id()).into() };
            self.listener.tell(Notice::ReadOnly { why });
        }
        match (engine.shortage(), self.short_since) {
            (Some(room_bytes), None) => {
                self.short_since = Some(now);
                self.listener.tell(match engine.lacks_descriptor() {
                    true => Notice::NoDescriptors,
                    false => Notice::RoomShort { room_bytes },
                });
            }
            (None, Some(since)) => {
                self.short_since = None;
                let after = now.saturating_duration_since(since);
                self.listener.tell(Notice::RoomAgain { room_bytes: engine.room(), after });
            }
            _ => {}
        }
        let late = shard.store().checkpoint_late();
        if late.is_some() != self.is_late {
            self.is_late = late.is_some();
            let notice = late.map(|log_bytes| Notice::CheckpointLate { log_bytes });
            self.listener.tell(notice.unwrap_or(Notice::CheckpointDone));
        }
    }

    fn tell_of_commits<S: ShardStore>(&mut self, shard: &mut Shard<S>, mono_ns: u64) {
        let slowest = shard.take_slowest();
        if slowest >= self.slow_commit {
            self.listener.tell(Notice::CommitSlow { took: slowest });
        }
        let under_way = shard.committing_since();
        if let Some(since_ns) = under_way.filter(|since| self.waits_told != Some(*since)) {
            let took = Duration::from_nanos(mono_ns.saturating_sub(since_ns));
            if took >= self.slow_commit {
                self.waits_told = under_way;
                self.listener.tell(Notice::CommitWaits { took });
            }
        }
    }
}

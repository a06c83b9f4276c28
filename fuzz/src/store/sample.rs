//! [`Sample`]: a small directory that a store made, and the states it has been in.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use tickwheel_engine::{EngineState, Task, TaskEffect};
use tickwheel_store::Table;

use super::disk::{Files, MemDisk};
use super::life::{HISTORY, Life};
use super::stamp;

/// A small whole directory.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its files by name.
    pub files: BTreeMap<String, Vec<u8>>,
    /// What was committed up to each change.
    pub(super) states: BTreeMap<u64, Table>,
}

impl Sample {
    /// One of four, made when first asked for: a log alone; a crash after everything there is has happened; that, opened once more and
    /// crashed after one commit; and a stop.
    #[must_use]
    pub fn nth(nth: u8) -> &'static Self {
        static SAMPLES: OnceLock<[Sample; 4]> = OnceLock::new();
        &SAMPLES.get_or_init(make)[usize::from(nth % 4)]
    }

    /// The last state.
    pub(super) fn last(&self) -> (u64, &Table) {
        self.states.last_key_value().map(|(seq, table)| (*seq, table)).expect("a sample has a state")
    }

    /// Names of its files that have a part in common.
    #[must_use]
    pub fn named(&self, part: &str) -> Vec<&String> {
        self.files.keys().filter(|name| name.contains(part)).collect()
    }
}

/// A life that writes down its states.
struct Story {
    life: Life,
    table: Table,
    states: BTreeMap<u64, Table>,
}

impl Story {
    fn begin(disk: &MemDisk, table: Table, states: BTreeMap<u64, Table>) -> Self {
        let mut life = Life::open(disk).expect("a whole directory opens");
        life.acquire().expect("the shard is free");
        let mut story = Self { life, table, states };
        story.states.insert(story.life.seq, story.table.clone());
        story
    }

    fn commit(&mut self, effects: Vec<TaskEffect>, state: Option<EngineState>) {
        effects.iter().for_each(|effect| self.table.apply(effect));
        state.into_iter().for_each(|state| self.table.join_state(state));
        self.life.commit(effects, state).expect("the disk is well");
        self.states.insert(self.life.seq, self.table.clone());
    }

    /// Puts tasks, changes some, ends others, and time goes on.
    fn go_on(&mut self, ids: core::ops::Range<u64>) {
        let mut live: Vec<Arc<Task>> = Vec::new();
        for id in ids {
            let task = Arc::new(self.life.make(id));
            let state = (id % 10 == 1).then_some(EngineState::from_parts(id + 9, 1 << id.ilog2()));
            self.commit(vec![TaskEffect::Stored { task: Arc::clone(&task), body_known: false }], state);
            live.push(task);
            if id % 3 == 0 {
                let changed = self.life.change(&live[live.len() / 2]);
                self.commit(vec![changed], None);
            }
            if id % 5 < 2 {
                let task = live.remove(live.len() / 3);
                let ended = self.life.end(&task);
                self.commit(vec![ended], None);
            }
            self.life.wall = self.life.wall.saturating_plus_ms(1_000_000);
        }
    }

    /// As a crash leaves it, at a moment when no checkpoint is under way.
    fn crash(mut self, disk: &MemDisk) -> (Files, Table, BTreeMap<u64, Table>) {
        self.life.rest();
        (disk.files(), self.table, self.states)
    }
}

fn make() -> [Sample; 4] {
    let disk = MemDisk::of(Files::new());
    let mut story = Story::begin(&disk, Table::new([0; 16], HISTORY), BTreeMap::new());
    story.go_on(1..6);
    let short = Sample { files: disk.files(), states: story.states.clone() };

    story.go_on(6..40);
    // Months have come near, and hours are long past.
    story.life.wall = story.life.wall.saturating_plus_ms(69 * 86_400_000);
    story.go_on(40..90);
    let (files, table, states) = story.crash(&disk);
    let crashed = Sample { files, states };

    let mut story = Story::begin(&disk, table, crashed.states.clone());
    let task = Arc::new(story.life.make(90));
    story.commit(vec![TaskEffect::Stored { task, body_known: false }], None);
    let reopened = Sample { files: disk.files(), states: story.states.clone() };

    story.go_on(91..110);
    story.life.release();
    let (files, _, states) = story.crash(&disk);
    let stopped = Sample { files, states };
    let samples = [short, crashed, reopened, stopped];
    samples.iter().for_each(|sample| stamp::check(&sample.files));
    samples
}

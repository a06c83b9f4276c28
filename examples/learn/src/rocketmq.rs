//! RocketMQ's two ways to delay a message: 18 levels, and a wheel in a file. Tickwheel has neither; this is a model of both, in memory.

use std::collections::{BTreeMap, VecDeque};

use tickwheel_core::TimerQueue;
use tickwheel_core::classic::HeapQueue;

use crate::cost::{Nanos, Random, grouped, nanos};
use crate::sheet::Sheet;
use crate::tasks::TASKS;

/// The delays of the levels, in seconds: 1 s, 5 s, 10 s, 30 s, 1 to 10 min, 20 min, 30 min, 1 h, 2 h.
const LEVELS: [u64; 18] =
    [1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1_200, 1_800, 3_600, 7_200];

/// One queue for each level. All messages of a level wait equally long, so the first one that came is the first one that is due.
struct Levels {
    queues: [VecDeque<(u64, char)>; LEVELS.len()],
}

impl Levels {
    fn new() -> Self {
        Self { queues: Default::default() }
    }

    /// Appends a message to a level, counted from 1.
    fn put(&mut self, now: u64, level: usize, name: char) {
        self.queues[level - 1].push_back((now + LEVELS[level - 1], name));
    }

    /// Looks at the first message of each queue, and takes it if it is due.
    fn due(&mut self, now: u64) -> Vec<char> {
        let mut names = Vec::new();
        for queue in &mut self.queues {
            while let Some((_, name)) = queue.pop_front_if(|(due, _)| *due <= now) {
                names.push(name);
            }
        }
        names
    }
}

/// A record of the wheel's log. The log is only appended to.
struct Record {
    name: char,
    due: u64,
    /// The record that was the last one of the slot before this one.
    previous: Option<usize>,
}

/// A ring of slots in a file of fixed size, and a log. A slot has the position of its last record; each record has that of the one before.
struct FileWheel {
    slots: Vec<Option<usize>>,
    log: Vec<Record>,
}

impl FileWheel {
    fn new(slots: usize) -> Self {
        Self { slots: vec![None; slots], log: Vec::new() }
    }

    fn put(&mut self, now: u64, name: char, due: u64) {
        // A message beyond the last slot waits in the last slot, and is then put once more: it *rolls*.
        let at = due.min(now + self.slots.len() as u64 - 1);
        let slot = at as usize % self.slots.len();
        let previous = self.slots[slot].replace(self.log.len());
        self.log.push(Record { name, due, previous });
    }

    /// Follows the chain of the slot of `now`. Messages that are not due roll.
    fn tick(&mut self, now: u64) -> Vec<char> {
        let slot = now as usize % self.slots.len();
        let mut position = self.slots[slot].take();
        let mut fired = Vec::new();
        while let Some(at) = position {
            let Record { name, due, previous } = self.log[at];
            position = previous;
            if due <= now {
                fired.push(name);
            } else {
                self.put(now, name, due);
            }
        }
        fired
    }

    fn slot(&self, slot: usize) -> String {
        self.slots[slot].map_or_else(String::new, |position| format!("@{position}"))
    }

    /// The records from `from` on, each with its position and the position of the one before.
    fn appended(&self, from: usize) -> String {
        let record = |(at, record): (usize, &Record)| {
            let previous =
                record.previous.map_or_else(|| "none".to_owned(), |position| format!("@{position}"));
            format!("@{at} {}{} before it: {previous}", record.name, record.due)
        };
        let records: Vec<String> = self.log.iter().enumerate().skip(from).map(record).collect();
        records.join(", ")
    }
}

/// First the levels, with one message that has to wait although it has a delay of its own; then the wheel in a file.
#[must_use]
pub fn table() -> String {
    format!("{}\n{}", levels_table(), file_table())
}

fn levels_table() -> String {
    let mut levels = Levels::new();
    let mut sheet = Sheet::new(["step", "level 2 (5 s)", "level 3 (10 s)", "level 4 (30 s)"]);
    let mut show = |step: String, levels: &Levels| {
        let queue = |level: usize| {
            let waiting: Vec<String> =
                levels.queues[level - 1].iter().map(|(due, name)| format!("{name}{due}")).collect();
            waiting.join(" ")
        };
        sheet.row([step, queue(2), queue(3), queue(4)]);
    };
    for (now, name, level) in [(0, 'a', 3), (1, 'b', 2), (2, 'c', 3), (3, 'd', 4)] {
        levels.put(now, level, name);
        show(format!("at {now} s: put {name} with level {level}"), &levels);
    }
    for now in [6, 10, 12, 33] {
        let names: String = levels.due(now).into_iter().collect();
        show(format!("at {now} s: delivers {names}"), &levels);
    }
    sheet.to_string()
}

fn file_table() -> String {
    let mut wheel = FileWheel::new(8);
    let mut sheet = Sheet::new(["step", "slot 2", "slot 5", "slot 7", "slot 6", "appended to the log"]);
    let mut appended = 0;
    let mut show = |step: String, wheel: &FileWheel| {
        let slots = [2, 5, 7, 6].map(|slot| wheel.slot(slot));
        sheet.row([step].into_iter().chain(slots).chain([wheel.appended(appended)]));
        appended = wheel.log.len();
    };
    for (name, due) in TASKS.into_iter().filter(|(name, _)| *name != 'e').chain([('f', 30)]) {
        wheel.put(0, name, due);
        show(format!("put {name}{due}"), &wheel);
    }
    for now in 1..=30 {
        let (visited, before) = (wheel.slots[now as usize % 8].is_some(), wheel.log.len());
        let names: String = wheel.tick(now).into_iter().collect();
        if visited {
            let rolled = wheel.log.len() > before;
            let rolls = if rolled { ", f rolls" } else { "" };
            let names = if names.is_empty() { "nothing".to_owned() } else { names };
            show(format!("at {now}: delivers {names}{rolls}"), &wheel);
        }
    }
    sheet.to_string()
}

/// A put and a delivery in a queue of one level, and in a heap; then how often a message of 30 days is written in a window of two days.
#[must_use]
pub fn costs(share: usize) -> String {
    let messages = 1_000_000 / share;
    let mut random = Random::new();
    let mut levels = Levels::new();
    let begun = Nanos::begin();
    for now in 0..messages as u64 {
        levels.put(now, random.up_to(18) as usize, 'm');
    }
    let put = begun.each(messages);
    let begun = Nanos::begin();
    let mut due = 0;
    for now in 0..messages as u64 + LEVELS[17] {
        due += levels.due(now).len();
    }
    let deliver = begun.each(due);

    let mut random = Random::new();
    let mut heap = HeapQueue::new(0);
    let begun = Nanos::begin();
    for now in 0..messages as u64 {
        let delay = LEVELS[random.up_to(18) as usize - 1];
        heap.insert(now + delay, 'm').expect("a heap takes any deadline");
    }
    let heap_put = begun.each(messages);
    let begun = Nanos::begin();
    for now in 0..messages as u64 + LEVELS[17] {
        heap.advance(now, &mut |_, _| ());
    }
    let heap_deliver = begun.each(messages);

    let mut sheet = Sheet::of_numbers([grouped(messages).as_str(), "put", "deliver"]);
    sheet.row(["18 levels".to_owned(), nanos(put), nanos(deliver)]);
    sheet.row(["a heap".to_owned(), nanos(heap_put), nanos(heap_deliver)]);
    format!("{sheet}{}", rolls())
}

/// How often a message is written, by its delay in days, if the window has two days of hours.
fn rolls() -> String {
    let mut sheet = Sheet::of_numbers(["a delay of", "times written"]);
    let mut written = BTreeMap::new();
    for days in [1_u64, 3, 7, 30] {
        let mut wheel = FileWheel::new(48);
        wheel.put(0, 'm', days * 24);
        for now in 1..=days * 24 {
            wheel.tick(now);
        }
        written.insert(days, wheel.log.len());
    }
    for (days, times) in written {
        sheet.row([format!("{days} days"), times.to_string()]);
    }
    sheet.to_string()
}

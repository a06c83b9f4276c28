//! [`Script`]: what bytes mean.
//!
//! Any bytes are a script, and what is missing at the end is 0. One byte says which operation and how
//! often; a few more say where. So a small change of the bytes is a small change of the script, and
//! a crowd of hundreds in one slot is four bytes long.

use tickwheel_core::conformance::script::{Aim, Step};

/// No more steps than this: each looks at all handles now and then, so a script costs their square.
pub const STEPS_MAX: usize = 2_048;

/// How often an operation is done, by the high half of its byte: mostly once, or as many times as
/// fill a block, a chunk or several chunks, and a little more.
const TIMES: [usize; 16] = [1, 1, 1, 1, 1, 1, 1, 2, 3, 9, 17, 33, 65, 130, 260, 520];

/// The sizes of slots in use, as logarithms: those of the wheel, and of others.
const BITS: [u32; 8] = [8, 16, 24, 32, 40, 56, 6, 10];

/// A time to start at and what to do then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The time of the empty queue, in ticks.
    pub start: u64,
    /// What to do, at most [`STEPS_MAX`] steps.
    pub steps: Vec<Step>,
}

impl Script {
    /// Reads bytes. Never fails.
    ///
    /// ```
    /// use tickwheel_core::conformance::script::{Aim, Step};
    /// use tickwheel_fuzz::script::Script;
    ///
    /// // From 255: 65 times an insertion 3 ticks ahead, each 2 ticks after the one before; follow.
    /// let script = Script::read(&[1, 0xC0, 2, 3, 0, 7]);
    /// assert_eq!(script.start, 255);
    /// assert_eq!(script.steps[..2], [Step::Insert(Aim::Ahead(3)), Step::Insert(Aim::Ahead(5))]);
    /// assert_eq!(script.steps[64..], [Step::Insert(Aim::Ahead(131)), Step::Follow]);
    /// ```
    #[must_use]
    pub fn read(bytes: &[u8]) -> Self {
        let mut reader = Reader(bytes);
        let start = reader.start();
        let mut steps = vec![];
        while !reader.0.is_empty() && steps.len() < STEPS_MAX {
            let code = reader.byte();
            let times = TIMES[usize::from(code >> 4)];
            // Repeated at the same place, or each a little further.
            let drift = if times > 1 { reader.byte() } else { 0 };
            let first = reader.step(code & 15);
            let room = STEPS_MAX - steps.len();
            steps.extend((0..times.min(room)).map(|time| moved(first, time * usize::from(drift))));
        }
        Self { start, steps }
    }
}

/// The bytes that are left.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }

    /// So many bytes as a number, the lowest first.
    fn number(&mut self, bytes: u32) -> u64 {
        (0..bytes).fold(0, |number, byte| number | u64::from(self.byte()) << (8 * byte))
    }

    fn pick(&mut self) -> usize {
        self.number(2) as usize
    }

    /// A few ticks before or after.
    fn off(&mut self) -> i8 {
        self.byte().cast_signed()
    }

    fn start(&mut self) -> u64 {
        match self.byte() % 8 {
            0 => 0,
            1 => 255,
            2 => 65_535,
            3 => self.number(3),
            4 => (1 << (self.byte() % 64)) + self.number(1),
            5 => (1_u64 << (self.byte() % 64)).saturating_sub(self.number(1)),
            6 => u64::MAX - self.number(3),
            _ => self.number(8),
        }
    }

    fn step(&mut self, code: u8) -> Step {
        match code {
            0 => Step::Insert(self.near()),
            1 => Step::Insert(self.edge()),
            2 => Step::Insert(self.anywhere()),
            3 => Step::InsertBeside(self.pick()),
            4 => Step::Cancel(self.pick()),
            5 => Step::Reschedule(self.pick(), self.near()),
            6 => Step::Reschedule(self.pick(), self.edge()),
            7 => Step::Follow,
            8 => Step::Reschedule(self.pick(), self.anywhere()),
            9 => Step::RescheduleBeside(self.pick(), self.pick()),
            10 => Step::Advance(Aim::Ahead(self.number(1))),
            11 => Step::Advance(self.near()),
            12 => Step::Advance(self.edge()),
            13 => Step::Advance(self.anywhere()),
            14 => Step::Panic(self.near(), usize::from(self.byte())),
            _ => Step::Panic(self.edge(), usize::from(self.byte())),
        }
    }

    /// Up to a few slots of the second level ahead.
    fn near(&mut self) -> Aim {
        Aim::Ahead(self.number(2))
    }

    /// Around the end of a slot of any level.
    fn edge(&mut self) -> Aim {
        let bits = BITS[usize::from(self.byte() % 8)];
        Aim::Edge { bits, off: self.off() }
    }

    fn anywhere(&mut self) -> Aim {
        match self.byte() % 9 {
            0 => Aim::Ahead(self.number(3)),
            1 => Aim::Ahead(self.number(4)),
            2 => Aim::Ahead(self.number(8)),
            3 => Aim::Ahead((1 << (self.byte() % 64)) + self.number(1)),
            4 => Aim::Edge { bits: u32::from(self.byte() % 64), off: self.off() },
            5 => Aim::Behind(self.number(1)),
            6 => Aim::At(u64::MAX - self.number(2)),
            7 => Aim::At(self.number(8)),
            _ => {
                let bits = BITS[usize::from(self.byte() % 8)];
                Aim::Slot { bits, slots: self.number(1), ticks: self.number(3) }
            }
        }
    }
}

/// A step so far on: its handle and its ticks. What has neither stays.
fn moved(step: Step, by: usize) -> Step {
    let aimed = |aim| match aim {
        Aim::Ahead(ticks) => Aim::Ahead(ticks.saturating_add(by as u64)),
        Aim::At(tick) => Aim::At(tick.saturating_add(by as u64)),
        Aim::Slot { bits, slots, ticks } => Aim::Slot { bits, slots, ticks: ticks + by as u64 },
        Aim::Edge { .. } | Aim::Behind(_) => aim,
    };
    match step {
        Step::Insert(aim) => Step::Insert(aimed(aim)),
        Step::InsertBeside(pick) => Step::InsertBeside(pick + by),
        Step::Cancel(pick) => Step::Cancel(pick + by),
        Step::Reschedule(pick, aim) => Step::Reschedule(pick + by, aim),
        Step::RescheduleBeside(pick, other) => Step::RescheduleBeside(pick + by, other),
        Step::Advance(_) | Step::Panic(..) | Step::Follow => step,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_at_an_edge_is_four_bytes() {
        // From 0: 260 insertions, one tick before the end of the slot of 2^32 ticks.
        let script = Script::read(&[0, 0xE1, 0, 3, 255]);
        assert_eq!(script.start, 0);
        assert_eq!(script.steps, [Step::Insert(Aim::Edge { bits: 32, off: -1 }); 260]);
    }

    #[test]
    fn a_repeated_reschedule_takes_one_entry_after_the_other_to_one_place() {
        let script = Script::read(&[0, 0x85, 1, 4, 0, 0, 1]);
        let expected = [4, 5, 6].map(|pick| Step::Reschedule(pick, Aim::Ahead(256)));
        assert_eq!(script.steps, expected);
    }

    #[test]
    fn a_crowd_in_a_slot_spreads_over_its_ticks() {
        // From 0: 3 insertions, 2 slots of 256 ticks on, at its tick 5 and each 7 ticks later.
        let script = Script::read(&[0, 0x82, 7, 8, 0, 2, 5, 0, 0]);
        let expected = [5, 12, 19].map(|ticks| Step::Insert(Aim::Slot { bits: 8, slots: 2, ticks }));
        assert_eq!(script.steps, expected);
    }

    #[test]
    fn every_operation_can_be_said() {
        let names = |step: &Step| match step {
            Step::Insert(_) => 0,
            Step::InsertBeside(_) => 1,
            Step::Cancel(_) => 2,
            Step::Reschedule(..) => 3,
            Step::RescheduleBeside(..) => 4,
            Step::Advance(_) => 5,
            Step::Panic(..) => 6,
            Step::Follow => 7,
        };
        let mut said: Vec<_> = (0..16).map(|code| names(&Script::read(&[0, code]).steps[0])).collect();
        said.sort_unstable();
        said.dedup();
        assert_eq!(said, (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn no_bytes_make_more_steps_than_the_most() {
        let script = Script::read(&[0xFF; 10_000]);
        assert_eq!(script.steps.len(), STEPS_MAX);
    }

    #[test]
    fn the_starts_reach_both_ends_of_time() {
        assert_eq!(Script::read(&[]), Script { start: 0, steps: vec![] });
        assert_eq!(Script::read(&[6]).start, u64::MAX);
        assert_eq!(Script::read(&[4, 63, 255]).start, (1 << 63) + 255);
        assert_eq!(Script::read(&[5, 0, 2]).start, 0);
    }
}

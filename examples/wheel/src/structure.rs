//! The structures that the page offers, behind one set of questions.

use tickwheel_core::classic::{HashedWheel, HierarchicalWheel, SimpleWheel};
use tickwheel_core::{Handle, TimerQueue};

/// A structure that the page offers. The page knows it by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// 0: one ring, one turn.
    Simple,
    /// 1: one ring, with rounds.
    Hashed,
    /// 2: two levels.
    Hierarchical,
    /// 3: levels that are made on demand.
    Kafka,
}

impl Kind {
    /// The kind with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::Simple, Self::Hashed, Self::Hierarchical, Self::Kafka].into_iter().nth(number as usize)
    }
}

/// Where an entry is. Levels and slots are counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Spot {
    pub(crate) level: usize,
    pub(crate) slot: usize,
    pub(crate) rounds: u64,
}

/// A ring of slots.
pub(crate) struct Ring {
    /// Ticks in a slot.
    pub(crate) tick: u64,
    /// Now, rounded down to the tick.
    pub(crate) clock: u64,
}

/// One of the wheels of core. The values are the numbers of the tasks.
pub(crate) enum Structure {
    Simple(SimpleWheel<u32>),
    Hashed(HashedWheel<u32>),
    Hierarchical(HierarchicalWheel<u32>),
}

impl Structure {
    pub(crate) fn new(kind: Kind, slots: usize) -> Self {
        match kind {
            Kind::Simple => Self::Simple(SimpleWheel::new(0, slots)),
            Kind::Hashed => Self::Hashed(HashedWheel::new(0, slots)),
            Kind::Hierarchical => Self::Hierarchical(HierarchicalWheel::with_levels(0, 1, &[slots, slots])),
            Kind::Kafka => Self::Hierarchical(HierarchicalWheel::new(0, 1, slots)),
        }
    }

    pub(crate) fn queue(&mut self) -> &mut dyn TimerQueue<u32> {
        match self {
            Self::Simple(wheel) => wheel,
            Self::Hashed(wheel) => wheel,
            Self::Hierarchical(wheel) => wheel,
        }
    }

    pub(crate) fn read(&self) -> &dyn TimerQueue<u32> {
        match self {
            Self::Simple(wheel) => wheel,
            Self::Hashed(wheel) => wheel,
            Self::Hierarchical(wheel) => wheel,
        }
    }

    pub(crate) fn look(&self, handle: Handle) -> Option<Spot> {
        match self {
            Self::Simple(wheel) => Some(Spot { level: 0, slot: wheel.slot(handle)?, rounds: 0 }),
            Self::Hashed(wheel) => {
                let placement = wheel.look(handle)?;
                Some(Spot { level: 0, slot: placement.slot, rounds: placement.rounds })
            }
            Self::Hierarchical(wheel) => {
                let placement = wheel.look(handle)?;
                Some(Spot { level: placement.level - 1, slot: placement.slot, rounds: 0 })
            }
        }
    }

    pub(crate) fn rings(&self, slots: usize) -> Vec<Ring> {
        match self {
            Self::Simple(_) | Self::Hashed(_) => vec![Ring { tick: 1, clock: self.read().now() }],
            Self::Hierarchical(wheel) => {
                let ring = |level| {
                    let tick = (slots as u64).saturating_pow(level as u32 - 1);
                    Some(Ring { tick, clock: wheel.clock(level)? })
                };
                (1..=wheel.levels()).filter_map(ring).collect()
            }
        }
    }

    /// The buckets in use with their levels, the one that expires next first.
    pub(crate) fn buckets(&self) -> Vec<(u64, usize)> {
        match self {
            Self::Simple(_) | Self::Hashed(_) => Vec::new(),
            Self::Hierarchical(wheel) => wheel.buckets().map(|(expiry, level)| (expiry, level - 1)).collect(),
        }
    }
}

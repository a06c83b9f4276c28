//! [`Tree`]: finds the slot of a deadline, and the slot that comes next.

#[cfg(test)]
mod invariants;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::bits::Bits;
use super::home::Home;
use super::id::{FanId, NIL, Place, Seat, SlotId, at};
use super::list::{Blocks, List};

/// The number of slots in a fan.
pub(super) const FAN_SLOTS: usize = 256;
/// The level of the slots that span all ticks with one high word. A slot of level `k` spans 256^k ticks.
pub(super) const TOP_LEVEL: u8 = 4;

/// The entries whose deadlines are in one span of time. They are in the slot itself (in its list and its chunks), or in its finer slots;
/// while the slot is being opened, in both.
pub(super) struct Slot {
    /// The records of entries that live in the commons or the drain.
    pub(super) list: List,
    /// The chunks of the entries that live in this slot.
    pub(super) home: Home,
    /// The finer slots, if the slot is open.
    fan: FanId,
    /// A lower bound of the low words of the deadlines in the list and the chunks. It is exact as long as no entry was cancelled or
    /// rescheduled, and always within the span of the slot.
    pub(super) min_low: u32,
    /// The high word of the insertion numbers of all entries in the chunks.
    pub(super) era: u32,
    /// The fan that has this slot.
    within: FanId,
}

const _: () = assert!(size_of::<Slot>() == 40);

impl Slot {
    const fn new(within: FanId) -> Self {
        Self { list: List::EMPTY, home: Home::EMPTY, fan: NIL, min_low: u32::MAX, era: 0, within }
    }

    /// Whether the slot has entries itself, and not only in its finer slots.
    pub(super) fn has_entries(&self) -> bool {
        self.list.len() > 0 || self.home.count() > 0
    }

    pub(super) fn is_open(&self) -> bool {
        self.fan != NIL
    }
}

/// 256 slots that follow one another, or one single slot.
struct Fan {
    /// The slots of this fan that have entries or are open.
    occupied: Bits,
    first: SlotId,
    /// The open slot whose finer slots are in this fan; `NIL` if there is none. In an unused fan: the next unused fan.
    of: u32,
    /// The high word of all deadlines in this fan.
    high: u32,
    /// The level of the slots in this fan.
    level: u8,
}

/// See [`Tree::outlet`].
pub(super) struct Outlet {
    /// A deadline in the span of the slot.
    deadline: u64,
    /// A mask of the bits in which deadlines in the span of the slot may differ.
    span: u64,
    /// The first of the slot's finer slots, and the level of these finer slots.
    first: SlotId,
    level: u8,
}

/// All slots, as rings around the base.
///
/// A deadline belongs to the ring of the highest level in which its slot differs from the slot of the base. When the base enters the next
/// slot of a ring, the deadlines in that slot differ from the base in lower levels only, so their entries move to the rings of these levels.
pub(super) struct Tree {
    pub(super) slots: Vec<Slot>,
    fans: Vec<Fan>,
    /// The first unused fan of 256 slots. Unused fans are empty and linked by `of`.
    unused_fans: FanId,
    /// The first unused fan of one slot, linked in the same way.
    unused_tops: FanId,
    /// The first tick that has not passed. No deadline is before it.
    base: u64,
    /// For each level below the top, the first slot of its ring; `NO_FAN` if no entry needs this ring. From the top level on, always
    /// `NO_FAN`.
    rings: [SlotId; 8],
    /// The slots of the top level, by their high words. Each of them is a fan of one slot.
    tops: BTreeMap<u32, FanId>,
    /// Whether a ring was made. If so, some entries in the slot of the few may belong to this ring.
    made_ring: bool,
    /// The number of entries at which a slot is opened and takes no more entries. So the work that is left when the base reaches the slot
    /// is bounded.
    pub(super) many: usize,
}

/// The slot of the few: entries with the high word of the base for which no ring was made. An entry may stay here after its ring was made,
/// because [`Tree::nearest`] looks here and in the rings.
pub(super) const FEW_SLOT: SlotId = 0;
/// The fan that has only the slot of the few. Its level is 0, because this slot is never opened to finer slots.
const FEW_FAN: FanId = 0;
/// The largest number of entries in the slot of the few.
pub(super) const FEW: usize = 16;

/// The default value of `many`; tests set a smaller number.
pub(super) const MANY: usize = 1 << 20;

/// Stands for the first slot of a ring that does not exist. The sum of this value and any index in a fan is not a slot.
const NO_FAN: SlotId = NIL - FAN_SLOTS as u32;

/// A mask of the bits of a tick that give its position in a slot of this level.
const fn below(level: u8) -> u64 {
    (1 << (8 * level)) - 1
}

/// The index of the slot of this level that has the tick, in the fan of that slot.
#[inline]
const fn digit(tick: u64, level: u8) -> u8 {
    (tick >> (8 * level)) as u8
}

const fn high(tick: u64) -> u32 {
    (tick >> 32) as u32
}

/// The level of the slots in one fan in which two ticks differ; 0 if the ticks are equal.
#[inline]
fn level_of_difference(one: u64, other: u64) -> u8 {
    (((one ^ other) | 1).ilog2() / 8) as u8
}

impl Tree {
    pub(super) const fn new(base: u64) -> Self {
        Self {
            slots: Vec::new(),
            fans: Vec::new(),
            unused_fans: NIL,
            unused_tops: NIL,
            base,
            rings: [NO_FAN; 8],
            tops: BTreeMap::new(),
            made_ring: false,
            many: MANY,
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>() + self.fans.capacity() * size_of::<Fan>()
    }

    #[inline]
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    #[inline]
    pub(super) fn slot(&self, id: SlotId) -> &Slot {
        &self.slots[at(id)]
    }

    #[inline]
    pub(super) fn slot_mut(&mut self, id: SlotId) -> &mut Slot {
        &mut self.slots[at(id)]
    }

    fn within(&self, id: SlotId) -> &Fan {
        &self.fans[at(self.slots[at(id)].within)]
    }

    pub(super) fn level(&self, id: SlotId) -> u8 {
        self.within(id).level
    }

    /// The high word of the deadlines of a slot.
    pub(super) fn high(&self, id: SlotId) -> u32 {
        self.within(id).high
    }

    /// The deadline in a slot that has this low word.
    pub(super) fn deadline(&self, id: SlotId, low: u32) -> u64 {
        u64::from(self.high(id)) << 32 | u64::from(low)
    }

    /// Whether this deadline and the deadlines of all entries have the high word of the base.
    #[inline]
    pub(super) fn is_all_in_high_of(&self, deadline: u64) -> bool {
        (deadline ^ self.base) >> 32 == 0 && self.tops.is_empty()
    }

    /// The number of slots of this level from the base to a later tick.
    pub(super) fn distance(&self, tick: u64, level: u8) -> u64 {
        (tick >> (8 * level)) - (self.base >> (8 * level))
    }

    /// The finest slot for a deadline; `None` if its ring does not exist.
    #[inline]
    pub(super) fn ring_slot(&mut self, deadline: u64) -> Option<&mut Slot> {
        let (id, _) = self.in_ring(deadline);
        self.slots.get(at(id))?;
        let id = self.finest_in(id, deadline);
        self.slots.get_mut(at(id))
    }

    /// The slot for a deadline in its ring, if that ring exists, and the level of the ring.
    #[inline]
    fn in_ring(&self, deadline: u64) -> (SlotId, u8) {
        // The level, times 8.
        let shift = ((deadline ^ self.base) | 1).ilog2() & !7;
        let first = self.rings[shift as usize / 8];
        (first + (deadline >> shift) as u32 % FAN_SLOTS as u32, (shift / 8) as u8)
    }

    /// The finest slot for a deadline.
    #[inline]
    pub(super) fn slot_of(&mut self, deadline: u64) -> SlotId {
        let (id, level) = self.in_ring(deadline);
        match self.slots.get(at(id)) {
            Some(slot) if !slot.is_open() => id,
            _ => self.slot_beyond(deadline, level),
        }
    }

    /// The finest slot for a deadline if its slot in the ring is open, or if there is no ring of this level.
    #[inline(never)]
    fn slot_beyond(&mut self, deadline: u64, level: u8) -> SlotId {
        if level >= TOP_LEVEL {
            let top = self.top_slot(high(deadline));
            return self.finest_in(top, deadline);
        }
        if self.slots.is_empty() {
            self.add_fan(1);
        }
        let ring = &mut self.rings[usize::from(level)];
        if *ring == NO_FAN {
            if self.slots[at(FEW_SLOT)].list.len() < FEW {
                self.fans[at(FEW_FAN)].high = high(deadline);
                return FEW_SLOT;
            }
            let fan = self.take_fan(level, high(deadline), NIL);
            self.rings[usize::from(level)] = self.fans[at(fan)].first;
            self.made_ring = true;
        }
        let slot = self.rings[usize::from(level)] + u32::from(digit(deadline, level));
        self.finest_in(slot, deadline)
    }

    /// The finest slot for a deadline in the slot `id`, which has the deadline in its span.
    #[inline]
    pub(super) fn finest_in(&self, mut id: SlotId, deadline: u64) -> SlotId {
        while let Some(fan) = self.fans.get(at(self.slots[at(id)].fan)) {
            id = fan.first + u32::from(digit(deadline, fan.level));
        }
        id
    }

    /// The target of the entries of a slot that is opened, or that the base has entered.
    pub(super) fn outlet(&self, id: SlotId) -> Outlet {
        let slot = self.slot(id);
        let &Fan { high, level, .. } = self.within(id);
        let deadline = u64::from(high) << 32 | u64::from(slot.min_low);
        match self.fans.get(at(slot.fan)) {
            Some(finer) => Outlet { deadline, span: below(level), first: finer.first, level: finer.level },
            // With this value no deadline matches, because `u64::MAX` is not a valid deadline.
            None => Outlet { deadline: u64::MAX, span: 0, first: NIL, level: 0 },
        }
    }

    /// The finest slot for the deadline of an entry that leaves a slot through `outlet`. It may be outside of the span of the left slot, if
    /// that slot is not open, or if the entry was rescheduled.
    #[inline]
    pub(super) fn finer(&mut self, outlet: &Outlet, deadline: u64) -> SlotId {
        if (deadline ^ outlet.deadline) & !outlet.span == 0 {
            let finer = outlet.first + u32::from(digit(deadline, outlet.level));
            if !self.slot(finer).is_open() {
                return finer;
            }
        }
        self.slot_of(deadline)
    }

    fn top_slot(&mut self, high: u32) -> SlotId {
        if self.slots.is_empty() {
            self.add_fan(1);
        }
        let fan = match self.tops.get(&high) {
            Some(&fan) => fan,
            None => {
                let fan = match self.unused_tops {
                    NIL => self.add_fan(1),
                    unused => unused,
                };
                let top = &mut self.fans[at(fan)];
                self.unused_tops = top.of;
                (top.high, top.level, top.of) = (high, TOP_LEVEL, NIL);
                self.tops.insert(high, fan);
                fan
            }
        };
        self.fans[at(fan)].first
    }

    fn take_fan(&mut self, level: u8, high: u32, of: u32) -> FanId {
        let id = match self.unused_fans {
            NIL => self.add_fan(FAN_SLOTS),
            unused => unused,
        };
        let fan = &mut self.fans[at(id)];
        self.unused_fans = fan.of;
        (fan.high, fan.level, fan.of) = (high, level, of);
        id
    }

    fn add_fan(&mut self, slots: usize) -> FanId {
        let id = self.fans.len() as FanId;
        let first = self.slots.len() as SlotId;
        self.fans.push(Fan { occupied: Bits::EMPTY, first, of: NIL, high: 0, level: 0 });
        self.slots.resize_with(at(first) + slots, || Slot::new(id));
        id
    }

    /// Marks a slot as occupied.
    pub(super) fn occupy(&mut self, id: SlotId) {
        let fan = &mut self.fans[at(self.slots[at(id)].within)];
        fan.occupied.set((id - fan.first) as u8);
    }

    /// Adds a record to the list of a slot and returns its seat.
    #[inline]
    pub(super) fn file(&mut self, blocks: &mut Blocks, id: SlotId, place: Place, deadline_low: u32) -> Seat {
        let slot = &mut self.slots[at(id)];
        slot.min_low = slot.min_low.min(deadline_low);
        let seat = blocks.push(&mut slot.list, id, place);
        if Blocks::is_first(seat) {
            self.file_first(id);
        }
        seat
    }

    /// The slow part of `file`, for a record that is the first of a new block.
    #[inline(never)]
    fn file_first(&mut self, id: SlotId) {
        self.occupy(id);
        if self.slot(id).list.len() > self.many && self.level(id) > 0 {
            self.open(id);
        }
    }

    /// Opens a slot: new entries in its span go to finer slots from then on.
    pub(super) fn open(&mut self, id: SlotId) {
        if self.slot(id).is_open() {
            return;
        }
        let &Fan { high, level, .. } = self.within(id);
        self.slots[at(id)].fan = self.take_fan(level - 1, high, id);
        self.occupy(id);
    }

    /// If a slot is empty, marks it as not occupied, and does the same for each coarser slot that becomes empty.
    pub(super) fn prune(&mut self, mut id: SlotId) {
        loop {
            let slot = &mut self.slots[at(id)];
            if slot.has_entries() {
                return;
            }
            if let Some(finer) = self.fans.get_mut(at(slot.fan)) {
                if !finer.occupied.is_empty() {
                    return;
                }
                finer.of = self.unused_fans;
                self.unused_fans = slot.fan;
                slot.fan = NIL;
            }
            slot.min_low = u32::MAX;
            let within = slot.within;
            let fan = &mut self.fans[at(within)];
            fan.occupied.clear((id - fan.first) as u8);
            if !fan.occupied.is_empty() || within == FEW_FAN {
                return;
            }
            if fan.of == NIL {
                self.remove_outermost(within);
                return;
            }
            id = fan.of;
        }
    }

    /// Removes an empty ring, or an empty slot of the top level.
    fn remove_outermost(&mut self, id: FanId) {
        let fan = &mut self.fans[at(id)];
        if fan.level == TOP_LEVEL {
            self.tops.remove(&fan.high);
            fan.of = self.unused_tops;
            self.unused_tops = id;
        } else {
            let ring = &mut self.rings[usize::from(fan.level)];
            assert_eq!(*ring, fan.first, "a ring was removed twice");
            *ring = NO_FAN;
            fan.of = self.unused_fans;
            self.unused_fans = id;
        }
    }

    /// Whether an entry that lives in the slot `id` would be found in time with this deadline, because the slot is opened before the
    /// deadline. If so, the slot's lower bound `min_low` is updated.
    #[inline]
    pub(super) fn finds(&mut self, id: SlotId, deadline: u64) -> bool {
        let slot = &mut self.slots[at(id)];
        let fan = &self.fans[at(slot.within)];
        let min = u64::from(fan.high) << 32 | u64::from(slot.min_low);
        let same_high = high(deadline) == fan.high;
        if deadline >= min {
            return same_high;
        }
        let within = (deadline ^ min) & !below(fan.level) == 0;
        if within {
            slot.min_low = deadline as u32;
        }
        within
    }

    /// The slots of a ring that have entries or are open.
    pub(super) fn occupied(&self, level: u8) -> Bits {
        let ring = self.slots.get(at(self.rings[usize::from(level)]));
        ring.map_or(Bits::EMPTY, |first| self.fans[at(first.within)].occupied)
    }

    /// The list of the slot of the few.
    pub(super) fn few(&self) -> &List {
        self.slots.get(at(FEW_SLOT)).map_or(&List::EMPTY, |few| &few.list)
    }

    /// The level of the ring to which a deadline belongs, and its slot there.
    pub(super) fn ring_of(&self, deadline: u64) -> (u8, u8) {
        let level = level_of_difference(deadline, self.base);
        (level, digit(deadline, level))
    }

    /// The number of ticks of a slot of this level, and the slot of the base.
    pub(super) fn hand(&self, level: u8) -> (u64, u8) {
        (below(level) + 1, digit(self.base, level))
    }

    /// The nearest deadline. It is exact as long as no entry was cancelled or rescheduled; otherwise it may be too early, but never too
    /// late.
    pub(super) fn nearest(&self) -> Option<u64> {
        let few = self.slots.first().filter(|few| few.has_entries());
        let few = few.map(|few| u64::from(high(self.base)) << 32 | u64::from(few.min_low));
        // An entry in a finer ring is nearer than all entries outside of this ring.
        let outside =
            match (0..).zip(&self.rings[..at(TOP_LEVEL.into())]).find(|&(_, &first)| first != NO_FAN) {
                Some((level, &first)) => {
                    if few.is_some_and(|few| level_of_difference(few, self.base) < level) {
                        return few;
                    }
                    self.nearest_in(self.slot(first).within)
                }
                None => self.tops.first_key_value().and_then(|(_, &fan)| self.nearest_in(fan)),
            };
        earlier(few, outside)
    }

    fn nearest_in(&self, fan: FanId) -> Option<u64> {
        let fan = &self.fans[at(fan)];
        let slot = self.slot(fan.first + u32::from(fan.occupied.first()?));
        let own = slot.has_entries().then(|| u64::from(fan.high) << 32 | u64::from(slot.min_low));
        if slot.is_open() { earlier(own, self.nearest_in(slot.fan)) } else { own }
    }

    /// The slot of this level in which `tick` is. `None` if it is not occupied, or is inside a coarser slot that is not open.
    #[inline]
    fn find(&self, tick: u64, level: u8) -> Option<SlotId> {
        let above = level_of_difference(tick, self.base).clamp(level, TOP_LEVEL);
        let first = self.rings[usize::from(above)];
        if first == NO_FAN && (above < TOP_LEVEL || self.tops.is_empty()) {
            return None;
        }
        self.find_below(first, above, tick, level)
    }

    #[inline(never)]
    fn find_below(&self, first: SlotId, above: u8, tick: u64, level: u8) -> Option<SlotId> {
        let mut id = match above {
            TOP_LEVEL => self.fans[at(*self.tops.get(&high(tick))?)].first,
            _ => first + u32::from(digit(tick, above)),
        };
        for _ in level..above {
            let fan = self.fans.get(at(self.slot(id).fan))?;
            id = fan.first + u32::from(digit(tick, fan.level));
        }
        (self.slot(id).has_entries() || self.slot(id).is_open()).then_some(id)
    }

    /// Moves the base. Returns the highest level on which the base has entered another slot. The caller has to enter the slots of the
    /// levels up to this one.
    pub(super) fn move_base(&mut self, base: u64) -> u8 {
        let changed = level_of_difference(self.base, base).min(TOP_LEVEL);
        self.base = base;
        changed
    }

    /// The slot of this level that the base has entered. If the slot is open, its finer slots become a ring. The caller has to move the
    /// slot's own entries, because they belong to finer rings now.
    pub(super) fn enter(&mut self, level: u8) -> Option<SlotId> {
        let id = self.find(self.base, level)?;
        let slot = &mut self.slots[at(id)];
        let fan_id = core::mem::replace(&mut slot.fan, NIL);
        if let Some(fan) = self.fans.get_mut(at(fan_id)) {
            if fan.occupied.is_empty() {
                fan.of = self.unused_fans;
                self.unused_fans = fan_id;
            } else {
                fan.of = NIL;
                let ring = &mut self.rings[usize::from(fan.level)];
                assert_eq!(*ring, NO_FAN, "the base has left a ring in which something is due");
                *ring = fan.first;
            }
        }
        Some(id)
    }

    /// The slot of this level after the slot of the base, and the tick at which it begins. `None` if it is not
    /// occupied, or is inside a coarser slot that is not open.
    #[inline]
    pub(super) fn following(&self, level: u8) -> Option<(SlotId, u64)> {
        // If the base is in the last slot of a ring, the next slot of this level is inside the next slot of the
        // coarser level. Then the ring of this level says nothing about it.
        let in_ring = level < TOP_LEVEL && digit(self.base, level) < u8::MAX;
        if in_ring && self.rings[usize::from(level)] == NO_FAN {
            return None;
        }
        let begin = (self.base | below(level)).checked_add(1)?;
        self.find(begin, level).map(|id| (id, begin))
    }

    /// Whether a ring was made since the last call of this method.
    pub(super) fn made_ring(&mut self) -> bool {
        core::mem::take(&mut self.made_ring)
    }

    /// The slot of the few.
    pub(super) fn few_mut(&mut self) -> Option<&mut Slot> {
        self.slots.get_mut(at(FEW_SLOT))
    }

    /// The slot that spans only the tick of the base.
    pub(super) fn tick_slot(&self) -> Option<SlotId> {
        self.find(self.base, 0)
    }
}

fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// For tests only.
#[cfg(test)]
impl Tree {
    /// The first tick of a slot; for the slot of the few, the base.
    pub(super) fn begins(&self, id: SlotId) -> u64 {
        if id == FEW_SLOT {
            return self.base;
        }
        let fan = self.within(id);
        if fan.level == TOP_LEVEL {
            return u64::from(fan.high) << 32;
        }
        let above = if fan.of == NIL { self.base & !below(fan.level + 1) } else { self.begins(fan.of) };
        above | u64::from(id - fan.first) << (8 * fan.level)
    }

    /// Whether a deadline is in the span of a slot.
    pub(super) fn spans(&self, id: SlotId, deadline: u64) -> bool {
        let level = if id == FEW_SLOT { TOP_LEVEL } else { self.level(id) };
        (self.begins(id) ^ deadline) & !below(level) == 0
    }

    /// Whether a slot is occupied, and each coarser slot, ring or top through which it is found refers to it.
    pub(super) fn is_reached(&self, id: SlotId) -> bool {
        let fan = self.within(id);
        let occupied = fan.occupied.contains((id - fan.first) as u8);
        let fan_id = self.slot(id).within;
        occupied
            && if id == FEW_SLOT {
                true
            } else if fan.of != NIL {
                self.slot(fan.of).fan == fan_id && self.is_reached(fan.of)
            } else if fan.level == TOP_LEVEL {
                self.tops.get(&fan.high) == Some(&fan_id)
            } else {
                self.rings[usize::from(fan.level)] == fan.first
                    && self.begins(id) >= self.base & !below(fan.level)
            }
    }
}

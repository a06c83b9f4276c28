//! [`OwnIds`]: which id the shard gives out next, and which ids may have a decimal form that an owner chose as a key.

use super::Ledger;
use crate::name::Key;
use crate::shard::ShardId;
use crate::state::EngineState;

/// If a shard keeps ids of another store, its own ids begin at a multiple of this number, or just behind it if there are several shards. So
/// a stored counter that is such a multiple, and not 0, means that the shard has given out none of its own ids since the other ids were
/// laid aside, also after a restart. In all other cases the counter is no multiple of this number, or it is 0: no id was reserved yet.
const IDS_ASIDE: u64 = 1 << 20;
/// 2^52. Only ids of another store below this number can be laid aside. The shard's own ids begin behind the ids that are laid aside. All
/// ids have to stay far below 2^53, because not every JSON reader is exact for larger numbers.
const IDS_ASIDE_MAX: u64 = 1 << 52;

/// The ids that were given out, and the ids that belong to another store.
#[derive(Debug)]
pub(crate) struct OwnIds {
    shard: ShardId,
    next: u64,
    /// Ids below this number belong to another store, and the shard gives none of them out. 0: no ids are laid aside, or the shard had
    /// reserved ids of its own before this start.
    aside: u64,
    /// The part that the store keeps too.
    state: EngineState,
    /// How many numbers are reserved at a time. With several shards, only some of these numbers are ids of this shard; the others are ids
    /// of other shards.
    block: u64,
}

impl OwnIds {
    pub(super) fn new(shard: ShardId, state: EngineState, block: u64) -> Self {
        let reserved = state.ids_reserved;
        Self {
            shard,
            next: shard.first_id(reserved.max(1)),
            aside: if reserved.is_multiple_of(IDS_ASIDE) { reserved } else { 0 },
            state,
            block: block * u64::from(shard.count()),
        }
    }

    /// Returns the id that comes next. All ids that the shard gave out are below this id.
    pub(crate) fn below(&self) -> u64 {
        self.next
    }

    /// Whether an owner may have used the decimal form of this id as a key: an owner used a number as a key that has as many binary digits
    /// as this id.
    pub(crate) fn may_be_key(&self, id: u64) -> bool {
        self.state.own_numbers.has(id)
    }

    /// Whether this id is laid aside for tasks of another store, and belongs to this shard.
    pub(crate) fn is_aside(&self, id: u64) -> bool {
        (1..self.aside).contains(&id) && self.shard.has_id(id)
    }

    /// Takes the next id, and reserves a new block of ids if needed.
    fn take(&mut self) -> u64 {
        let id = self.next;
        self.next = self.shard.id_after(id);
        if self.next > self.state.ids_reserved {
            let reserved = self.next + self.block;
            // `ids_reserved` must not be a multiple of `IDS_ASIDE`. After a restart a multiple would mean that none of these ids was given
            // out.
            self.state.ids_reserved = reserved + u64::from(reserved.is_multiple_of(IDS_ASIDE));
        }
        id
    }

    /// Notes a key that an owner chose, if the key is the decimal form of an id that the shard may still give out.
    fn note_key(&mut self, key: &Key) {
        let Ok(number) = key.as_str().parse() else { return };
        if number >= self.next && Key::from_id(number) == *key {
            self.state.own_numbers.insert(number);
        }
    }

    /// Lays the ids below `below`, rounded up to a multiple of [`IDS_ASIDE`], aside for tasks of another store. Returns `false` if the
    /// shard has already reserved ids, or `below` is too high.
    fn lay_aside(&mut self, below: u64) -> bool {
        if self.state.ids_reserved > 0 || below > IDS_ASIDE_MAX {
            return false;
        }
        self.aside = below.max(1).next_multiple_of(IDS_ASIDE);
        self.next = self.shard.first_id(self.aside);
        self.state.ids_reserved = self.aside;
        true
    }
}

impl Ledger {
    /// Takes the next id of the shard.
    pub(crate) fn take_id(&mut self) -> u64 {
        self.with_ids(OwnIds::take)
    }

    /// Notes that an owner has chosen this key. If the key is the decimal form of an id that the shard may still give out, this id, and
    /// each other id with as many binary digits, later needs a look-up before a task without a key can get it.
    pub(crate) fn note_owners_key(&mut self, key: &Key) {
        self.with_ids(|ids| ids.note_key(key));
    }

    /// Returns whether tasks from another store may keep their ids, because ids are laid aside. If the shard has not reserved any id yet
    /// and `below` is not too high, first lays the ids below `below` aside; the shard's own ids then begin behind them.
    pub(crate) fn keeps_ids(&mut self, below: u64) -> bool {
        self.ids.aside > 0 || self.with_ids(|ids| ids.lay_aside(below))
    }

    /// Changes the ids. If the part that the store keeps has changed, the next commit writes this part.
    fn with_ids<T>(&mut self, change: impl FnOnce(&mut OwnIds) -> T) -> T {
        let before = self.ids.state;
        let done = change(&mut self.ids);
        if self.ids.state != before {
            self.batch.set_state(self.ids.state);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_reserved_in_blocks_and_a_reserve_never_says_that_none_was_given_out() {
        let mut ids = OwnIds::new(ShardId::ONLY, EngineState::default(), IDS_ASIDE - 2);
        assert_eq!(ids.take(), 1);
        assert_eq!(ids.state.ids_reserved, IDS_ASIDE + 1, "a multiple is left out");
        assert_eq!((ids.take(), ids.state.ids_reserved), (2, IDS_ASIDE + 1), "the block lasts");
        let after_restart = OwnIds::new(ShardId::ONLY, ids.state, 100);
        assert_eq!((after_restart.below(), after_restart.aside), (IDS_ASIDE + 1, 0));
    }

    #[test]
    fn ids_of_another_store_are_laid_aside_once_and_only_before_the_first_own_id() {
        let mut ids = OwnIds::new(ShardId::ONLY, EngineState::default(), 100);
        assert!(!ids.lay_aside(IDS_ASIDE_MAX + 1));
        assert!(ids.lay_aside(5_000));
        assert!(
            ids.is_aside(1) && ids.is_aside(IDS_ASIDE - 1) && !ids.is_aside(IDS_ASIDE) && !ids.is_aside(0)
        );
        assert_eq!(ids.below(), IDS_ASIDE);
        let mut used = OwnIds::new(ShardId::ONLY, EngineState::default(), 100);
        used.take();
        assert!(!used.lay_aside(5_000));
    }

    #[test]
    fn a_key_that_is_the_decimal_of_a_later_id_is_noted() {
        let mut ids = OwnIds::new(ShardId::ONLY, EngineState::from_parts(100, 0), 100);
        let key = |text: &str| Key::new(text).expect("a key");
        let before = ids.state;
        ["7", "0700", "order-700"].into_iter().for_each(|text| ids.note_key(&key(text)));
        assert_eq!(ids.state, before, "7 was given out, and the others are no decimals of ids");
        ids.note_key(&key("700"));
        let noted = ids.state;
        ids.note_key(&key("701"));
        assert!(noted != before && ids.state == noted, "one of its length is enough");
        assert!(ids.may_be_key(900) && !ids.may_be_key(2_000));
    }
}

//! [`EngineState`]: what an engine keeps beside tasks and rules.

/// The state of an engine beside tasks and rules: which ids the engine may have given out, and which numbers may be keys that owners of
/// tasks chose. A store keeps the state, and hands it to the next owner of the shard.
///
/// A state only grows. [`join`](Self::join) adds another state to this state.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct EngineState {
    /// All ids that may have been given out are below this number, and a new owner of the shard continues from this number. A multiple of
    /// 2^20 says that the shard has given out no id of its own: all ids below it belong to another store.
    pub(crate) ids_reserved: u64,
    /// Ids whose decimal form may be a key that an owner chose. The decimal form of a new id that is not in the set is no owner's key.
    pub(crate) own_numbers: OwnNumbers,
}

/// The error for bytes that are not the state of an engine.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not the state of an engine, or that of a later release")]
pub struct NotAState;

impl EngineState {
    /// Returns the bytes that a store keeps.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        let (ids, numbers) = self.parts();
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&ids.to_le_bytes());
        bytes[8..].copy_from_slice(&numbers.to_le_bytes());
        bytes
    }

    /// Reads a state from the bytes that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// [`NotAState`] if there are not exactly 16 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NotAState> {
        let ([ids, numbers], []) = bytes.as_chunks::<8>() else { return Err(NotAState) };
        Ok(Self::from_parts(u64::from_le_bytes(*ids), u64::from_le_bytes(*numbers)))
    }

    /// Adds `other` to this state. The limit of the ids becomes the higher one of the two. The set of numbers becomes the union of both
    /// sets.
    pub fn join(&mut self, other: Self) {
        let Self { ids_reserved, own_numbers } = other;
        self.ids_reserved = self.ids_reserved.max(ids_reserved);
        self.own_numbers.0 |= own_numbers.0;
    }

    /// Marks every number as a possible key of an owner. A salvage needs this when records are lost, because any number may be the key of a
    /// lost task.
    pub fn forget_numbers(&mut self) {
        self.own_numbers = OwnNumbers(u64::MAX);
    }

    /// Whether the shard, or another store, may have given out this id.
    #[must_use]
    pub const fn may_have_given_out(&self, id: u64) -> bool {
        id < self.ids_reserved
    }

    /// Raises the limit of the ids after records were lost: `more` ids behind the higher one of `known` and the present limit may have been
    /// given out.
    pub fn pass_ids(&mut self, known: u64, more: u64) {
        // The number is made odd. An even number may be a multiple of 2^20, and such a multiple says that the shard has given out no id of
        // its own.
        self.ids_reserved = self.ids_reserved.max(known).saturating_add(more) | 1;
    }

    /// Makes a state from its two numbers. Outside this file, only tests call this function.
    #[doc(hidden)]
    #[must_use]
    pub const fn from_parts(ids_reserved: u64, own_numbers: u64) -> Self {
        Self { ids_reserved, own_numbers: OwnNumbers(own_numbers) }
    }

    /// Returns the two numbers that [`from_parts`](Self::from_parts) takes.
    #[doc(hidden)]
    #[must_use]
    pub const fn parts(self) -> (u64, u64) {
        (self.ids_reserved, self.own_numbers.0)
    }
}

/// A set of the lengths (in binary digits) of the numbers that owners used as keys, one bit for each length. A generated id needs no
/// look-up if its length is not in the set.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct OwnNumbers(u64);

impl OwnNumbers {
    /// Whether the set has the length of `number`. If not, and `number` is a new id, no owner has used it as a key.
    pub(crate) fn has(self, number: u64) -> bool {
        self.0 & Self::length(number) != 0
    }

    /// Adds the length of a number to the set.
    pub(crate) fn insert(&mut self, number: u64) {
        self.0 |= Self::length(number);
    }

    fn length(number: u64) -> u64 {
        1 << number.checked_ilog2().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_survives_its_bytes_and_other_bytes_are_none() {
        let state = EngineState::from_parts(1 << 40 | 7, 0b101);
        assert_eq!(EngineState::from_bytes(&state.to_bytes()), Ok(state));
        for bytes in [&[][..], &[0; 15], &[0; 17], &[0; 24]] {
            assert_eq!(EngineState::from_bytes(bytes), Err(NotAState));
        }
    }

    #[test]
    fn a_number_is_one_of_them_if_a_number_of_its_length_is() {
        let mut numbers = OwnNumbers::default();
        [7, 4_500, 5].into_iter().for_each(|number| numbers.insert(number));
        for (number, is_own) in
            [(3, false), (4, true), (8, false), (4_095, false), (4_500, true), (20_000, false)]
        {
            assert_eq!(numbers.has(number), is_own, "{number}");
        }
        assert!(!numbers.has(0) && !numbers.has(1));
    }

    #[test]
    fn a_state_only_grows() {
        let mut state = EngineState::from_parts(100, 0b001);
        state.join(EngineState::from_parts(50, 0b110));
        assert_eq!(state.parts(), (100, 0b111));
        state.pass_ids(7, 1_000);
        assert_eq!(state.parts().0, 1_101);
        // A multiple of 2^20 would say that all ids below it belong to another store. An import could then give these ids to its tasks a
        // second time.
        for (reserved, known) in [(0, 0), (1 << 20, 7), (5 << 20, 6 << 20), (1_001, 1_000)] {
            let mut state = EngineState::from_parts(reserved, 0);
            state.pass_ids(known, 1 << 32);
            let (passed, _) = state.parts();
            assert!(!passed.is_multiple_of(1 << 20) && passed > reserved.max(known), "{reserved} {known}");
        }
        state.forget_numbers();
        assert_eq!(state.parts().1, u64::MAX);
    }
}

//! [`EngineState`]: what an engine keeps beside tasks and rules.

/// The state of an engine beside tasks and rules: which ids it may have given out, and which of them owners use as keys. Only the engine
/// understands it. A store keeps its bytes, and hands them to the next owner.
///
/// A state only grows. [`join`](Self::join) makes of two states the one that has both.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct EngineState {
    /// Ids below this one may have been given out. A new owner starts here.
    pub(crate) ids_reserved: u64,
    /// Ids that owners may have used as keys, in decimal. The decimal of any other id is no owner's key.
    pub(crate) own_numbers: OwnNumbers,
}

/// The bytes are no state of an engine.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not the state of an engine, or that of a later release")]
pub struct NotAState;

impl EngineState {
    /// The bytes to keep.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        let (ids, numbers) = self.parts();
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&ids.to_le_bytes());
        bytes[8..].copy_from_slice(&numbers.to_le_bytes());
        bytes
    }

    /// The state that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// [`NotAState`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NotAState> {
        let ([ids, numbers], []) = bytes.as_chunks::<8>() else { return Err(NotAState) };
        Ok(Self::from_parts(u64::from_le_bytes(*ids), u64::from_le_bytes(*numbers)))
    }

    /// Takes another state in.
    pub fn join(&mut self, other: Self) {
        let Self { ids_reserved, own_numbers } = other;
        self.ids_reserved = self.ids_reserved.max(ids_reserved);
        self.own_numbers.0 |= own_numbers.0;
    }

    /// Some records are lost: any number may be the key of a lost task.
    pub fn forget_numbers(&mut self) {
        self.own_numbers = OwnNumbers(u64::MAX);
    }

    /// Some records are lost: ids up to `known`, and `more` behind them, may have been given out.
    pub fn pass_ids(&mut self, known: u64, more: u64) {
        // The number must be odd: even numbers say that the shard has given out no id of its own.
        self.ids_reserved = self.ids_reserved.max(known).saturating_add(more) | 1;
    }

    /// The two numbers of the state, for the records of directories before format 6 and for tests.
    #[doc(hidden)]
    #[must_use]
    pub const fn from_parts(ids_reserved: u64, own_numbers: u64) -> Self {
        Self { ids_reserved, own_numbers: OwnNumbers(own_numbers) }
    }

    /// The numbers of [`from_parts`](Self::from_parts).
    #[doc(hidden)]
    #[must_use]
    pub const fn parts(self) -> (u64, u64) {
        (self.ids_reserved, self.own_numbers.0)
    }
}

/// Bitmap of the lengths, in binary digits, of the numbers that owners used as keys. A generated id with a length that is absent needs no
/// look-up.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct OwnNumbers(u64);

impl OwnNumbers {
    /// Whether this number may be a key of an owner.
    pub(crate) fn has(self, number: u64) -> bool {
        self.0 & Self::length(number) != 0
    }

    /// Adds a number.
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
        // A multiple of 2^20 would say that ids of an import are laid aside and may be given to its tasks.
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

//! A setting of a queue: calls set its value. A call may take effect at any moment between its begin and its answer;
//! without an answer, at any moment until it is settled.

use super::call::CallId;

/// The number of replaced values that are remembered. No call stays open while its queue gets more new values than
/// this.
const GONE_KEPT: usize = 64;

/// One setting: the values that it may have, and the values that it may have had.
#[derive(Clone, Debug)]
pub(super) struct Register<T> {
    entries: Vec<Entry<T>>,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    value: T,
    by: Option<CallId>,
    /// The stamp of the call.
    called: u64,
    /// The stamp at which it is certain that the call has set the value, or never will. `u64::MAX` while the call may
    /// still take effect.
    set: u64,
    /// The stamp at which another value has certainly replaced this one. `u64::MAX` while it may be the present value.
    gone: u64,
}

impl<T: Copy + Default> Default for Register<T> {
    fn default() -> Self {
        let first = Entry { value: T::default(), by: None, called: 0, set: 0, gone: u64::MAX };
        Self { entries: vec![first] }
    }
}

impl<T: Copy + Default> Register<T> {
    pub(super) fn called(&mut self, by: CallId, value: T, stamp: u64) {
        self.entries.push(Entry { value, by: Some(by), called: stamp, set: u64::MAX, gone: u64::MAX });
    }

    /// The value was set, so every value that was set before the call is replaced.
    pub(super) fn answered(&mut self, by: CallId, stamp: u64) {
        let Some(called) = self.settled(by, stamp) else { return };
        for entry in self.entries.iter_mut().filter(|entry| entry.set < called) {
            entry.gone = entry.gone.min(stamp);
        }
        // No check asks for values that were replaced long ago. A call that was open at that time may still ask for
        // recent ones.
        let mut gone: Vec<u64> =
            self.entries.iter().map(|entry| entry.gone).filter(|gone| *gone < u64::MAX).collect();
        if gone.len() > 2 * GONE_KEPT {
            gone.sort_unstable();
            let oldest = gone[gone.len() - GONE_KEPT];
            self.entries.retain(|entry| entry.gone >= oldest);
        }
    }

    /// Corrects the value of a call, because more is known of it now.
    pub(super) fn amend(&mut self, by: CallId, change: impl FnOnce(&mut T)) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.by == Some(by)) {
            change(&mut entry.value);
        }
    }

    pub(super) fn refused(&mut self, by: CallId) {
        self.entries.retain(|entry| entry.by != Some(by));
    }

    /// The call has set its value before now, or never will. Returns the stamp of the call; `None` if the register does not have the call.
    pub(super) fn settled(&mut self, by: CallId, stamp: u64) -> Option<u64> {
        let entry = self.entries.iter_mut().find(|entry| entry.by == Some(by))?;
        entry.set = entry.set.min(stamp);
        Some(entry.called)
    }

    /// The server went down: each open call has set its value before now, or never will.
    pub(super) fn down(&mut self, stamp: u64) {
        self.entries.iter_mut().for_each(|entry| entry.set = entry.set.min(stamp));
    }

    /// The values that the setting may have had at any stamp since `from`.
    pub(super) fn since(&self, from: u64) -> impl Iterator<Item = T> {
        self.entries.iter().filter(move |entry| entry.gone >= from).map(|entry| entry.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn since(register: &Register<u8>, from: u64) -> Vec<u8> {
        register.since(from).collect()
    }

    #[test]
    fn a_value_stands_until_another_is_answered_that_was_called_after_it() {
        let mut register = Register::default();
        register.called(CallId(1), 5, 10);
        assert_eq!(since(&register, 11), [0, 5]);
        register.answered(CallId(1), 20);
        assert_eq!((since(&register, 15), since(&register, 21)), (vec![0, 5], vec![5]));
        // Two calls ran at the same time, so either may be the last.
        register.called(CallId(2), 6, 30);
        register.called(CallId(3), 7, 31);
        register.answered(CallId(3), 40);
        register.answered(CallId(2), 41);
        assert_eq!(since(&register, 50), [6, 7]);
        register.called(CallId(4), 8, 60);
        register.refused(CallId(4));
        assert_eq!(since(&register, 61), [6, 7]);
    }

    #[test]
    fn a_lost_call_may_come_late_and_a_crash_ends_that() {
        let mut register = Register::default();
        register.called(CallId(1), 5, 10);
        register.called(CallId(2), 6, 20);
        register.answered(CallId(2), 30);
        assert_eq!(since(&register, 31), [5, 6], "5 may come after 6");
        register.down(40);
        register.called(CallId(3), 7, 50);
        register.answered(CallId(3), 60);
        assert_eq!(since(&register, 61), [7]);
    }
}

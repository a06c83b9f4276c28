//! [`Tasks`]: the few tasks of a worked table, by name.

use tickwheel_core::{Handle, Refused, TimerQueue};

/// The tasks of the tables: name and deadline. The chapters share them, so that their tables can be compared.
pub const TASKS: [(char, u64); 5] = [('a', 7), ('b', 2), ('c', 5), ('d', 2), ('e', 9)];

/// The tasks that were inserted into a queue, with their handles.
#[derive(Default)]
pub struct Tasks {
    known: Vec<(char, u64, Handle)>,
}

impl Tasks {
    /// Inserts a task into the queue.
    ///
    /// # Errors
    /// The errors of the queue.
    pub fn insert(
        &mut self,
        queue: &mut impl TimerQueue<char>,
        (name, due): (char, u64),
    ) -> Result<Handle, Refused<char>> {
        let handle = queue.insert(due, name)?;
        self.known.push((name, due, handle));
        Ok(handle)
    }

    /// Cancels a task by its name.
    pub fn cancel(&mut self, queue: &mut impl TimerQueue<char>, name: char) {
        let known = self.known.iter().find(|(other, ..)| *other == name);
        let cancelled = known.and_then(|&(.., handle)| queue.cancel(handle));
        assert_eq!(cancelled, Some(name), "the table cancels a task that is pending");
    }

    /// The handle of a task.
    #[must_use]
    pub fn handle(&self, name: char) -> Option<Handle> {
        self.known.iter().find(|(other, ..)| *other == name).map(|&(.., handle)| handle)
    }

    /// The tasks in `count` cells. `place` asks the queue in which cell a task is; a task that is in none has fired or was cancelled.
    pub fn cells(&self, count: usize, place: impl Fn(Handle) -> Option<usize>) -> Vec<String> {
        self.cells_with(count, |handle| Some((place(handle)?, String::new())))
    }

    /// As [`cells`](Self::cells); `place` also says what to write behind a task.
    pub fn cells_with(&self, count: usize, place: impl Fn(Handle) -> Option<(usize, String)>) -> Vec<String> {
        let mut cells = vec![Vec::new(); count];
        for &(name, due, handle) in &self.known {
            if let Some((cell, note)) = place(handle) {
                cells[cell].push(format!("{name}{due}{note}"));
            }
        }
        cells.into_iter().map(|names| names.join(" ")).collect()
    }
}

/// Advances the queue and says what fired, in order.
pub fn fired(queue: &mut impl TimerQueue<char>, now: u64) -> String {
    let mut names = Vec::new();
    queue.advance(now, &mut |_, name| names.push(name.to_string()));
    names.join(" ")
}

//! [`Judge`]: knows what must never be.

use std::collections::{BTreeMap, BTreeSet};

/// Reads the lines of all processes on one database, and compares them with the tasks that are there at the end.
///
/// - An acknowledged put is found, or was delivered, or a cancel of it was tried.
/// - No delivery is before the due time, by the clock that the database has too.
/// - After an acknowledged cancel or ack, no lease that begins delivers the task.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    tried: BTreeSet<String>,
    due: BTreeMap<String, i64>,
    cancelling: BTreeSet<String>,
    /// When an ack or a cancel was acknowledged (ns).
    ended: BTreeMap<String, i64>,
    got: BTreeMap<String, u64>,
    deliveries: Vec<(String, i64)>,
    wrong: Vec<String>,
}

impl Judge {
    /// Takes the lines of one process.
    pub(crate) fn read(&mut self, lines: &[String]) {
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |index: usize| -> i64 { words[index].parse().expect("a number") };
            let key = || words[1].to_owned();
            match words[0] {
                "try" => drop(self.tried.insert(key())),
                "put" => drop(self.due.insert(key(), number(2))),
                "cancelling" => drop(self.cancelling.insert(key())),
                "cancel" | "ack" => drop(self.ended.insert(key(), number(2))),
                "got" => {
                    let (begin, due, wall) = (number(2), number(3), number(4));
                    *self.got.entry(key()).or_default() += 1;
                    self.deliveries.push((key(), begin));
                    if wall < due {
                        self.wrong.push(format!("{line}: early by {} ms", due - wall));
                    }
                }
                "lost" => self.wrong.push(line.clone()),
                _ => {}
            }
        }
    }

    /// The number of acknowledged puts.
    pub(crate) fn puts(&self) -> usize {
        self.due.len()
    }

    /// Compares everything with the keys of the tasks that are there. Call it after the lines of all processes were read.
    #[track_caller]
    pub(crate) fn judge(mut self, there: &BTreeSet<String>) -> String {
        for (key, begin) in &self.deliveries {
            if self.ended.get(key).is_some_and(|ended| begin > ended) {
                self.wrong.push(format!("{key} was delivered after its end was acknowledged"));
            }
            if !self.tried.contains(key) {
                self.wrong.push(format!("{key} was delivered, and never put"));
            }
        }
        for key in self.due.keys() {
            if !there.contains(key) && !self.got.contains_key(key) && !self.cancelling.contains(key) {
                self.wrong.push(format!("{key} was acknowledged, and is lost"));
            }
        }
        for key in there {
            if self.ended.contains_key(key) {
                self.wrong.push(format!("{key} is there after its end was acknowledged"));
            }
        }
        let again = self.got.values().filter(|&&times| times > 1).count();
        assert!(self.wrong.is_empty(), "{} wrong: {:#?}", self.wrong.len(), self.wrong);
        format!(
            "{} puts acknowledged, {} without an answer, {} delivered, {again} of them again, {} ended, {} left",
            self.due.len(),
            self.tried.len() - self.due.len(),
            self.got.len(),
            self.ended.len(),
            there.len()
        )
    }
}

//! Lines that wait to be written: a bounded list. A full list leaves out the least important lines, and counts them.

use std::collections::VecDeque;

/// Memory of a line besides its text (bytes).
const OF_EACH: usize = 64;

/// The importance of a line. Less important lines are left out, so that more important ones fit.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Importance {
    /// Lines for each call, and lines below level `info`.
    Low,
    /// Events at level `info` and above.
    Usual,
    /// The audit, and panics.
    High,
}

/// Counts of lines that were left out.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Lost {
    pub(super) audit: u64,
    pub(super) others: u64,
}

impl Lost {
    pub(super) fn is_none(self) -> bool {
        self == Self::default()
    }

    fn count(&mut self, importance: Importance) {
        match importance {
            Importance::High => self.audit += 1,
            Importance::Usual | Importance::Low => self.others += 1,
        }
    }
}

impl std::ops::AddAssign for Lost {
    fn add_assign(&mut self, other: Self) {
        self.audit += other.audit;
        self.others += other.others;
    }
}

/// Lines that wait to be written, in the order in which they came.
#[derive(Debug)]
pub(super) struct Backlog {
    bytes_max: usize,
    bytes: usize,
    came: u64,
    /// The lines by importance, each with its number in the order of arrival.
    lines: [VecDeque<(u64, Vec<u8>)>; 3],
    lost: Lost,
}

/// The lines to write next, as one text.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) text: Vec<u8>,
    /// The number of lines in the text.
    pub(super) lines: Lost,
    /// The number of lines that were left out since the previous batch.
    pub(super) lost: Lost,
}

const LEAST_FIRST: [Importance; 3] = [Importance::Low, Importance::Usual, Importance::High];

impl Backlog {
    /// A list that keeps at most `bytes_max` bytes of lines.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: 0, came: 0, lines: Default::default(), lost: Lost::default() }
    }

    /// Takes a line. If it does not fit, waiting lines of less importance are left out, the newest first. If that frees too little
    /// memory, `line` itself is left out.
    pub(super) fn push(&mut self, importance: Importance, line: Vec<u8>) {
        let bytes = line.len() + OF_EACH;
        let less = LEAST_FIRST.into_iter().take_while(|less| *less != importance);
        for less in less {
            while self.bytes + bytes > self.bytes_max
                && let Some((_, left_out)) = self.lines[less as usize].pop_back()
            {
                self.bytes -= left_out.len() + OF_EACH;
                self.lost.count(less);
            }
        }
        if self.bytes + bytes > self.bytes_max {
            self.lost.count(importance);
        } else {
            self.keep(importance, line);
        }
    }

    /// Takes a line even if the list is full.
    pub(super) fn keep(&mut self, importance: Importance, line: Vec<u8>) {
        self.bytes += line.len() + OF_EACH;
        self.lines[importance as usize].push_back((self.came, line));
        self.came += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.iter().all(VecDeque::is_empty)
    }

    /// Takes all lines out, with the counts of lines left out.
    pub(super) fn take(&mut self) -> Batch {
        let mut lines = Lost::default();
        let mut all = Vec::new();
        for importance in LEAST_FIRST {
            for line in self.lines[importance as usize].drain(..) {
                lines.count(importance);
                all.push(line);
            }
        }
        all.sort_unstable_by_key(|(came, _)| *came);
        let text = all.into_iter().flat_map(|(_, line)| line).collect();
        self.bytes = 0;
        Batch { text, lines, lost: std::mem::take(&mut self.lost) }
    }

    /// Counts lines that could not be written.
    pub(super) fn count_lost(&mut self, lost: Lost) {
        self.lost += lost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str) -> Vec<u8> {
        format!("{name:.<9}\n").into_bytes()
    }

    /// A backlog with space for `lines` lines of 10 bytes.
    fn backlog(lines: usize) -> Backlog {
        Backlog::new(lines * (10 + OF_EACH))
    }

    fn text(batch: &Batch) -> String {
        String::from_utf8_lossy(&batch.text)
            .replace(['.', '\n'], " ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn lines_come_out_in_the_order_in_which_they_came() {
        let mut backlog = backlog(3);
        backlog.push(Importance::Low, line("a"));
        backlog.push(Importance::High, line("b"));
        backlog.push(Importance::Usual, line("c"));
        let batch = backlog.take();
        assert_eq!((text(&batch).as_str(), batch.lost), ("a b c", Lost::default()));
        assert!(backlog.is_empty() && backlog.take().text.is_empty());
    }

    #[test]
    fn less_important_lines_are_left_out_first_and_counted() {
        let mut backlog = backlog(3);
        backlog.push(Importance::Usual, line("u1"));
        backlog.push(Importance::Low, line("l1"));
        backlog.push(Importance::Low, line("l2"));
        backlog.push(Importance::Low, line("l3"));
        backlog.push(Importance::High, line("h1"));
        backlog.push(Importance::Usual, line("u2"));
        backlog.push(Importance::Usual, line("u3"));
        backlog.push(Importance::High, line("h2"));
        let batch = backlog.take();
        assert_eq!(text(&batch), "u1 h1 h2");
        assert_eq!(batch.lost, Lost { audit: 0, others: 5 });
        assert_eq!(batch.lines, Lost { audit: 2, others: 1 });
        (0..4).for_each(|_| backlog.push(Importance::High, line("h")));
        assert_eq!(backlog.take().lost, Lost { audit: 1, others: 0 }, "full of the most important ones");
    }

    #[test]
    fn memory_is_bounded_and_each_line_is_written_or_counted() {
        let mut backlog = Backlog::new(1_000);
        let mut state = 7_u64;
        for n in 0..10_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let importance = LEAST_FIRST[usize::try_from(state >> 62).expect("small") % 3];
            backlog.push(importance, vec![b'x'; usize::try_from(state >> 56).expect("small")]);
            assert!(backlog.bytes <= 1_000, "{n}");
        }
        let Batch { lines, lost, .. } = backlog.take();
        assert_eq!(lines.audit + lines.others + lost.audit + lost.others, 10_000);
        assert_eq!(backlog.bytes, 0);
    }
}

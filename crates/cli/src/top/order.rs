//! The order of the queues.

use std::cmp::Ordering;

use clap::ValueEnum;
use tickwheel_api::QueueCounts;

/// The column that queues are sorted by.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Column {
    Name,
    Scheduled,
    Ready,
    Leased,
    Dead,
}

/// The sort order of queues. Counts are sorted from the largest, names from A. `reversed` inverts either order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Order {
    pub(crate) column: Column,
    pub(crate) reversed: bool,
}

impl Column {
    /// The columns from left to right.
    pub(crate) const ALL: [Self; 5] = [Self::Name, Self::Scheduled, Self::Ready, Self::Leased, Self::Dead];

    /// The title of the column.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Name => "QUEUE",
            Self::Scheduled => "SCHEDULED",
            Self::Ready => "READY",
            Self::Leased => "LEASED",
            Self::Dead => "DEAD",
        }
    }

    fn compare(self, a: &QueueCounts, b: &QueueCounts) -> Ordering {
        match self {
            Self::Name => a.queue.cmp(&b.queue),
            Self::Scheduled => b.scheduled.cmp(&a.scheduled),
            Self::Ready => b.ready.cmp(&a.ready),
            Self::Leased => b.leased.cmp(&a.leased),
            Self::Dead => b.dead.cmp(&a.dead),
        }
    }

    fn moved(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|column| *column == self).unwrap_or_default();
        Self::ALL[(at + by) % Self::ALL.len()]
    }
}

impl Order {
    /// Sorts by the next column to the right, in that column's usual direction. The first column comes after the
    /// last.
    pub(crate) fn right(self) -> Self {
        Self { column: self.column.moved(1), reversed: false }
    }

    /// Sorts by the next column to the left, in that column's usual direction. The last column comes after the
    /// first.
    pub(crate) fn left(self) -> Self {
        Self { column: self.column.moved(Column::ALL.len() - 1), reversed: false }
    }

    /// Sorts by the same column, in the other direction.
    pub(crate) fn turned(self) -> Self {
        Self { reversed: !self.reversed, ..self }
    }

    /// The sign in the head of the column. It shows whether small or large values come first.
    pub(crate) fn sign(self) -> char {
        if (self.column == Column::Name) == self.reversed { '▼' } else { '▲' }
    }

    /// Sorts the queues. Queues with the same count are in the order of their names, in either direction.
    pub(crate) fn sort(self, queues: &mut [QueueCounts]) {
        queues.sort_unstable_by(|a, b| {
            let order = self.column.compare(a, b);
            let order = if self.reversed { order.reverse() } else { order };
            order.then_with(|| a.queue.cmp(&b.queue))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str, [scheduled, ready, leased, dead]: [u64; 4]) -> QueueCounts {
        QueueCounts { queue: name.to_owned(), scheduled, ready, leased, dead, paused: false, draining: false }
    }

    fn sorted(column: Column, reversed: bool) -> String {
        let mut queues = [
            queue("c", [1, 4, 2, 0]),
            queue("a", [3, 1, 2, 0]),
            queue("b", [2, 4, 9, 0]),
            queue("d", [0, 0, 0, 1]),
        ];
        Order { column, reversed }.sort(&mut queues);
        queues.iter().map(|counts| counts.queue.as_str()).collect()
    }

    #[test]
    fn the_most_come_first_and_names_from_a() {
        for (column, usual, reversed) in [
            (Column::Name, "abcd", "dcba"),
            (Column::Scheduled, "abcd", "dcba"),
            (Column::Ready, "bcad", "dabc"),
            (Column::Leased, "bacd", "dacb"),
            (Column::Dead, "dabc", "abcd"),
        ] {
            assert_eq!(
                (sorted(column, false).as_str(), sorted(column, true).as_str()),
                (usual, reversed),
                "{column:?}"
            );
        }
    }

    #[test]
    fn columns_go_round_in_both_directions() {
        let start = Order { column: Column::Dead, reversed: true };
        assert_eq!(start.right(), Order { column: Column::Name, reversed: false });
        assert_eq!(start.right().left(), Order { column: Column::Dead, reversed: false });
        let mut order = start;
        for column in Column::ALL {
            order = order.right();
            assert_eq!(order.column, column);
        }
        assert_eq!(start.turned().turned(), start);
    }

    #[test]
    fn the_sign_says_what_comes_first() {
        let sign = |column, reversed| Order { column, reversed }.sign();
        assert_eq!([sign(Column::Ready, false), sign(Column::Name, true)], ['▼'; 2], "the largest first");
        assert_eq!([sign(Column::Ready, true), sign(Column::Name, false)], ['▲'; 2], "the smallest first");
    }
}

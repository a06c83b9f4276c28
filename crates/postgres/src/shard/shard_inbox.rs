//! [`ShardInbox`]: the rows of the inbox that the owner of one shard has under way.

use std::collections::BTreeSet;

use tickwheel_store::InboxRow;

/// The rows of one shard under one ownership.
#[derive(Debug, Default)]
pub(crate) struct ShardInbox {
    /// Rows that the queue has not taken out yet.
    came: Vec<InboxRow>,
    /// Rows that came and have not ended.
    under_way: BTreeSet<u64>,
    /// Whether the last read left rows behind.
    more: bool,
}

impl ShardInbox {
    /// Takes in the rows of a read. Rows that are under way are left out.
    pub(crate) fn come(&mut self, rows: impl IntoIterator<Item = InboxRow>, more: bool) {
        for row in rows {
            if self.under_way.insert(row.id) {
                self.came.push(row);
            }
        }
        self.more = more;
    }

    /// Returns the rows that have come, for the queue.
    pub(crate) fn take(&mut self) -> Vec<InboxRow> {
        std::mem::take(&mut self.came)
    }

    /// Notes that the row comes no more: the commit has deleted it, or it was refused.
    pub(crate) fn ended(&mut self, row: u64) {
        self.under_way.remove(&row);
    }

    /// Notes that the row may come again.
    pub(crate) fn later(&mut self, row: u64) {
        self.under_way.remove(&row);
        self.more = false;
    }

    /// Returns whether the next read is needed at once; `None`: rows are under way, and no read is wanted.
    pub(crate) fn next_read(&self) -> Option<bool> {
        self.under_way.is_empty().then_some(self.more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(ids: &[u64]) -> Vec<InboxRow> {
        ids.iter().map(|id| InboxRow { id: *id, asked: Err("a test".to_owned()) }).collect()
    }

    fn taken_out(inbox: &mut ShardInbox) -> Vec<u64> {
        inbox.take().iter().map(|row| row.id).collect()
    }

    #[test]
    fn the_next_read_waits_for_the_end_of_all_rows() {
        let mut inbox = ShardInbox::default();
        assert_eq!(inbox.next_read(), Some(false));
        inbox.come(rows(&[3, 5]), true);
        assert_eq!((taken_out(&mut inbox), inbox.next_read()), (vec![3, 5], None));
        inbox.ended(3);
        assert_eq!(inbox.next_read(), None);
        inbox.ended(5);
        assert_eq!((taken_out(&mut inbox), inbox.next_read()), (vec![], Some(true)));
    }

    #[test]
    fn a_row_is_handed_out_once_until_it_may_come_again() {
        let mut inbox = ShardInbox::default();
        inbox.come(rows(&[1, 2]), false);
        inbox.come(rows(&[1, 2, 3]), false);
        assert_eq!(taken_out(&mut inbox), [1, 2, 3]);
        inbox.ended(1);
        inbox.later(2);
        inbox.ended(3);
        inbox.come(rows(&[2]), true);
        assert_eq!((taken_out(&mut inbox), inbox.next_read()), (vec![2], None));
        inbox.later(2);
        assert_eq!(inbox.next_read(), Some(false), "what has to wait is not read again at once");
    }
}

//! The choices of a person: which part of the queues the screen shows, and in which order.

use super::key::Key;
use super::order::Order;

/// The order of the queues, the part of them that is shown, and whether the keys are explained.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct View {
    pub(crate) order: Order,
    pub(crate) explains_keys: bool,
    /// The index of the queue in the top row, counted from 0. It may be too large after queues were removed; see [`first`](Self::first).
    first: usize,
}

/// The action that a key asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Draw the view.
    Draw,
    /// Sort the queues, and draw.
    Sort,
    /// Clear the screen, because another program may have written on it, and draw it again.
    Clear,
    /// Stop until a shell continues the process.
    Suspend,
    /// End.
    Leave,
}

/// The list of queues: their number, and the number of rows that the screen has for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub(crate) queues: usize,
    pub(crate) rows: usize,
}

impl Extent {
    /// The index of the queue in the top row when the last queue is in the bottom row.
    fn last(self) -> usize {
        self.queues.saturating_sub(self.rows)
    }
}

impl View {
    pub(crate) fn new(order: Order) -> Self {
        Self { order, explains_keys: false, first: 0 }
    }

    /// The index of the queue in the top row, counted from 0. It is limited so that the last page is full if there are enough queues.
    pub(crate) fn first(&self, extent: Extent) -> usize {
        self.first.min(extent.last())
    }

    /// Handles a key that was pressed.
    pub(crate) fn press(&mut self, key: Key, extent: Extent) -> Step {
        match key {
            Key::Char('q' | 'Q' | '\u{3}') => return Step::Leave,
            Key::Char('\u{1a}') => return Step::Suspend,
            Key::Char('\u{c}') => return Step::Clear,
            _ if self.explains_keys => self.explains_keys = false,
            Key::Escape => return Step::Leave,
            Key::Char('?' | 'h') => self.explains_keys = true,
            Key::Char('s' | '>') => return self.sort(self.order.right()),
            Key::Char('<') => return self.sort(self.order.left()),
            Key::Char('r') => return self.sort(self.order.turned()),
            key => self.scroll(key, extent),
        }
        Step::Draw
    }

    /// Sorts by another order and scrolls to the top, because a person wants to see the first queues of the new order.
    fn sort(&mut self, order: Order) -> Step {
        (self.order, self.first) = (order, 0);
        Step::Sort
    }

    fn scroll(&mut self, key: Key, extent: Extent) {
        let first = self.first(extent);
        let page = extent.rows.max(1);
        let to = match key {
            Key::Up | Key::Char('k') => first.saturating_sub(1),
            Key::Down | Key::Char('j') => first + 1,
            Key::PageUp => first.saturating_sub(page),
            Key::PageDown => first + page,
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => extent.last(),
            Key::Char(_) | Key::Escape => first,
        };
        self.first = to.min(extent.last());
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::Column;
    use super::*;

    const EXTENT: Extent = Extent { queues: 25, rows: 10 };

    fn view() -> View {
        View::new(Order { column: Column::Ready, reversed: false })
    }

    #[test]
    fn the_list_scrolls_and_ends_at_both_ends() {
        let mut view = view();
        let mut at = |key| {
            assert_eq!(view.press(key, EXTENT), Step::Draw);
            view.first(EXTENT)
        };
        assert_eq!([at(Key::Up), at(Key::PageUp), at(Key::Home)], [0; 3], "it ends at the top");
        assert_eq!([at(Key::Down), at(Key::Char('j'))], [1, 2]);
        assert_eq!([at(Key::Up), at(Key::Char('k'))], [1, 0]);
        assert_eq!(
            [at(Key::PageDown), at(Key::PageDown), at(Key::PageDown)],
            [10, 15, 15],
            "the last page is full"
        );
        assert_eq!([at(Key::Down), at(Key::PageUp)], [15, 5]);
        assert_eq!([at(Key::End), at(Key::Home)], [15, 0]);
        assert_eq!([at(Key::Char('G')), at(Key::Char('x')), at(Key::Char('g'))], [15, 15, 0]);
    }

    #[test]
    fn a_list_that_shrinks_and_a_screen_that_grows_leave_no_empty_page() {
        let mut view = view();
        view.press(Key::End, EXTENT);
        assert_eq!(view.first(Extent { queues: 12, rows: 10 }), 2);
        assert_eq!(view.first(Extent { queues: 3, rows: 10 }), 0);
        assert_eq!(view.first(Extent { queues: 25, rows: 100 }), 0);
        view.press(Key::Up, Extent { queues: 12, rows: 10 });
        assert_eq!(view.first(EXTENT), 1, "a key goes on from what is seen");
        let none = Extent { queues: 0, rows: 0 };
        for key in [Key::Down, Key::PageDown, Key::End, Key::Up] {
            view.press(key, none);
            assert_eq!(view.first(none), 0);
        }
    }

    #[test]
    fn another_order_shows_its_top() {
        let mut view = view();
        for (key, column, reversed) in [
            ('s', Column::Leased, false),
            ('>', Column::Dead, false),
            ('r', Column::Dead, true),
            ('<', Column::Leased, false),
            ('r', Column::Leased, true),
            ('r', Column::Leased, false),
        ] {
            view.press(Key::End, EXTENT);
            assert_eq!(view.press(Key::Char(key), EXTENT), Step::Sort);
            assert_eq!((view.order, view.first(EXTENT)), (Order { column, reversed }, 0), "{key}");
        }
    }

    #[test]
    fn keys_that_leave() {
        for key in [Key::Char('q'), Key::Char('Q'), Key::Char('\u{3}'), Key::Escape] {
            assert_eq!(view().press(key, EXTENT), Step::Leave, "{key:?}");
        }
        assert_eq!(view().press(Key::Char('\u{1a}'), EXTENT), Step::Suspend);
        assert_eq!(view().press(Key::Char('\u{c}'), EXTENT), Step::Clear);
    }

    #[test]
    fn keys_are_explained_until_the_next_one() {
        for key in [Key::Escape, Key::Char('?'), Key::Char('s'), Key::Down] {
            let mut view = view();
            view.press(Key::Char('?'), EXTENT);
            assert!(view.explains_keys);
            assert_eq!(view.press(key, EXTENT), Step::Draw);
            assert_eq!(view, self::view(), "{key:?} only closes it");
        }
        let mut view = view();
        view.press(Key::Char('?'), EXTENT);
        assert_eq!(view.press(Key::Char('q'), EXTENT), Step::Leave);
    }
}

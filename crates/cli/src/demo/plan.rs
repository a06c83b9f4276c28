//! The planned events of each order.

use std::time::Duration;

/// A minute of the shop: 100 ms.
pub(super) const MINUTE: Duration = Duration::from_millis(100);
/// An order is closed after 30 minutes of the shop.
pub(super) const CLOSE_AFTER: Duration = Duration::from_secs(3);
/// Orders are placed during an hour of the shop.
pub(super) const OPEN_FOR: Duration = Duration::from_secs(6);
/// 2,000 orders in six seconds: a busy shop, and a load that a small disk carries.
pub(super) const ORDERS: usize = 2_000;

/// The customer's action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Payment {
    /// The time from the order to its payment.
    After(Duration),
    Never,
}

/// One order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Order {
    pub(super) number: usize,
    /// The instant at which it is placed, counted from the opening of the shop.
    pub(super) placed: Duration,
    pub(super) payment: Payment,
}

impl Order {
    /// The task's key.
    pub(super) fn key(&self) -> String {
        key(self.number)
    }
}

/// The key of an order's task.
pub(super) fn key(number: usize) -> String {
    format!("order:{number}")
}

/// The number of the order whose task has this key.
pub(super) fn number_of(key: &str) -> Option<usize> {
    key.strip_prefix("order:")?.parse().ok()
}

/// All orders, the same in every run. Of a hundred, 82 are paid in time, 8 too late and 10 never.
pub(super) fn orders() -> Vec<Order> {
    let mut chance = Chance(0x7469_636b);
    let step = OPEN_FOR / u32::try_from(ORDERS).expect("a few thousand");
    (0..ORDERS)
        .map(|number| {
            let placed = step * u32::try_from(number).expect("a few thousand");
            let payment = match chance.below(100) {
                0..82 => Payment::After(MINUTE + chance.within(CLOSE_AFTER - 6 * MINUTE)),
                82..90 => Payment::After(CLOSE_AFTER + 2 * MINUTE + chance.within(8 * MINUTE)),
                _ => Payment::Never,
            };
            Order { number, placed, payment }
        })
        .collect()
}

/// Pseudo-random numbers (splitmix64), the same in every run.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn within(&mut self, span: Duration) -> Duration {
        let ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX).max(1);
        Duration::from_millis(self.below(ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_are_paid_in_time_some_late_some_never() {
        let orders = orders();
        let count =
            |wanted: fn(&Payment) -> bool| orders.iter().filter(|order| wanted(&order.payment)).count();
        let in_time = count(|payment| matches!(payment, Payment::After(after) if *after < CLOSE_AFTER));
        let late = count(|payment| matches!(payment, Payment::After(after) if *after > CLOSE_AFTER));
        let never = count(|payment| *payment == Payment::Never);
        assert_eq!(in_time + late + never, ORDERS);
        assert!(in_time * 10 > ORDERS * 7, "{in_time}");
        assert!(late > 50 && never > 50, "{late} {never}");
        assert!(orders.iter().all(|order| number_of(&order.key()) == Some(order.number)));
    }
}

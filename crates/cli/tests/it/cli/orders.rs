//! A shop's orders through `replay`. The result is compared with a second computation, which works directly on the
//! rows, without the engine.
//!
//! The real orders are data and not part of the project; `TICKWHEEL_ORDERS_CSV` names their file. Generated orders of
//! the same form, with all edge cases, are always played.

use std::collections::BTreeMap;

use crate::cli::run::run;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const DAY: i64 = 24 * 60 * MINUTE;

/// One row; instants in ms since 1970.
struct Order {
    id: String,
    bought: i64,
    paid: Option<i64>,
    delivered: Option<i64>,
}

#[test]
fn real_orders() {
    let Some(file) = std::env::var_os("TICKWHEEL_ORDERS_CSV") else {
        tickwheel_testing::unset(
            "TICKWHEEL_ORDERS_CSV",
            "no real orders are played; generated ones are played all the same",
        );
        return;
    };
    let csv =
        std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("read {}: {error}", file.display()));
    let orders = rows(&csv);
    assert!(!orders.is_empty(), "{} has no orders", file.display());
    println!("{}", hold_against_replay(&orders));
}

#[test]
fn generated_orders_with_every_edge() {
    for seed in 1..=3 {
        let csv = generated(6_000, seed);
        let orders = rows(&csv);
        let on_edge = orders.iter().filter(|order| order.paid == Some(order.bought + 30 * MINUTE)).count();
        assert!(on_edge >= 100, "the edge is among them");
        println!("{}", hold_against_replay(&orders));
    }
}

/// Plays the orders and compares every delivery, in order. Returns a summary.
fn hold_against_replay(orders: &[Order]) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("operations.ndjson");
    std::fs::write(&file, operations(orders)).expect("write the operations");
    let ran = run(&["replay", file.to_str().expect("UTF-8")]);
    let expected = expected(orders);
    let got = ran.lines();
    for (number, (got, expected)) in got.iter().zip(&expected).enumerate() {
        assert_eq!(got, expected, "delivery {}", number + 1);
    }
    assert_eq!(got.len(), expected.len());
    format!("{} orders, {} deliveries, all as computed; {}", orders.len(), got.len(), ran.err.trim_end())
}

/// The order of the operations: by instant, then by row, then by column. The order of the puts decides between
/// deliveries at one instant.
type Place = (i64, usize, u8);

/// The expected deliveries: an order is closed unless it was paid between its purchase and the end of its 30 minutes.
fn expected(orders: &[Order]) -> Vec<String> {
    let mut deliveries: BTreeMap<(i64, Place), String> = BTreeMap::new();
    for (row, order) in orders.iter().enumerate() {
        let close_at = order.bought + 30 * MINUTE;
        if !order.paid.is_some_and(|paid| order.bought <= paid && paid < close_at) {
            deliveries.insert((close_at, (order.bought, row, 0)), delivery("close", order, close_at));
        }
        if let Some(delivered) = order.delivered {
            let confirm_at = delivered + 15 * DAY;
            deliveries.insert((confirm_at, (delivered, row, 2)), delivery("confirm", order, confirm_at));
        }
    }
    deliveries.into_values().collect()
}

fn delivery(queue: &str, order: &Order, at: i64) -> String {
    let (id, at) = (&order.id, rfc3339(at));
    format!(
        r#"{{"queue":"{queue}","key":"order:{id}","due_at":"{at}","fired_at":"{at}","payload":{{"order":"{id}"}}}}"#
    )
}

fn operations(orders: &[Order]) -> String {
    let mut lines: BTreeMap<Place, String> = BTreeMap::new();
    for (row, order) in orders.iter().enumerate() {
        let id = &order.id;
        let put = |at, queue, delay| {
            let at = rfc3339(at);
            format!(
                r#"{{"at":"{at}","op":"put","queue":"{queue}","key":"order:{id}","delay":"{delay}","payload":{{"order":"{id}"}}}}"#
            )
        };
        lines.insert((order.bought, row, 0), put(order.bought, "close", "30m"));
        if let Some(paid) = order.paid {
            let at = rfc3339(paid);
            let line = format!(r#"{{"at":"{at}","op":"cancel","queue":"close","key":"order:{id}"}}"#);
            lines.insert((paid, row, 1), line);
        }
        if let Some(delivered) = order.delivered {
            lines.insert((delivered, row, 2), put(delivered, "confirm", "15d"));
        }
    }
    lines.into_values().map(|line| line + "\n").collect()
}

/// The rows of a table with the columns id, status, bought, paid, delivered.
fn rows(csv: &str) -> Vec<Order> {
    let mut lines = csv.lines();
    let header = lines.next().expect("a header");
    assert_eq!(
        header,
        "order_id,order_status,order_purchase_timestamp,order_approved_at,order_delivered_customer_date"
    );
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let [id, _status, bought, paid, delivered] = fields[..] else { panic!("five fields: {line}") };
        Order {
            id: id.to_owned(),
            bought: instant(bought).expect("every order was bought"),
            paid: instant(paid),
            delivered: instant(delivered),
        }
    };
    lines.filter(|line| !line.is_empty()).map(row).collect()
}

/// `2017-10-02 10:56:33`, UTC, as an instant (ms since 1970).
fn instant(text: &str) -> Option<i64> {
    if text.is_empty() {
        return None;
    }
    let number = |from: usize, to: usize| text[from..to].parse::<i64>().expect("digits");
    let days = days_from_civil(number(0, 4), number(5, 7), number(8, 10));
    let seconds = number(11, 13) * 3_600 + number(14, 16) * 60 + number(17, 19);
    Some(days * DAY + seconds * SECOND)
}

fn rfc3339(ms: i64) -> String {
    let (day, rest) = (ms.div_euclid(DAY), ms.rem_euclid(DAY));
    let (year, month, date) = civil_from_days(day);
    let (hour, minute) = (rest / 3_600_000, rest / MINUTE % 60);
    let (second, milli) = (rest / SECOND % 60, rest % SECOND);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Days since 1970 of a date in the Gregorian calendar. Years count from March, so that the leap day is the last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    // The function searches and uses no formula, so it is the inverse of the function above by construction.
    let mut year = 1970 + days / 366;
    while days_from_civil(year + 1, 1, 1) <= days {
        year += 1;
    }
    let month = (1..=12)
        .rev()
        .find(|month| days_from_civil(year, *month, 1) <= days)
        .expect("January begins the year");
    (year, month, days - days_from_civil(year, month, 1) + 1)
}

/// Rows in random order. Most are paid in time, some late, some never, and each edge case occurs many times.
fn generated(count: usize, seed: u64) -> String {
    let mut state = seed;
    let mut below = |bound: i64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(state >> 33).expect("31 bits") % bound
    };
    let start = instant("2017-12-30 22:00:00").expect("a time");
    let edges = [30 * MINUTE, 30 * MINUTE - SECOND, 30 * MINUTE + SECOND, 0, -SECOND];
    let mut csv = String::from(
        "order_id,order_status,order_purchase_timestamp,order_approved_at,order_delivered_customer_date\n",
    );
    let spelt = |ms: Option<i64>| ms.map_or_else(String::new, |ms| rfc3339(ms)[..19].replace('T', " "));
    for number in 0..count {
        // Many orders fall into few seconds, so purchases, approvals and deliveries happen at the same time.
        let bought = start + below(4_000) * SECOND;
        let paid = match below(10) {
            0..5 => Some(bought + edges[number % edges.len()]),
            5..8 => Some(bought + below(30 * 60) * SECOND),
            8 => Some(bought + below(200_000) * SECOND),
            _ => None,
        };
        let delivered = (below(10) > 0).then(|| bought + DAY + below(40) * DAY);
        csv += &format!(
            "{seed}x{number},delivered,{},{},{}\n",
            spelt(Some(bought)),
            spelt(paid),
            spelt(delivered)
        );
    }
    csv
}

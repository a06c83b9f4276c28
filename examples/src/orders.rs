//! A shop's orders as operations on tasks.
//!
//! An unpaid order is closed 30 minutes after its purchase; a delivered order is confirmed 15 days after its delivery. So a
//! row of the shop's table becomes up to three operations:
//!
//! | when | operation |
//! |---|---|
//! | purchase | put `close`/`order:ID`, due in 30 minutes |
//! | approval of the payment | cancel `close`/`order:ID` |
//! | delivery to the customer | put `confirm`/`order:ID`, due in 15 days |

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use tickwheel_api::replay::{ReplayLine, ReplayOp};
use tickwheel_api::{Due, PayloadBody, time};

/// 30 minutes, ms.
const CLOSE_MS: u64 = 30 * 60_000;
/// 15 days, ms.
const CONFIRM_MS: u64 = 15 * 86_400_000;

/// The operations of a table of orders, in the order in which they happen.
///
/// The table is CSV with the columns `order_id`, `order_purchase_timestamp`, `order_approved_at` and
/// `order_delivered_customer_date`, in any place among others. Its times are `2017-10-02 10:56:33`, taken as UTC; an empty one
/// means that it never happened. Rows come in any order. Of operations at one instant, those of an earlier row come first, and
/// those of one row in the order of the table above.
///
/// # Errors
/// A column is missing, a row has another number of fields, a field is quoted, a time is none, or an order is there twice; the
/// error names the line.
///
/// ```
/// let csv = "order_id,order_purchase_timestamp,order_approved_at,order_delivered_customer_date\n\
///            7,2017-10-02 10:56:33,2017-10-02 11:07:15,\n";
/// let lines = tickwheel_examples::orders::operations(csv)?;
/// assert_eq!(lines.len(), 2);
/// let put = String::from_utf8(lines[0].to_json())?;
/// assert_eq!(
///     put,
///     r#"{"at":"2017-10-02T10:56:33.000Z","op":"put","queue":"close","key":"order:7","delay":"30m","payload":{"order":"7"}}"#
/// );
/// # Ok::<(), anyhow::Error>(())
/// ```
pub fn operations(csv: &str) -> Result<Vec<ReplayLine>> {
    let mut rows = csv.lines().enumerate().map(|(index, row)| (index + 1, row));
    let (_, header) = rows.next().context("the table is empty; its first line names the columns")?;
    let columns = Columns::find(header)?;
    let mut orders = BTreeSet::new();
    let mut operations = Vec::new();
    for (line, row) in rows {
        if row.trim().is_empty() {
            continue;
        }
        let (order, of_row) = columns.operations(row).with_context(|| format!("line {line}"))?;
        ensure!(
            orders.insert(order.to_owned()),
            "line {line}: order {order} is there twice; its key could not tell the two apart"
        );
        operations.extend(of_row);
    }
    // Stable: what happens at one instant keeps the order of the rows.
    operations.sort_by_key(|operation| operation.at_ms);
    Ok(operations)
}

/// Where the columns are.
struct Columns {
    count: usize,
    order: usize,
    purchase: usize,
    approval: usize,
    delivery: usize,
}

impl Columns {
    fn find(header: &str) -> Result<Self> {
        let names: Vec<&str> = header.trim_start_matches('\u{feff}').split(',').map(str::trim).collect();
        let place = |name: &str| {
            let found = names.iter().position(|found| *found == name);
            found.with_context(|| {
                format!("line 1: there is no column `{name}`; the columns are {}", names.join(", "))
            })
        };
        Ok(Self {
            count: names.len(),
            order: place("order_id")?,
            purchase: place("order_purchase_timestamp")?,
            approval: place("order_approved_at")?,
            delivery: place("order_delivered_customer_date")?,
        })
    }

    fn operations<'a>(&self, row: &'a str) -> Result<(&'a str, Vec<ReplayLine>)> {
        if row.contains('"') {
            bail!("a field is quoted; ids and times need no quotes");
        }
        let fields: Vec<&str> = row.split(',').map(str::trim).collect();
        ensure!(
            fields.len() == self.count,
            "{} fields, not {} as in the first line",
            fields.len(),
            self.count
        );
        let order = fields[self.order];
        ensure!(!order.is_empty(), "the order has no id");
        let operation = |at_ms, queue: &str, op| ReplayLine {
            at_ms,
            queue: queue.to_owned(),
            key: format!("order:{order}"),
            op,
        };
        let put = |due_ms| ReplayOp::Put {
            due: Due::After(due_ms),
            payload: PayloadBody::json(format!("{{\"order\":\"{order}\"}}").into_bytes()),
        };
        let purchase = instant(fields[self.purchase])?.context("the order has no time of purchase")?;
        let mut operations = vec![operation(purchase, "close", put(CLOSE_MS))];
        if let Some(approval) = instant(fields[self.approval])? {
            operations.push(operation(approval, "close", ReplayOp::Cancel));
        }
        if let Some(delivery) = instant(fields[self.delivery])? {
            operations.push(operation(delivery, "confirm", put(CONFIRM_MS)));
        }
        Ok((order, operations))
    }
}

/// A time of the table as ms since 1970; `None` if the field is empty.
fn instant(field: &str) -> Result<Option<i64>> {
    if field.is_empty() {
        return Ok(None);
    }
    match field.split_once(' ') {
        Some((day, time_of_day)) => Ok(Some(time::parse(&format!("{day}T{time_of_day}Z"))?)),
        None => bail!("`{field}` is not a time such as 2017-10-02 10:56:33"),
    }
}

//! The tables of a page, made from the figures so that none is copied by hand.

use std::fmt::Write as _;

use anyhow::{Context, ensure};

use crate::figures::{Figure, Figures};
use crate::page::{Page, Table};

/// Where the tables stand in the page.
const BEGIN: &str = "<!-- tables: made by `tickwheel-bench table`, not by hand -->";
const END: &str = "<!-- end of tables -->";

/// The tables of these pages, in Markdown. Medians; a ratio with its least and greatest over the rounds.
pub(crate) fn markdown(figures: &Figures, pages: &[Page]) -> String {
    let mut text = String::new();
    for page in pages {
        for table in page.tables.iter().filter(|table| !figures.sizes(table.workload).is_empty()) {
            write_table(&mut text, figures, page, table);
        }
    }
    text
}

fn write_table(text: &mut String, figures: &Figures, page: &Page, table: &Table) {
    let sizes = figures.sizes(table.workload);
    let columns: Vec<(u64, &str, &str)> = sizes
        .iter()
        .flat_map(|&n| table.metrics.iter().map(move |&(heading, metric)| (n, heading, metric)))
        .collect();
    let _ = writeln!(text, "### {}\n", table.title);
    let heading =
        |(n, heading, _): &(u64, &str, &str)| format!(" {} {heading}", size(*n)).trim_end().to_owned();
    let headings: Vec<String> = columns.iter().map(heading).collect();
    let _ = writeln!(text, "| |{} |\n|---|{}", headings.join(" |"), "---:|".repeat(columns.len()));
    for row in page.rows {
        let cells: Vec<String> = columns
            .iter()
            .map(|&(n, _, metric)| {
                figures.get(row, table.workload, n, metric).map_or(String::new(), |cell| short(cell.median))
            })
            .collect();
        write_row(text, row, &cells);
    }
    for (ours, divisor) in page.ratios {
        let cells: Vec<String> = columns
            .iter()
            .map(|&(n, _, metric)| {
                let ratio = figures.get(ours, table.workload, n, &format!("{metric}/{divisor}"));
                ratio.map_or(String::new(), spread)
            })
            .collect();
        write_row(text, &format!("*{ours} / {}*", divisor.replace('-', " ")), &cells);
    }
    text.push('\n');
}

/// A row in which something stands.
fn write_row(text: &mut String, name: &str, cells: &[String]) {
    if cells.iter().any(|cell| !cell.is_empty()) {
        let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    }
}

/// The median with the least and the greatest, if there was more than one round.
fn spread(figure: &Figure) -> String {
    let [median, min, max] = [figure.median, figure.min, figure.max].map(short);
    if figure.min == figure.max { median } else { format!("{median} ({min}..{max})") }
}

/// Three digits, as far as they mean something.
fn short(value: f64) -> String {
    match value.abs() {
        ..9.995 => format!("{value:.2}"),
        ..99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// 10,000,000 as 1e7.
pub(crate) fn size(n: u64) -> String {
    let zeroes = n.to_string().bytes().rev().take_while(|&digit| digit == b'0').count() as u32;
    if n == 0 || zeroes < 3 { n.to_string() } else { format!("{}e{zeroes}", n / 10_u64.pow(zeroes)) }
}

/// The page with new tables in place of the old ones.
pub(crate) fn put_into(page: &str, tables: &str) -> anyhow::Result<String> {
    let (before, rest) = page.split_once(BEGIN).with_context(|| format!("find the line {BEGIN}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("find the line {END}"))?;
    ensure!(!after.contains(BEGIN), "the page has two places for the tables");
    Ok(format!("{before}{BEGIN}\n\n{tables}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PAGES;
    use crate::report::Report;

    #[test]
    fn a_table_has_a_row_for_each_and_the_ratios_below() {
        let mut report = Report::default();
        for (who, n, value) in [
            ("wheel", 10_000, 8.5),
            ("wheel", 1_000_000, 40.0),
            ("slab", 10_000, 3.0),
            ("btree", 1_000_000, 1_010.0),
        ] {
            report.add(who, "w1", n, "pair_ns", value);
        }
        for ratio in [0.25, 0.24, 0.5] {
            report.add("wheel", "w1", 10_000, "pair_ns/best-peer", ratio);
        }
        report.add("wheel", "w1", 10_000, "pair_ns/slab", 2.875);
        let figures = Figures::read(&report.csv()).expect("its own lines");
        let expected = "### W1, cancel one and start one: ns for each pair\n\n\
            | | 1e4 | 1e6 |\n|---|---:|---:|\n\
            | wheel | 8.50 | 40.0 |\n\
            | btree |  | 1010 |\n\
            | slab | 3.00 |  |\n\
            | *wheel / best peer* | 0.25 (0.24..0.50) |  |\n\
            | *wheel / slab* | 2.88 |  |\n\n";
        assert_eq!(markdown(&figures, &PAGES), expected);
    }

    #[test]
    fn the_columns_of_a_timer_are_not_those_of_a_wheel() {
        let mut report = Report::default();
        report.add("timer", "idle", 1_000, "wakes", 0.5);
        report.add("hhwt", "idle", 1_000, "wakes", 4.0);
        report.add("timer", "idle", 1_000, "wakes/hhwt", 0.125);
        let tables = markdown(&Figures::read(&report.csv()).expect("its own lines"), &PAGES);
        let rows: Vec<&str> = tables.lines().skip(2).collect();
        let expected = [
            "| | 1e3 ns | 1e3 us | 1e3 wake-ups | 1e3 bytes |",
            "|---|---:|---:|---:|---:|",
            "| timer |  |  | 0.50 |  |",
            "| hhwt |  |  | 4.00 |  |",
            "| *timer / hhwt* |  |  | 0.12 |  |",
            "",
        ];
        assert_eq!(rows, expected);
        assert_eq!(markdown(&Figures::read(&report.csv()).expect("again"), &PAGES[..1]), "");
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(
            [0, 999, 1_000, 1_100, 250_000, 10_000_000].map(size),
            ["0", "999", "1e3", "1100", "25e4", "1e7"]
        );
    }

    #[test]
    fn only_the_tables_of_a_page_change() {
        let page = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let put = put_into(&page, "new\n").expect("both lines are there");
        assert_eq!(put, format!("a\n{BEGIN}\n\nnew\n{END}\nb\n"));
        assert_eq!(put_into(&put, "new\n").expect("again"), put);
        assert!(put_into("a\n", "new\n").is_err());
        assert!(put_into(&format!("{page}{page}"), "new\n").is_err());
    }
}

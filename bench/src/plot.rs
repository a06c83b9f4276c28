//! The plot of the page: cost against the number of timers, both logarithmic, as SVG.

use std::fmt::Write as _;

use anyhow::ensure;

use crate::figures::Figures;
use crate::table::size;

/// A panel: its title, and what it shows.
struct Panel {
    title: &'static str,
    workload: &'static str,
    metric: &'static str,
}

const PANELS: [Panel; 2] = [
    Panel { title: "W1: cancel one and start one, ns for each pair", workload: "w1", metric: "pair_ns" },
    Panel { title: "W2: start and fire, ns for each timer", workload: "w2", metric: "sum_ns" },
];

/// Who is drawn, in which colour and how. The colours are of middle lightness, to be read on white and on black; the dashes
/// and the marks tell them apart without colour.
const LINES: [Line; 9] = [
    Line { name: "wheel", colour: "#e4572e", width: 3.5, dash: "" },
    Line { name: "nexus-timer", colour: "#2e86de", width: 1.8, dash: "" },
    Line { name: "lazy-heap", colour: "#27a567", width: 1.8, dash: "" },
    Line { name: "btree", colour: "#a06cd5", width: 1.8, dash: "" },
    Line { name: "hhwt", colour: "#c98a00", width: 1.8, dash: "" },
    Line { name: "tokio-delay-queue", colour: "#2e86de", width: 1.8, dash: "6 4" },
    Line { name: "tokio-sleep", colour: "#27a567", width: 1.8, dash: "6 4" },
    Line { name: "slab", colour: "#888888", width: 1.8, dash: "2 3" },
    Line { name: "line", colour: "#888888", width: 1.8, dash: "8 3 2 3" },
];

struct Line {
    name: &'static str,
    colour: &'static str,
    width: f64,
    dash: &'static str,
}

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 40.0;
/// Between two panels, and below them for the sizes.
const GAP: f64 = 70.0;
const LEGEND: f64 = 60.0;

/// A logarithmic axis between two powers of ten.
#[derive(Clone, Copy, Debug)]
struct Axis {
    low: i32,
    high: i32,
}

impl Axis {
    /// From the power of ten at or below the least value to the one at or above the greatest.
    fn around(values: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let low = values.clone().min_by(f64::total_cmp)?.log10().floor() as i32;
        let high = values.max_by(f64::total_cmp)?.log10().ceil() as i32;
        Some(Self { low, high: high.max(low + 1) })
    }

    /// Where a value stands, from 0 to 1.
    fn place(self, value: f64) -> f64 {
        (value.log10() - f64::from(self.low)) / f64::from(self.high - self.low)
    }
}

/// The whole picture.
///
/// # Errors
/// If there is nothing to draw.
pub(crate) fn svg(figures: &Figures) -> anyhow::Result<String> {
    let drawn: Vec<&Panel> = PANELS.iter().filter(|panel| !points(figures, panel).is_empty()).collect();
    ensure!(!drawn.is_empty(), "the files have no figures of w1 or w2");
    let width = LEFT + drawn.len() as f64 * (WIDTH + GAP);
    let height = TOP + HEIGHT + GAP + LEGEND;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
         <title>Cost of a timer against the number of pending timers</title>\n\
         <style>text {{ fill: #333 }} .grid {{ stroke: #8884 }} .axis {{ stroke: #888 }} \
         @media (prefers-color-scheme: dark) {{ text {{ fill: #ddd }} }}</style>\n"
    );
    for (index, panel) in drawn.iter().enumerate() {
        write_panel(&mut svg, figures, panel, LEFT + index as f64 * (WIDTH + GAP));
    }
    let known =
        LINES.iter().filter(|line| drawn.iter().any(|panel| !course(figures, panel, line).is_empty()));
    for (index, line) in known.enumerate() {
        let (x, y) = (LEFT + (index % 5) as f64 * 180.0, TOP + HEIGHT + GAP + (index / 5) as f64 * 24.0);
        let _ = writeln!(svg, "<path d=\"M{x} {y}h30\"{}/>", stroke(line));
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\">{}</text>", x + 38.0, y + 4.0, line.name);
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

/// The points of one line, by size.
fn course(figures: &Figures, panel: &Panel, line: &Line) -> Vec<(f64, f64)> {
    let sizes = figures.sizes(panel.workload).into_iter();
    sizes
        .filter_map(|n| Some((n as f64, figures.get(line.name, panel.workload, n, panel.metric)?.median)))
        .collect()
}

/// All points of a panel.
fn points(figures: &Figures, panel: &Panel) -> Vec<(f64, f64)> {
    LINES.iter().flat_map(|line| course(figures, panel, line)).collect()
}

fn stroke(line: &Line) -> String {
    let dash =
        if line.dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", line.dash) };
    format!(" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{dash}", line.colour, line.width)
}

fn write_panel(svg: &mut String, figures: &Figures, panel: &Panel, left: f64) {
    let all = points(figures, panel);
    let axes =
        Axis::around(all.iter().map(|point| point.0)).zip(Axis::around(all.iter().map(|point| point.1)));
    let Some((across, up)) = axes else { return };
    let x = |n: f64| left + WIDTH * across.place(n);
    let y = |cost: f64| TOP + HEIGHT * (1.0 - up.place(cost));
    let _ =
        writeln!(svg, "<text x=\"{left}\" y=\"{}\" font-weight=\"bold\">{}</text>", TOP - 16.0, panel.title);
    for power in across.low..=across.high {
        let at = x(10_f64.powi(power));
        let _ = writeln!(svg, "<path class=\"grid\" d=\"M{at:.1} {TOP}v{HEIGHT}\"/>");
        let below = TOP + HEIGHT + 20.0;
        let name = size(10_u64.pow(power.unsigned_abs()));
        let _ = writeln!(svg, "<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{name}</text>");
    }
    for power in up.low..=up.high {
        let cost = 10_f64.powi(power);
        let _ = writeln!(svg, "<path class=\"grid\" d=\"M{left} {:.1}h{WIDTH}\"/>", y(cost));
        let (beside, beneath) = (left - 8.0, y(cost) + 4.0);
        let _ = writeln!(svg, "<text x=\"{beside}\" y=\"{beneath:.1}\" text-anchor=\"end\">{cost}</text>");
    }
    let _ = writeln!(svg, "<path class=\"axis\" fill=\"none\" d=\"M{left} {TOP}v{HEIGHT}h{WIDTH}\"/>");
    let middle = left + WIDTH / 2.0;
    let under = TOP + HEIGHT + 38.0;
    let _ = writeln!(svg, "<text x=\"{middle}\" y=\"{under}\" text-anchor=\"middle\">pending timers</text>");
    // Ours last, to lie on top.
    for line in LINES.iter().rev() {
        let course: Vec<(f64, f64)> =
            course(figures, panel, line).into_iter().map(|(n, cost)| (x(n), y(cost))).collect();
        if course.is_empty() {
            continue;
        }
        let path: Vec<String> = course.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        let _ = writeln!(svg, "<path d=\"M{}\"{}/>", path.join("L"), stroke(line));
        for (x, y) in course {
            let radius = line.width + 0.7;
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{}\"/>",
                line.colour
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Report;

    fn figures(added: &[(&str, &str, u64, &str, f64)]) -> Figures {
        let mut report = Report::default();
        for &(who, workload, n, metric, value) in added {
            report.add(who, workload, n, metric, value);
        }
        Figures::read(&report.csv()).expect("its own lines")
    }

    #[test]
    fn points_stand_where_their_logarithms_are() {
        let figures = figures(&[
            ("wheel", "w1", 1_000, "pair_ns", 10.0),
            ("wheel", "w1", 100_000, "pair_ns", 1_000.0),
            ("slab", "w1", 10_000, "pair_ns", 100.0),
        ]);
        let svg = svg(&figures).expect("there are figures");
        assert!(svg.contains("<path d=\"M60.0 360.0L520.0 40.0\" fill=\"none\" stroke=\"#e4572e\""), "{svg}");
        assert!(svg.contains("<circle cx=\"290.0\" cy=\"200.0\""), "{svg}");
        assert!(svg.contains(">slab</text>") && !svg.contains(">btree</text>"), "{svg}");
        assert!(svg.contains(">1e3</text>") && svg.contains(">1e5</text>"), "{svg}");
        assert!(!svg.contains("W2:") && !svg.contains("NaN"), "{svg}");
        // Everything that was opened is closed.
        assert_eq!(svg.matches('<').count(), svg.matches('>').count());
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    }

    #[test]
    fn one_point_is_enough_and_none_is_an_error() {
        let one = figures(&[("wheel", "w2", 1_000, "sum_ns", 10.0)]);
        assert!(!svg(&one).expect("a point").contains("NaN"));
        let none = figures(&[("wheel", "w3", 1_000, "timer_ns", 10.0)]);
        assert_eq!(
            svg(&none).expect_err("nothing to draw").to_string(),
            "the files have no figures of w1 or w2"
        );
    }
}

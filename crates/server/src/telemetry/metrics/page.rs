//! The page of metrics, in OpenMetrics 1.0.0 or in the older text format 0.0.4.
//!
//! The two formats differ in three points. The family of a counter is named `x` in OpenMetrics, and `x_total` in the
//! text format. OpenMetrics names the unit and marks the end of the page. OpenMetrics has the kind `info`, where the
//! text format has a gauge that is always 1.

use std::fmt::{self, Write};

/// The format of a page.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// OpenMetrics 1.0.0.
    OpenMetrics,
    /// The text format of Prometheus, version 0.0.4.
    Text,
}

impl Format {
    /// The media type of the format.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The unit of a metric. The name of the metric ends with it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    Seconds,
    Bytes,
}

impl Unit {
    fn as_str(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
        }
    }
}

/// A number on the page.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) enum Value {
    Whole(u64),
    Float(f64),
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(value) => write!(f, "{value}"),
            Self::Float(value) if value.is_infinite() => {
                f.write_str(if *value > 0.0 { "+Inf" } else { "-Inf" })
            }
            // Whole numbers have a decimal point, too, so that the bounds of a histogram are equal in both formats.
            Self::Float(value) => write!(f, "{value:?}"),
        }
    }
}

/// The names of labels and their values, in the order of the output.
pub(crate) type Labels<'a> = [(&'a str, &'a str)];

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

/// A page that is being written, with one method for each form of metric. Each family is written once and as a
/// whole.
#[derive(Debug)]
pub(crate) struct Page<W> {
    out: W,
    format: Format,
    /// The prefix of the next metrics' names.
    prefix: &'static str,
}

/// The counts of a histogram: one for each bound, and one for values above the last.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Histogram<'a> {
    pub(crate) bounds_s: &'a [f64],
    pub(crate) counts: &'a [u64],
    pub(crate) sum_s: f64,
}

impl<W: Write> Page<W> {
    /// An empty page of metrics whose names begin with `tickwheel_`.
    pub(crate) fn new(out: W, format: Format) -> Self {
        Self { out, format, prefix: "tickwheel" }
    }

    /// Sets the prefix of the metrics that follow; `_` is added to it.
    pub(crate) fn prefixed(&mut self, prefix: &'static str) {
        self.prefix = prefix;
    }

    /// Ends the page and returns the writer.
    pub(crate) fn end(mut self) -> Result<W, fmt::Error> {
        if self.format == Format::OpenMetrics {
            self.out.write_str("# EOF\n")?;
        }
        Ok(self.out)
    }

    pub(crate) fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.counters_of(name, help, None, [(&[][..], value)])
    }

    /// Writes one counter for each value of a label.
    pub(crate) fn counters(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: &[(&str, u64)],
    ) -> fmt::Result {
        let mut family = self.family(name, help, None, Kind::Counter)?;
        for (of, value) in values {
            family.sample("_total", &[(label, of)], *value)?;
        }
        Ok(())
    }

    /// Writes counters, each with its own labels.
    pub(crate) fn counters_of<'a, V: Into<Value>>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        values: impl IntoIterator<Item = (&'a Labels<'a>, V)>,
    ) -> fmt::Result {
        let mut family = self.family(name, help, unit, Kind::Counter)?;
        values.into_iter().try_for_each(|(labels, value)| family.sample("_total", labels, value))
    }

    pub(crate) fn gauge(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        value: impl Into<Value>,
    ) -> fmt::Result {
        self.family(name, help, unit, Kind::Gauge)?.sample("", &[], value)
    }

    /// Writes gauges, each with its own labels.
    pub(crate) fn gauges_of<'a, V: Into<Value>>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        values: impl IntoIterator<Item = (&'a Labels<'a>, V)>,
    ) -> fmt::Result {
        let mut family = self.family(name, help, unit, Kind::Gauge)?;
        values.into_iter().try_for_each(|(labels, value)| family.sample("", labels, value))
    }

    /// Writes facts that are not numbers, as labels.
    pub(crate) fn info(&mut self, name: &str, help: &str, labels: &Labels<'_>) -> fmt::Result {
        self.family(name, help, None, Kind::Info)?.sample("_info", labels, 1u64)
    }

    /// Writes a histogram in seconds.
    pub(crate) fn histogram(
        &mut self,
        name: &str,
        help: &str,
        bounds_s: &[f64],
        counts: &[u64],
        sum_s: f64,
    ) -> fmt::Result {
        self.histograms_of(name, help, [(&[][..], Histogram { bounds_s, counts, sum_s })])
    }

    /// Writes histograms in seconds, each with its own labels.
    pub(crate) fn histograms_of<'a>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (&'a Labels<'a>, Histogram<'a>)>,
    ) -> fmt::Result {
        let mut family = self.family(name, help, Some(Unit::Seconds), Kind::Histogram)?;
        values.into_iter().try_for_each(|(labels, histogram)| family.histogram(labels, &histogram))
    }

    fn family<'p>(
        &'p mut self,
        name: &'p str,
        help: &str,
        unit: Option<Unit>,
        kind: Kind,
    ) -> Result<Family<'p, W>, fmt::Error> {
        let mut family = Family { page: self, name, unit };
        let is_open = family.page.format == Format::OpenMetrics;
        let (suffix, word) = match kind {
            Kind::Counter => (if is_open { "" } else { "_total" }, "counter"),
            Kind::Gauge => ("", "gauge"),
            Kind::Histogram => ("", "histogram"),
            Kind::Info if is_open => ("", "info"),
            Kind::Info => ("_info", "gauge"),
        };
        family.describe("HELP", suffix, &escaped(help, false))?;
        family.describe("TYPE", suffix, word)?;
        match unit {
            Some(unit) if is_open => family.describe("UNIT", suffix, unit.as_str())?,
            _ => {}
        }
        Ok(family)
    }
}

/// The samples of one metric.
struct Family<'p, W> {
    page: &'p mut Page<W>,
    name: &'p str,
    unit: Option<Unit>,
}

impl<W: Write> Family<'_, W> {
    fn name(&mut self, suffix: &str) -> fmt::Result {
        write!(self.page.out, "{}_{}", self.page.prefix, self.name)?;
        if let Some(unit) = self.unit {
            write!(self.page.out, "_{}", unit.as_str())?;
        }
        self.page.out.write_str(suffix)
    }

    fn describe(&mut self, what: &str, suffix: &str, text: &str) -> fmt::Result {
        write!(self.page.out, "# {what} ")?;
        self.name(suffix)?;
        writeln!(self.page.out, " {text}")
    }

    fn sample(&mut self, suffix: &str, labels: &Labels<'_>, value: impl Into<Value>) -> fmt::Result {
        self.sample_with(suffix, labels, None, value.into())
    }

    fn sample_with(
        &mut self,
        suffix: &str,
        labels: &Labels<'_>,
        bound: Option<f64>,
        value: Value,
    ) -> fmt::Result {
        self.name(suffix)?;
        let mut before = "{";
        for (name, text) in labels {
            write!(self.page.out, "{before}{name}=\"{}\"", escaped(text, true))?;
            before = ",";
        }
        if let Some(bound) = bound {
            write!(self.page.out, "{before}le=\"{}\"", Value::Float(bound))?;
            before = ",";
        }
        writeln!(self.page.out, "{} {value}", if before == "," { "}" } else { "" })
    }

    fn histogram(&mut self, labels: &Labels<'_>, histogram: &Histogram<'_>) -> fmt::Result {
        let Histogram { bounds_s, counts, sum_s } = *histogram;
        assert_eq!(
            counts.len(),
            bounds_s.len() + 1,
            "{}: {} counts for {} bounds",
            self.name,
            counts.len(),
            bounds_s.len()
        );
        let mut within = 0;
        for (bound, count) in bounds_s.iter().copied().chain([f64::INFINITY]).zip(counts) {
            within += count;
            self.sample_with("_bucket", labels, Some(bound), Value::Whole(within))?;
        }
        self.sample("_sum", labels, sum_s)?;
        self.sample("_count", labels, within)
    }
}

/// Escapes a text for both formats. A backslash is put before a backslash and, in the value of a label, before a
/// quote. A line end becomes `\n`.
fn escaped(text: &str, in_quotes: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if in_quotes => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(format: Format) -> String {
        let mut page = Page::new(String::new(), format);
        page.counter("done", "A \"count\"\\", 3).expect("written");
        page.gauge("room", "Of bytes", Some(Unit::Bytes), 7u64).expect("written");
        page.histogram("late", "How late", &[0.0, 2.5], &[1, 0, 2], 9.0).expect("written");
        page.info("build", "Which", &[("version", "1\"2\n")]).expect("written");
        page.prefixed("process");
        let cpu = [(&[][..], 0.5)];
        page.counters_of("cpu", "Busy", Some(Unit::Seconds), cpu).expect("written");
        page.end().expect("written")
    }

    #[test]
    fn openmetrics_names_the_unit_and_marks_the_end() {
        let expected = "\
# HELP tickwheel_done A \"count\"\\\\
# TYPE tickwheel_done counter
tickwheel_done_total 3
# HELP tickwheel_room_bytes Of bytes
# TYPE tickwheel_room_bytes gauge
# UNIT tickwheel_room_bytes bytes
tickwheel_room_bytes 7
# HELP tickwheel_late_seconds How late
# TYPE tickwheel_late_seconds histogram
# UNIT tickwheel_late_seconds seconds
tickwheel_late_seconds_bucket{le=\"0.0\"} 1
tickwheel_late_seconds_bucket{le=\"2.5\"} 1
tickwheel_late_seconds_bucket{le=\"+Inf\"} 3
tickwheel_late_seconds_sum 9.0
tickwheel_late_seconds_count 3
# HELP tickwheel_build Which
# TYPE tickwheel_build info
tickwheel_build_info{version=\"1\\\"2\\n\"} 1
# HELP process_cpu_seconds Busy
# TYPE process_cpu_seconds counter
# UNIT process_cpu_seconds seconds
process_cpu_seconds_total 0.5
# EOF
";
        assert_eq!(page(Format::OpenMetrics), expected);
    }

    #[test]
    fn the_text_format_names_a_family_as_its_samples() {
        let expected = "\
# HELP tickwheel_done_total A \"count\"\\\\
# TYPE tickwheel_done_total counter
tickwheel_done_total 3
# HELP tickwheel_room_bytes Of bytes
# TYPE tickwheel_room_bytes gauge
tickwheel_room_bytes 7
# HELP tickwheel_late_seconds How late
# TYPE tickwheel_late_seconds histogram
tickwheel_late_seconds_bucket{le=\"0.0\"} 1
tickwheel_late_seconds_bucket{le=\"2.5\"} 1
tickwheel_late_seconds_bucket{le=\"+Inf\"} 3
tickwheel_late_seconds_sum 9.0
tickwheel_late_seconds_count 3
# HELP tickwheel_build_info Which
# TYPE tickwheel_build_info gauge
tickwheel_build_info{version=\"1\\\"2\\n\"} 1
# HELP process_cpu_seconds_total Busy
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 0.5
";
        assert_eq!(page(Format::Text), expected);
    }
}

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

/// The kind of a metric.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    /// In seconds.
    Histogram,
    /// Facts that are not numbers, as labels; the value is always 1.
    Info,
}

/// A metric of the source `S`: what the page says about it, and its values.
pub(crate) struct Metric<S> {
    /// The name without the unit, and without the suffix of the kind.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) unit: Option<Unit>,
    pub(crate) labels: &'static [&'static str],
    /// The lines of the doc comment. The first paragraph is the help text of the page; `docs/reference/metrics.md` has
    /// all of them.
    pub(crate) about: &'static [&'static str],
    pub(crate) write: fn(&S, &mut Samples<'_>) -> fmt::Result,
}

/// Joins lines to one text.
fn joined<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
impl<S> Metric<S> {
    /// The row of the metric in `docs/reference/metrics.md`.
    pub(crate) fn row(&self) -> String {
        let unit = self.unit.map(|unit| format!("_{}", unit.as_str())).unwrap_or_default();
        let (suffix, kind) = match self.kind {
            Kind::Counter => ("_total", "counter"),
            Kind::Gauge => ("", "gauge"),
            Kind::Histogram => ("", "histogram"),
            Kind::Info => ("_info", "info"),
        };
        let labels =
            if self.labels.is_empty() { String::new() } else { format!("{{{}}}", self.labels.join(",")) };
        let about = self
            .about
            .split(|line| line.is_empty())
            .map(|lines| joined(lines.iter().map(|line| line.trim())));
        let about = about.collect::<Vec<_>>().join(". ");
        format!("| `{}{unit}{suffix}{labels}` | {kind} | {about} |\n", self.name)
    }
}

/// Makes a table of metrics. Each entry has a doc comment, the kind, the name, the unit, the labels, and a function
/// that writes the samples. Tests write the rows of `docs/reference/metrics.md`.
macro_rules! metrics {
    ($(#[$doc:meta])* $vis:vis const $table:ident: $source:ty;
     $($(#[doc = $about:literal])* $kind:ident $name:ident $(in $unit:ident)? $({$($label:ident),*})?: $write:expr;)*) => {
        $(#[$doc])* $vis const $table: &[$crate::telemetry::metrics::page::Metric<$source>] = &[$(
            $crate::telemetry::metrics::page::Metric {
                name: stringify!($name),
                kind: $crate::telemetry::metrics::page::Kind::$kind,
                unit: [$(Some($crate::telemetry::metrics::page::Unit::$unit),)? None][0],
                labels: &[$($(stringify!($label)),*)?],
                about: &[$($about),*],
                write: $write,
            }
        ),*];
    };
}
pub(crate) use metrics;

/// A page that is being written. Each metric is written once and as a whole.
#[derive(Debug)]
pub(crate) struct Page<W> {
    out: W,
    format: Format,
    /// The rows in `docs/reference/metrics.md` of the metrics that were written.
    #[cfg(test)]
    pub(crate) rows: String,
}

impl<W: Write> Page<W> {
    pub(crate) fn new(out: W, format: Format) -> Self {
        Self {
            out,
            format,
            #[cfg(test)]
            rows: String::new(),
        }
    }

    /// Ends the page and returns the writer.
    pub(crate) fn end(mut self) -> Result<W, fmt::Error> {
        if self.format == Format::OpenMetrics {
            self.out.write_str("# EOF\n")?;
        }
        Ok(self.out)
    }

    /// Writes all metrics of a table.
    pub(crate) fn write<S>(&mut self, table: &'static [Metric<S>], source: &S) -> fmt::Result {
        #[cfg(test)]
        self.rows.extend(table.iter().map(Metric::row));
        table.iter().try_for_each(|metric| self.metric(metric, source))
    }

    fn metric<S>(&mut self, metric: &'static Metric<S>, source: &S) -> fmt::Result {
        let Metric { name, kind, unit, labels, about, write } = *metric;
        let is_open = self.format == Format::OpenMetrics;
        let unit = unit.map_or("", Unit::as_str);
        let (sample, word) = match kind {
            Kind::Counter => ("_total", "counter"),
            Kind::Gauge => ("", "gauge"),
            Kind::Histogram => ("", "histogram"),
            Kind::Info => ("_info", if is_open { "info" } else { "gauge" }),
        };
        let name = if unit.is_empty() { name.to_owned() } else { format!("{name}_{unit}") };
        let family = if is_open { name.clone() } else { format!("{name}{sample}") };
        let help = joined(about.iter().map(|line| line.trim()).take_while(|line| !line.is_empty()));
        writeln!(self.out, "# HELP {family} {}", escaped(&help, false))?;
        writeln!(self.out, "# TYPE {family} {word}")?;
        if is_open && !unit.is_empty() {
            writeln!(self.out, "# UNIT {family} {unit}")?;
        }
        write(source, &mut Samples { out: &mut self.out, name, suffix: sample, labels })
    }
}

/// Writes the samples of one metric.
pub(crate) struct Samples<'a> {
    out: &'a mut dyn Write,
    name: String,
    suffix: &'static str,
    labels: &'static [&'static str],
}

impl Samples<'_> {
    /// Writes the one value of a metric without labels.
    pub(crate) fn is(&mut self, value: impl Into<Value>) -> fmt::Result {
        self.put(&[], value)
    }

    /// Writes a value with the values of its labels.
    pub(crate) fn put(&mut self, labels: &[&str], value: impl Into<Value>) -> fmt::Result {
        self.sample(self.suffix, labels, None, value.into())
    }

    /// Writes one value for each value of the only label.
    pub(crate) fn each(&mut self, values: &[(&str, u64)]) -> fmt::Result {
        values.iter().try_for_each(|(label, value)| self.put(&[label], *value))
    }

    /// Writes a histogram. `counts` has one count for each bound, and one for values above the last.
    pub(crate) fn histogram(
        &mut self,
        labels: &[&str],
        bounds_s: &[f64],
        counts: &[u64],
        sum_s: f64,
    ) -> fmt::Result {
        let name = &self.name;
        assert_eq!(counts.len(), bounds_s.len() + 1, "{name}: a count for each bound, and one more");
        let mut within = 0;
        for (bound, count) in bounds_s.iter().copied().chain([f64::INFINITY]).zip(counts) {
            within += count;
            self.sample("_bucket", labels, Some(bound), Value::Whole(within))?;
        }
        self.sample("_sum", labels, None, Value::Float(sum_s))?;
        self.sample("_count", labels, None, Value::Whole(within))
    }

    fn sample(&mut self, suffix: &str, labels: &[&str], bound: Option<f64>, value: Value) -> fmt::Result {
        assert_eq!(labels.len(), self.labels.len(), "{}: a value for each label", self.name);
        write!(self.out, "{}{suffix}", self.name)?;
        let mut before = "{";
        for (name, text) in self.labels.iter().zip(labels) {
            write!(self.out, "{before}{name}=\"{}\"", escaped(text, true))?;
            before = ",";
        }
        if let Some(bound) = bound {
            write!(self.out, "{before}le=\"{}\"", Value::Float(bound))?;
            before = ",";
        }
        writeln!(self.out, "{} {value}", if before == "," { "}" } else { "" })
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

    metrics! {
        const TABLE: u64;

        /// A "count"\
        Counter tickwheel_done: |count, out| out.is(*count);
        /// Bytes
        /// left
        ///
        /// and more
        Gauge tickwheel_room in Bytes: |_, out| out.is(7u64);
        /// How late
        Histogram tickwheel_late in Seconds: |_, out| out.histogram(&[], &[0.0, 2.5], &[1, 0, 2], 9.0);
        /// Which
        Info tickwheel_build {version}: |_, out| out.put(&["1\"2\n"], 1u64);
        /// Busy
        Counter process_cpu in Seconds: |_, out| out.is(0.5);
    }

    fn page(format: Format) -> String {
        let mut page = Page::new(String::new(), format);
        page.write(TABLE, &3).expect("written");
        page.end().expect("written")
    }

    #[test]
    fn openmetrics_names_the_unit_and_marks_the_end() {
        let expected = "\
# HELP tickwheel_done A \"count\"\\\\
# TYPE tickwheel_done counter
tickwheel_done_total 3
# HELP tickwheel_room_bytes Bytes left
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
# HELP tickwheel_room_bytes Bytes left
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

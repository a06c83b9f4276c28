//! Which format of the page a client wants, by its `Accept`.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

use super::page::Format;

/// The format that the client likes best, OpenMetrics if it likes both alike. A client that names neither gets OpenMetrics if it says nothing,
/// and the text format, which most programs read, if it names something else.
pub(crate) fn format(headers: &HeaderMap) -> Format {
    let mut ranges = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .filter_map(Range::read)
        .peekable();
    if ranges.peek().is_none() {
        return Format::OpenMetrics;
    }
    let (mut open, mut text) = (Liked::default(), Liked::default());
    for range in ranges {
        open.hear(&range, "application", "openmetrics-text", &["1.0.0"]);
        text.hear(&range, "text", "plain", &["0.0.4"]);
    }
    if open.weight > 0 && open.weight >= text.weight { Format::OpenMetrics } else { Format::Text }
}

/// One range of media types, such as `text/*;q=0.5`.
struct Range<'a> {
    major: &'a str,
    minor: &'a str,
    version: Option<&'a str>,
    /// In thousandths.
    weight: u32,
}

impl<'a> Range<'a> {
    /// `None`: it is none, or it is not understood.
    fn read(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (major, minor) = parts.next()?.split_once('/')?;
        let mut range = Self { major, minor, version: None, weight: 1_000 };
        for part in parts {
            let Some((name, value)) = part.split_once('=') else { continue };
            let value = value.trim().trim_matches('"');
            match name.trim() {
                name if name.eq_ignore_ascii_case("q") => range.weight = weight(value)?,
                name if name.eq_ignore_ascii_case("version") => range.version = Some(value),
                // `charset`, `escaping` and what else there may be: the page has ASCII names and is UTF-8.
                _ => {}
            }
        }
        Some(range)
    }
}

/// A weight from 0 to 1 in thousandths.
fn weight(text: &str) -> Option<u32> {
    let weight: f64 = text.parse().ok()?;
    (0.0..=1.0).contains(&weight).then(|| (weight * 1_000.0).round() as u32)
}

/// How much a format is liked, by the range that says it most exactly.
#[derive(Default)]
struct Liked {
    weight: u32,
    exactness: u8,
}

impl Liked {
    fn hear(&mut self, range: &Range<'_>, major: &str, minor: &str, versions: &[&str]) {
        let exactness = match range {
            Range { major: "*", minor: "*", .. } => 1,
            Range { major: named, minor: "*", .. } if named.eq_ignore_ascii_case(major) => 2,
            range if range.major.eq_ignore_ascii_case(major) && range.minor.eq_ignore_ascii_case(minor) => {
                match range.version {
                    None => 3,
                    Some(version) if versions.contains(&version) => 4,
                    Some(_) => return,
                }
            }
            _ => return,
        };
        // Of ranges that are alike the most liked one counts.
        if (exactness, range.weight) > (self.exactness, self.weight) {
            (self.exactness, self.weight) = (exactness, range.weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn of(values: &[&'static str]) -> Format {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT, HeaderValue::from_static(value));
        }
        format(&headers)
    }

    /// What Prometheus sends, by its versions, and what people and other programs send.
    #[test]
    fn the_client_gets_what_it_likes_best() {
        use Format::{OpenMetrics, Text};
        for (accept, expected) in [
            // Prometheus 2.42 and 2.54, with and without its older forms; Prometheus 3.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                OpenMetrics,
            ),
            (
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.2",
                OpenMetrics,
            ),
            // One that is told to use the older format.
            ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", Text),
            ("text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5", Text),
            ("text/plain", Text),
            ("text/*", Text),
            ("TEXT/Plain; Version=0.0.4", Text),
            ("application/openmetrics-text", OpenMetrics),
            ("application/openmetrics-text; version=\"1.0.0\"", OpenMetrics),
            // It knows only a version that is not written here.
            ("application/openmetrics-text;version=0.0.1,text/plain;q=0.1", Text),
            ("*/*", OpenMetrics),
            ("application/openmetrics-text;q=0,*/*", Text),
            ("application/json", Text),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", OpenMetrics),
            ("", OpenMetrics),
            ("no media type", OpenMetrics),
            ("text/plain;q=7", OpenMetrics),
            ("text/plain;q=0.5;q=NaN", OpenMetrics),
        ] {
            assert_eq!(of(&[accept]), expected, "{accept}");
        }
        assert_eq!(of(&[]), OpenMetrics);
        assert_eq!(of(&["application/openmetrics-text;q=0.3", "text/plain;q=0.4"]), Text);
    }
}

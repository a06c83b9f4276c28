//! The choice of the page's format by the client's `Accept`.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

use super::page::Format;

/// The format that the client prefers, or OpenMetrics if it has no preference. A client without `Accept` gets
/// OpenMetrics. A client that accepts neither gets the text format, which most programs read.
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
    /// The weight, in thousandths.
    weight: u32,
}

impl<'a> Range<'a> {
    /// Reads a range; `None`: it is malformed or not understood.
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
                // Other parameters, such as `charset` and `escaping`, do not matter: the page has ASCII names and is
                // UTF-8.
                _ => {}
            }
        }
        Some(range)
    }
}

/// A weight from 0 to 1, in thousandths.
fn weight(text: &str) -> Option<u32> {
    let weight: f64 = text.parse().ok()?;
    (0.0..=1.0).contains(&weight).then(|| (weight * 1_000.0).round() as u32)
}

/// The weight of a format, by the most exact range that includes it.
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
        // If two ranges are equally exact, the one with the higher weight counts.
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

    /// The headers that versions of Prometheus send, and those of people and other programs.
    #[test]
    fn the_client_gets_what_it_likes_best() {
        use Format::{OpenMetrics, Text};
        for (accept, expected) in [
            // Prometheus 2.42 and 2.54, with and without the older forms; Prometheus 3.
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
            // A Prometheus that is configured to use the older format.
            ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", Text),
            ("text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5", Text),
            ("text/plain", Text),
            ("text/*", Text),
            ("TEXT/Plain; Version=0.0.4", Text),
            ("application/openmetrics-text", OpenMetrics),
            ("application/openmetrics-text; version=\"1.0.0\"", OpenMetrics),
            // A client that knows only a version that this server does not write.
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

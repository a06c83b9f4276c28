//! A layer that limits repeated log lines: it checks each line before it is written.
//!
//! Among the server's own lines, only those that a client can cause are limited; [`events::LIMITED`] lists them. Lines of other crates
//! below `warn` are not written, because they may have the bytes of whole requests. Other lines of other crates are limited by the place in
//! the source code that writes them.

use std::fmt::{self, Write};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tickwheel_server::events::{self, LIMITED, Limited};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::floods::{Floods, Kind, Measure, Repeated};

/// The time after the first line of a kind in which further lines of this kind are only counted.
const WINDOW: Duration = Duration::from_secs(60);
/// The largest number of kinds of one event that are counted separately in a window.
const KINDS_MAX: usize = 100;

/// Stands in place of the event for lines of other crates.
const OF_LIBRARIES: &str = "library";

/// The floods of this process.
static FLOODS: OnceLock<Shared> = OnceLock::new();

struct Shared {
    floods: Mutex<Floods>,
    begun: Instant,
}

fn shared() -> &'static Shared {
    FLOODS
        .get_or_init(|| Shared { floods: Mutex::new(Floods::new(WINDOW, KINDS_MAX)), begun: Instant::now() })
}

/// The layer that checks each line.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Limiter;

/// Whether lines with this target are the server's own.
fn is_own(target: &str) -> bool {
    target.starts_with("tickwheel") || target == events::AUDIT || target == events::ACCESS
}

impl<S: Subscriber> Layer<S> for Limiter {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        // The `trace` lines of an HTTP client have the headers of its requests. These headers may have the credentials of a collector.
        is_own(metadata.target()) || *metadata.level() <= Level::WARN
    }

    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let Some((kind, measure)) = kind_of(event) else { return true };
        let shared = shared();
        let mut floods = shared.floods.lock().unwrap_or_else(PoisonError::into_inner);
        floods.is_written(kind, measure, shared.begun.elapsed())
    }
}

/// The kind by which a line is limited; `None`: the line is always written.
fn kind_of(event: &Event<'_>) -> Option<(Kind, Measure)> {
    let metadata = event.metadata();
    let (target, site) = (metadata.target().to_owned(), metadata.name());
    if !is_own(&target) {
        let mut from = Origin::default();
        event.record(&mut from);
        let target = from.target.unwrap_or(target);
        let about = format!("target={target:?} line={}", from.line.or(metadata.line().map(u64::from))?);
        return Some((
            Kind { target, event: OF_LIBRARIES.to_owned(), share: String::new(), about, site },
            None,
        ));
    }
    // An operator who enables lines below `info`, or a line for each call, wants to see all of them.
    if *metadata.level() > Level::INFO || target == events::ACCESS {
        return None;
    }
    let mut name = Name::default();
    event.record(&mut name);
    let limited = LIMITED.iter().find(|limited| limited.event == name.0)?;
    let mut line =
        Line { limited, share: String::new(), about: String::new(), measure: None, is_free: false };
    event.record(&mut line);
    let Line { share, about, measure, is_free, .. } = line;
    (!is_free).then_some((Kind { target, event: name.0, share, about, site }, measure))
}

/// Reports the lines left out in windows that are over. The caller calls this function about once a second.
pub(crate) fn tell_repeated() {
    tell(Floods::ended);
}

/// Reports all lines left out. The caller calls this function at the end of the process.
pub(crate) fn flush() {
    tell(Floods::flush);
}

fn tell(of: impl FnOnce(&mut Floods, Duration) -> Vec<Repeated>) {
    let shared = shared();
    // The lock is released before the lines are written: writing them passes through this layer, which takes the lock.
    let told = of(&mut shared.floods.lock().unwrap_or_else(PoisonError::into_inner), shared.begun.elapsed());
    for Repeated { kind: Kind { target, event: repeated_event, about, .. }, times, max, over } in told {
        let (over_s, took_ms_max) = (over.as_secs(), max.map(|(_, value)| value));
        if target == events::AUDIT {
            tracing::info!(target: events::AUDIT, event = events::REPEATED, repeated_event, times, over_s, took_ms_max, about, "similar lines were suppressed");
        } else {
            tracing::info!(
                event = events::REPEATED,
                repeated_event,
                times,
                over_s,
                took_ms_max,
                about,
                "similar lines were suppressed"
            );
        }
    }
}

/// The event of a line.
#[derive(Default)]
struct Name(String);

impl Visit for Name {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "event" {
            value.clone_into(&mut self.0);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

/// The source location of a line of the `log` crate. All such lines share one target and one call site, so their fields have the location.
#[derive(Default)]
struct Origin {
    target: Option<String>,
    line: Option<u64>,
}

impl Visit for Origin {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "log.target" {
            self.target = Some(value.to_owned());
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "log.line" {
            self.line = Some(value);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

/// A line of an event that is limited.
struct Line {
    limited: &'static Limited,
    share: String,
    about: String,
    measure: Measure,
    /// Whether the line is always written and never counted.
    is_free: bool,
}

impl Line {
    fn text(&mut self, field: &Field, value: &str) {
        let name = field.name();
        self.is_free |= self.limited.unless.is_some_and(|(of, free)| of == name && free.contains(&value));
        if self.limited.share == Some(name) {
            value.clone_into(&mut self.share);
        }
        // The value is quoted, because clients choose names and a name could look like another field.
        self.about(name, format_args!("{value:?}"));
    }

    fn about(&mut self, name: &str, value: fmt::Arguments<'_>) {
        if self.limited.about.contains(&name) {
            let space = if self.about.is_empty() { "" } else { " " };
            let _a_string_takes_all = write!(self.about, "{space}{name}={value}");
        }
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if self.limited.measure == Some(field.name()) {
            self.measure = Some((field.name(), value));
        }
        self.about(field.name(), format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("one thread").extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines that `write` writes through the layer.
    fn written(write: impl FnOnce()) -> Vec<String> {
        let lines = Lines::default();
        let to = lines.clone();
        let log = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(move || to.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(Limiter).with(log), write);
        let text = String::from_utf8(lines.0.lock().expect("one thread").clone()).expect("UTF-8");
        text.lines().map(str::to_owned).collect()
    }

    /// One place in the source that writes lines of all events.
    fn line(event: &str, result: &str) {
        tracing::info!(event, result, token = "t", took_ms = 7_u64, "a sentence");
    }

    #[test]
    fn lines_of_the_list_are_limited_and_no_others() {
        for event in events::ALL {
            let lines = written(|| (0..2).for_each(|_| line(event, "refused")));
            let limited = LIMITED.iter().any(|limited| limited.event == *event);
            assert_eq!(lines.len(), if limited { 1 } else { 2 }, "{event}: {lines:?}");
        }
        for result in events::CARRIED_OUT {
            let lines = written(|| (0..2).for_each(|_| line(events::ADMIN_ACT, result)));
            assert_eq!(lines.len(), 2, "an act that was carried out always has its line: {lines:?}");
        }
        let measures: Vec<_> = LIMITED.iter().filter_map(|limited| limited.measure).collect();
        assert!(measures.iter().all(|measure| *measure == "took_ms"), "`repeated` has no other maximum");
    }

    #[test]
    fn other_crates_write_nothing_below_warn() {
        let lines = written(|| {
            tracing::trace!(target: "ureq_proto::util", "authorization: Bearer marker");
            tracing::debug!(target: "opentelemetry_otlp", "marker");
            tracing::info!(target: "hyper", "marker");
            tracing::warn!(target: "rustls", "a warning");
            tracing::trace!(target: "tickwheel_server", "a trace");
        });
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains("marker")), "{lines:?}");
    }

    #[test]
    fn a_name_cannot_forge_a_field_of_a_count() {
        let mut about = String::new();
        let log = tracing_subscriber::registry().with(Look(Arc::default()));
        let seen = Arc::clone(&log.downcast_ref::<Look>().expect("it is there").0);
        tracing::subscriber::with_default(log, || {
            tracing::info!(event = events::ADMIN_ACT, name = "x token=ops", result = "conflict", "a call");
        });
        about.push_str(&seen.lock().expect("one thread"));
        assert_eq!(about, r#"name="x token=ops" result="conflict""#);
    }

    /// Keeps the subject of the last line.
    struct Look(Arc<Mutex<String>>);

    impl<S: Subscriber> Layer<S> for Look {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let (kind, _) = kind_of(event).expect("it is limited");
            *self.0.lock().expect("one thread") = kind.about;
        }
    }
}

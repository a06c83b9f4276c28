//! Keeps floods out of the log: a layer that looks at each line before it is written.

use std::fmt::{self, Write};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tickwheel_server::events;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::floods::{Floods, Kind, Repeated};

/// So long lines of one kind are counted behind the first.
const WINDOW: Duration = Duration::from_secs(60);
/// So many kinds of one event are told apart in that time.
const KINDS_MAX: usize = 100;

/// Fields that make two lines of one event different. Sentences do not, nor do measures, but for those of a change that is news each time: of the
/// clock, and of the room on the disk.
const ABOUT: [&str; 18] = [
    "kind",
    "act",
    "method",
    "route",
    "status",
    "queue",
    "name",
    "token",
    "address",
    "what",
    "file",
    "id",
    "listen",
    "signal",
    "by_ms",
    "ahead_ms",
    "room_bytes",
    "after_ms",
];

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

/// Looks at each line.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Limiter;

impl<S: Subscriber> Layer<S> for Limiter {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        // Who asks for more than `info` wants all of it, and who asks for a line a call, too.
        if *metadata.level() > Level::INFO || metadata.target() == events::ACCESS {
            return true;
        }
        let mut line = Line { event: metadata.name().to_owned(), about: String::new() };
        event.record(&mut line);
        if line.event == events::REPEATED {
            return true;
        }
        let (target, site) = (metadata.target().to_owned(), metadata.name());
        let kind = Kind { target, event: line.event, about: line.about, site };
        let shared = shared();
        let mut floods = shared.floods.lock().unwrap_or_else(PoisonError::into_inner);
        floods.is_first(kind, shared.begun.elapsed())
    }
}

/// Tells what was left out, as far as its time has come. Call it about once a second.
pub(crate) fn tell_repeated() {
    tell(Floods::ended);
}

/// Tells all that was left out. Call it at the end of the process.
pub(crate) fn flush() {
    tell(Floods::flush);
}

fn tell(of: impl FnOnce(&mut Floods, Duration) -> Vec<Repeated>) {
    let shared = shared();
    // The lines go through the layer, which wants the lock.
    let told = of(&mut shared.floods.lock().unwrap_or_else(PoisonError::into_inner), shared.begun.elapsed());
    for Repeated { kind: Kind { target, event, about, .. }, times, over } in told {
        let over_s = over.as_secs();
        if target == events::AUDIT {
            tracing::info!(target: events::AUDIT, event = events::REPEATED, of = event, times, over_s, about, "left out what came again");
        } else {
            tracing::info!(
                event = events::REPEATED,
                of = event,
                times,
                over_s,
                about,
                "left out what came again"
            );
        }
    }
}

/// What a line is about.
struct Line {
    event: String,
    about: String,
}

impl Line {
    fn field(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        if field.name() == "event" {
            self.event = value.to_string();
        } else if ABOUT.contains(&field.name()) {
            let space = if self.about.is_empty() { "" } else { " " };
            let _a_string_takes_all = write!(self.about, "{space}{}={value}", field.name());
        }
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.field(field, format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.field(field, format_args!("{value:?}"));
    }
}

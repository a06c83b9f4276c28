//! Time zones by their names.

use std::sync::OnceLock;

use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};
use tickwheel_engine::Timestamp;

/// Files of the database that have the rules of some zone, but are not the name of one.
const NO_ZONES: [&str; 3] = ["localtime", "posixrules", "Factory"];

/// Returns the zone with this IANA name from the database of the machine. If the machine lacks the name, the zone comes from the database of
/// this build: some systems have names such as `US/Eastern` in a package of their own. `None`: neither has it.
pub(crate) fn find(name: &str) -> Option<TimeZone> {
    of_machine(name).or_else(|| of_build(name))
}

/// Returns the zone from the database of the machine.
pub(crate) fn of_machine(name: &str) -> Option<TimeZone> {
    if is_none(name) { None } else { TimeZone::get(name).ok() }
}

/// Returns the zone from the database of this build.
pub(crate) fn of_build(name: &str) -> Option<TimeZone> {
    static BUNDLED: OnceLock<TimeZoneDatabase> = OnceLock::new();
    if is_none(name) { None } else { BUNDLED.get_or_init(TimeZoneDatabase::bundled).get(name).ok() }
}

fn is_none(name: &str) -> bool {
    NO_ZONES.iter().any(|no| name.eq_ignore_ascii_case(no))
}

/// Forgets the rules that were read before, so that [`find`] reads the files of the machine again.
pub(crate) fn forget() {
    jiff::tz::db().reset();
}

/// Returns the offset of a zone from UTC at an instant (s). `None`: the calendar does not have the instant.
pub(crate) fn offset_s(zone: &TimeZone, at: Timestamp) -> Option<i32> {
    let at = jiff::Timestamp::from_millisecond(at.as_ms()).ok()?;
    Some(zone.to_offset(at).seconds())
}

/// Returns the instant at which a clock that follows the rules `now` shows what a clock with the offset `before_s` from UTC (s) shows at `at`.
/// If the clock shows it twice, the first time. If the clock skips it, the instant of the jump. If the rules have the same offset at `at`, that
/// is `at`.
pub(crate) fn moved(before_s: i32, now: &TimeZone, at: Timestamp) -> Option<Timestamp> {
    let instant = jiff::Timestamp::from_millisecond(at.as_ms()).ok()?;
    let before = Offset::from_seconds(before_s).ok()?;
    if before == now.to_offset(instant) {
        return Some(at);
    }
    let local = before.to_datetime(instant);
    let instant = match now.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
            offset.to_timestamp(local).ok()?
        }
        AmbiguousOffset::Gap { after, .. } => {
            now.following(after.to_timestamp(local).ok()?).next()?.timestamp()
        }
    };
    Timestamp::from_ms(instant.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the second pass of an hour that comes twice, the first pass would be an hour earlier.
    #[test]
    fn nothing_moves_where_the_rules_agree() {
        let here = TimeZone::get("America/New_York").expect("a zone");
        let at =
            Timestamp::from_ms(1_919_918_000_000).expect("2030-11-03T06:33:20Z, an hour that comes twice");
        assert_eq!(moved(-5 * 3_600, &here, at), Some(at));
        let later = Timestamp::from_ms(at.as_ms() + 3_600_000);
        assert_eq!(moved(-4 * 3_600, &here, at), later, "a clock four hours behind shows 2:33");
    }

    #[test]
    fn files_that_are_no_names_are_no_zones() {
        for no in ["localtime", "posixrules", "Factory", "factory", "Mars/Olympus", "", "../passwd"] {
            assert_eq!(find(no), None, "{no}");
        }
        for zone in ["UTC", "Europe/Berlin", "US/Eastern", "Asia/Calcutta"] {
            assert!(find(zone).is_some(), "{zone}");
        }
    }
}

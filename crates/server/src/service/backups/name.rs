//! The names of backups: `backup-20261125T100000.123Z`. They sort by time, and the number of a backup is the millisecond in its name.

use tickwheel_api::time;

const PREFIX: &str = "backup-";

/// The name of the backup with this number.
pub(super) fn name_of(id: u64) -> String {
    let text = time::format(i64::try_from(id).unwrap_or(i64::MAX));
    format!("{PREFIX}{}", text.replace(['-', ':'], ""))
}

/// The number of the backup with this name; `None` for any other name.
pub(super) fn id_of(name: &str) -> Option<u64> {
    let text = name.strip_prefix(PREFIX)?;
    let (day, clock) = text.split_once('T')?;
    let part = |of: &str, from: usize, to: Option<usize>| match to {
        Some(to) => of.get(from..to).map(str::to_owned),
        None => of.get(from..).map(str::to_owned),
    };
    let day = [part(day, 0, Some(4))?, part(day, 4, Some(6))?, part(day, 6, None)?].join("-");
    let clock = [part(clock, 0, Some(2))?, part(clock, 2, Some(4))?, part(clock, 4, None)?].join(":");
    let id = u64::try_from(time::parse(&format!("{day}T{clock}")).ok()?).ok()?;
    // Each time has one name only.
    (name_of(id) == name).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_back_to_its_number_and_sorts_by_it() {
        let ids = [0, 1, 999, 1_000, 1_795_600_000_123, 1_795_600_000_124, 253_402_207_200_999];
        let names = ids.map(name_of);
        assert_eq!(names[4], "backup-20261125T094640.123Z");
        assert!(names.is_sorted(), "{names:?}");
        for (id, name) in ids.into_iter().zip(names) {
            assert_eq!(id_of(&name), Some(id), "{name}");
        }
    }

    #[test]
    fn other_names_are_not_backups() {
        for other in [
            "",
            "lock",
            "backup-",
            "backup-monday",
            "backup-20261125T092640.123Z.unfinished",
            "backup-20261125T092640.12Z",
            "backup-20261125T092640Z",
            "backup-20261125T092640.123z",
            "backup-20261325T092640.123Z",
            "backup-2026é125T092640.123Z",
            "Backup-20261125T092640.123Z",
        ] {
            assert_eq!(id_of(other), None, "{other}");
        }
    }
}

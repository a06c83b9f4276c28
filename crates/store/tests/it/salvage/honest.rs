//! Compares the report of a salvage with what the salvage did.

use std::collections::BTreeSet;

use tickwheel_engine::{RuleName, Task};
use tickwheel_store::salvage::{Fate, Loss, MayHoldEnded, Report, read, write_as};
use tickwheel_store::{Disk, OpenError, Table, conformance};

use crate::disk::Image;
use crate::salvage::history::{HISTORY, open, options};
use crate::salvage::shared::Shared;

/// A directory in memory and all that an opening finds in it.
pub(crate) fn contents(image: &Image) -> Table {
    let disk = Shared::of(image.clone());
    conformance::contents(&mut open(disk), HISTORY).expect("it reads")
}

/// The salvaged directory, and how it differs from what was there.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) report: Report,
    pub(crate) image: Image,
    /// In the old directory only.
    pub(crate) lost: BTreeSet<u64>,
    /// In both, and different.
    pub(crate) changed: BTreeSet<u64>,
    /// In the new directory only: they had ended.
    pub(crate) back: BTreeSet<u64>,
    /// Names of the rules that are not what they were.
    pub(crate) rules_changed: BTreeSet<RuleName>,
    pub(crate) is_equal: bool,
}

fn differing_rules(old: &Table, new: &Table) -> BTreeSet<RuleName> {
    let (old, new) = (old.rules(), new.rules());
    let differs =
        old.iter().filter(|rule| !new.contains(rule)).chain(new.iter().filter(|rule| !old.contains(rule)));
    differs.map(|(name, _)| name.clone()).collect()
}

/// Salvages it, and holds what the report says against what was there.
#[track_caller]
pub(crate) fn salvage(damaged: &mut Image, whole: &Table, story: &str) -> Result<Outcome, OpenError> {
    let before = damaged.clone();
    let outcome = salvage_of(damaged, whole, story);
    assert!(*damaged == before, "{story}: the damaged directory was changed");
    outcome
}

/// Salvages from any disk.
#[track_caller]
pub(crate) fn salvage_of<D: Disk>(damaged: &mut D, whole: &Table, story: &str) -> Result<Outcome, OpenError> {
    let found = read(damaged, &mut |_| {})?;
    let out = Shared::default();
    let written = write_as(found, damaged, out.clone(), options(), &mut |_| {});
    let report = written.unwrap_or_else(|error| panic!("{story}: {error}"));
    let mut image = out.image();
    let examined = image.examine(tickwheel_store::doctor::Depth::Records);
    assert!(examined.is_in_order(), "{story}: {:#?}", examined.problems);
    let now = contents(&image);
    let ids = |table: &Table| table.tasks_from(0).map(|task| task.id).collect::<BTreeSet<u64>>();
    let (old, new) = (ids(whole), ids(&now));
    let same = |id: &u64| whole.get(*id) == now.get(*id);
    let outcome = Outcome {
        lost: &old - &new,
        changed: (&old & &new).into_iter().filter(|id| !same(id)).collect(),
        back: &new - &old,
        rules_changed: differing_rules(whole, &now),
        is_equal: now == *whole,
        report,
        image,
    };
    outcome.check(story);
    Ok(outcome)
}

impl Outcome {
    /// The report is honest: whatever it says, it is at least as bad as what happened.
    #[track_caller]
    fn check(&self, story: &str) {
        let Self { report, lost, changed, back, is_equal, .. } = self;
        if report.is_whole() {
            assert!(
                is_equal,
                "{story}: it is said to be whole; lost {lost:?}, changed {changed:?}, back {back:?}"
            );
        }
        let worse = (lost.len() + changed.len()) as u64;
        let most = report.losses.iter().try_fold(0, |sum, loss| Some(sum + loss.tasks_max?));
        assert!(most.is_none_or(|most| worse <= most), "{story}: {worse} of {most:?}: {:#?}", report.losses);
        match report.may_hold_ended() {
            MayHoldEnded::No => assert!(back.is_empty(), "{story}: {back:?} came back: {:#?}", report.losses),
            MayHoldEnded::AtMost(most) => assert!(back.len() as u64 <= most, "{story}: {back:?} of {most}"),
            MayHoldEnded::Unknown => {}
        }
        let are_told = report.losses.iter().any(|loss| loss.rules_may_be_older);
        assert!(are_told || self.rules_changed.is_empty(), "{story}: {:?} changed", self.rules_changed);
        let Report { superseded, superseded_tasks, .. } = report;
        assert_eq!(
            *superseded,
            superseded_tasks.len() as u64,
            "{story}: each task that is left out is named"
        );
        let now = contents(&self.image);
        for left_out in superseded_tasks {
            let owner = now.get(left_out.by).map(|task| (&task.queue, &task.key));
            assert_eq!(owner, Some((&left_out.queue, &left_out.key)), "{story}: {left_out:?}");
        }
        let keyed: Vec<_> = now.tasks_from(0).filter(|task| task.is_keyed()).collect();
        let keys: BTreeSet<_> = keyed.iter().map(|task| (&task.queue, &task.key)).collect();
        assert_eq!(keys.len(), keyed.len(), "{story}: a key leads to two tasks");
    }

    /// Tasks that are lost or different, or that came back, and that the report does not name.
    pub(crate) fn unnamed(&self) -> Vec<u64> {
        let named = self.report.losses.iter().flat_map(|loss| &loss.tasks).map(|task| task.id);
        let left_out = self.report.superseded_tasks.iter().map(|task| task.id);
        let named: BTreeSet<u64> = named.chain(left_out).collect();
        let all = self.lost.iter().chain(&self.changed).chain(&self.back);
        all.filter(|id| !named.contains(id)).copied().collect()
    }

    /// Settings and schedules that are not what they were, and that the report does not name.
    pub(crate) fn unnamed_rules(&self) -> usize {
        let named = self.report.losses.iter().flat_map(|loss| &loss.rules);
        let named: BTreeSet<_> = named.map(|rule| rule.name.clone()).collect();
        self.rules_changed.iter().filter(|rule| !named.contains(rule)).count()
    }

    /// Tasks that the report says are lost for certain, and that are there.
    pub(crate) fn not_lost(&self) -> Vec<u64> {
        let named = self.report.losses.iter().flat_map(|loss| &loss.tasks);
        let lost = named.filter(|task| task.fate == Fate::Lost).map(|task| task.id);
        let now = contents(&self.image);
        lost.filter(|id| now.get(*id).is_some()).collect()
    }

    /// The only loss.
    #[track_caller]
    pub(crate) fn loss(&self) -> &Loss {
        assert_eq!(self.report.losses.len(), 1, "{:#?}", self.report.losses);
        &self.report.losses[0]
    }
}

/// The live tasks.
pub(crate) fn tasks(table: &Table) -> Vec<Task> {
    table.tasks_from(0).map(|task| (**task).clone()).collect()
}

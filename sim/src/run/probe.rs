//! Probes of damage: copies of the disk are damaged and opened. A store may refuse and name the file, report what it
//! left out, or not need the damaged bytes. It must not open with a changed state and no report.

use tickwheel_store::DiskOp;
use tickwheel_store::salvage::{read, write_as};

use super::life::names_a_file;
use super::{Step, World};
use crate::disk::{Fault, SimDisk};
use crate::dump::{Dump, dump};
use crate::oracle::Violation;

impl World {
    /// Two recoveries of one copy give equal states.
    pub(super) fn check_twin(&mut self) -> Step {
        if !self.rng.chance(5) {
            return Ok(());
        }
        let states = [0; 2].map(|_| dump(&self.disk.image(), self.store_options()));
        self.coverage.twins += 1;
        if states[0] == states[1] {
            return Ok(());
        }
        let what = format!("two recoveries differ: {:?} and {:?}", states[0], states[1]);
        Err(Violation { promise: "P10", what, story: Vec::new() })
    }

    /// Flips bits and misplaces sectors of synced bytes, and makes reads fail.
    pub(super) fn probe_damage(&mut self) -> Step {
        let Ok(whole) = dump(&self.disk.image(), self.store_options()) else { return Ok(()) };
        for _ in 0..4 {
            let copy = self.disk.image();
            let story = match self.rng.below(5) {
                0 => self.misread(&copy),
                1 => self.misplace(&copy),
                _ => self.flip(&copy),
            };
            let Some(story) = story else { continue };
            self.coverage.damages += 1;
            // The fault of a read belongs to this copy only. Damaged bytes are in the copy of the copy, too.
            let damaged = copy.image();
            self.judge(&whole, &copy, &story, true)?;
            self.judge_salvage(&whole, damaged, &story)?;
        }
        self.probe_deletions(&whole)
    }

    /// Deletes each log file, and the file that names the newest one. A store that opens such a copy must have
    /// everything; a report of missing parts is not allowed here. The probe draws no random number, so older seeds
    /// keep their runs.
    fn probe_deletions(&mut self, whole: &Dump) -> Step {
        let there: Vec<String> = self.disk.files().into_iter().map(|(name, _)| name).collect();
        let is_of_log = |file: &&String| file.contains("/log-") || file.ends_with("/newest-log");
        for file in there.iter().filter(is_of_log) {
            let copy = self.disk.image();
            copy.delete(file);
            self.coverage.damages += 1;
            let (damaged, story) = (copy.image(), format!("{file} is deleted"));
            self.judge(whole, &copy, &story, false)?;
            self.judge_salvage(whole, damaged, &story)?;
        }
        Ok(())
    }

    /// Opens a copy that has the later writes, but not the writes that lying syncs covered.
    pub(super) fn probe_lies(&mut self) -> Step {
        let (lies, syncs_since) = self.disk.lies();
        // Without later syncs, nothing on the disk can show that the last sync had happened.
        if lies == 0 || syncs_since < 3 {
            return Ok(());
        }
        let honest = self.disk.image();
        honest.crash_keeping(u64::MAX, crate::disk::LastWrite::Whole);
        let Ok(whole) = dump(&honest, self.store_options()) else { return Ok(()) };
        self.coverage.lies += 1;
        self.judge(&whole, &self.disk.after_lies(), "a sync lied", true)
    }

    /// Opens the damaged copy and compares its state with `whole`. `may_report`: whether the store may leave out a
    /// part if its report says so.
    fn judge(&mut self, whole: &Dump, copy: &SimDisk, story: &str, may_report: bool) -> Step {
        let opened = dump(copy, self.store_options());
        self.trace.event(format_args!("{story}: {:?}", opened.as_ref().map(|dump| &dump.reported)));
        let what = match opened {
            Ok(found) if found.state == whole.state => {
                self.coverage.damages_harmless += 1;
                return Ok(());
            }
            Ok(found) if may_report && found.reported.is_some() => {
                self.coverage.damages_reported += 1;
                return Ok(());
            }
            Ok(found) => format!("{story}, silently {}, not {}", found.state, whole.state),
            Err(why) if names_a_file(&self.disk, &why) => {
                self.coverage.damages_refused += 1;
                return Ok(());
            }
            Err(why) => format!("{story}, and the refusal names no file: {why}"),
        };
        Err(Violation { promise: "P8", what, story: Vec::new() })
    }

    /// Salvages the damaged copy. The output has to open. If the salvage calls it whole, it must have everything. The
    /// check draws no random number.
    fn judge_salvage(&mut self, whole: &Dump, mut damaged: SimDisk, story: &str) -> Step {
        self.coverage.salvages += 1;
        let violation = |what: String| Err(Violation { promise: "P8", what, story: Vec::new() });
        let found = match read(&mut damaged, &mut |_| {}) {
            Ok(found) => found,
            // Without the file `meta` nothing can be read.
            Err(error) if error.to_string().contains("meta") => return Ok(()),
            Err(error) => return violation(format!("{story}, and nothing is salvaged: {error}")),
        };
        let out = SimDisk::new();
        let report = match write_as(found, &mut damaged, out.clone(), self.store_options(), &mut |_| {}) {
            Ok(report) => report,
            Err(error) => {
                return violation(format!("{story}, and what was salvaged is not written: {error}"));
            }
        };
        let losses = report.losses.len();
        self.trace.event(format_args!("{story}: salvaged with {losses} losses"));
        match dump(&out, self.store_options()) {
            Ok(found) if losses > 0 || found.state == whole.state => {
                self.coverage.salvages_whole += u64::from(losses == 0);
                Ok(())
            }
            Ok(found) => {
                violation(format!("{story}, salvaged as if whole: {}, not {}", found.state, whole.state))
            }
            Err(why) => violation(format!("{story}, and what was salvaged does not open: {why}")),
        }
    }

    fn misread(&mut self, copy: &SimDisk) -> Option<String> {
        let fault = self.rng.pick(&[Fault::Error, Fault::FlippedRead, Fault::NeighbourRead]);
        let nth = self.rng.between(1, 25);
        copy.fail_nth(DiskOp::Read, nth, fault);
        Some(format!("{fault:?} at read {nth}"))
    }

    fn misplace(&mut self, copy: &SimDisk) -> Option<String> {
        let (file, len) = self.some_file(copy)?;
        let sector = self.rng.index(len.div_ceil(512));
        let last = copy.was_synced_last(&file, &(sector * 512..sector * 512 + 512));
        let changed = !last && copy.misplace_sector(&file, sector);
        changed.then(|| format!("sector {sector} of {file} is its neighbour's"))
    }

    fn flip(&mut self, copy: &SimDisk) -> Option<String> {
        let (file, len) = self.some_file(copy)?;
        // Half of the flips hit the first 6,000 bytes, where the header and the first frames are.
        let within = if self.rng.chance(50) { len } else { len.min(6_000) };
        let byte = self.rng.index(within);
        let bit = self.rng.below(8) as u8;
        if copy.was_synced_last(&file, &(byte..byte + 1)) {
            return None;
        }
        copy.flip_bit(&file, byte, bit);
        Some(format!("a bit of byte {byte} of {file} is another"))
    }

    fn some_file(&mut self, copy: &SimDisk) -> Option<(String, usize)> {
        let files: Vec<_> = copy.files().into_iter().filter(|(_, len)| *len > 0).collect();
        (!files.is_empty()).then(|| files[self.rng.index(files.len())].clone())
    }
}

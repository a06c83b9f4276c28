//! The examination of the segments, each by itself.

use super::examination::{Depth, Examination, SegmentFile, Span};
use super::problem::Problem;
use super::records::Records;
use crate::catalog::Segment;
use crate::checkpoint::Listed;
use crate::checksum::{Seeds, Use};
use crate::codec::Names;
use crate::disk::Disk;
use crate::error::OpenError;
use crate::index::Naming;
use crate::layout::{HEADER_BYTES, segment_file};
use crate::recovery::{of_kind, read_dead, read_footer, read_listed, read_sections};
use crate::segment::{Level, Section, SectionKind, SegmentHeader, read_segment_header};

/// The tools and the results that the inspections of all segments share.
pub(super) struct Inspection<'a, D> {
    pub(super) disk: &'a mut D,
    pub(super) seeds: &'a Seeds,
    pub(super) naming: &'a Naming,
    pub(super) depth: Depth,
    pub(super) found: &'a mut Examination,
}

/// Describes a segment that a recovery has loaded into the catalog.
pub(super) fn of_memory(segment: &Segment) -> SegmentFile {
    let Segment { generation, bucket, moved, len, records, .. } = *segment;
    SegmentFile {
        live: Some(segment.live),
        runs: Some(segment.runs.len() as u64),
        ..of_list(Listed { generation, bucket, moved, len, records })
    }
}

fn of_list(listed: Listed) -> SegmentFile {
    let Listed { generation, bucket, moved, len, records } = listed;
    let span = match bucket.level {
        Level::Overdue => Span::Overdue,
        Level::Hour | Level::Day | Level::Month | Level::Dead => {
            Span::Between(bucket.start(), bucket.end().saturating_plus_ms(1))
        }
    };
    let file = segment_file(generation).to_string();
    SegmentFile { file, bytes: len, generation, span, moved, runs: None, records, live: None }
}

impl<D: Disk> Inspection<'_, D> {
    /// Inspects a segment that is as `listed` says. Checks the parts that can be read, the records only at [`Depth::Records`]. Adds each
    /// problem to the results.
    pub(super) fn inspect(&mut self, listed: Listed) -> SegmentFile {
        let mut segment = of_list(listed);
        match self.check(listed, &segment.file) {
            Ok(runs) => segment.runs = Some(runs),
            Err(error) => self.found.add(error.into()),
        }
        self.disk.close(&segment.file);
        segment
    }

    /// Inspects a segment if no checkpoint can be loaded. Without a checkpoint, it is unknown how many bytes of the file are valid, so the
    /// whole file is checked. `None`: the sections or the header cannot be read. Only a header that is not valid is added as a problem,
    /// because a crash may leave a segment that is not complete.
    pub(super) fn inspect_unlisted(&mut self, generation: u64) -> Option<SegmentFile> {
        let file = segment_file(generation);
        let len = self.disk.len(&file).ok()?;
        let seed = self.seeds.of(Use::Segment(generation));
        let sections = read_sections(self.disk, &file, len, seed).ok()?;
        let records = of_kind(&sections, SectionKind::Run).map(|section| section.tail.count).sum();
        let mut bytes = [0; HEADER_BYTES];
        self.disk.read(&file, 0, &mut bytes).ok()?;
        match read_segment_header(&bytes, generation, self.seeds) {
            Ok(Some(SegmentHeader { bucket, .. })) => {
                Some(self.inspect(Listed { generation, bucket, moved: false, len, records }))
            }
            Ok(None) | Err(_) => {
                self.found.add(Problem::damage(&*file, 0, "the header's checksum does not match"));
                None
            }
        }
    }

    /// Checks a segment, and adds problems to the results. Returns how many runs the segment has, or the problem that ended the check.
    fn check(&mut self, listed: Listed, file: &str) -> Result<u64, OpenError> {
        let Listed { generation, bucket, len, records, .. } = listed;
        let (disk, found) = (&mut *self.disk, &mut *self.found);
        let sections = read_listed(disk, listed, self.seeds, |error| {
            found.add(error.into());
            Ok(())
        })?;
        let seed = self.seeds.of(Use::Segment(generation));
        let dead = self.tombstones(file, &sections, seed);
        let (mut runs, mut count) = (0, 0);
        let mut names = Names::new();
        let mut starts = Vec::new();
        for section in of_kind(&sections, SectionKind::Run) {
            runs += 1;
            count += section.tail.count;
            match read_footer(self.disk, file, section, seed, &mut names) {
                Ok(footer) => {
                    let start = section.tail.start;
                    starts.extend(footer.entries.iter().map(|entry| start + u64::from(entry.at)));
                    if self.depth != Depth::Opening {
                        let (tail, naming) = (section.tail, self.naming);
                        let mut records =
                            Records { file, bucket, tail, footer: &footer, seed, naming, names: &mut names };
                        let checked = records.check(self.disk, self.found);
                        self.found.checked_bytes = self.found.checked_bytes.map(|bytes| bytes + checked);
                    }
                }
                Err(error) => {
                    self.found.add(error.into());
                    // Without the footer, it is unknown where records begin in this run, so all tombstones of the run are taken as right.
                    starts.extend(
                        dead.iter().filter(|at| section.tail.start <= **at && **at < section.tail.footer_at),
                    );
                }
            }
        }
        starts.sort_unstable();
        if let Some(stray) = dead.iter().find(|offset| starts.binary_search(offset).is_err()) {
            self.found.add(Problem::damage(file, *stray, "a tombstone stands for no record here"));
        }
        if count != records {
            return Err(OpenError::corrupt(file, len, "it has other records than the checkpoint counts on"));
        }
        Ok(runs)
    }

    /// Returns the offsets of dead records from all tombstone sections that can be read. Adds a problem for each section that cannot be
    /// read.
    fn tombstones(&mut self, file: &str, sections: &[Section], seed: u32) -> Vec<u64> {
        let mut dead = Vec::new();
        for section in of_kind(sections, SectionKind::Tombstones) {
            match read_dead(self.disk, file, section, seed) {
                Ok(offsets) => dead.extend(offsets),
                Err(error) => self.found.add(error.into()),
            }
        }
        dead
    }
}

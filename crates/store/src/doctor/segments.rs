//! The segments, each looked at separately.

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

/// The tools and the results that the looks at all segments share.
pub(super) struct Inspection<'a, D> {
    pub(super) disk: &'a mut D,
    pub(super) seeds: &'a Seeds,
    pub(super) naming: &'a Naming,
    pub(super) depth: Depth,
    pub(super) found: &'a mut Examination,
}

/// A segment as an opening knows it.
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
    /// Inspects a segment that the checkpoint lists. Every part that can be read is checked.
    pub(super) fn inspect(&mut self, listed: Listed) -> SegmentFile {
        let mut segment = of_list(listed);
        match self.check(listed, &segment.file) {
            Ok(runs) => segment.runs = Some(runs),
            Err(error) => self.found.add(error.into()),
        }
        self.disk.close(&segment.file);
        segment
    }

    /// Inspects a segment that no checkpoint lists, so that no bytes of it are known to count. The whole file is checked, if it ends like a
    /// finished one.
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

    /// Checks a segment. Returns how many runs it has.
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
                    // The records of these tombstones cannot be told.
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

    /// The offsets of dead records, of all sections of tombstones that can be read.
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

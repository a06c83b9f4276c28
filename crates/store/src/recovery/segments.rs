//! Loads the segments of a checkpoint from the footers of the segments.

use std::sync::Arc;

use crate::catalog::{Catalog, Segment};
use crate::checkpoint::{Listed, Loaded};
use crate::checksum::{Seeds, Use, crc};
use crate::codec::{DecodeError, Names};
use crate::disk::Disk;
use crate::error::OpenError;
use crate::layout::{HEADER_BYTES, segment_file, zeroes};
use crate::segment::{
    FORMAT, Footer, Run, Section, SectionKind, SegmentHeader, TAIL_BYTES, Tail, read_segment_header,
    read_tombstones,
};

/// Loads the segments of a checkpoint into the catalog. Returns the segment files that the checkpoint does not list. A crash leaves such
/// files if it interrupts a checkpoint, or the removal of files that are not needed any more.
///
/// No record is read: the footer of each run says where the records of the run are.
///
/// # Errors
/// [`OpenError::Corrupt`] if a segment that the checkpoint lists is missing, damaged, or different from the list; or the errors of
/// [`read_listed`].
pub(super) fn load_segments<D: Disk>(
    disk: &mut D,
    catalog: &mut Catalog,
    found: &[u64],
    loaded: &Loaded,
    seeds: &Seeds,
) -> Result<Vec<Arc<str>>, OpenError> {
    // A record and its entry have more than 32 bytes. A list with too many records for its bytes is wrong, and no memory is reserved for
    // the records beyond.
    let most = |segment: &Listed| segment.records.min(segment.len / 32);
    let all: u64 = loaded.segments.iter().map(most).fold(0, u64::saturating_add);
    let on_disk = found.iter().map(|generation| disk.len(&segment_file(*generation)).unwrap_or(0));
    let bytes = on_disk.fold(0, u64::saturating_add);
    catalog.expect_tasks(all.min(bytes / 32));
    let mut names = Names::new();
    for listed in &loaded.segments {
        load_segment(disk, catalog, *listed, seeds, &mut names)?;
    }
    let is_listed =
        |generation: &&u64| loaded.segments.iter().any(|listed| listed.generation == **generation);
    Ok(found
        .iter()
        .filter(|generation| !is_listed(generation))
        .map(|generation| segment_file(*generation))
        .collect())
}

fn load_segment<D: Disk>(
    disk: &mut D,
    catalog: &mut Catalog,
    listed: Listed,
    seeds: &Seeds,
    names: &mut Names,
) -> Result<(), OpenError> {
    let Listed { generation, bucket, moved, len, records } = listed;
    let file = segment_file(generation);
    let seed = seeds.of(Use::Segment(generation));
    let corrupt = |offset: u64, what: &str| OpenError::corrupt(&*file, offset, what);
    // A wrong header ends the load with an error.
    let sections = read_listed(disk, listed, seeds, Err)?;
    let mut dead = Vec::new();
    for section in of_kind(&sections, SectionKind::Tombstones) {
        dead.extend(read_dead(disk, &file, section, seed)?);
    }
    dead.sort_unstable();

    let slot = catalog.segments.add(Segment { len, ..Segment::new(generation, bucket, moved) });
    let mut dead = dead.into_iter().peekable();
    for section in of_kind(&sections, SectionKind::Run) {
        let Section { tail, .. } = *section;
        let footer = read_footer(disk, &file, section, seed, names)?;
        let last = footer.last.ok_or_else(|| corrupt(tail.footer_at, "a run without a record"))?;
        let inside = |at: u32| tail.start + u64::from(at) < tail.footer_at;
        if !footer.entries.iter().all(|entry| inside(entry.at)) {
            return Err(corrupt(tail.footer_at, "an entry that points beyond the records"));
        }
        let run = Run::new(tail.start, tail.footer_at, last, footer.blocks.clone());
        catalog.segments.get_mut(slot).add_run(run, tail.count);
        let mut of_run = std::iter::from_fn(|| dead.next_if(|offset| *offset < tail.footer_at));
        let taken = catalog.load_run(slot, tail.start, &footer, &mut of_run);
        taken.map_err(|what| corrupt(tail.footer_at, &what))?;
    }
    if dead.next().is_some() || catalog.segments.get(slot).records != records {
        return Err(corrupt(len, "it has other records than the checkpoint counts on"));
    }
    disk.close(&file);
    Ok(())
}

/// Reads the sections of a segment that a checkpoint lists, first to last. `bad_header` gets the error of a wrong header, and decides
/// whether the reading ends: the sections can be read without the header.
///
/// # Errors
/// [`OpenError::Corrupt`], [`OpenError::NewerFormat`], [`OpenError::Io`].
pub(crate) fn read_listed<D: Disk>(
    disk: &mut D,
    listed: Listed,
    seeds: &Seeds,
    bad_header: impl FnOnce(OpenError) -> Result<(), OpenError>,
) -> Result<Vec<Section>, OpenError> {
    let Listed { generation, bucket, len, .. } = listed;
    let file = segment_file(generation);
    let corrupt = |offset: u64, what: &str| OpenError::corrupt(&*file, offset, what);
    if !disk.exists(&file)? {
        return Err(corrupt(0, "it is missing, and the checkpoint counts on it"));
    }
    let mut bytes = [0; HEADER_BYTES];
    disk.read(&file, 0, &mut bytes)?;
    match read_segment_header(&bytes, generation, seeds) {
        Ok(Some(header)) if header == (SegmentHeader { generation, bucket }) => {}
        Ok(_) => bad_header(corrupt(0, "the header's checksum does not match"))?,
        Err(found) => return Err(OpenError::other_format(&file, found, FORMAT)),
    }
    let there = disk.len(&file)?;
    if there < len {
        return Err(corrupt(there, "it ends before what the checkpoint counts on"));
    }
    read_sections(disk, &file, len, seeds.of(Use::Segment(generation)))
}

/// Returns the sections of this kind, in their order.
pub(crate) fn of_kind(sections: &[Section], kind: SectionKind) -> impl Iterator<Item = &Section> {
    sections.iter().filter(move |section| section.tail.kind == kind)
}

/// Finds the sections in the first `len` bytes of a file, by their tails, from the end backward. Returns the sections, first to last.
///
/// # Errors
/// [`OpenError::Corrupt`], [`OpenError::Io`].
pub(crate) fn read_sections<D: Disk>(
    disk: &mut D,
    file: &str,
    len: u64,
    seed: u32,
) -> Result<Vec<Section>, OpenError> {
    let mut sections = Vec::new();
    let mut end = len;
    while end > HEADER_BYTES as u64 {
        let tail_at = end.saturating_sub(TAIL_BYTES as u64);
        let mut bytes = [0; TAIL_BYTES];
        let count = disk.read(file, tail_at, &mut bytes)?;
        let tail =
            Tail::read(&bytes[..count], tail_at, seed).filter(|tail| tail.start >= HEADER_BYTES as u64);
        let Some(tail) = tail else {
            return Err(OpenError::corrupt(file, tail_at, "the end of a section does not check out"));
        };
        sections.push(Section { tail, tail_at });
        end = tail.start;
    }
    if end != HEADER_BYTES as u64 {
        return Err(OpenError::corrupt(file, end, "the sections do not reach the header"));
    }
    sections.reverse();
    Ok(sections)
}

/// Reads the footer of a run.
///
/// # Errors
/// [`OpenError::Corrupt`], [`OpenError::Io`].
pub(crate) fn read_footer<D: Disk>(
    disk: &mut D,
    file: &str,
    section: &Section,
    seed: u32,
    names: &mut Names,
) -> Result<Footer, OpenError> {
    let bytes = footer_bytes(disk, file, section, seed)?;
    Footer::read(&bytes, section.tail.count, names).map_err(|error| undecoded(file, section, &error))
}

/// Reads the offsets of the dead records from a section of tombstones.
///
/// # Errors
/// [`OpenError::Corrupt`], [`OpenError::Io`].
pub(crate) fn read_dead<D: Disk>(
    disk: &mut D,
    file: &str,
    section: &Section,
    seed: u32,
) -> Result<Vec<u64>, OpenError> {
    let bytes = footer_bytes(disk, file, section, seed)?;
    read_tombstones(&bytes, section.tail.count).map_err(|error| undecoded(file, section, &error))
}

fn undecoded(file: &str, section: &Section, error: &DecodeError) -> OpenError {
    OpenError::corrupt(file, section.tail.footer_at, error.to_string())
}

fn footer_bytes<D: Disk>(
    disk: &mut D,
    file: &str,
    section: &Section,
    seed: u32,
) -> Result<Vec<u8>, OpenError> {
    let mut bytes = zeroes(section.footer_bytes());
    let count = disk.read(file, section.tail.footer_at, &mut bytes)?;
    if count < bytes.len() || crc(seed, &bytes) != section.tail.footer_sum {
        return Err(OpenError::corrupt(file, section.tail.footer_at, "a footer's checksum does not match"));
    }
    Ok(bytes)
}

use tickwheel_engine::{DueHistogram, DueKey, Filter, Grid, Page, QueueName};

use super::super::fixtures::{add_far, catalog, only_job, setup};
use super::*;
use crate::io::Call;
use crate::options::AckLevel;

const ALL: Request = Request::ScanDue { after: DueKey::START, until: Timestamp::MAX, max: 10 };

fn view<'a>(catalog: &'a Catalog, setup: &'a Setup, jobs: &'a mut Jobs, settling: bool) -> View<'a> {
    View { catalog, setup, jobs, settling, parks: settling }
}

fn reply(answer: Option<Answer>) -> Reply {
    match answer {
        Some(Answer { outcome: Outcome::Reply(reply), .. }) => reply,
        other => panic!("{other:?}"),
    }
}

/// Returns the bytes that the calls of a job read from `run`, the only run of the segment.
fn reads(calls: &[Call], run: &[u8]) -> Vec<Vec<u8>> {
    let start = crate::layout::HEADER_BYTES as u64;
    let read = |call: &Call| match call {
        Call::Read { offset, bytes, .. } => {
            let from = (*offset - start) as usize;
            run[from..run.len().min(from + bytes)].to_vec()
        }
        other => panic!("{other:?}"),
    };
    calls.iter().map(read).collect()
}

#[test]
fn a_look_up_that_memory_answers_makes_no_job() {
    let (setup, mut jobs, mut reader) = (setup(AckLevel::Fsync), Jobs::default(), Reader::new());
    let catalog = catalog();
    let answer =
        reader.look_up(RequestId(1), vec![Wanted::Id(1)], &mut view(&catalog, &setup, &mut jobs, false));
    assert!(matches!(reply(answer), Reply::Found(found) if found == [Found::Absent]));
    assert_eq!(jobs.take_ready().count(), 0);
}

#[test]
fn a_page_reads_its_run_once_and_the_next_page_goes_on_in_it() {
    let (setup, mut jobs, mut reader) = (setup(AckLevel::Fsync), Jobs::default(), Reader::new());
    let mut catalog = catalog();
    let run = add_far(&mut catalog, &setup, &[1, 2, 3]);
    let first = Request::ScanDue { after: DueKey::START, until: Timestamp::MAX, max: 2 };
    let mut seen = view(&catalog, &setup, &mut jobs, false);
    assert!(reader.scan(RequestId(1), first, &mut seen).is_none());
    let job = only_job(&mut jobs);
    assert!(reader.has(job.id) && reader.is_scanning() && !reader.is_over(1));
    let mut seen = view(&catalog, &setup, &mut jobs, false);
    let Reply::Page(Page { tasks, next: Some(next), .. }) =
        reply(reader.completed(job.id, Ok(reads(&job.calls, &run)), &mut seen))
    else {
        panic!("a page with more behind it");
    };
    assert_eq!(tasks.iter().map(|task| task.id).collect::<Vec<_>>(), [1, 2]);
    assert!(reader.is_over(1));
    let second = Request::ScanDue { after: next, until: Timestamp::MAX, max: 2 };
    let Reply::Page(page) = reply(reader.scan(RequestId(2), second, &mut seen)) else { panic!("a page") };
    assert_eq!((page.tasks.len(), page.tasks[0].id, page.next), (1, 3, None));
    assert_eq!(jobs.take_ready().count(), 0, "the block was read already");
}

#[test]
fn a_damaged_record_is_named_and_not_answered() {
    let (setup, mut jobs, mut reader) = (setup(AckLevel::Fsync), Jobs::default(), Reader::new());
    let mut catalog = catalog();
    let mut run = add_far(&mut catalog, &setup, &[1]);
    run[20] ^= 1;
    let mut seen = view(&catalog, &setup, &mut jobs, false);
    assert!(reader.look_up(RequestId(1), vec![Wanted::Id(1)], &mut seen).is_none());
    let job = only_job(&mut jobs);
    let mut seen = view(&catalog, &setup, &mut jobs, false);
    let answer = reader.completed(job.id, Ok(reads(&job.calls, &run)), &mut seen).expect("it is over");
    let Outcome::Failed(why) = answer.outcome else { panic!("{answer:?}") };
    assert!(why.contains("damaged at byte 64"), "{why}");
}

#[test]
fn a_page_waits_for_those_under_way_while_memory_takes_a_checkpoint_over() {
    let (setup, mut jobs, mut reader) = (setup(AckLevel::Fsync), Jobs::default(), Reader::new());
    let mut catalog = catalog();
    let run = add_far(&mut catalog, &setup, &[1]);
    let mut seen = view(&catalog, &setup, &mut jobs, true);
    assert!(reader.scan(RequestId(1), ALL, &mut seen).is_none());
    assert!(reader.scan(RequestId(2), ALL, &mut seen).is_none());
    assert!(reader.scan(RequestId(3), ALL, &mut seen).is_none());
    assert_eq!(reader.take_parked(true).len(), 0, "the first page is still being read");
    let job = only_job(&mut jobs);
    let mut seen = view(&catalog, &setup, &mut jobs, true);
    reply(reader.completed(job.id, Ok(reads(&job.calls, &run)), &mut seen));
    catalog.segments.rearranged();
    let parked = reader.take_parked(true);
    assert_eq!(parked.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [RequestId(2), RequestId(3)]);
    let mut seen = view(&catalog, &setup, &mut jobs, true);
    for (id, request) in parked {
        assert!(reader.begin_scan(id, request, &mut seen).is_none());
    }
    assert_eq!(jobs.take_ready().count(), 2, "the parked pages are read at the same time");
}

#[test]
fn a_histogram_counts_blocks_unread_unless_a_record_may_stand_in_two_places() {
    let (setup, mut jobs, mut reader) = (setup(AckLevel::Fsync), Jobs::default(), Reader::new());
    let mut catalog = catalog();
    add_far(&mut catalog, &setup, &[1, 2]);
    let grid = Grid::Even { width_ms: 5_000, buckets: 1 };
    let after = Timestamp::EPOCH;
    let histogram = DueHistogram { queue: None, after, from: after, grid };
    let mut seen = view(&catalog, &setup, &mut jobs, false);
    let Reply::Counts { counts, counted: None } =
        reply(reader.scan(RequestId(1), Request::Count(histogram.clone()), &mut seen))
    else {
        panic!("all is counted at once");
    };
    assert_eq!(counts.iter().sum::<u64>(), 2);
    let mut seen = view(&catalog, &setup, &mut jobs, true);
    assert!(reader.scan(RequestId(2), Request::Count(histogram), &mut seen).is_none(), "the block is read");
}

#[test]
fn a_filter_passes_by_the_tasks_of_other_queues() {
    let (setup, mut jobs, mut reader) = (setup(AckLevel::Fsync), Jobs::default(), Reader::new());
    let mut catalog = catalog();
    let run = add_far(&mut catalog, &setup, &[1, 2]);
    let queue = QueueName::new("other").expect("a name");
    let (due_from, due_to) = (Timestamp::EPOCH, Timestamp::MAX);
    let filter = Filter { queue, dead: false, due_from, due_to };
    let request = Request::ScanFilter { filter, after: DueKey::START, max: 10 };
    let mut seen = view(&catalog, &setup, &mut jobs, false);
    assert!(reader.scan(RequestId(1), request, &mut seen).is_none());
    let job = only_job(&mut jobs);
    let mut seen = view(&catalog, &setup, &mut jobs, false);
    let answer = reader.completed(job.id, Ok(reads(&job.calls, &run)), &mut seen);
    assert!(matches!(reply(answer), Reply::Page(page) if page == Page::default()));
}

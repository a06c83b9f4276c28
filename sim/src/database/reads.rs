//! The reads: one snapshot of one shard.

use std::collections::BTreeMap;

use tickwheel_engine::{DueHistogram, DueKey, Key, QueueName, Seq, Timestamp, Wanted};
use tickwheel_postgres::database::{KeyRow, Read, ReadResult, Rows, TaskRow};

use super::tables::{Row, ShardRows};

impl ShardRows {
    /// Answers a question. `counted_max`: how many due times one answer counts at most.
    pub(super) fn read(&self, read: &Read, counted_max: usize) -> ReadResult {
        let rows = match read {
            Read::Find(wanted) => {
                Rows::Found(wanted.iter().map(|wanted| self.find(wanted).map(task)).collect())
            }
            Read::ScanDue { after, until, max } => self.page(*after, until.as_ms(), *max, &|_: &Row| true),
            Read::ScanFilter { filter, after, max } => {
                let start = DueKey { due_at: filter.due_from, put_seq: Seq::ZERO };
                let wants = |row: &Row| row.queue == filter.queue && row.dead == filter.dead;
                self.page(start.max(*after), filter.due_to.as_ms(), *max, &wants)
            }
            Read::Count(histogram) => self.count(histogram, counted_max),
            Read::History => {
                Rows::History(self.rollups.values().map(|rollup| (rollup.no, rollup.ended.clone())).collect())
            }
            Read::Keys { of, max } => Rows::Keys(of.iter().flat_map(|of| self.keys_of(of, *max)).collect()),
        };
        ReadResult { epoch: self.epoch, no: self.last_no(), rows }
    }

    fn find(&self, wanted: &Wanted) -> Option<&Row> {
        let id = match wanted {
            Wanted::Id(id) => i64::try_from(*id).ok()?,
            Wanted::Key(queue, key) => *self.keys.get(&(queue.clone(), key.clone()))?,
        };
        self.tasks.get(&id).map(|row| &**row)
    }

    /// The first keys of a queue behind one.
    fn keys_of(&self, (queue, after): &(QueueName, String), max: usize) -> Vec<KeyRow> {
        let keys = self.keys.iter().filter(|((of, key), _)| of == queue && key.as_str() > after.as_str());
        let row = |((queue, key), id): (&(QueueName, Key), &i64)| KeyRow {
            queue: queue.as_str().to_owned(),
            key: key.as_str().to_owned(),
            id: *id,
        };
        keys.take(max).map(row).collect()
    }

    /// The rows that are wanted in the order of their due keys, behind `after` and up to `until`.
    fn in_order(&self, after: DueKey, until: i64, wants: &dyn Fn(&Row) -> bool) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.tasks.values().map(|row| &**row).collect();
        rows.retain(|row| wants(row) && due_key(row) > after && row.due_at <= until);
        rows.sort_by_key(|row| due_key(row));
        rows
    }

    fn page(&self, after: DueKey, until: i64, max: usize, wants: &dyn Fn(&Row) -> bool) -> Rows {
        let rows = self.in_order(after, until, wants);
        Rows::Page { tasks: rows.iter().take(max).map(|row| task(row)).collect(), more: rows.len() > max }
    }

    fn count(&self, histogram: &DueHistogram, counted_max: usize) -> Rows {
        let wants = |row: &Row| histogram.queue.as_ref().is_none_or(|queue| row.queue == *queue);
        let rows = self.in_order(histogram.start(), histogram.end().as_ms(), &wants);
        let mut dues: BTreeMap<i64, u64> = BTreeMap::new();
        let mut counted = None;
        for (looked, row) in rows.into_iter().enumerate() {
            // A due time is counted as a whole, because the next question begins behind it.
            let last = dues.keys().next_back().copied();
            if let Some(last) = last.filter(|last| looked >= counted_max && row.due_at > *last) {
                counted = Some(last);
                break;
            }
            *dues.entry(row.due_at).or_default() += u64::from(!row.dead);
        }
        Rows::Dues { dues: dues.into_iter().collect(), counted }
    }
}

fn due_key(row: &Row) -> DueKey {
    let due_at = Timestamp::from_ms(row.due_at).expect("the store writes no due time before 1970");
    DueKey { due_at, put_seq: Seq(row.put_seq.cast_unsigned()) }
}

fn task(row: &Row) -> TaskRow {
    TaskRow { record: row.record.clone(), body: row.body.clone() }
}

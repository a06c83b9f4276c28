//! The content of a store on a disk, read by the requests that an engine makes.

use tickwheel_engine::{DueKey, Reply, Request, RequestId, ShardId, ShardStore, Timestamp, Wanted};
use tickwheel_store::{DiskStore, InlineIo, StoreOptions};

use crate::disk::SimDisk;

/// Everything that a recovery finds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Dump {
    /// Every task by its due instant, and the data of each id, as text that can be compared.
    pub(crate) state: String,
    /// The text of the loss that the recovery reports, if it reports one.
    pub(crate) reported: Option<String>,
}

/// A number of polls that no request needs.
const POLLS_MAX: usize = 400;

/// Opens a store on `disk` and reads everything it has. `Err`: the refusal to open, as the owner of the disk would see it.
pub(crate) fn dump(disk: &SimDisk, options: StoreOptions) -> Result<Dump, String> {
    let mut store =
        DiskStore::open(disk.clone(), InlineIo::new(), options).map_err(|error| error.to_string())?;
    let report = store.recovery_report();
    let torn = report.torn.as_ref().map(|torn| format!("{torn:?}"));
    let damaged = report.damaged_checkpoint.clone();
    let reported = [torn, damaged].into_iter().flatten().reduce(|one, other| format!("{one}, {other}"));
    let wall = Timestamp::from_ms(1_000).unwrap_or(Timestamp::EPOCH);
    let Reply::Acquired(acquired) = ask(&mut store, Request::Acquire { shard: ShardId::ONLY, wall })? else {
        return Err("the shard is not to be had".to_owned());
    };
    let mut state =
        format!("{:?} {:?} {:?}", acquired.page.queues, acquired.page.leased, acquired.ownership.last_seq);
    let mut after = DueKey::START;
    let mut last_id = 0;
    loop {
        let reply = ask(&mut store, Request::ScanDue { after, until: Timestamp::MAX, max: 7 })?;
        let Reply::Page(page) = reply else { return Err(format!("a scan was answered {reply:?}")) };
        for task in &page.tasks {
            state += &format!("\n{task:?}");
            last_id = last_id.max(task.id);
        }
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    let ids = (1..=last_id + 20).map(Wanted::Id).collect();
    let Reply::Found(found) = ask(&mut store, Request::GetMany(ids))? else {
        return Err("a look-up was not answered with what was found".to_owned());
    };
    state += &format!("\n{found:?}");
    Ok(Dump { state, reported })
}

fn ask(store: &mut DiskStore<SimDisk, InlineIo<SimDisk>>, request: Request) -> Result<Reply, String> {
    store.submit(RequestId(1), request);
    let mut replies = Vec::new();
    for _ in 0..POLLS_MAX {
        store.poll(&mut replies);
        match replies.pop() {
            Some((_, Reply::Failed { why })) => return Err(why),
            Some((_, reply)) => return Ok(reply),
            None => {}
        }
    }
    Err("no answer".to_owned())
}

//! One process's work: a store is filled, and then measured.

use std::path::Path;
use std::rc::Rc;

use anyhow::bail;
use tickwheel_queue::{Cancel, Put, Queue, QueueName, Timestamp};

use super::clients::{self, Clients};
use super::feed::fill;
use super::ours::Ours;
use super::peer::Peer;
use super::place::check_room;
use super::record::{Keys, PAYLOAD_BYTES, QUEUE, Records, payload, wall};
use super::scene::Scene;
use super::subject::Keeper;
use super::workload::{Visit, Workload};
use super::{batches, drain, life, lookup, memory, pairs, raw, reopen, window, worst};
use crate::sample::Sample;
use crate::scratch::Scratch;
use crate::web::{WebClient, WebServer};

/// What was measured of each workload.
pub(crate) type Samples = Vec<(Workload, Sample)>;

/// Does it with a store.
pub(crate) fn keeper<K: Keeper>(visit: &Visit, name: &str) -> anyhow::Result<Samples> {
    let data = Scratch::new(&visit.dir, "data")?;
    check_room(data.path(), bytes_most(visit.n))?;
    match visit.workloads[..] {
        [Workload::S8] => return one(visit, memory::sample::<K>(data.path(), visit.n, Keys::Server)),
        [Workload::S8Own] => return one(visit, memory::sample::<K>(data.path(), visit.n, Keys::Own)),
        [Workload::S9] => return one(visit, life::sample::<K>(data.path(), visit.n)),
        [Workload::S10] => return one(visit, reopen::sample::<K>(data.path(), visit.n, name)),
        _ => {}
    }
    let mut keeper = K::open(data.path(), wall())?;
    let records = Records::new(Keys::Own)?;
    let filled = fill(&mut keeper, &records, 0..visit.n)?;
    keeper.rest()?;
    let mut scene = Scene {
        keeper,
        records,
        next: visit.n,
        n: visit.n,
        moved: Timestamp::EPOCH,
        span: visit.span,
        data: data.path(),
        dir: &visit.dir,
        filled,
    };
    let mut samples = Samples::new();
    for &workload in &visit.workloads {
        let sample = match workload {
            Workload::S1 => clients::puts_of(&mut scene)?,
            Workload::S2 => batches::sample(&mut scene)?,
            Workload::S3 => pairs::sample(&mut scene)?,
            Workload::S4 => drain::sample(&mut scene)?,
            Workload::S5 => lookup::sample(&mut scene)?,
            Workload::S6 => window::sample(&mut scene)?,
            Workload::S7 => worst::sample(&mut scene)?,
            other => bail!("{} is not done with others", other.name()),
        };
        samples.push((workload, sample));
    }
    scene.keeper.close()?;
    Ok(samples)
}

/// Does what 64 clients of a queue do. The tasks before theirs are put through the store, which is faster.
pub(crate) fn queue(visit: &Visit, _name: &str) -> anyhow::Result<Samples> {
    let data = Scratch::new(&visit.dir, "data")?;
    let records = filled(visit, data.path())?;
    let queue = Queue::open(data.path())?;
    let line = QueueName::new(QUEUE)?;
    let put = |n| {
        let record = records.get(n, wall())?;
        queue.put(Put::new(&line, record.key).at(record.due_at).payload(payload(n))).wait()?;
        Ok(())
    };
    let cancel = |n| Ok(queue.cancel(Cancel::new(&line, records.key(n)?)).wait().map(drop)?);
    let (mut samples, mut next) = (Samples::new(), visit.n);
    for &workload in &visit.workloads {
        let sample = match workload {
            Workload::S1 => {
                clients::puts_beside(&visit.dir, &mut next, visit.span, |clients| clients.puts(put))?
            }
            Workload::S3 => {
                let done = Clients { first: next, span: visit.span }.pairs(put, cancel)?;
                next += done.count;
                let mut sample = Sample::default();
                clients::pairs_sample(&mut sample, done);
                sample
            }
            other => bail!("a queue has no part in {}", other.name()),
        };
        samples.push((workload, sample));
    }
    queue.close();
    Ok(samples)
}

/// Does what 64 clients of a queue do that are futures on one thread.
pub(crate) fn queue_async(visit: &Visit, _name: &str) -> anyhow::Result<Samples> {
    let data = Scratch::new(&visit.dir, "data")?;
    let records = Rc::new(filled(visit, data.path())?);
    let queue = Queue::open(data.path())?;
    let line = QueueName::new(QUEUE)?;
    let mut next = visit.n;
    let sample = clients::puts_beside(&visit.dir, &mut next, visit.span, |clients| {
        let (queue, line, records) = (queue.clone(), line.clone(), Rc::clone(&records));
        clients.each_async(move |n| {
            let put = records
                .get(n, wall())
                .map(|record| queue.put(Put::new(&line, record.key).at(record.due_at).payload(payload(n))));
            async { Ok(put?.await.map(drop)?) }
        })
    });
    queue.close();
    one(visit, sample)
}

/// Does what 64 clients of the peer do if nobody gathers what they put: each commits its own batch.
pub(crate) fn peer_alone(visit: &Visit, _name: &str) -> anyhow::Result<Samples> {
    let data = Scratch::new(&visit.dir, "data")?;
    check_room(data.path(), bytes_most(visit.n))?;
    let mut peer = Peer::open(data.path(), wall())?;
    let records = Records::new(Keys::Own)?;
    fill(&mut peer, &records, 0..visit.n)?;
    peer.rest()?;
    let mut next = visit.n;
    let sample = clients::puts_beside(&visit.dir, &mut next, visit.span, |clients| {
        clients.puts(|n| peer.put_alone(n, records.get(n, wall())?))
    });
    peer.close()?;
    one(visit, sample)
}

/// Does what 64 clients do over HTTP, a connection each.
pub(crate) fn web(visit: &Visit, _name: &str) -> anyhow::Result<Samples> {
    let data = Scratch::new(&visit.dir, "data")?;
    filled(visit, data.path())?;
    let server = WebServer::start(data.path())?;
    let text = "x".repeat(PAYLOAD_BYTES - 2);
    let mut next = visit.n;
    let sample = clients::puts_beside(&visit.dir, &mut next, visit.span, |clients| {
        clients.each(
            || WebClient::connect(server.address),
            |client, n| client.put(&format!("web-{n}"), &format!("\"{text}\"")),
        )
    })?;
    drop(server);
    one(visit, Ok(sample))
}

/// Does what the disk does alone.
pub(crate) fn disk(visit: &Visit, _name: &str) -> anyhow::Result<Samples> {
    let mut sample = Sample::default();
    sample.figure("stream_mb_s", raw::stream(&visit.dir)?);
    for (name, bytes) in [("4k", 4 << 10), ("16k", 16 << 10), ("256k", 256 << 10)] {
        let times = raw::overwrite_and_sync(&visit.dir, bytes, visit.span)?;
        sample.figure(&format!("sync_{name}_s"), times.per_second());
        sample.figure(&format!("worst_{name}_ms"), times.quantile_ms(1.0));
        sample.measured += times.len() as u64;
    }
    one(visit, Ok(sample))
}

/// Puts all that has to be pending, and closes the store.
fn filled(visit: &Visit, data: &Path) -> anyhow::Result<Records> {
    check_room(data, bytes_most(visit.n))?;
    let mut store = Ours::open(data, wall())?;
    let records = Records::new(Keys::Own)?;
    fill(&mut store, &records, 0..visit.n)?;
    store.close()?;
    Ok(records)
}

fn one(visit: &Visit, sample: anyhow::Result<Sample>) -> anyhow::Result<Samples> {
    Ok(vec![(visit.workloads[0], sample?)])
}

/// What a store may take on the disk: a task of some 260 B, three times and a half, and its log.
const fn bytes_most(n: u64) -> u64 {
    n * 900 + (1 << 30)
}

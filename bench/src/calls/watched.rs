//! A server with one thread for calls, and a probe that takes turns with them on it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use tickwheel_queue::{Key, Put, Queue, QueueName, Timestamp};
use tickwheel_server::{Beanstalk, Config, JOB_BYTES_MAX, ListenAt, Server, Store};

use crate::cpu::CpuTime;

/// Takes a figure: the name of the call, microseconds.
pub(super) type Take<'a> = &'a mut dyn FnMut(&str, f64);

/// The probe takes this many turns after a call before its figure is read, so that what the call left to do is in it.
const TURNS_AFTER: u64 = 1_000;

/// Nanoseconds of processor time, and turns.
#[derive(Debug, Default)]
struct Noted {
    longest: AtomicU64,
    turns: AtomicU64,
}

/// A server in memory. It stops when this is dropped.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) http: SocketAddr,
    pub(super) beanstalk: SocketAddr,
    queue: Queue,
    on: tokio::runtime::Handle,
    noted: Arc<Noted>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Watched {
    /// Starts it; with a file of tokens, if there is one.
    pub(super) fn start(token_file: Option<&Path>) -> anyhow::Result<Self> {
        let here: ListenAt = SocketAddr::from(([127, 0, 0, 1], 0)).into();
        let beanstalk =
            Beanstalk { listen: here.clone(), job_bytes_max: JOB_BYTES_MAX, ..Beanstalk::default() };
        let mut config = Config::new(Store::Memory);
        config.listen = here;
        config.beanstalk = Some(beanstalk);
        config.token_file = token_file.map(Path::to_owned);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("start a runtime")?;
        let server = runtime.block_on(Server::bind(config)).context("start a server")?;
        let ListenAt::Tcp(http) = *server.local_addr() else { bail!("the server is not at an address") };
        let Some(&ListenAt::Tcp(beanstalk)) = server.door("beanstalk") else {
            bail!("the other door is not at an address")
        };
        let (queue, on) = (server.queue().clone(), runtime.handle().clone());
        let noted = Arc::<Noted>::default();
        runtime.spawn(probe(Arc::clone(&noted)));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            runtime.block_on(server.run(async {
                // Dropping the sender stops it as well.
                let _ = stopped.await;
            }));
            runtime.shutdown_timeout(Duration::from_secs(1));
        });
        Ok(Self { http, beanstalk, queue, on, noted, stop: Some(stop), thread: Some(thread) })
    }

    /// Microseconds of processor time that the thread of the calls worked at most between two turns of the probe, while `call` ran.
    pub(super) fn longest_us(&self, call: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
        self.wait_turns(TURNS_AFTER);
        self.noted.longest.store(0, Ordering::Relaxed);
        call()?;
        self.wait_turns(TURNS_AFTER);
        Ok(self.noted.longest.load(Ordering::Relaxed) as f64 / 1e3)
    }

    /// Puts a task into each of this many queues, past the sockets.
    pub(super) fn fill_queues(&self, queues: usize) -> anyhow::Result<()> {
        let due = Timestamp::from_ms(4_000_000_000_000).context("an instant")?;
        self.on.block_on(async {
            let mut under_way = Vec::new();
            for index in 0..queues {
                let name = QueueName::new(&format!("queue-{index:0>100}"))?;
                under_way.push(self.queue.put(Put::new(&name, Key::new("k")?).at(due)));
                if under_way.len() == 1_000 || index + 1 == queues {
                    for put in under_way.drain(..) {
                        put.await?;
                    }
                }
            }
            Ok(())
        })
    }

    fn wait_turns(&self, turns: u64) {
        let until = self.noted.turns.load(Ordering::Relaxed) + turns;
        while self.noted.turns.load(Ordering::Relaxed) < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Takes its turn again and again, for ever. There is one thread, so its clock is that of all that runs between two turns.
async fn probe(noted: Arc<Noted>) {
    loop {
        let begun = CpuTime::now();
        tokio::task::yield_now().await;
        noted.longest.fetch_max(begun.elapsed_nanos() as u64, Ordering::Relaxed);
        noted.turns.fetch_add(1, Ordering::Relaxed);
    }
}

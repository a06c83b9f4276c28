//! Commands of a beanstalkd client.

use std::fmt;

use super::TUBE_BYTES_MAX;

/// The name of a tube: 1 to 200 bytes of `A-Z a-z 0-9 - + / ; . $ _ ( )`, where the first one is not `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tube(String);

impl Tube {
    /// The tube of this name; `None` if the name is not allowed.
    pub fn new(name: &[u8]) -> Option<Self> {
        let is_known = |byte: &u8| byte.is_ascii_alphanumeric() || b"-+/;.$_()".contains(byte);
        let fits = (1..=TUBE_BYTES_MAX).contains(&name.len());
        let is_name = fits && name[0] != b'-' && name.iter().all(is_known);
        is_name.then(|| Self(String::from_utf8(name.to_vec()).expect("it is ASCII")))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tube {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// When a job becomes ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// This many milliseconds after the command was read.
    AfterMs(u64),
    /// At this instant, milliseconds since 1970.
    AtMs(i64),
}

/// The terms of a job that is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobTerms {
    /// Among ready jobs, the one with the smallest number goes first.
    pub priority: u32,
    /// When the job becomes ready.
    pub when: When,
    /// How long a worker may hold the job (seconds, at least 1).
    pub ttr_s: u32,
}

/// One complete command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// `put`: add a job to the used tube.
    Put {
        /// The terms of the job.
        terms: JobTerms,
        /// The body, as the worker gets it.
        body: Vec<u8>,
    },
    /// `put-key`: add a job under a key that the client chooses; a live job with that key is replaced.
    PutKey {
        /// The key.
        key: String,
        /// The terms of the job.
        terms: JobTerms,
        /// The body, as the worker gets it.
        body: Vec<u8>,
    },
    /// `use`: later puts go to this tube.
    Use(Tube),
    /// `reserve`, or `reserve-with-timeout`: reserve a job of the watched tubes.
    Reserve {
        /// How long to wait for a job (seconds); `None`: without limit.
        timeout_s: Option<u32>,
    },
    /// `reserve-batch`: reserve several jobs of the watched tubes.
    ReserveBatch {
        /// Maximum number of jobs.
        max: u32,
        /// How long to wait for the first job (seconds).
        timeout_s: u32,
    },
    /// `reserve-job`: reserve the job with this id.
    ReserveJob(u64),
    /// `delete`: remove the job, because it is done or no longer wanted.
    Delete(u64),
    /// `delete-key`: remove the job with this key of the used tube.
    DeleteKey(String),
    /// `release`: give a reserved job back.
    Release {
        /// The id of the job.
        id: u64,
        /// The new priority of the job.
        priority: u32,
        /// Delay until the job is ready again (seconds).
        delay_s: u32,
    },
    /// `delay-key`: give the job with this key another due time.
    DelayKey {
        /// The key, in the used tube.
        key: String,
        /// The new due time.
        when: When,
    },
    /// `bury`: set the job aside; no worker gets it until it is kicked.
    Bury {
        /// The id of the job.
        id: u64,
        /// The new priority of the job.
        priority: u32,
    },
    /// `touch`: the worker needs more time for this job.
    Touch(u64),
    /// `watch`: later reserves take jobs of this tube, too.
    Watch(Tube),
    /// `ignore`: later reserves take no jobs of this tube.
    Ignore(Tube),
    /// `peek`: show the job with this id.
    Peek(u64),
    /// `peek-key`: show the job with this key of the used tube.
    PeekKey(String),
    /// `peek-ready`: show the next ready job of the used tube.
    PeekReady,
    /// `peek-delayed`: show the delayed job that is due first.
    PeekDelayed,
    /// `peek-buried`: show the job that was buried first.
    PeekBuried,
    /// `kick`: make at most this many buried jobs ready, or delayed jobs if none is buried.
    Kick(u32),
    /// `kick-job`: make the job with this id ready.
    KickJob(u64),
    /// `pause-tube`: hand out no jobs of the tube for a while.
    PauseTube {
        /// The tube.
        tube: Tube,
        /// Length of the pause (seconds); 0 ends a pause.
        pause_s: u32,
    },
    /// `list-tubes`.
    ListTubes,
    /// `list-tubes-watched`.
    ListTubesWatched,
    /// `list-tube-used`.
    ListTubeUsed,
    /// `stats`: figures of the server.
    Stats,
    /// `stats-tube`: figures of a tube.
    StatsTube(Tube),
    /// `stats-job`: figures of a job.
    StatsJob(u64),
    /// `stats-key`: figures of the job with this key of the used tube.
    StatsKey(String),
    /// `quit`: the client leaves.
    Quit,
}

/// One thing that a client sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A command.
    Command(Command),
    /// Bytes that are not a command. Reading goes on after them.
    Fault(Fault),
}

/// Why the bytes are not a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A known verb with wrong arguments, or a line that is too long. The body of such a `put-key` was read and dropped, if the line ends with the
    /// length of the body.
    BadFormat,
    /// The line does not begin with a known verb.
    UnknownCommand,
    /// A line of HTTP: a web page may have made a browser connect to this port, and the bytes that follow may be an attack. The connection must be
    /// closed.
    Http,
    /// The body is above the limit; it was read and dropped.
    JobTooBig,
    /// The body does not end with CR LF after the announced length.
    ExpectedCrlf,
}

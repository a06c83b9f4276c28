//! What a client may ask.

use std::fmt;

use super::TUBE_BYTES_MAX;

/// The name of a tube: 1 to 200 bytes of `A-Z a-z 0-9 - + / ; . $ _ ( )`, the first of them no `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tube(String);

impl Tube {
    /// The tube of this name; `None` if none can have it.
    pub fn new(name: &[u8]) -> Option<Self> {
        let is_known = |byte: &u8| byte.is_ascii_alphanumeric() || b"-+/;.$_()".contains(byte);
        let fits = (1..=TUBE_BYTES_MAX).contains(&name.len());
        let is_name = fits && name[0] != b'-' && name.iter().all(is_known);
        is_name.then(|| Self(String::from_utf8(name.to_vec()).expect("it is ASCII")))
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tube {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// When a job is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// So many milliseconds after the command was read.
    AfterMs(u64),
    /// At this instant, milliseconds since 1970.
    AtMs(i64),
}

/// On what terms a job is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobTerms {
    /// Of what is ready, smaller goes first.
    pub priority: u32,
    /// When it is ready.
    pub when: When,
    /// How long a worker may have it, seconds, at least 1.
    pub ttr_s: u32,
}

/// One command, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// `put`: a job into the tube that is used.
    Put {
        /// On these terms.
        terms: JobTerms,
        /// What the worker gets.
        body: Vec<u8>,
    },
    /// `put-key`: the same with a key of the client's own; a live job of that key is replaced.
    PutKey {
        /// The key.
        key: String,
        /// On these terms.
        terms: JobTerms,
        /// What the worker gets.
        body: Vec<u8>,
    },
    /// `use`: puts go into this tube from now on.
    Use(Tube),
    /// `reserve`, or `reserve-with-timeout`: a job of the tubes that are watched.
    Reserve {
        /// Wait so long for one, seconds; `None`: for ever.
        timeout_s: Option<u32>,
    },
    /// `reserve-batch`: up to so many.
    ReserveBatch {
        /// At most so many jobs.
        max: u32,
        /// Wait so long for the first, seconds.
        timeout_s: u32,
    },
    /// `reserve-job`: the job with this id.
    ReserveJob(u64),
    /// `delete`: the job is done, or not wanted any more.
    Delete(u64),
    /// `delete-key`: the same by its key, of the tube that is used.
    DeleteKey(String),
    /// `release`: the job goes back.
    Release {
        /// Its id.
        id: u64,
        /// Its priority from now on.
        priority: u32,
        /// It is ready after so many seconds.
        delay_s: u32,
    },
    /// `delay-key`: the job of this key is due then.
    DelayKey {
        /// The key, in the tube that is used.
        key: String,
        /// When it is due.
        when: When,
    },
    /// `bury`: nobody gets the job until it is kicked.
    Bury {
        /// Its id.
        id: u64,
        /// Its priority from now on.
        priority: u32,
    },
    /// `touch`: the work takes longer.
    Touch(u64),
    /// `watch`: reserve from this tube, too.
    Watch(Tube),
    /// `ignore`: reserve from this tube no more.
    Ignore(Tube),
    /// `peek`: show the job with this id.
    Peek(u64),
    /// `peek-key`: show the job of this key, in the tube that is used.
    PeekKey(String),
    /// `peek-ready`: show the next one of the tube that is used.
    PeekReady,
    /// `peek-delayed`: show the one that is due first.
    PeekDelayed,
    /// `peek-buried`: show the one that was buried first.
    PeekBuried,
    /// `kick`: so many buried jobs, or else delayed ones, are ready.
    Kick(u32),
    /// `kick-job`: this one is.
    KickJob(u64),
    /// `pause-tube`: nothing is reserved from the tube for so long.
    PauseTube {
        /// Its name.
        tube: Tube,
        /// Seconds; 0 ends a pause.
        pause_s: u32,
    },
    /// `list-tubes`.
    ListTubes,
    /// `list-tubes-watched`.
    ListTubesWatched,
    /// `list-tube-used`.
    ListTubeUsed,
    /// `stats`: of the server.
    Stats,
    /// `stats-tube`: of a tube.
    StatsTube(Tube),
    /// `stats-job`: of a job.
    StatsJob(u64),
    /// `stats-key`: the same by its key, of the tube that is used.
    StatsKey(String),
    /// `quit`: the client leaves.
    Quit,
}

/// What the bytes of a client say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A command.
    Command(Command),
    /// Something that is none. What follows is read as if it had not been there.
    Fault(Fault),
}

/// Why something is no command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A verb that is known, and what it does not take; or a line that is too long. Of `put-key` the body was read and dropped, if the line ends with
    /// its length.
    BadFormat,
    /// No verb.
    UnknownCommand,
    /// A line of HTTP: somebody's browser was made to speak to this port, and what follows may be anybody's. The connection is to end.
    Http,
    /// A body above the limit; it was read and dropped.
    JobTooBig,
    /// A body that does not end where it was said to.
    ExpectedCrlf,
}

//! The table of commands.

use std::num::NonZeroU32;

use super::terms::{JobTerms, Tube, When};
use super::words::{Argument, Words};

/// Makes [`Command`], with its verbs and the parser of its arguments. Each entry has the verb, the variant, and the
/// arguments in the order of the line.
macro_rules! commands {
    ($($(#[$doc:meta])* $verb:literal $name:ident $(($type:ty))? $({ $($(#[$about:meta])* $field:ident: $of:ty),* })?;)*) => {
        /// One complete command.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Command {
            /// `put`: add a job to the used tube; `put-key`: under a key that the client chooses.
            Put {
                /// The terms of the job.
                terms: JobTerms,
                /// The body, as the worker gets it.
                body: Vec<u8>,
            },
            $($(#[$doc])* $name $(($type))? $({ $($(#[$about])* $field: $of),* })?,)*
        }

        /// All verbs, in the order of the table.
        pub(super) const VERBS: &[&str] = &["put", $($verb,)* "put-key"];

        impl Command {
            /// The verb of the command.
            pub fn verb(&self) -> &'static str {
                match self {
                    Self::Put { terms, .. } if terms.key.is_some() => "put-key",
                    Self::Put { .. } => "put",
                    $(Self::$name { .. } => $verb,)*
                }
            }

            /// Reads the arguments of this verb. `None`: an argument is missing or wrong, or there is no such verb.
            pub(super) fn read(verb: &[u8], words: &mut Words<'_>) -> Option<Self> {
                $(if verb == $verb.as_bytes() {
                    return Some(Self::$name $((<$type>::read(words)?))? $({ $($field: <$of>::read(words)?),* })?);
                })*
                None
            }
        }
    };
}

commands! {
    // Beanstalkd counts the commands from here to `pause-tube`, and its `stats` shows them in this order.
    /// Show the job with this id.
    "peek" Peek(u64);
    /// Show the next ready job of the used tube.
    "peek-ready" PeekReady;
    /// Show the delayed job that is due first.
    "peek-delayed" PeekDelayed;
    /// Show the job that was buried first.
    "peek-buried" PeekBuried;
    /// Reserve a job of the watched tubes; wait for it without limit.
    "reserve" Reserve;
    /// Reserve a job of the watched tubes; wait for it this long (seconds). `None`: without limit.
    "reserve-with-timeout" ReserveWithTimeout(Option<u32>);
    /// Remove the job with this id, because it is done or no longer wanted.
    "delete" Delete(u64);
    /// Give a reserved job back.
    "release" Release {
        /// The id of the job.
        id: u64,
        /// The new priority of the job.
        priority: u32,
        /// Delay until the job is ready again (seconds).
        delay_s: u32
    };
    /// Put later jobs into this tube.
    "use" Use(Tube);
    /// Let later reserves take jobs of this tube, too.
    "watch" Watch(Tube);
    /// Let later reserves take no jobs of this tube.
    "ignore" Ignore(Tube);
    /// Set the job aside; no worker gets it until it is kicked.
    "bury" Bury {
        /// The id of the job.
        id: u64,
        /// The new priority of the job.
        priority: u32
    };
    /// Make at most this many buried jobs ready, or delayed jobs if none is buried.
    "kick" Kick(u32);
    /// The worker needs more time for this job.
    "touch" Touch(u64);
    /// Show figures of the server.
    "stats" Stats;
    /// Show figures of a job.
    "stats-job" StatsJob(u64);
    /// Show figures of a tube.
    "stats-tube" StatsTube(Tube);
    /// Show the names of all tubes.
    "list-tubes" ListTubes;
    /// Show the used tube.
    "list-tube-used" ListTubeUsed;
    /// Show the watched tubes.
    "list-tubes-watched" ListTubesWatched;
    /// Hand out no jobs of the tube for a while.
    "pause-tube" PauseTube {
        /// The tube.
        tube: Tube,
        /// Length of the pause (seconds); 0 ends a pause.
        pause_s: u32
    };

    /// Reserve several jobs of the watched tubes.
    "reserve-batch" ReserveBatch {
        /// Maximum number of jobs.
        max: NonZeroU32,
        /// How long to wait for the first job (seconds).
        timeout_s: u32
    };
    /// Reserve the job with this id.
    "reserve-job" ReserveJob(u64);
    /// Make the job with this id ready.
    "kick-job" KickJob(u64);
    /// Remove the job with this key of the used tube.
    "delete-key" DeleteKey(String);
    /// Give the job with this key another due time.
    "delay-key" DelayKey {
        /// The key, in the used tube.
        key: String,
        /// The new due time.
        when: When
    };
    /// Show the job with this key of the used tube.
    "peek-key" PeekKey(String);
    /// Show figures of the job with this key of the used tube.
    "stats-key" StatsKey(String);
    /// The client leaves.
    "quit" Quit;
}

impl Command {
    /// The verbs that beanstalkd counts, in the order of its `stats`.
    pub const COUNTED: &[&str] = VERBS.split_at(22).0;
}

/// One thing that a client sent: a command, or bytes that are not a command. Reading goes on after both.
pub type Event = Result<Command, Fault>;

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

#[cfg(test)]
mod tests {
    use super::*;

    /// The `stats` of beanstalkd has these commands, and `pause-tube` is the last. A verb of ours must come after it.
    #[test]
    fn the_counted_verbs_are_those_of_beanstalkd() {
        assert_eq!(Command::COUNTED.last(), Some(&"pause-tube"));
        assert_eq!(VERBS.iter().position(|verb| *verb == "pause-tube"), Some(Command::COUNTED.len() - 1));
    }
}

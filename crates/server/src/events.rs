//! The names of the events in the log. Each line at `info` and above has one of them in its field `event`.
//!
//! `docs/log.md` says what each of them means; tests hold that page, and all lines, to this list. A name that has been released stays.

/// Makes a constant of each name, and a list of all.
macro_rules! events {
    ($($(#[$doc:meta])* $constant:ident = $name:literal;)*) => {
        $($(#[$doc])* pub const $constant: &str = $name;)*

        /// All of them.
        pub const ALL: &[&str] = &[$($name),*];
    };
}

/// Under this target are acts of administrators, and refusals by token.
pub const AUDIT: &str = "audit";
/// Under this target is a line for each call, if the server is asked for that.
pub const ACCESS: &str = "access";

events! {
    /// The store is about to be opened.
    OPENING = "opening";
    /// The store is open.
    STARTED = "started";
    /// An incomplete record that a crash left was removed.
    RECOVERY_CUT = "recovery_cut";
    /// The doors are open.
    LISTENING = "listening";
    /// The start failed.
    START_FAILED = "start_failed";
    /// A signal told it to stop.
    STOP_TOLD = "stop_told";
    /// It stops.
    STOPPING = "stopping";
    /// Calls under way were cut off.
    STOP_CUT_OFF = "stop_cut_off";
    /// It has stopped.
    STOPPED = "stopped";
    /// It has stopped, and did not wait for its disk any longer.
    STOPPED_WITHOUT_DISK = "stopped_without_disk";
    /// It was told to stop twice.
    STOPPED_AT_ONCE = "stopped_at_once";

    /// The wall clock was set, and is believed.
    CLOCK_STEPPED = "clock_stepped";
    /// The wall clock was set far ahead, and is not believed yet.
    CLOCK_DOUBTED = "clock_doubted";
    /// A step that was doubted is believed.
    CLOCK_BELIEVED = "clock_believed";
    /// A step that was doubted was taken back.
    CLOCK_GONE_BACK = "clock_gone_back";

    /// There is too little room in the store for growth.
    DISK_FULL = "disk_full";
    /// There is room again.
    DISK_ROOM_AGAIN = "disk_room_again";
    /// Nothing is changed any more.
    READ_ONLY = "read_only";
    /// A commit is slow, and under way.
    COMMIT_WAITS = "commit_waits";
    /// A commit was slow.
    COMMIT_SLOW = "commit_slow";
    /// The log grows without a checkpoint.
    CHECKPOINT_LATE = "checkpoint_late";
    /// A checkpoint that was late is there.
    CHECKPOINT_DONE = "checkpoint_done";

    /// A job begins.
    JOB_BEGUN = "job_begun";
    /// A job goes on after a start.
    JOB_RESUMED = "job_resumed";
    /// A job is over.
    JOB_OVER = "job_over";
    /// A job cannot be written down.
    JOB_NOT_KEPT = "job_not_kept";
    /// A task in the queue of jobs is no job.
    JOB_UNREADABLE = "job_unreadable";
    /// Jobs of before the start do not go on.
    JOBS_STAND_STILL = "jobs_stand_still";

    /// A backup begins.
    BACKUP_BEGUN = "backup_begun";
    /// A backup is whole.
    BACKUP_WHOLE = "backup_whole";
    /// A backup failed, or could not be begun when it was due.
    BACKUP_FAILED = "backup_failed";
    /// An export ended early, and its caller sees a body without an end.
    EXPORT_FAILED = "export_failed";
    /// A backup was stopped.
    BACKUP_STOPPED = "backup_stopped";
    /// A backup was due while another was under way.
    BACKUP_LEFT_OUT = "backup_left_out";
    /// The server stops without waiting for a backup any longer.
    BACKUP_NOT_ENDED = "backup_not_ended";
    /// An old backup was removed.
    BACKUP_REMOVED = "backup_removed";
    /// A part of a backup that did not finish was removed.
    BACKUP_PART_REMOVED = "backup_part_removed";
    /// An old backup, or such a part, cannot be removed.
    BACKUP_NOT_REMOVED = "backup_not_removed";
    /// The directory of backups has whole ones of another data directory, and none of this one.
    BACKUPS_OF_ANOTHER = "backups_of_another";
    /// The directory of backups was made anew, and its lock was taken again.
    BACKUP_DIR_TAKEN_AGAIN = "backup_dir_taken_again";

    /// New tasks are refused from now on.
    DRAIN_BEGUN = "drain_begun";
    /// New tasks are taken again.
    DRAIN_OVER = "drain_over";
    /// A file with tokens or a certificate was read again.
    RELOADED = "reloaded";
    /// Such a file cannot be read again.
    RELOAD_FAILED = "reload_failed";

    /// A setting that may not be meant, or is not safe.
    DOUBTFUL = "doubtful";
    /// A connection could not be accepted.
    ACCEPT_FAILED = "accept_failed";
    /// All connections are taken.
    CONNECTIONS_FULL = "connections_full";
    /// Clients of beanstalkd watch as much as they may.
    WATCHES_FULL = "watches_full";
    /// Spans could not be sent.
    SPANS_LOST = "spans_lost";
    /// A call failed for a mistake of the server.
    CALL_FAILED = "call_failed";
    /// A part of the server panicked.
    PANICKED = "panicked";
    /// A background task ended that should not end.
    BACKGROUND_ENDED = "background_ended";
    /// Lines were left out, because the log did not keep up.
    LINES_LOST = "lines_lost";
    /// Lines like one before were left out.
    REPEATED = "repeated";

    /// An administrator did something.
    ADMIN_ACT = "admin_act";
    /// A token was refused, or there was none.
    REFUSED = "refused";
    /// A client of beanstalkd paused a tube.
    TUBE_PAUSED = "tube_paused";
    /// A client of beanstalkd kicked jobs of a tube.
    TUBE_KICKED = "tube_kicked";
    /// A client of beanstalkd kicked one job.
    JOB_KICKED = "job_kicked";
    /// A call.
    CALL = "call";
}

/// Lines of one event that clients can cause as often as they like, and so are limited: the first of a kind is written, the others are
/// counted. All other events are told by sources that tell each change once, and each of their lines is written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Limited {
    /// The event.
    pub event: &'static str,
    /// The fields that make two lines different kinds.
    pub about: &'static [&'static str],
    /// The field that shares out the kinds: what has one value of it cannot use up those of another.
    pub share: Option<&'static str>,
    /// The field that is a measure (ms). The count tells its maximum, and a line that is much worse than those before is written at once.
    pub measure: Option<&'static str>,
    /// The field that says what became of it, and its values whose lines are always written.
    pub unless: Option<(&'static str, &'static [&'static str])>,
}

impl Limited {
    const fn of(event: &'static str, about: &'static [&'static str]) -> Self {
        Self { event, about, share: None, measure: None, unless: None }
    }

    const fn share(self, field: &'static str) -> Self {
        Self { share: Some(field), ..self }
    }

    const fn measure(self, field: &'static str) -> Self {
        Self { measure: Some(field), ..self }
    }

    const fn unless(self, field: &'static str, values: &'static [&'static str]) -> Self {
        Self { unless: Some((field, values)), ..self }
    }
}

/// Values of `result` of an act that was, or may have been, carried out.
pub const CARRIED_OUT: &[&str] = &["ok", "begun", "left"];

/// The events whose lines are limited.
pub const LIMITED: &[Limited] = &[
    Limited::of(REFUSED, &["kind", "token", "address", "method", "route", "status"]).share("token"),
    Limited::of(ADMIN_ACT, &["method", "route", "queue", "name", "status", "result", "token", "address"])
        .share("token")
        .unless("result", CARRIED_OUT),
    Limited::of(TUBE_PAUSED, &["queue", "pause_s", "address"]).share("address"),
    Limited::of(TUBE_KICKED, &["queue", "address"]).share("address"),
    Limited::of(JOB_KICKED, &["address"]).share("address"),
    Limited::of(CALL_FAILED, &["method", "route", "status"]),
    Limited::of(ACCEPT_FAILED, &[]),
    Limited::of(CONNECTIONS_FULL, &[]),
    Limited::of(WATCHES_FULL, &[]),
    Limited::of(EXPORT_FAILED, &[]),
    Limited::of(PANICKED, &[]),
    Limited::of(BACKGROUND_ENDED, &["task"]),
    Limited::of(COMMIT_SLOW, &[]).measure("took_ms"),
    Limited::of(COMMIT_WAITS, &[]).measure("took_ms"),
];

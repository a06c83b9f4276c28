//! The names of the events in the log. Each line at `info` and above has one of them in its field `event`.
//!
//! `docs/reference/log.md` explains each of them; tests compare that page, and all log lines, with this list. A
//! released name is never removed.

/// Makes a constant of each name, and a list of all names.
macro_rules! events {
    ($($(#[$doc:meta])* $constant:ident = $name:literal;)*) => {
        $($(#[$doc])* pub const $constant: &str = $name;)*

        /// All event names.
        pub const ALL: &[&str] = &[$($name),*];
    };
}

/// The target of lines about acts of administrators and refusals by token.
pub const AUDIT: &str = "audit";
/// The target of the line for each call, if the server is configured to write it.
pub const ACCESS: &str = "access";

events! {
    /// The store will be opened now.
    OPENING = "opening";
    /// The store is open.
    STARTED = "started";
    /// An incomplete record that a crash left was removed.
    RECOVERY_CUT = "recovery_cut";
    /// The listeners accept connections.
    LISTENING = "listening";
    /// The start failed.
    START_FAILED = "start_failed";
    /// The server got a signal to stop.
    STOP_TOLD = "stop_told";
    /// The server stops.
    STOPPING = "stopping";
    /// Calls under way were cut off.
    STOP_CUT_OFF = "stop_cut_off";
    /// The server has stopped.
    STOPPED = "stopped";
    /// The server has stopped without waiting longer for its disk.
    STOPPED_WITHOUT_DISK = "stopped_without_disk";
    /// The server was told twice to stop, and stopped at once.
    STOPPED_AT_ONCE = "stopped_at_once";

    /// The wall clock was set, and is believed.
    CLOCK_STEPPED = "clock_stepped";
    /// The wall clock was set far ahead, and the step is doubted.
    CLOCK_DOUBTED = "clock_doubted";
    /// A start on another boot finds the wall clock far ahead of the data, and believes it.
    CLOCK_AHEAD = "clock_ahead";
    /// A doubted step is now believed.
    CLOCK_BELIEVED = "clock_believed";
    /// A doubted step was taken back.
    CLOCK_GONE_BACK = "clock_gone_back";

    /// The store has too few free bytes to grow.
    DISK_FULL = "disk_full";
    /// The store gets no file descriptor, so it cannot grow.
    NO_DESCRIPTORS = "no_descriptors";
    /// The store has enough free bytes again, or a descriptor.
    DISK_ROOM_AGAIN = "disk_room_again";
    /// The server became read-only.
    READ_ONLY = "read_only";
    /// The server answers for all shards again, or for the first time.
    SHARDS_SERVED = "shards_served";
    /// The server does not answer for all shards.
    SHARDS_UNSERVED = "shards_unserved";
    /// An operator has taken the shards from the server.
    SHARDS_ADOPTED = "shards_adopted";
    /// All shards answer, and something is in the way.
    SHARDS_HINDERED = "shards_hindered";
    /// No task could be made of a row in the inbox of the database.
    INBOX_ROW_REFUSED = "inbox_row_refused";
    /// A commit that is under way is slow.
    COMMIT_WAITS = "commit_waits";
    /// A commit was slow.
    COMMIT_SLOW = "commit_slow";
    /// The log grows without a checkpoint.
    CHECKPOINT_LATE = "checkpoint_late";
    /// A late checkpoint is done.
    CHECKPOINT_DONE = "checkpoint_done";

    /// A job begins.
    JOB_BEGUN = "job_begun";
    /// A job continues after a start.
    JOB_RESUMED = "job_resumed";
    /// A job has ended.
    JOB_OVER = "job_over";
    /// The progress of a job cannot be stored.
    JOB_NOT_KEPT = "job_not_kept";
    /// A stored job cannot be read.
    JOB_UNREADABLE = "job_unreadable";
    /// The jobs of the store cannot be read, so they wait.
    JOBS_STAND_STILL = "jobs_stand_still";

    /// A backup begins.
    BACKUP_BEGUN = "backup_begun";
    /// A backup is whole.
    BACKUP_WHOLE = "backup_whole";
    /// A backup failed, or could not begin when it was due.
    BACKUP_FAILED = "backup_failed";
    /// An export ended early; its caller gets a body without an end.
    EXPORT_FAILED = "export_failed";
    /// A backup was stopped.
    BACKUP_STOPPED = "backup_stopped";
    /// A backup was due while another was under way.
    BACKUP_LEFT_OUT = "backup_left_out";
    /// The server stops without waiting longer for a backup.
    BACKUP_NOT_ENDED = "backup_not_ended";
    /// An old backup was removed.
    BACKUP_REMOVED = "backup_removed";
    /// An unfinished part of a backup was removed.
    BACKUP_PART_REMOVED = "backup_part_removed";
    /// An old backup, or an unfinished part, cannot be removed.
    BACKUP_NOT_REMOVED = "backup_not_removed";
    /// The directory of backups has whole backups of another data directory, and none of this one.
    BACKUPS_OF_ANOTHER = "backups_of_another";
    /// The directory of backups was recreated, and its lock was taken again.
    BACKUP_DIR_TAKEN_AGAIN = "backup_dir_taken_again";

    /// The targets were read at the start.
    TARGETS_STARTED = "targets_started";
    /// The targets cannot be read at the start.
    TARGETS_NOT_READ = "targets_not_read";
    /// The state of a target changed.
    TARGET_CHANGED = "target_changed";
    /// A connection to a broker was opened or lost, or cannot be opened.
    CONNECTION_CHANGED = "connection_changed";
    /// A change of a target cannot be stored.
    TARGET_NOT_KEPT = "target_not_kept";

    /// New tasks are refused from now on.
    DRAIN_BEGUN = "drain_begun";
    /// New tasks are taken again.
    DRAIN_OVER = "drain_over";
    /// A file with tokens or a certificate was read again.
    RELOADED = "reloaded";
    /// A file with tokens or a certificate cannot be read again.
    RELOAD_FAILED = "reload_failed";

    /// A setting may be a mistake, or is not safe.
    DOUBTFUL = "doubtful";
    /// A connection could not be accepted.
    ACCEPT_FAILED = "accept_failed";
    /// All connections are in use.
    CONNECTIONS_FULL = "connections_full";
    /// Clients of beanstalkd watch as many tubes as the limit allows.
    WATCHES_FULL = "watches_full";
    /// A time zone has new rules.
    ZONE_CHANGED = "zone_changed";
    /// A time zone of a schedule is missing.
    ZONE_MISSING = "zone_missing";
    /// Some queues have no label in the metrics.
    QUEUES_WITHOUT_LABEL = "queues_without_label";
    /// Spans could not be sent.
    SPANS_LOST = "spans_lost";
    /// A call failed because of a mistake in the server.
    CALL_FAILED = "call_failed";
    /// A part of the server panicked.
    PANICKED = "panicked";
    /// A background task ended that must not end.
    BACKGROUND_ENDED = "background_ended";
    /// Lines were dropped, because the log was too slow.
    LINES_LOST = "lines_lost";
    /// Lines that resemble an earlier one were left out.
    REPEATED = "repeated";

    /// An administrator changed something.
    ADMIN_ACT = "admin_act";
    /// A token was refused or missing.
    REFUSED = "refused";
    /// A client of beanstalkd paused a tube.
    TUBE_PAUSED = "tube_paused";
    /// A client of beanstalkd kicked jobs of a tube.
    TUBE_KICKED = "tube_kicked";
    /// A client of beanstalkd kicked one job.
    JOB_KICKED = "job_kicked";
    /// A call was answered.
    CALL = "call";
}

/// Limits the lines of an event that clients can cause at will. The first line of a kind is written, and the others
/// are counted. All other events come from sources that report each change once, so all their lines are written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Limited {
    /// The event's name.
    pub event: &'static str,
    /// The fields whose values define the kind of a line.
    pub about: &'static [&'static str],
    /// The field that divides the kinds into shares. Lines with one value of this field cannot use up the kinds of
    /// another value.
    pub share: Option<&'static str>,
    /// The field with a duration (ms). The count shows its maximum, and a line that is much worse than the earlier
    /// ones is written at once.
    pub measure: Option<&'static str>,
    /// The field with the result, and those of its values whose lines are always written.
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

/// Values of `result` for an act that was, or may have been, carried out.
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
    Limited::of(JOB_UNREADABLE, &["id"]),
    Limited::of(COMMIT_SLOW, &[]).measure("took_ms"),
    Limited::of(COMMIT_WAITS, &[]).measure("took_ms"),
];

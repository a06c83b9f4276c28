//! Error answers: `application/problem+json` of RFC 9457.

use crate::declare::schema::one_of;
use crate::declare::{ValueCodec, body, choice, count, has, json, may, number, text};
use crate::problems::cancel_outcome::CancelOutcome;
use crate::problems::problem_kind::ProblemKind;
use crate::text::bad_request::{BadRequest, Location, shown};
use crate::text::portable::INTEGER_MAX;
use crate::text::{duration, time};
use std::fmt;

/// The content type of an answer that carries a [`Problem`].
pub const PROBLEM_CONTENT_TYPE: &str = "application/problem+json";

/// How one gets a program with all kinds of targets and with the bridge, if this one lacks some.
pub const WITH_ALL_BROKERS: &str =
    "build it with `cargo build --release --features brokers`, or install a package";

body! {
    /// An error answer by RFC 9457.
    ///
    /// A member that does not apply is absent. A reader skips members that it does not know.
    pub struct Problem: answer "Problem" {
        /// The kind of the problem: the path of a page about it.
        type_uri as "type": String = has(text(256, "").described(|| one_of(&ProblemKind::ALL.map(ProblemKind::type_uri))));
        /// The title of the kind.
        title: String = has(text(256, ""));
        /// The HTTP status.
        status: u16 = has(number(400, 599));
        /// The fault in this case, with the value and the limit.
        detail: String = has(text(65_536, ""));
        /// The path of the request.
        instance: Option<String> = may(text(8_192, ""));
        /// The hint: what the caller can do.
        hint: Option<String> = may(text(65_536, ""));
        /// The member of the body that is at fault.
        member: Option<String> = may(text(65_536, ""));
        /// The parameter that is at fault.
        parameter: Option<String> = may(text(65_536, ""));
        /// The header that is at fault.
        header: Option<String> = may(text(256, ""));
        /// The outcome of a cancel that had no effect, or why there is no live task.
        result: Option<CancelOutcome> = may(choice());
        /// The version of the live task.
        version: Option<u64> = may(number(1, INTEGER_MAX));
        /// Number of live tasks in a queue that is not empty.
        tasks: Option<u64> = may(count());
        /// Number of its dead tasks.
        dead: Option<u64> = may(count());
        /// Number of its schedules.
        schedules: Option<u64> = may(count());
        /// Time to wait before another try (seconds), as in `Retry-After`.
        retry_after_s: Option<u32> = may(number(0, u32::MAX.into()));
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.title, self.status, self.detail)?;
        self.hint.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}

impl std::error::Error for Problem {}

impl Problem {
    /// A problem of this kind; `detail` says what is wrong in this case.
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self {
            type_uri: kind.type_uri().to_owned(),
            title: kind.title().to_owned(),
            status: kind.status(),
            detail: detail.into(),
            instance: None,
            hint: None,
            member: None,
            parameter: None,
            header: None,
            result: None,
            version: None,
            tasks: None,
            dead: None,
            schedules: None,
            retry_after_s: None,
        }
    }

    /// The kind; `None` for one that this version does not know.
    pub fn kind(&self) -> Option<ProblemKind> {
        ProblemKind::of_type(&self.type_uri)
    }

    /// The problem as JSON, the body of the answer.
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }

    /// The same problem with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same problem. The number of a line of a file is put before its detail.
    #[must_use]
    pub fn at_line(mut self, number: u64) -> Self {
        self.detail = format!("line {number}: {}", self.detail);
        self
    }

    /// The same problem with the path of the request.
    #[must_use]
    pub fn with_instance(mut self, path: impl Into<String>) -> Self {
        self.instance = Some(path.into());
        self
    }

    /// The same problem with the time to wait before another try (seconds).
    #[must_use]
    pub fn with_retry_after_s(mut self, seconds: u32) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    fn with_result(mut self, result: CancelOutcome) -> Self {
        self.result = Some(result);
        self
    }

    /// 400: a request that cannot be understood.
    pub fn bad_request(refusal: &BadRequest) -> Self {
        let mut problem = Self::new(ProblemKind::BadRequest, refusal.to_string()).with_hint(&refusal.hint);
        match &refusal.location {
            Location::Body => {}
            Location::Member(path) => problem.member = Some(path.clone()),
            Location::Parameter(name) => problem.parameter = Some(name.clone()),
            Location::Header(name) => problem.header = Some((*name).to_owned()),
        }
        problem
    }

    /// 400: a queue name or key that no task can have. `why` says which of the two, and its rule.
    pub fn bad_name(why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(ProblemKind::BadName, why).with_hint(hint)
    }

    /// 400: the task would be due later than the server allows.
    pub fn too_far(limit_ms: u64) -> Self {
        let limit = duration::format(limit_ms);
        Self::new(ProblemKind::TooFar, format!("the task would be due more than {limit} from now"))
            .with_hint("name a nearer time")
    }

    /// 400: the task would expire before it is due. Both instants are in ms since 1970.
    pub fn expires_first(expire_at_ms: i64, due_at_ms: i64) -> Self {
        let [expire_at, due_at] = [expire_at_ms, due_at_ms].map(time::format);
        Self::new(
            ProblemKind::ExpiresFirst,
            format!("the task would expire at {expire_at} and is due at {due_at}"),
        )
        .with_hint("`expire_after` counts from the request: make it longer than the delay")
    }

    /// 409: the queue cannot be deleted, because it has live tasks, dead tasks or schedules.
    pub fn queue_not_empty(queue: &str, tasks: u64, dead: u64, schedules: u64) -> Self {
        let detail = format!(
            "queue `{}` is not empty: live tasks {tasks}, dead tasks {dead}, schedules {schedules}",
            shown(queue)
        );
        let problem = Self::new(ProblemKind::QueueNotEmpty, detail).with_hint(
            "remove its tasks (POST /v1/queues/{q}/purge) and its schedules (DELETE /v1/queues/{q}/schedules/{name}) first",
        );
        Self { tasks: Some(tasks), dead: Some(dead), schedules: Some(schedules), ..problem }
    }

    /// 409: a limit on the number of things is reached. `what` names the things, such as "queues with settings".
    pub fn too_many(what: &str, limit: usize) -> Self {
        Self::new(ProblemKind::TooMany, format!("there are {limit} {what}, and no more are allowed"))
            .with_hint("delete some of them first")
    }

    /// 409: a live task has the key of the dead one.
    pub fn key_is_live(queue: &str, version: u64) -> Self {
        let detail = format!("a live task of queue `{}` has the key of the dead one", shown(queue));
        let problem = Self::new(ProblemKind::Live, detail)
            .with_hint("cancel the live task first, or leave the dead one as it is");
        Self { version: Some(version), ..problem }
    }

    /// The problem of a cancel that had no effect: 409 `leased`, 404 `done` or `not_found`.
    ///
    /// # Panics
    ///
    /// If the outcome is not a problem: `cancelled` or `revoked`.
    pub fn cancel(outcome: CancelOutcome, queue: &str, key: &str) -> Self {
        match outcome {
            CancelOutcome::Leased => Self::leased(queue, key),
            CancelOutcome::Done => Self::done(queue, key),
            CancelOutcome::NotFound => Self::not_found(queue, key),
            CancelOutcome::Cancelled | CancelOutcome::Revoked => {
                panic!("{} is the outcome of a cancel that took effect, not a problem", outcome.name())
            }
        }
    }

    /// 409: `mode=create`, and a live task has this key.
    pub fn live(queue: &str, key: &str, version: u64) -> Self {
        let detail = format!("queue `{}` has a live task with the key `{}`", shown(queue), shown(key));
        let problem = Self::new(ProblemKind::Live, detail)
            .with_hint("leave `mode=create` out to replace it, or choose another key");
        Self { version: Some(version), ..problem }
    }

    /// 412: the task has another version than the request asks for, or there is no live task.
    pub fn version_mismatch(wanted: u64, current: Option<u64>) -> Self {
        let detail = match current {
            Some(current) => format!("the request is for version {wanted}, the task has version {current}"),
            None => format!("the request is for version {wanted}, and no live task has this key"),
        };
        let problem = Self::new(ProblemKind::VersionMismatch, detail)
            .with_hint("get the task, look at what changed, and try again with its version");
        Self { version: current, ..problem }
    }

    /// 412: the schedule has another version than `If-Match` says, or there is none.
    pub fn schedule_version_mismatch(wanted: u64, current: Option<u64>) -> Self {
        let detail = match current {
            Some(current) => {
                format!("the request is for version {wanted}, and the schedule has version {current}")
            }
            None => format!("the request is for version {wanted}, and no schedule has this name"),
        };
        let problem = Self::new(ProblemKind::VersionMismatch, detail)
            .with_hint("get the schedule, look at what changed, and try again with its version");
        Self { version: current, ..problem }
    }

    /// 409: the server would need a key for secrets. `why` says for which secret.
    pub fn no_secret_key(why: impl Into<String>) -> Self {
        Self::new(ProblemKind::NoSecretKey, why)
            .with_hint("start the server with --secret-key-file (TICKWHEEL_SECRET_KEY_FILE)")
    }

    /// 501: the program was built without this kind of target.
    pub fn unsupported(kind: &str) -> Self {
        Self::new(ProblemKind::Unsupported, format!("this program was built without the feature `{kind}`"))
            .with_hint(format!("{WITH_ALL_BROKERS}; or use another kind of target"))
    }

    /// 412: the target was changed meanwhile. `current`: its version; `None`: the queue has no target.
    pub fn target_changed(wanted: u64, current: Option<u64>) -> Self {
        let detail = match current {
            Some(current) => format!("the request is for version {wanted}, the target has version {current}"),
            None => format!("the request is for version {wanted}, and the queue has no target"),
        };
        let problem = Self::new(ProblemKind::VersionMismatch, detail)
            .with_hint("get the target, look at what changed, and try again with its version");
        Self { version: current, ..problem }
    }

    /// 404: the server makes no backups. `hint` says how to get one.
    pub fn no_backup_dir(why: &str, hint: &str) -> Self {
        Self::new(ProblemKind::NoBackupDir, why).with_hint(hint)
    }

    /// 409: a backup is under way.
    pub fn backup_under_way(id: u64) -> Self {
        Self::new(
            ProblemKind::BackupUnderWay,
            format!("backup {id} is under way, begun by --backup-every or by another caller; the server makes one at a time"),
        )
        .with_hint(format!(
            "repeat the call after its end: GET /v1/backups/{id} (`tickwheel backup --list`) shows it, DELETE /v1/backups/{id} stops it"
        ))
    }

    /// 403: the token does not have the right.
    pub fn forbidden(right: &str) -> Self {
        Self::new(
            ProblemKind::Forbidden,
            format!("the request needs the right `{right}`, and the token does not have it"),
        )
        .with_hint("ask the operator of the server for a token that has it")
    }

    /// 405: the endpoint does not know this method. `allowed` is the value of the header `Allow`: `GET, PUT`.
    pub fn bad_method(method: &str, allowed: &str) -> Self {
        Self::new(ProblemKind::BadMethod, format!("`{}` is not allowed here", shown(method)))
            .with_hint(format!("allowed: {allowed}"))
    }

    /// 408: the request did not arrive in time.
    pub fn timeout(limit_ms: u64) -> Self {
        let limit = duration::format(limit_ms);
        Self::new(ProblemKind::Timeout, format!("the request had not arrived after {limit}"))
            .with_hint("send it again, in one piece")
    }

    /// 415: the body has a content type or an encoding that the server does not read.
    pub fn bad_media_type(header: &'static str, value: &str, expected: &str) -> Self {
        let problem =
            Self::new(ProblemKind::BadMediaType, format!("`{header}: {}` is not read here", shown(value)))
                .with_hint(format!("send {expected}"));
        Self { header: Some(header.to_owned()), ..problem }
    }

    /// 429: a limit on calls or connections is reached.
    pub fn busy(what: impl Into<String>, retry_after_s: u32) -> Self {
        Self::new(ProblemKind::Busy, what).with_hint("try again later").with_retry_after_s(retry_after_s)
    }

    /// 429: a put would add a task, and the queues of the token have as many tasks as its quota allows.
    pub fn token_full() -> Self {
        // The tasks are counted once a second. The server does not know when some of them will end, so 5 s is a
        // guess.
        Self::busy("the queues of the token have all the tasks that it allows", 5)
            .with_hint("wait until some of them are done, or ask the operator of the server for a larger quota; existing tasks may still be changed")
    }

    /// 500: an error of the server. `detail` must not contain payloads or keys.
    pub fn internal(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Internal, detail)
            .with_hint("the call may have taken effect or not; the server's log says more")
    }

    /// 503: the store failed before this call.
    pub fn read_only(why: &str) -> Self {
        Self::new(ProblemKind::ReadOnly, format!("the store failed: {why}; the call had no effect"))
            .with_hint("`tickwheel doctor --deep` says what is wrong with a data directory: repair the disk and start the server again; a database is tried again without a restart")
    }

    /// 503: the store failed or the server stopped while the call was under way.
    pub fn indeterminate(why: &str) -> Self {
        Self::new(ProblemKind::Indeterminate, format!("{why}; the call may have taken effect or not"))
            .with_hint("after a restart look at the task, or send the same call again: a key never has more than one live task")
    }

    /// 503: the process of the server has no file descriptor left.
    pub fn no_descriptors() -> Self {
        let detail =
            "the store of the server gets no file descriptor for its next file; the call had no effect";
        Self::new(ProblemKind::NoDescriptors, detail)
            .with_hint("try again; if it lasts, raise the limit of open files of the server (`ulimit -n`, `LimitNOFILE=` of systemd)")
            .with_retry_after_s(1)
    }
}

/// Declares problems of one sentence: the arguments, the kind, the detail, and the hint. An argument that is a text is shown in the detail as
/// [`shown`] writes it.
macro_rules! problems {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*) = $kind:ident: $detail:literal => $hint:literal $(, $with:ident($value:expr))*;)*) => {
        impl Problem {
            $($(#[$doc])*
            pub fn $name($($arg: $type),*) -> Self {
                $(let $arg = InDetail::shown($arg);)*
                Self::new(ProblemKind::$kind, fmt::format(format_args!($detail))).with_hint($hint)$(.$with($value))*
            })*
        }
    };
}

/// A value in the detail of a problem.
trait InDetail {
    fn shown(self) -> impl fmt::Display;
}

impl InDetail for &str {
    fn shown(self) -> impl fmt::Display {
        shown(self)
    }
}

impl InDetail for u64 {
    fn shown(self) -> impl fmt::Display {
        self
    }
}

impl InDetail for usize {
    fn shown(self) -> impl fmt::Display {
        self
    }
}

problems! {
    /// 409: the task was given up, and has to be redriven before it can be changed.
    dead(queue: &str, key: &str) = Dead: "the task with the key `{key}` in queue `{queue}` was given up"
        => "redrive it (POST /v1/queues/{q}/dead/redrive), or put a new task under its key";

    /// 409: the queue is being drained, and the request would add a task.
    draining(queue: &str) = Draining: "queue `{queue}` is being drained"
        => "put the task elsewhere, or resume the queue: POST /v1/queues/{q}/resume";

    /// 503: the server is being drained: it takes no new tasks, and goes on with those that it has.
    server_draining() = ServerDraining: "the server was told to take no new tasks"
        => "put the task elsewhere, or try again once the server takes new tasks: POST /v1/resume, or a new start", with_retry_after_s(5);

    /// 429: the queue has as many live tasks as its settings allow.
    backlog_full(queue: &str, limit: u64) = BacklogFull: "queue `{queue}` is full: its `max_backlog` (live tasks) is {limit}"
        => "try again once workers have caught up, or raise the limit: PATCH /v1/queues/{q} with `max_backlog`", with_retry_after_s(1);

    /// 409: a timeline is replaced as a whole.
    timeline(queue: &str, key: &str) = Timeline: "the task with the key `{key}` in queue `{queue}` has a timeline"
        => "send the whole `timeline` as it is to be, with all its instants";

    /// 404: the queue has no dead task with `which`, such as "the id 7".
    not_dead(queue: &str, which: &str) = NotFound: "queue `{queue}` has no dead task with {which}"
        => "GET /v1/queues/{q}/dead lists the dead tasks; one whose key a later task took is named by its id";

    /// 404: no live task has this key, and the history has no acked one.
    not_found(queue: &str, key: &str) = NotFound: "queue `{queue}` has no live task with the key `{key}`"
        => "check queue and key; both are case-sensitive and percent-encoded in the path", with_result(CancelOutcome::NotFound);

    /// 404: the last task of this key was acked.
    done(queue: &str, key: &str) = Done: "the last task with the key `{key}` in queue `{queue}` was acked"
        => "put a new task if there is more to do; the key is free", with_result(CancelOutcome::Done);

    /// 409: a worker has the task.
    leased(queue: &str, key: &str) = Leased: "the task with the key `{key}` in queue `{queue}` is leased"
        => "wait for the worker, or take the task from it with `revoke=true`", with_result(CancelOutcome::Leased);

    /// 409: a task is to be taken from its worker, and no worker has it.
    not_leased(queue: &str, key: &str) = NotLeased: "no worker has the task with the key `{key}` in queue `{queue}`"
        => "GET /v1/queues/{q}/tasks/{key} shows how it stands: it may have come back from its worker meanwhile";

    /// 404: the queue has no target.
    no_target(queue: &str) = NoTarget: "queue `{queue}` has no target"
        => "PUT /v1/queues/{q}/target gives it one";

    /// 409: a target with the order `group` needs a limit of 1 for each group, and the queue has the limit `limit`.
    order_conflict(queue: &str, limit: u64) = OrderConflict: "queue `{queue}` lets {limit} tasks of a group be in flight, and the order `group` needs 1"
        => "set `max_in_flight_per_group` to 1 first: PATCH /v1/queues/{q}";

    /// 409: the queue has a target with the order `group`, and its settings would let more than one task of a group be in flight.
    order_needs_one(queue: &str) = OrderConflict: "the target of queue `{queue}` has the order `group`, which needs a `max_in_flight_per_group` of 1"
        => "write `\"max_in_flight_per_group\": 1`, or give the target another order";

    /// 404: no job has this number, or the job ended long ago.
    no_job(id: &str) = NoJob: "no job `{id}` is under way or ended lately"
        => "the answer 202 to a cancel, a move or a purge names the job; the last 100 jobs that ended are kept";

    /// 404: no backup has this number.
    no_backup(id: &str) = NoBackup: "there is no backup `{id}`"
        => "GET /v1/backups lists those there are; one that failed is forgotten when the server stops";

    /// 404: no schedule of the queue has this name.
    no_schedule(queue: &str, name: &str) = NoSchedule: "no schedule of `{queue}` is called `{name}`"
        => "GET /v1/queues/{q}/schedules lists those there are";

    /// 401: the request has no token, or an unknown one.
    unauthorized() = Unauthorized: "the request has no token, or one that this server does not know"
        => "send `Authorization: Bearer TOKEN`; the command line takes the token from TICKWHEEL_TOKEN or --token-file";

    /// 403: a request that concerns all queues needs a token without a scope.
    forbidden_to_scoped() = Forbidden: "the request concerns all queues, and the token is limited to some"
        => "ask the operator of the server for a token without a scope";

    /// 403: the name of the queue is reserved for the server.
    own_queue(queue: &str) = OwnQueue: "the name `{queue}` is reserved for the server"
        => "use another name for the queue; GET /v1/jobs lists jobs";

    /// 404: the queue is outside of the token's scope.
    out_of_scope(queue: &str) = OutOfScope: "the queue `{queue}` is outside of the token's scope"
        => "GET /v1/queues lists the queues in the scope";

    /// 404: no endpoint has this path.
    no_endpoint(path: &str) = NoEndpoint: "nothing is served at `{path}`"
        => "paths begin with `/v1/`; `/` in a key or in the name of a queue is written `%2F`";

    /// 404: the endpoint exists only on servers with a virtual clock.
    no_virtual_clock() = NoVirtualClock: "the server's clock is not virtual and cannot be advanced"
        => "start a server for tests with `--virtual-clock`";

    /// 403: a web page of another site sent the request.
    foreign_origin() = ForeignOrigin: "`Origin` or `Sec-Fetch-Site` names another site; the call had no effect"
        => "call from a program, or from a page that this server itself serves";

    /// 421: the request names another host. A server that listens on loopback accepts only the names of its own
    /// machine.
    foreign_host(host: &str) = ForeignHost: "this server listens on its own machine only and is not `{host}`"
        => "write localhost, 127.0.0.1 or [::1] as the host; if a proxy passes another name on, start the server with --allow-host NAME";

    /// 426: the server speaks TLS only.
    needs_tls() = NeedsTls: "this port speaks TLS, and the request is plain HTTP; the call had no effect"
        => "write https:// in place of http://";

    /// 413: the body or a line of a batch is above the limit.
    body_too_large(limit_bytes: u64) = BodyTooLarge: "the limit is {limit_bytes} bytes"
        => "store large data elsewhere, and put its name into the payload";

    /// 413: the batch has too many lines.
    too_many_lines(limit: usize) = BodyTooLarge: "a batch has at most {limit} lines"
        => "send the rest in another batch";

    /// 414: the URI is above the limit.
    uri_too_long(limit_bytes: usize) = UriTooLong: "the limit is {limit_bytes} bytes"
        => "a queue name has at most 200 bytes, a key 256";

    /// 431: the headers are above the limit.
    headers_too_large(limit_bytes: usize) = HeadersTooLarge: "the limit is {limit_bytes} bytes"
        => "send fewer or shorter headers";

    /// 503: the server has not recovered its tasks yet.
    starting() = Starting: "the server is still reading its tasks; the call had no effect"
        => "try again; `/readyz` answers 200 once it is ready", with_retry_after_s(1);

    /// 503: the server stops.
    stopping() = Stopping: "the server takes no more calls; the call had no effect"
        => "try again once it has been started again", with_retry_after_s(1);

    /// 507: the disk is full.
    storage_full(needed_bytes: u64, room_bytes: u64) = StorageFull: "the call needs {needed_bytes} bytes and {room_bytes} are left; it had no effect"
        => "ack or cancel tasks, or give the disk more space: some space is reserved for acks, cancels and checkpoints";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_distinct() {
        for (index, kind) in ProblemKind::ALL.into_iter().enumerate() {
            for other in &ProblemKind::ALL[index + 1..] {
                assert_ne!(kind, *other);
                assert_ne!(kind.type_uri(), other.type_uri());
                assert_ne!(kind.title(), other.title());
            }
            assert!((400..=599).contains(&kind.status()), "{kind:?}");
            let slug = kind.type_uri().strip_prefix("/problems/").expect("one folder of problems");
            assert!(slug.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{slug}");
            assert_eq!(Problem::new(kind, "x").kind(), Some(kind));
        }
    }

    /// The text has the counts after their nouns, so that it never says "1 live tasks" or "1 schedules".
    #[test]
    fn one_of_a_kind_reads_as_well_as_many() {
        let problem = Problem::queue_not_empty("shop", 1, 0, 2);
        assert_eq!(problem.detail, "queue `shop` is not empty: live tasks 1, dead tasks 0, schedules 2");
    }

    #[test]
    fn as_json() {
        let problem = Problem::cancel(CancelOutcome::NotFound, "close", "order:1")
            .with_instance("/v1/queues/close/tasks/order:1");
        assert_eq!(
            String::from_utf8(problem.to_json()).expect("UTF-8"),
            concat!(
                r#"{"type":"/problems/not-found","title":"there is no such task","status":404,"#,
                r#""detail":"queue `close` has no live task with the key `order:1`","instance":"/v1/queues/close/tasks/order:1","#,
                r#""hint":"check queue and key; both are case-sensitive and percent-encoded in the path","result":"not_found"}"#,
            )
        );
        let back: Problem = serde_json::from_slice(&problem.to_json()).expect("our own JSON");
        assert_eq!(back, problem);
    }

    #[test]
    fn a_newer_server_may_say_more() {
        let text = r#"{"type":"/problems/new","title":"t","status":418,"detail":"d","colour":"red"}"#;
        let problem: Problem = serde_json::from_str(text).expect("unknown members are skipped");
        assert_eq!(problem.kind(), None);
        assert_eq!(problem.to_string(), "t (418): d");
    }

    #[test]
    fn the_place_of_a_bad_request() {
        let member = Problem::bad_request(&BadRequest::member("at_ms", "is late", "hurry"));
        assert_eq!((member.member.as_deref(), member.status), (Some("at_ms"), 400));
        assert_eq!(member.to_string(), "the request cannot be understood (400): `at_ms`: is late; hurry");
        let parameter = Problem::bad_request(&BadRequest::parameter("mode", "is odd", "x"));
        assert_eq!(parameter.parameter.as_deref(), Some("mode"));
        let header = Problem::bad_request(&BadRequest::header("If-Match", "is odd", "x"));
        assert_eq!(header.header.as_deref(), Some("If-Match"));
        let body = Problem::bad_request(&BadRequest::body("is odd", "x"));
        assert_eq!((body.member, body.parameter, body.header), (None, None, None));
    }

    #[test]
    fn outcomes_keep_their_status() {
        for outcome in [CancelOutcome::Leased, CancelOutcome::Done, CancelOutcome::NotFound] {
            let problem = Problem::cancel(outcome, "q", "k");
            assert_eq!((problem.status, problem.result), (outcome.status(), Some(outcome)));
        }
    }

    #[test]
    #[should_panic(expected = "cancelled is the outcome of a cancel that took effect")]
    fn a_cancel_that_took_effect_is_no_problem() {
        let _ = Problem::cancel(CancelOutcome::Cancelled, "q", "k");
    }
}

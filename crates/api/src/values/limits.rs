//! Limits that the members of several bodies and the parameters of several queries share.

/// Maximum length of the name of a queue (bytes).
pub(crate) const QUEUE_NAME_BYTES_MAX: usize = 200;
/// Maximum length of a key (bytes).
pub(crate) const KEY_BYTES_MAX: usize = 256;
/// Maximum length of a tag (bytes).
pub const TAG_BYTES_MAX: usize = 128;
/// Maximum length of the name of a group (bytes).
pub const GROUP_BYTES_MAX: usize = 256;
/// Maximum length of the name of a worker (bytes).
pub const WORKER_BYTES_MAX: usize = 128;
/// Maximum length of the name of a schedule (bytes).
pub const SCHEDULE_NAME_BYTES_MAX: usize = 200;
/// Maximum length of a text that failures contain (bytes). No failure has a longer text.
pub const FAILURE_BYTES_MAX: usize = 1_024;
/// The priority of a task whose request names none.
pub const PRIORITY_DEFAULT: u32 = 1024;
/// Minimum length of a lease: 1 s. A shorter one could end before the answer reaches a worker over a slow line.
pub const LEASE_MS_MIN: u64 = 1_000;
/// Maximum length of a lease: 12 h. A worker that needs longer extends it, so that a worker that died is noticed on
/// the same day.
pub const LEASE_MS_MAX: u64 = 12 * 3_600_000;
/// Minimum of `every` and `fixed_delay` (ms).
pub const CADENCE_MS_MIN: u64 = 100;
/// Maximum of `every`, `fixed_delay`, `jitter` and `expire_after` (ms): 100 years.
pub const CADENCE_MS_MAX: u64 = 100 * 365 * 86_400_000;
/// Maximum value of a limit.
pub const LIMIT_MAX: u64 = 1_000_000_000;
/// Maximum number of tasks on a page of a list.
pub const LIST_LIMIT_MAX: usize = 1_000;
/// Number of tasks on a page if the request does not say.
pub(crate) const LIST_LIMIT_DEFAULT: usize = 100;
/// Maximum length of the cursor of a list of tasks (bytes).
pub const CURSOR_BYTES_MAX: usize = 256;

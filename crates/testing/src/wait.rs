//! How long a test waits for an event.

use std::time::Duration;

/// A test that waits longer for an event hangs. It is no measure of speed: a computer may be busy with other things, and a thread that stands
/// back, as that of a backup does, may then get no time for minutes.
pub const HANG_TIME: Duration = Duration::from_secs(600);

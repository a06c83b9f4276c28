//! The limits for all clients together: connections, bodies, batches, jobs, watched names.

/// Limits of the resources that clients may hold at one time. A refusal names its limit by the option of `tickwheel
/// serve`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections beyond [`Config::connections_max`](crate::Config::connections_max). They are for `/healthz`,
    /// `/readyz`, `/metrics` and callers whose token has `admin`. Default: 64.
    pub connections_kept: usize,
    /// Bodies above 16 KiB that are read at one time. Another one waits up to 5 s and is then answered 429. Default:
    /// 128, each of up to 1 MiB.
    pub large_bodies: usize,
    /// Large bodies of one token, or of one address of another computer if there are no tokens. Default: 64.
    pub large_bodies_per_caller: usize,
    /// Memory for the payloads of answers that clients have not read yet (bytes). Their JSON text may be longer. Answers with payloads of up to 64 KiB do not count. One
    /// token, or one address of another computer if there are no tokens, may use a quarter of it. A lease call beyond the limit gets fewer
    /// tasks, and any other call is answered 429. Default: 256 MiB.
    pub answer_bytes: usize,
    /// Open batches. Another one waits up to 6 s and is then answered 429. Default: 32, each of about 16 MiB at most.
    pub batches: usize,
    /// Open batches of one token, or of one address of another computer if there are no tokens. Default: 16.
    pub batches_per_caller: usize,
    /// Running jobs. Another one is answered 429. Four jobs work at one time, in turns of 1,000 tasks, and callers
    /// have their turns one after the other. Default: 64.
    pub jobs: usize,
    /// Running jobs of one token, or of one address of another computer if there are no tokens. Default: 16.
    pub jobs_per_caller: usize,
    /// Memory for the tubes that beanstalkd clients watch, for all connections together (bytes). One connection may
    /// use a quarter of it. A watch beyond the limit is answered `OUT_OF_MEMORY`. Default: 32 MiB.
    pub watched_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_kept: 64,
            large_bodies: 128,
            large_bodies_per_caller: 64,
            answer_bytes: 256 << 20,
            batches: 32,
            batches_per_caller: 16,
            jobs: 64,
            jobs_per_caller: 16,
            watched_bytes: 32 << 20,
        }
    }
}

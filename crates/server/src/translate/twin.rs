//! Choices that have the same meaning in the API and in the queue, each pair declared once.

use tickwheel_api as api;
use tickwheel_queue as queue;

/// A choice with a counterpart on the other side.
pub(crate) trait Twin {
    type Other;

    /// The counterpart of this choice.
    fn twin(self) -> Self::Other;
}

macro_rules! twins {
    ($($Ours:path = $Wire:path { $($ours:ident $(= $wire:ident)?),* })*) => {
        $(
            impl Twin for $Ours {
                type Other = $Wire;

                fn twin(self) -> $Wire {
                    // A macro cannot add a further segment to a path that it got as one.
                    use $Ours as Ours;
                    use $Wire as Wire;
                    match self {
                        $(Ours::$ours => twins!(wire Wire $ours $($wire)?),)*
                    }
                }
            }

            impl Twin for $Wire {
                type Other = $Ours;

                fn twin(self) -> $Ours {
                    use $Ours as Ours;
                    use $Wire as Wire;
                    match self {
                        $(twins!(wire Wire $ours $($wire)?) => Ours::$ours,)*
                    }
                }
            }
        )*
    };
    (wire $Wire:ident $same:ident) => { $Wire::$same };
    (wire $Wire:ident $ours:ident $wire:ident) => { $Wire::$wire };
}

twins! {
    queue::State = api::TaskState { Scheduled, Ready, Leased, Dead }
    queue::Failed = api::FailureKind { Nacked, LeaseEnded, Revoked, Buried, Gone = WorkerGone, Undeliverable }
    queue::Death = api::DeathReason { MaxAttempts, Expired, Buried, Refused, Template, TooLarge }
    queue::TokenAnswer = api::TokenResult { Acked, Nacked, Extended, Expired, Revoked }
    queue::CatchUp = api::CatchUp { Skip, Once, All }
    queue::Overlap = api::Overlap { Skip, Queue, Allow }
    queue::Durability = api::Durability { Fsync, Os, Memory }
    queue::Existing = api::Existing { Skip, Replace, Refuse }
    queue::Present = api::SkipWhy { Live, Dead, Ended, Keyless, Schedule = Exists }
}

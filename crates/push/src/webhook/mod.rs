//! Webhooks: messages by HTTP/1.1, signed, to receivers that the guard allows.
//!
//! - `url`, `request`, `sign`: what is sent.
//! - `answer`: what an answer, or none, means.
//! - `budget`: how many connections there may be.
//! - `connect`: the way there.
//! - `sender`: the sink.

mod answer;
mod budget;
mod connect;
mod request;
mod sender;
mod sign;
mod url;

pub use answer::{Answer, AnswerRules, Failure};
pub use budget::{ConnectionShare, Connections};
pub use connect::{Resolve, Resolving, SystemResolver, TlsPlan, TlsPlanError};
pub use request::{Auth, BodyForm, PlanError, RequestPlan, Unsendable};
pub use sender::{Webhook, WebhookPlan};
pub use sign::{Signer, SigningKey, SigningKeyError, new_secret};
pub use url::{Url, UrlError};

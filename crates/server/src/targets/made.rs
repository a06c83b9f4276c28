//! The sink of a target, made from its settings.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_api::{
    AuthBody, BadRequest, BreakerBody, ContentForm, HttpMethod, Problem, TargetBody, TargetKind, TargetOrder,
    TargetTlsBody, TlsVersion, WITH_ALL_BROKERS,
};
use tickwheel_push::broker::Settings;
use tickwheel_push::dispatch::{BreakerPlan, Plan};
use tickwheel_push::webhook::{
    AnswerRules, Auth, BodyForm, RequestPlan, Signer, SigningKey, SystemResolver, Url, Webhook, WebhookPlan,
};
use tickwheel_push::{Attempt, Message, Outcome, Pause, Sink, Target, has_kind};
use tickwheel_queue::{QueueName, Timestamp};

use super::brokers::Named;
use super::outside::Outside;
use super::secrets;
use super::stored::{Stored, StoredPause};
use crate::access::refusal::Refusal;

/// The default time for one attempt of a webhook (ms).
const WEBHOOK_TIMEOUT_MS: u64 = 15_000;
/// The default time for one attempt of a broker (ms).
const BROKER_TIMEOUT_MS: u64 = 10_000;
/// The default number of requests that are under way to a webhook.
const WEBHOOK_CONCURRENCY: usize = 8;
/// The default number of messages that a broker has not confirmed yet.
const BROKER_CONCURRENCY: usize = 512;
/// The longest time for which a breaker is open by default (ms).
const OPEN_MAX_MS: u64 = 60_000;

/// Why a target cannot be made.
#[derive(Debug)]
pub(super) enum NotMade {
    /// A setting is wrong.
    Bad(BadRequest),
    /// A secret cannot be read.
    Secret(String),
    /// The program has no such kind of target.
    Unsupported(TargetKind),
}

impl From<BadRequest> for NotMade {
    fn from(bad: BadRequest) -> Self {
        Self::Bad(bad)
    }
}

impl NotMade {
    /// Returns the reason for which the target is disabled.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Bad(bad) => format!("the settings cannot be used: {bad}"),
            Self::Secret(why) => format!("a secret cannot be read: {why}"),
            Self::Unsupported(kind) => {
                format!("this program was built without the feature `{}`; {WITH_ALL_BROKERS}", kind.name())
            }
        }
    }
}

impl From<NotMade> for Refusal {
    fn from(why: NotMade) -> Self {
        match why {
            NotMade::Bad(bad) => bad.into(),
            NotMade::Secret(why) => Problem::no_secret_key(format!("a secret cannot be read: {why}")).into(),
            NotMade::Unsupported(kind) => Problem::unsupported(kind.name()).into(),
        }
    }
}

/// Makes a target with its sink.
///
/// # Errors
/// [`NotMade`].
pub(super) fn target(outside: &Outside, queue: &QueueName, stored: &Stored) -> Result<Target, NotMade> {
    let mut plan = plan(&stored.target);
    let sink: Arc<dyn Sink> = match stored.target.kind {
        TargetKind::Webhook => {
            // More tasks would only be held while they wait for a connection.
            plan.concurrency = plan.concurrency.min(outside.connections.share_max());
            let share = outside.connections.share_of(stored.scope.as_deref());
            Arc::new(webhook(outside, queue, stored)?.within(share))
        }
        _ => broker(outside, &stored.target)?,
    };
    let kind = stored.target.kind.name();
    Ok(Target { plan, sink, kind, paused: pause(stored) })
}

/// Returns a target to which nothing is sent, for this reason.
pub(super) fn disabled(reason: &str, kind: Option<TargetKind>) -> Target {
    let usual = Target::new(Arc::new(Nothing(reason.into())));
    let paused = Some(Pause::Disabled(reason.into()));
    Target { paused, kind: kind.map_or(usual.kind, TargetKind::name), ..usual }
}

/// A sink that takes no message.
struct Nothing(Arc<str>);

impl Sink for Nothing {
    fn send<'a>(&'a self, _: &'a Message) -> Attempt<'a> {
        let reason = Arc::clone(&self.0);
        Box::pin(async { Outcome::Disabled { reason }.into() })
    }
}

/// Why nothing is sent to a target with these settings; `None`: messages are sent.
pub(super) fn pause(stored: &Stored) -> Option<Pause> {
    match &stored.pause {
        Some(StoredPause::Disabled(reason)) => Some(Pause::Disabled(reason.as_str().into())),
        Some(StoredPause::Paused) => Some(Pause::Paused),
        None if !stored.target.enabled => Some(Pause::Disabled("`enabled` is false".into())),
        None => None,
    }
}

/// How messages are sent to a target with these settings.
pub(super) fn plan(target: &TargetBody) -> Plan {
    let is_webhook = target.kind == TargetKind::Webhook;
    let (timeout_ms, concurrency) = match is_webhook {
        true => (WEBHOOK_TIMEOUT_MS, WEBHOOK_CONCURRENCY),
        false => (BROKER_TIMEOUT_MS, BROKER_CONCURRENCY),
    };
    let breaker = target.breaker.map_or_else(BreakerPlan::default, |breaker| {
        let BreakerBody { failures, open_ms, open_max_ms } = breaker;
        BreakerPlan { failures, open_ms, open_max_ms: open_max_ms.unwrap_or(OPEN_MAX_MS.max(open_ms)) }
    });
    Plan {
        concurrency: target.concurrency.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(concurrency),
        timeout_ms: target.timeout_ms.unwrap_or(timeout_ms),
        order: target.order.unwrap_or(TargetOrder::None),
        breaker,
    }
}

/// Makes the sink of a target that names a connection.
fn broker(outside: &Outside, target: &TargetBody) -> Result<Arc<dyn Sink>, NotMade> {
    // Told first: a program without the kind needs no connection of it.
    if !has_kind(target.kind) {
        return Err(NotMade::Unsupported(target.kind));
    }
    let name = target.connection.as_deref().unwrap_or_default();
    let Some(Named { kind, broker }) = outside.brokers.get(name) else {
        let known: Vec<_> = outside.brokers.iter().map(|(name, _)| format!("`{name}`")).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let what =
            format!("the configuration of the server has no connection `{}`", tickwheel_api::shown(name));
        return Err(BadRequest::member("connection", what, format!("known are: {known}")).into());
    };
    if *kind != target.kind {
        let (is, wanted) = (kind.name(), target.kind.name());
        let what =
            format!("`{name}` is a connection of the kind `{is}`, and the target has the kind `{wanted}`");
        let fitting = outside.brokers.iter().filter(|(_, named)| named.kind == target.kind);
        let fitting: Vec<_> = fitting.map(|(name, _)| format!("`{name}`")).collect();
        let hint = match &fitting[..] {
            [] => format!(
                "write the kind `{is}` with its members; there is no connection of the kind `{wanted}`"
            ),
            some => format!(
                "write the kind `{is}` with its members, or name a connection of the kind `{wanted}`: {}",
                some.join(", ")
            ),
        };
        return Err(BadRequest::member("connection", what, hint).into());
    }
    let broker = broker.as_ref().ok_or(NotMade::Unsupported(*kind))?;
    let timeout = Duration::from_millis(plan(target).timeout_ms);
    Ok(broker.sink(Settings { target, timeout })?)
}

fn webhook(outside: &Outside, queue: &QueueName, stored: &Stored) -> Result<Webhook, NotMade> {
    let target = &stored.target;
    let url = target.url.as_deref().unwrap_or_default();
    let url = Url::parse(url).map_err(|error| {
        BadRequest::member("url", error.to_string(), "write for example `https://shop.example/hooks/{queue}`")
    })?;
    outside.guard.check_early(url.is_https, &url.host, url.port).map_err(|blocked| {
        BadRequest::member(
            "url",
            blocked.to_string(),
            "`serve --push-allow` opens places of your own network",
        )
    })?;
    let form = match target.body {
        None | Some(ContentForm::Payload) => BodyForm::Payload,
        Some(ContentForm::Envelope) => BodyForm::Envelope,
        Some(ContentForm::CloudEvents) => BodyForm::CloudEvents,
        Some(ContentForm::Unpacked) => {
            let hint = "write `payload`, `envelope` or `cloudevents`";
            return Err(
                BadRequest::member("body", "`unpacked` does not go with the kind `webhook`", hint).into()
            );
        }
    };
    let auth = target.auth.as_ref().map(|auth| self::auth(outside, queue, stored, auth)).transpose()?;
    let headers: Vec<_> = target.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let method = target.method.unwrap_or(HttpMethod::Post).name();
    let request = RequestPlan::new(method, url, form, &headers, auth.as_ref())
        .map_err(|error| BadRequest::body(error.to_string(), "see docs/how-to/targets.md"))?;
    let plan = plan(target);
    let usual = AnswerRules::default();
    Ok(Webhook::new(WebhookPlan {
        request,
        signers: signers(outside, queue, stored)?,
        rules: AnswerRules {
            dead_on: target.dead_on.clone().unwrap_or(usual.dead_on),
            disable_on: target.disable_on.clone().unwrap_or(usual.disable_on),
        },
        timeout: Duration::from_millis(plan.timeout_ms),
        connections_kept: plan.concurrency,
        guard: Arc::clone(&outside.guard),
        resolver: Arc::new(SystemResolver),
        tls: tls(outside, target.tls.as_ref())?,
    }))
}

fn signers(outside: &Outside, queue: &QueueName, stored: &Stored) -> Result<Vec<Signer>, NotMade> {
    let signer = |(nth, signing): (usize, &tickwheel_api::SigningBody)| {
        let text = secrets::signing(outside, queue, stored, &signing.secret).map_err(NotMade::Secret)?;
        let key = SigningKey::parse(&text).map_err(|error| {
            let hint = "write another secret, or correct the one of this name in the server's configuration";
            BadRequest::member(format!("signing[{nth}].secret"), error.to_string(), hint)
        })?;
        Ok(Signer { key, until: signing.until_ms.and_then(Timestamp::from_ms) })
    };
    stored.target.signing.iter().enumerate().map(signer).collect()
}

fn auth(outside: &Outside, queue: &QueueName, stored: &Stored, auth: &AuthBody) -> Result<Auth, NotMade> {
    let text = |secret| secrets::auth(outside, queue, stored, secret).map_err(NotMade::Secret);
    match (&auth.bearer, &auth.basic) {
        (Some(bearer), _) => Ok(Auth::Bearer(text(bearer)?)),
        (None, Some(basic)) => Ok(Auth::Basic { user: basic.user.clone(), password: text(&basic.password)? }),
        (None, None) => Err(BadRequest::member("auth", "is empty", "write `bearer` or `basic`").into()),
    }
}

fn tls(outside: &Outside, tls: Option<&TargetTlsBody>) -> Result<Arc<rustls::ClientConfig>, NotMade> {
    let usual = TargetTlsBody::default();
    let TargetTlsBody { ca, client_cert, min } = tls.unwrap_or(&usual);
    let found = outside.tls(ca.as_deref(), client_cert.as_deref(), *min == Some(TlsVersion::V13));
    let config = found
        .map_err(|error| BadRequest::member("tls", error.to_string(), "correct [push.tls] of the server"))?;
    Ok(config.ok_or_else(|| {
        let hint = format!("known are: {}", outside.tls_names());
        BadRequest::member(
            "tls",
            "names certificates that the configuration of the server does not have",
            hint,
        )
    })?)
}

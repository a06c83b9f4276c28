//! The secrets in the settings of a target: where they stand, how they are taken into the store, and how they are read from it.

use std::collections::BTreeMap;

use tickwheel_api::{AuthBody, BadRequest, Problem, SecretBody, TargetBody};
use tickwheel_push::webhook::SigningKey;
use tickwheel_queue::QueueName;

use super::outside::Outside;
use super::secret_keys::{Sealed, id_of};
use super::stored::Stored;
use crate::access::refusal::Refusal;

/// The slot of the secret of `auth`. A target has at most one.
const AUTH: &str = "auth";

/// Returns the slot of a signing secret with this id.
fn signing_slot(id: &str) -> String {
    format!("signing/{id}")
}

/// Returns the text that is authenticated together with a secret.
fn about(queue: &QueueName, slot: &str) -> String {
    format!("{}\n{slot}", queue.as_str())
}

/// Takes the secrets out of the settings of a request and encrypts them. `before`: the target so far, whose secrets the request may keep.
///
/// # Errors
/// 400 for a secret that cannot sign, a name that nothing has, and a kept secret that is not there; 409 without a key.
pub(super) fn take(
    outside: &Outside,
    queue: &QueueName,
    target: &mut TargetBody,
    before: Option<&Stored>,
) -> Result<BTreeMap<String, Sealed>, Refusal> {
    let mut taken = Taken { outside, queue, before, sealed: BTreeMap::new() };
    for (nth, signing) in target.signing.iter_mut().enumerate() {
        let path = format!("signing[{nth}].secret");
        if let SecretBody::Text(text) = &signing.secret {
            let sound = SigningKey::parse(text);
            sound.map_err(|error| BadRequest::member(&path, error.to_string(), "`whsec_` and the base64 of 24 to 64 random bytes is a secret; POST /v1/queues/{q}/target/rotate makes one"))?;
        }
        taken.take(&path, true, &mut signing.secret)?;
    }
    let is_same_place = before.is_some_and(|before| is_same_place(&before.target, target));
    if let Some(auth) = &mut target.auth {
        if !is_same_place && secret_of(auth).is_some_and(|secret| matches!(secret, SecretBody::Set { .. })) {
            // Who may change the target may not know the secret, and could have it sent to a place of their own.
            let hint = "write the secret itself, or change the place with the secret";
            let what =
                "keeps a secret for another place, or in another form, than the one that it was given for";
            return Err(BadRequest::member("auth", what, hint).into());
        }
        if let Some(bearer) = &mut auth.bearer {
            taken.take("auth.bearer", false, bearer)?;
        }
        if let Some(basic) = &mut auth.basic {
            taken.take("auth.basic.password", false, &mut basic.password)?;
        }
    }
    Ok(taken.sealed)
}

/// Refuses a target that names secrets or certificates of the server.
///
/// # Errors
/// 400: the target names one. The answer does not say whether it exists.
pub(super) fn refuse_named(target: &TargetBody) -> Result<(), Refusal> {
    let auth = target.auth.as_ref().and_then(secret_of);
    let mut secrets = target.signing.iter().map(|signing| &signing.secret).chain(auth);
    let has_certificate = target.tls.as_ref().is_some_and(|tls| tls.client_cert.is_some());
    if !has_certificate && !secrets.any(|secret| matches!(secret, SecretBody::Name(_))) {
        return Ok(());
    }
    let what = "names a secret or a certificate of the server, and the token has a scope";
    Err(BadRequest::body(what, "write the secret itself, or use a token without a scope").into())
}

/// Returns the secret of `auth`. The API lets it have exactly one.
fn secret_of(auth: &AuthBody) -> Option<&SecretBody> {
    auth.bearer.as_ref().or(auth.basic.as_ref().map(|basic| &basic.password))
}

/// Whether two targets send their `authorization` to the same place, over TLS with the same authorities, and in the same form.
fn is_same_place(before: &TargetBody, now: &TargetBody) -> bool {
    let origin = |target: &TargetBody| -> Option<String> {
        let (scheme, rest) = target.url.as_deref()?.split_once("://")?;
        let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        Some(format!("{scheme}://{host}").to_ascii_lowercase())
    };
    let ca = |target: &TargetBody| target.tls.as_ref().and_then(|tls| tls.ca.clone());
    let is_bearer = |target: &TargetBody| target.auth.as_ref().map(|auth| auth.bearer.is_some());
    origin(before) == origin(now) && ca(before) == ca(now) && is_bearer(before) == is_bearer(now)
}

struct Taken<'t> {
    outside: &'t Outside,
    queue: &'t QueueName,
    before: Option<&'t Stored>,
    sealed: BTreeMap<String, Sealed>,
}

impl Taken<'_> {
    fn take(&mut self, path: &str, signs: bool, secret: &mut SecretBody) -> Result<(), Refusal> {
        match secret {
            SecretBody::Name(name) if self.outside.secret(name).is_some() => Ok(()),
            SecretBody::Name(name) => {
                let known = self.outside.secret_names();
                let what =
                    format!("the configuration of the server has no secret `{}`", tickwheel_api::shown(name));
                Err(BadRequest::member(path, what, format!("known are: {known}")).into())
            }
            SecretBody::Text(text) => {
                let id = id_of(text.as_bytes());
                let slot = if signs { signing_slot(&id) } else { AUTH.to_owned() };
                let Some(sealed) = self.outside.keys.seal(&about(self.queue, &slot), text) else {
                    let why = format!("`{path}` would have to be stored in clear");
                    let problem = Problem::no_secret_key(why);
                    return Err(problem.into());
                };
                let sealed = sealed.map_err(|error| Problem::internal(error.to_string()))?;
                self.sealed.insert(slot, sealed);
                // The id of a password would help to guess it.
                *secret = SecretBody::Set { id: signs.then_some(id) };
                Ok(())
            }
            SecretBody::Set { id } => {
                let slot = match (signs, &id) {
                    (false, _) => AUTH.to_owned(),
                    (true, Some(id)) => signing_slot(id),
                    (true, None) => {
                        let hint = "write the `id` that GET shows, or the secret itself";
                        return Err(
                            BadRequest::member(path, "does not say which secret it keeps", hint).into()
                        );
                    }
                };
                let kept = self.before.and_then(|before| before.secrets.get(&slot));
                let hint = "write the secret itself, or the name of one of the server's configuration";
                let none = || BadRequest::member(path, "keeps a secret that the target does not have", hint);
                self.sealed.insert(slot, kept.ok_or_else(none)?.clone());
                Ok(())
            }
        }
    }
}

/// Returns the text of a signing secret, or why it cannot be read.
pub(super) fn signing(
    outside: &Outside,
    queue: &QueueName,
    stored: &Stored,
    secret: &SecretBody,
) -> Result<String, String> {
    let slot = match secret {
        SecretBody::Set { id: Some(id) } => signing_slot(id),
        _ => String::new(),
    };
    text(outside, queue, stored, secret, &slot)
}

/// Returns the text of the secret of `auth`, or why it cannot be read.
pub(super) fn auth(
    outside: &Outside,
    queue: &QueueName,
    stored: &Stored,
    secret: &SecretBody,
) -> Result<String, String> {
    text(outside, queue, stored, secret, AUTH)
}

fn text(
    outside: &Outside,
    queue: &QueueName,
    stored: &Stored,
    secret: &SecretBody,
    slot: &str,
) -> Result<String, String> {
    match secret {
        SecretBody::Name(name) => {
            let found = outside.secret(name).map(str::to_owned);
            found.ok_or_else(|| format!("the configuration of the server has no secret `{name}`"))
        }
        SecretBody::Text(_) | SecretBody::Set { .. } => {
            let sealed = stored.secrets.get(slot).ok_or("a secret is missing in the store")?;
            outside.keys.open(&about(queue, slot), sealed).map_err(|error| error.to_string())
        }
    }
}

/// Encrypts all secrets of a target under the first key. Returns whether something changed; a secret that cannot be read stays as it is.
pub(super) fn renew(outside: &Outside, queue: &QueueName, stored: &mut Stored) -> bool {
    let mut changed = false;
    for (slot, sealed) in &mut stored.secrets {
        if outside.keys.is_current(sealed) {
            continue;
        }
        let about = about(queue, slot);
        let Ok(secret) = outside.keys.open(&about, sealed) else { continue };
        if let Some(Ok(renewed)) = outside.keys.seal(&about, &secret) {
            (*sealed, changed) = (renewed, true);
        }
    }
    changed
}

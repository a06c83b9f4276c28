//! Signatures of webhooks, as the specification [Standard Webhooks](https://www.standardwebhooks.com) 1.0.0 describes them. So receivers
//! verify them with a library that they may already have.
//!
//! ```text
//! webhook-id:        tw_0a1b2c3d_42                 the same in all attempts
//! webhook-timestamp: 1795000000                     of this attempt (seconds since 1970)
//! webhook-signature: v1,BASE64 v1,BASE64 v1a,BASE64 one for each key that is valid
//!
//! v1  = HMAC-SHA256(secret, "ID.TIMESTAMP.BODY")
//! v1a = Ed25519(private key, "ID.TIMESTAMP.BODY")
//! ```

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair};
use tickwheel_queue::Timestamp;

/// A secret has at least this many bytes.
const SECRET_BYTES_MIN: usize = 24;
/// A secret has at most this many bytes.
const SECRET_BYTES_MAX: usize = 64;
/// A new secret has this many bytes.
const SECRET_BYTES_NEW: usize = 32;
/// The seed of an Ed25519 key (bytes).
const SEED_BYTES: usize = 32;

/// A key that signs webhooks.
pub struct SigningKey {
    key: Key,
}

enum Key {
    Hmac(hmac::Key),
    Ed25519(Box<Ed25519KeyPair>),
}

/// Why a text is no key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SigningKeyError {
    /// The text has no known beginning.
    #[error("a secret begins with `whsec_`, and a private key of Ed25519 with `whsk_`")]
    Prefix,
    /// The text behind the beginning is no base64.
    #[error("the secret is no base64 behind its first characters")]
    Base64,
    /// The secret is too short or too long.
    #[error(
        "the secret has {0} bytes, not {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX}; make one with `openssl rand -base64 32`"
    )]
    Length(usize),
    /// The text is not the private key of an Ed25519 pair.
    #[error("the key is no private key of Ed25519, which is 32 bytes, or 64 with the public key behind them")]
    Ed25519,
    /// The text is a public key, which cannot sign.
    #[error(
        "`whpk_` begins a public key, which cannot sign; write the private key, which begins with `whsk_`"
    )]
    Public,
}

/// A key that signs, for ever or until an instant.
#[derive(Debug)]
pub struct Signer {
    /// The key.
    pub key: SigningKey,
    /// From this instant on the key does not sign any more; `None`: it has no end.
    pub until: Option<Timestamp>,
}

impl Signer {
    /// Returns the key, if it signs at this instant.
    pub(crate) fn key_at(&self, now: Timestamp) -> Option<&SigningKey> {
        self.until.is_none_or(|until| now < until).then_some(&self.key)
    }
}

impl From<SigningKey> for Signer {
    fn from(key: SigningKey) -> Self {
        Self { key, until: None }
    }
}

impl SigningKey {
    /// Reads a key: `whsec_` and the base64 of 24 to 64 bytes, which are the key of the HMAC; or `whsk_` and the base64 of an Ed25519 seed
    /// (32 bytes), which may have its public key behind it.
    ///
    /// # Errors
    /// [`SigningKeyError`].
    ///
    /// ```
    /// use tickwheel_push::webhook::SigningKey;
    /// let key = SigningKey::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
    /// assert_eq!(key.sign("msg_1", 1_614_265_330, b"{}").split(',').next(), Some("v1"));
    /// # Ok::<(), tickwheel_push::webhook::SigningKeyError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, SigningKeyError> {
        let bytes = |text: &str| STANDARD.decode(text).map_err(|_| SigningKeyError::Base64);
        if let Some(secret) = text.strip_prefix("whsec_") {
            let secret = bytes(secret)?;
            if !(SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&secret.len()) {
                return Err(SigningKeyError::Length(secret.len()));
            }
            return Ok(Self { key: Key::Hmac(hmac::Key::new(hmac::HMAC_SHA256, &secret)) });
        }
        let Some(private) = text.strip_prefix("whsk_") else {
            let is_public = text.starts_with("whpk_");
            return Err(if is_public { SigningKeyError::Public } else { SigningKeyError::Prefix });
        };
        let private = bytes(private)?;
        let pair = match private.split_at_checked(SEED_BYTES) {
            Some((seed, [])) => Ed25519KeyPair::from_seed_unchecked(seed),
            Some((seed, public)) => Ed25519KeyPair::from_seed_and_public_key(seed, public),
            None => return Err(SigningKeyError::Ed25519),
        };
        Ok(Self { key: Key::Ed25519(Box::new(pair.map_err(|_| SigningKeyError::Ed25519)?)) })
    }

    /// Returns one signature as it stands in the header `webhook-signature`. `at_s`: when the attempt began (seconds since 1970).
    #[must_use]
    pub fn sign(&self, id: &str, at_s: i64, body: &[u8]) -> String {
        let head = format!("{id}.{at_s}.");
        match &self.key {
            Key::Hmac(key) => {
                let mut context = hmac::Context::with_key(key);
                context.update(head.as_bytes());
                context.update(body);
                format!("v1,{}", STANDARD.encode(context.sign()))
            }
            Key::Ed25519(pair) => {
                let signed = [head.as_bytes(), body].concat();
                format!("v1a,{}", STANDARD.encode(pair.sign(&signed)))
            }
        }
    }

    /// Returns the public key of an Ed25519 pair, `whpk_` and base64; `None`: the key is a secret, which has none.
    #[must_use]
    pub fn public(&self) -> Option<String> {
        match &self.key {
            Key::Hmac(_) => None,
            Key::Ed25519(pair) => Some(format!("whpk_{}", STANDARD.encode(pair.public_key()))),
        }
    }
}

impl fmt::Debug for SigningKey {
    /// Shows the kind of the key alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key {
            Key::Hmac(_) => f.write_str("SigningKey(HMAC)"),
            Key::Ed25519(_) => f.write_str("SigningKey(Ed25519)"),
        }
    }
}

/// Returns a new secret: `whsec_` and the base64 of 32 random bytes.
///
/// # Errors
/// The system has no random numbers.
pub fn new_secret() -> std::io::Result<String> {
    let mut bytes = [0; SECRET_BYTES_NEW];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| std::io::Error::other("the system has no random numbers"))?;
    Ok(format!("whsec_{}", STANDARD.encode(bytes)))
}

/// Returns the value of the header `webhook-signature`: one signature for each key.
pub(crate) fn header<'k>(
    keys: impl IntoIterator<Item = &'k SigningKey>,
    id: &str,
    at_s: i64,
    body: &[u8],
) -> String {
    keys.into_iter().map(|key| key.sign(id, at_s, body)).collect::<Vec<_>>().join(" ")
}

/// Whether a signature of an Ed25519 key is right.
#[cfg(test)]
fn verifies(public: &str, signed: &str, id: &str, at_s: i64, body: &[u8]) -> bool {
    let decode = |text: Option<&str>| text.and_then(|text| STANDARD.decode(text).ok());
    let (Some(public), Some(signed)) =
        (decode(public.strip_prefix("whpk_")), decode(signed.strip_prefix("v1a,")))
    else {
        return false;
    };
    let text = [format!("{id}.{at_s}.").as_bytes(), body].concat();
    ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, public).verify(&text, &signed).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification.
    #[test]
    fn the_example_of_the_specification_has_its_signature() {
        let key = SigningKey::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a key");
        let signature = key.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn each_valid_key_signs() {
        let keys = [new_secret().expect("random"), format!("whsk_{}", STANDARD.encode([7; 32]))];
        let keys = keys.map(|text| SigningKey::parse(&text).expect("a key"));
        let header = header(&keys, "tw_1_2", 5, b"x");
        let [first, second] = header.split(' ').collect::<Vec<_>>()[..] else { panic!("{header}") };
        assert!(first.starts_with("v1,") && second.starts_with("v1a,"), "{header}");
        let public = keys[1].public().expect("a public key");
        assert!(verifies(&public, second, "tw_1_2", 5, b"x"));
        assert!(!verifies(&public, second, "tw_1_2", 6, b"x"));
        assert_eq!(keys[0].public(), None);
    }

    #[test]
    fn a_pair_of_64_bytes_is_read_and_must_belong_together() {
        let seed = [9; 32];
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).expect("a pair");
        let both = [&seed[..], pair.public_key().as_ref()].concat();
        let text = format!("whsk_{}", STANDARD.encode(both));
        assert!(SigningKey::parse(&text).is_ok());
        let other = format!("whsk_{}", STANDARD.encode([9; 64]));
        assert_eq!(SigningKey::parse(&other).err(), Some(SigningKeyError::Ed25519));
    }

    #[test]
    fn mistakes_are_named_and_no_secret_is_shown() {
        let of = |bytes: usize| format!("whsec_{}", STANDARD.encode(vec![1; bytes]));
        for (text, error) in [
            ("secret".to_owned(), SigningKeyError::Prefix),
            ("whsec_!".to_owned(), SigningKeyError::Base64),
            (of(23), SigningKeyError::Length(23)),
            (of(65), SigningKeyError::Length(65)),
            ("whpk_AAAA".to_owned(), SigningKeyError::Public),
            ("whsk_AAAA".to_owned(), SigningKeyError::Ed25519),
        ] {
            assert_eq!(SigningKey::parse(&text).err(), Some(error), "{text}");
        }
        assert!(SigningKey::parse(&of(24)).is_ok() && SigningKey::parse(&of(64)).is_ok());
        let key = SigningKey::parse(&of(24)).expect("a key");
        assert_eq!(format!("{key:?}"), "SigningKey(HMAC)");
    }
}

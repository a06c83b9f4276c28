//! [`SecretKeys`]: the keys that encrypt the secrets of targets in the store.
//!
//! A secret is encrypted with AES-256-GCM under a random nonce. The queue and the member are authenticated with it. So a program that can write
//! to the disk cannot move a secret to another queue.

use std::fs;
use std::io;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::base::hex;
use sha2::{Digest, Sha256};

/// The length of a key (bytes).
const KEY_BYTES: usize = 32;
/// The length of the id of a key or of a secret (bytes of its hash).
const ID_BYTES: usize = 4;

/// The keys of a server, the first of which encrypts.
#[derive(Default)]
pub(crate) struct SecretKeys {
    keys: Vec<SecretKey>,
}

struct SecretKey {
    id: String,
    key: LessSafeKey,
}

/// An encrypted secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Sealed {
    /// The id of the key.
    pub(crate) key: String,
    /// The nonce, the encrypted text and its tag, in base64.
    text: String,
}

/// Why a file gives no keys. The text says what is wrong with the file.
#[derive(Debug, thiserror::Error)]
pub enum SecretKeyError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line is no key.
    #[error("line {0} is not the base64 of 32 bytes; `openssl rand -base64 32` makes a key")]
    NoKey(usize),
    /// The file has no line with a key.
    #[error("the file has no key; `openssl rand -base64 32` makes one")]
    Empty,
}

/// Why a secret cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The key is not there.
    #[error("the key {0} is not in the file of --secret-key-file")]
    NoKey(String),
    /// The text was changed, or belongs to another queue.
    #[error("the encrypted secret is damaged")]
    Damaged,
}

impl SecretKeys {
    /// Reads the keys of a file.
    ///
    /// # Errors
    /// [`SecretKeyError`].
    pub(crate) fn read(place: &Path) -> Result<Self, SecretKeyError> {
        let text = fs::read_to_string(place)?;
        let mut keys = Vec::new();
        for (nth, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bytes = STANDARD.decode(line).ok().filter(|bytes| bytes.len() == KEY_BYTES);
            let bytes = bytes.ok_or(SecretKeyError::NoKey(nth + 1))?;
            let key = UnboundKey::new(&AES_256_GCM, &bytes).expect("the key has the length of the algorithm");
            keys.push(SecretKey { id: id_of(&bytes), key: LessSafeKey::new(key) });
        }
        if keys.is_empty() { Err(SecretKeyError::Empty) } else { Ok(Self { keys }) }
    }

    /// Whether there is a key with this id.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.id == id)
    }

    /// Whether a secret is encrypted under the first key.
    pub(crate) fn is_current(&self, sealed: &Sealed) -> bool {
        self.keys.first().is_some_and(|first| first.id == sealed.key)
    }

    /// Encrypts a secret under the first key. `about`: its queue and member. `None`: there is no key.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn seal(&self, about: &str, secret: &str) -> Option<io::Result<Sealed>> {
        let SecretKey { id, key } = self.keys.first()?;
        let mut nonce = [0; NONCE_LEN];
        if SystemRandom::new().fill(&mut nonce).is_err() {
            return Some(Err(io::Error::other("the system has no random numbers")));
        }
        let mut bytes = secret.as_bytes().to_vec();
        key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(about.as_bytes()),
            &mut bytes,
        )
        .expect("a secret is far below the limit of the algorithm");
        Some(Ok(Sealed { key: id.clone(), text: STANDARD.encode([&nonce[..], &bytes].concat()) }))
    }

    /// Decrypts a secret.
    ///
    /// # Errors
    /// [`OpenError`].
    pub(crate) fn open(&self, about: &str, sealed: &Sealed) -> Result<String, OpenError> {
        let key = self.keys.iter().find(|key| key.id == sealed.key);
        let key = key.ok_or_else(|| OpenError::NoKey(sealed.key.clone()))?;
        let bytes = STANDARD.decode(&sealed.text).map_err(|_| OpenError::Damaged)?;
        let (nonce, text) = bytes.split_first_chunk::<NONCE_LEN>().ok_or(OpenError::Damaged)?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = key.key.open_in_place(nonce, Aad::from(about.as_bytes()), &mut text);
        let opened = opened.map_err(|_| OpenError::Damaged)?;
        String::from_utf8(opened.to_vec()).map_err(|_| OpenError::Damaged)
    }
}

/// Returns a short id of random bytes, which does not give them away.
pub(crate) fn id_of(bytes: &[u8]) -> String {
    hex::write(&Sha256::digest(bytes)[..ID_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(lines: &str) -> Result<SecretKeys, SecretKeyError> {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("keys");
        fs::write(&place, lines).expect("a file");
        SecretKeys::read(&place)
    }

    fn line(byte: u8) -> String {
        STANDARD.encode([byte; KEY_BYTES])
    }

    #[test]
    fn a_secret_is_read_only_with_its_key_and_in_its_place() {
        let first = keys(&format!("# the key of today\n{}\n", line(1))).expect("a key");
        let sealed = first.seal("close\nauth", "whsec_x").expect("a key").expect("random numbers");
        assert_eq!(first.open("close\nauth", &sealed).as_deref(), Ok("whsec_x"));
        assert_eq!(first.open("other\nauth", &sealed), Err(OpenError::Damaged), "of another queue");
        let again = first.seal("close\nauth", "whsec_x").expect("a key").expect("random numbers");
        assert_ne!(again, sealed, "each nonce is a new one");
        let both = keys(&format!("{}\n\n{}", line(2), line(1))).expect("keys");
        assert_eq!(both.open("close\nauth", &sealed).as_deref(), Ok("whsec_x"), "the old key still decrypts");
        assert!(!both.is_current(&sealed) && first.is_current(&sealed));
        let lost = keys(&line(2)).expect("a key").open("close\nauth", &sealed);
        assert_eq!(lost, Err(OpenError::NoKey(sealed.key.clone())));
        let mut bytes = STANDARD.decode(&sealed.text).expect("base64");
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            let changed = Sealed { text: STANDARD.encode(&bytes), ..sealed.clone() };
            assert_eq!(first.open("close\nauth", &changed), Err(OpenError::Damaged), "byte {at}");
            bytes[at] ^= 1;
        }
    }

    #[test]
    fn a_file_without_a_key_is_refused() {
        for (text, why) in
            [("", "no key"), ("# nothing\n", "no key"), ("AAAA", "line 1"), ("\nabc!", "line 2")]
        {
            let error = keys(text).err().expect(text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}

//! Lease tokens: the proof of a lease. Tokens are signed, so that the engine can tell a token that was never issued from the token of an
//! ended lease.

use core::fmt;
use core::hash::Hasher;

use siphasher::sip::SipHasher24;

use crate::task::LeaseNo;

/// The identity of a lease for the engine: the task and the lease number. As text: 32 characters of `[A-Za-z0-9_-]`, opaque to workers.
///
/// The text carries a signature (SipHash-2-4 under the shard's secret, over id and number). The signature keeps an honest worker from using
/// another worker's lease by accident. To forge a token, an attacker has to guess 64 bits. The signature is no defence against an attacker
/// who can read the data directory.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token {
    id: u64,
    no: LeaseNo,
    mac: u64,
}

/// The error for a text that does not have the form of a token.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a lease token")]
pub struct NotAToken;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// The length of a token as text: 24 bytes, 6 bits in each character.
const TEXT_BYTES: usize = 32;

impl Token {
    /// Makes a signed token for the lease `no` of task `id`.
    pub(crate) fn issue(secret: &[u8; 16], id: u64, no: LeaseNo) -> Self {
        Self { id, no, mac: sign(secret, id, no) }
    }

    /// Returns the task id and the lease number of the token, if the token was issued under `secret`.
    pub(crate) fn verify(self, secret: &[u8; 16]) -> Option<(u64, LeaseNo)> {
        (self.mac == sign(secret, self.id, self.no)).then_some((self.id, self.no))
    }

    /// Returns the task id that the token claims. The id names the shard to ask, see [`ShardId::of_id`](crate::ShardId::of_id). Only that
    /// shard can say whether the token is genuine.
    #[must_use]
    pub fn task_id(self) -> u64 {
        self.id
    }

    /// Reads a token from its text.
    ///
    /// # Errors
    /// [`NotAToken`] for any text that does not have the form that [`Display`](fmt::Display) writes.
    pub fn parse(text: &str) -> Result<Self, NotAToken> {
        let text: &[u8; TEXT_BYTES] = text.as_bytes().try_into().map_err(|_| NotAToken)?;
        let mut bytes = [0; 24];
        for (six_bits, three) in text.as_chunks::<4>().0.iter().zip(bytes.as_chunks_mut::<3>().0) {
            let mut word = 0u32;
            for &c in six_bits {
                let digit = ALPHABET.iter().position(|&a| a == c).ok_or(NotAToken)?;
                word = word << 6 | digit as u32;
            }
            three.copy_from_slice(&word.to_be_bytes()[1..]);
        }
        let [id, no, mac] = bytes.as_chunks::<8>().0 else { return Err(NotAToken) };
        let number = u64::from_be_bytes;
        Ok(Self { id: number(*id), no: LeaseNo(number(*no)), mac: number(*mac) })
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = [0; 24];
        let fields = [self.id, self.no.0, self.mac];
        for (place, field) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(fields) {
            *place = field.to_be_bytes();
        }
        for three in bytes.as_chunks::<3>().0 {
            let word = u32::from_be_bytes([0, three[0], three[1], three[2]]);
            for shift in [18, 12, 6, 0] {
                write!(f, "{}", ALPHABET[(word >> shift & 63) as usize] as char)?;
            }
        }
        Ok(())
    }
}

fn sign(secret: &[u8; 16], id: u64, no: LeaseNo) -> u64 {
    let mut mac = SipHasher24::new_with_key(secret);
    mac.write(b"lease");
    mac.write_u64(id);
    mac.write_u64(no.0);
    mac.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: [u8; 16] = *b"0123456789abcdef";

    #[test]
    fn a_token_survives_its_text_and_only_its_own_secret() {
        let token = Token::issue(&SECRET, 7, LeaseNo(5 << 32 | 9));
        let text = token.to_string();
        assert_eq!(text.len(), TEXT_BYTES);
        assert_eq!(Token::parse(&text), Ok(token));
        assert_eq!(token.verify(&SECRET), Some((7, LeaseNo(5 << 32 | 9))));
        assert_eq!(token.verify(&[0; 16]), None);
    }

    #[test]
    fn every_changed_character_is_noticed() {
        let text = Token::issue(&SECRET, 7, LeaseNo(1)).to_string();
        for at in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            let other = Token::parse(std::str::from_utf8(&other).expect("ascii")).expect("well formed");
            assert_eq!(other.verify(&SECRET), None, "character {at}");
        }
    }

    #[test]
    fn other_texts_are_no_tokens() {
        for text in ["", "x", &"=".repeat(32), &"A".repeat(31), &"A".repeat(33), &"ü".repeat(16)] {
            assert_eq!(Token::parse(text), Err(NotAToken), "{text:?}");
        }
    }
}

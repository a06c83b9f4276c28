//! [`Address`]: a place in a broker, such as a topic or a routing key.

use crate::message::Message;
use crate::outcome::Outcome;
use crate::template::{Template, TemplateError};

/// The letters and the length that a broker allows for a name.
#[derive(Copy, Clone, Debug)]
pub struct Alphabet {
    /// The kind of the name, for errors: `topic`.
    pub noun: &'static str,
    /// Whether a name may have this character.
    pub allows: fn(char) -> bool,
    /// The characters in words, for errors: `letters, digits, '.', '_' and '-'`.
    pub words: &'static str,
    /// The largest length (bytes).
    pub bytes_max: usize,
}

/// The place in a broker that gets the messages: a template whose values are checked for each message.
#[derive(Clone, Debug)]
pub struct Address {
    template: Template,
    alphabet: Alphabet,
}

/// Why a text is no address.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AddressError {
    /// The text is no template.
    #[error("the {noun}: {why}")]
    Template {
        /// The kind of the name.
        noun: &'static str,
        /// The mistake in the template.
        why: TemplateError,
    },
    /// The text has a character that the broker does not allow, is empty, or is too long.
    #[error("the {noun} may have 1 to {bytes_max} bytes of {words}")]
    Alphabet {
        /// The kind of the name.
        noun: &'static str,
        /// The allowed characters.
        words: &'static str,
        /// The largest length (bytes).
        bytes_max: usize,
    },
}

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// [`AddressError`].
    pub fn parse(text: &str, alphabet: Alphabet) -> Result<Self, AddressError> {
        let Alphabet { noun, allows, words, bytes_max } = alphabet;
        let template = Template::parse(text).map_err(|why| AddressError::Template { noun, why })?;
        let plain = template.texts().map(str::len).sum::<usize>();
        let is_good = template.texts().all(|text| text.chars().all(allows)) && plain <= bytes_max;
        if text.is_empty() || !is_good {
            return Err(AddressError::Alphabet { noun, words, bytes_max });
        }
        Ok(Self { template, alphabet })
    }

    /// Returns the place for a message.
    ///
    /// # Errors
    /// The outcome of a message that has no such place: a value is missing, or has a character that the broker does not allow.
    pub fn of(&self, message: &Message) -> Result<String, Outcome> {
        let Alphabet { noun, allows, words, bytes_max } = self.alphabet;
        let place =
            self.template.fill(message, |text, value| text.push_str(value)).map_err(Outcome::unfillable)?;
        if place.is_empty() || place.len() > bytes_max || !place.chars().all(allows) {
            let shown: String = place.chars().take(100).collect();
            return Err(Outcome::unfillable(format!(
                "template: the {noun} would be `{shown}`, but may have 1 to {bytes_max} bytes of {words}"
            )));
        }
        Ok(place)
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_queue::Undeliverable;

    use super::*;
    use crate::message::tests::message;

    const TOPIC: Alphabet = Alphabet {
        noun: "topic",
        allows: |c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'),
        words: "letters, digits, '.', '_' and '-'",
        bytes_max: 20,
    };

    #[test]
    fn a_place_has_only_letters_that_the_broker_allows() {
        let of = |text: &str| Address::parse(text, TOPIC).expect(text).of(&message());
        assert_eq!(of("due.{queue}").as_deref(), Ok("due.close"));
        for text in ["{key}", "{group}", "{queue}{queue}{queue}{queue}{queue}"] {
            let outcome = of(text).expect_err(text);
            assert!(
                matches!(outcome, Outcome::Undeliverable { why: Undeliverable::Template, .. }),
                "{text}: {outcome:?}"
            );
        }
        let reason = of("{key}").expect_err("a colon");
        assert_eq!(
            reason.reason().map(|reason| &**reason),
            Some(
                "template: the topic would be `order:1/ä`, but may have 1 to 20 bytes of letters, digits, '.', '_' and '-'"
            )
        );
    }

    #[test]
    fn a_text_that_can_never_be_a_place_is_refused() {
        for text in ["", "a b", "ä", "{nothing}", "a{queue", &"a".repeat(21)] {
            assert!(Address::parse(text, TOPIC).is_err(), "{text}");
        }
    }
}

//! A text as its words, and whether some of them stand beside each other.

/// The words of a text in lower case, without punctuation. Each Chinese character is a word of its own, because nothing separates
/// the words of Chinese.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut open = false;
    for letter in text.chars() {
        // A typographic apostrophe is the one of a keyboard.
        let letter = if letter == '’' { '\'' } else { letter };
        if is_chinese(letter) {
            words.push(letter.to_string());
            open = false;
        } else if letter.is_alphanumeric() || letter == '\'' {
            if !open {
                words.push(String::new());
            }
            open = true;
            words.last_mut().expect("a word is open").extend(letter.to_lowercase());
        } else {
            open = false;
        }
    }
    words
}

pub(super) fn is_chinese(letter: char) -> bool {
    ('\u{3400}'..='\u{9fff}').contains(&letter)
}

/// Where `phrase` stands in `words`: the numbers of its first word and of the word behind it.
pub(super) fn places(words: &[String], phrase: &[String]) -> Vec<(usize, usize)> {
    if phrase.is_empty() || phrase.len() > words.len() {
        return Vec::new();
    }
    let starts = words.windows(phrase.len()).enumerate().filter(|(_, part)| *part == phrase);
    starts.map(|(at, _)| (at, at + phrase.len())).collect()
}

/// The number of words between two places; none if they touch or overlap.
pub(super) fn between(one: (usize, usize), other: (usize, usize)) -> usize {
    one.0.saturating_sub(other.1).max(other.0.saturating_sub(one.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_words_of_two_languages() {
        let expected = ["a", "fail", "over", "isn't", "没", "有", "v1", "副", "本"];
        assert_eq!(words("A fail-over (isn’t) 没有v1副本。"), expected);
    }

    #[test]
    fn a_phrase_is_found_as_whole_words() {
        let text = words("It takes over; nothing overtakes it. It takes, over time.");
        assert_eq!(places(&text, &words("takes over")), [(1, 3), (7, 9)]);
        assert_eq!(places(&text, &words("take")), []);
        assert_eq!(places(&words("没有副本"), &words("副本")), [(2, 4)]);
        assert_eq!(places(&[], &words("副本")), []);
    }

    #[test]
    fn the_words_between_two_places_are_counted() {
        assert_eq!(between((0, 1), (4, 6)), 3);
        assert_eq!(between((4, 6), (0, 1)), 3);
        assert_eq!(between((0, 2), (1, 3)), 0);
        assert_eq!(between((0, 2), (2, 3)), 0);
    }
}

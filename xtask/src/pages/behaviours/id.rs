//! [`Id`]: the name of a behaviour: `T15` on the page, `t15_` at the beginning of a test.

use std::fmt;

/// A family and a number. They sort as one counts: T2 is before T10.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Id {
    /// In capitals.
    pub(super) family: String,
    number: u32,
}

impl Id {
    /// From a cell of the page.
    pub(super) fn on_page(cell: &str) -> Option<Self> {
        Self::read(cell, |byte| byte.is_ascii_uppercase())
    }

    /// From the name of a function, if it begins with an id and goes on in words.
    pub(super) fn of_test(name: &str) -> Option<Self> {
        let (id, words) = name.split_once('_')?;
        if words.is_empty() { None } else { Self::read(id, |byte| byte.is_ascii_lowercase()) }
    }

    fn read(text: &str, is_letter: impl Fn(u8) -> bool) -> Option<Self> {
        let letters = text.bytes().take_while(|&byte| is_letter(byte)).count();
        let (family, digits) = text.split_at(letters);
        let plain = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
        if family.is_empty() || !plain {
            return None;
        }
        Some(Self { family: family.to_ascii_uppercase(), number: digits.parse().ok()? })
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.family, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_from_both_sides() {
        for (cell, name) in [("T15", "t15_a_cancel"), ("WH2", "wh2_ties"), ("PT1", "pt1_x")] {
            let id = Id::on_page(cell).expect("an id");
            assert_eq!(Id::of_test(name), Some(id.clone()));
            assert_eq!(id.to_string(), cell);
        }
        assert!(Id::on_page("T2") < Id::on_page("T10"));
    }

    #[test]
    fn what_is_no_id_is_none() {
        for cell in ["", "T", "15", "t15", "T15a", "T015", "T 15", "T99999999999"] {
            assert_eq!(Id::on_page(cell), None, "{cell}");
        }
        for name in ["t15", "t15_", "a_name", "_t1_x", "T15_x", "utf8_x_1", "t1a_x"] {
            let id = Id::of_test(name).filter(|id| id.family != "UTF");
            assert_eq!(id, None, "{name}");
        }
    }
}

//! Enums whose values are words on the wire, and how these words are read and written.

/// A value that has a word on the wire. The macro [`choice!`] implements it.
pub(crate) trait Choice: Copy + PartialEq + 'static {
    /// All values with their words, in the order of the documents.
    const WORDS: &'static [(&'static str, Self)];
}

macro_rules! choice {
    (
        $(#[$attribute:meta])*
        $visible:vis enum $Name:ident {
            $($(#[$about:meta])* $Variant:ident = $word:literal,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $visible enum $Name {
            $($(#[$about])* $Variant,)*
        }

        impl $crate::declare::choice::Choice for $Name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$Variant)),*];
        }

        impl $Name {
            /// All values, in the order of the documents.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$Variant),*];

            /// The word on the wire.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$Variant => $word,)*
                }
            }
        }

        impl serde::Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }
    };
}
pub(crate) use choice;

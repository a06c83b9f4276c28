//! The parts of the service.

/// Declares a part. Its members are private, and each has a method of its name that lends it. The visibility of a member is that of
/// the method.
macro_rules! part {
    ($(#[$doc:meta])* $Part:ident { $($(#[$note:meta])* $view:vis $member:ident: $Type:ty,)* }) => {
        $(#[$doc])*
        pub(crate) struct $Part {
            $($(#[$note])* $member: $Type,)*
        }

        impl $Part {
            $($(#[$note])* $view fn $member(&self) -> &$Type { &self.$member })*
        }
    };
}

pub(super) use part;

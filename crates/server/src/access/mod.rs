//! The access to a server: tokens, rights, scopes, quotas, hosts.

pub(crate) mod authorizer;
pub(crate) mod host;
pub(crate) mod producer;
pub(crate) mod quota;
pub(crate) mod refusal;
pub(crate) mod tokens;

//! The client against servers of a few lines: the requests that it sends, the results that it makes of answers, and its
//! behaviour if there is no answer.

mod calls;
mod kept;
mod peer;
mod repeats;
mod script;
mod silence;
mod tls;

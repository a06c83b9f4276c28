//! [`TargetWords`]: mistakes in a target in the words of the command line.

use tickwheel_api::{BadRequest, Location, TargetBody, TargetKind};
use tickwheel_client::ClientError;

/// Tells mistakes in a target that was given by options. The API names members, and the caller wrote options.
#[derive(Copy, Clone)]
pub(super) struct TargetWords {
    /// The option that gave the secrets that sign.
    pub(super) signing: &'static str,
}

impl TargetWords {
    /// Returns the option for the member with this path, such as `signing[0].secret`; `None`: no option gives it.
    fn option(self, path: &str) -> Option<String> {
        let member = path.split(['.', '[']).next().unwrap_or_default();
        Some(match member {
            "signing" => self.signing.to_owned(),
            "headers" => "--header".to_owned(),
            "auth" => "--bearer".to_owned(),
            "enabled" => "--disabled".to_owned(),
            "url" | "method" | "body" | "connection" | "timeout" | "concurrency" | "order" => {
                format!("--{member}")
            }
            _ => {
                TargetBody::of_kind(TargetKind::Webhook).place_mut(member)?;
                format!("--{}", member.replace('_', "-"))
            }
        })
    }

    /// Tells a mistake that shows before the call.
    pub(super) fn mistake(self, mistake: &BadRequest) -> String {
        let BadRequest { location, what, hint } = mistake;
        let option = match location {
            Location::Member(path) => self.option(path),
            _ => None,
        };
        match option {
            // The mistake says which value it is about, and not what the option does.
            Some(option) if what.starts_with('`') => format!("{option}: {what}; {hint}"),
            Some(option) => format!("{option} {what}; {hint}"),
            None => format!("the target: {mistake}; {hint}"),
        }
    }

    /// Returns the same error, whose text names the option instead of the member.
    pub(super) fn refusal(self, error: ClientError) -> ClientError {
        let ClientError::Problem(mut problem) = error else { return error };
        if let Some((path, option)) =
            problem.member.as_deref().and_then(|path| Some((path, self.option(path)?)))
        {
            problem.detail = problem.detail.replacen(&format!("`{path}`"), &option, 1);
        }
        ClientError::Problem(problem)
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_api::Problem;

    use super::*;

    const WORDS: TargetWords = TargetWords { signing: "--sign-with" };

    #[test]
    fn a_refusal_of_the_server_names_the_option() {
        for (path, detail) in [
            ("signing[0].secret", "--sign-with: has no secret `x`"),
            ("auth.bearer", "--bearer: has no secret `x`"),
            ("routing_key", "--routing-key: has no secret `x`"),
            ("breaker.failures", "`breaker.failures`: has no secret `x`"),
        ] {
            let problem = Problem::bad_request(&BadRequest::member(path, "has no secret `x`", "a hint"));
            let told = WORDS.refusal(ClientError::Problem(problem.into())).to_string();
            assert!(told.contains(&format!("{detail}; a hint")), "{path}: {told}");
        }
    }

    #[test]
    fn a_mistake_before_the_call_names_the_option() {
        let told = |path: &str, what: &str| WORDS.mistake(&BadRequest::member(path, what, "a hint"));
        assert_eq!(told("stream", "is missing"), "--stream is missing; a hint");
        assert_eq!(told("timeout", "`30` has no unit"), "--timeout: `30` has no unit; a hint");
        assert_eq!(
            told("breaker.failures", "is too large"),
            "the target: `breaker.failures`: is too large; a hint"
        );
    }
}

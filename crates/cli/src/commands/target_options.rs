//! Options for the settings of a target.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use tickwheel_api::{
    AuthBody, ContentForm, HttpMethod, SecretBody, SigningBody, TARGET_CONCURRENCY_MAX,
    TARGET_TIMEOUT_MS_MAX, TARGET_TIMEOUT_MS_MIN, TargetBody, TargetKind, TargetOrder, duration,
};

use super::payload::text_of;
use super::target_words::TargetWords;
use crate::hints;
use crate::values;

/// The settings, from a file or as options.
#[derive(Args, Debug)]
pub(super) struct Members {
    /// All settings from a file with JSON, or from stdin with `-`
    #[arg(long, value_name = "FILE", conflicts_with = "OneByOne")]
    file: Option<String>,
    #[command(flatten)]
    one_by_one: OneByOne,
    #[command(flatten)]
    places: Places,
}

const WEBHOOK: &str = "Webhook";
const BROKER: &str = "Broker";

#[derive(Args, Debug)]
struct OneByOne {
    /// The URL; in its path and its query, `{queue}`, `{key}`, `{id}`, `{attempt}`, `{due_at}`, `{group}` and `{tag.0}` are replaced
    #[arg(long, value_name = "URL", help_heading = WEBHOOK)]
    url: Option<String>,
    /// The method [default: POST]
    #[arg(long, value_name = "METHOD", value_parser = words(&HttpMethod::ALL, HttpMethod::name), help_heading = WEBHOOK)]
    method: Option<HttpMethod>,
    /// Sign with this secret of the server's configuration; with several, the first is the current one
    #[arg(long, value_name = "NAME", help_heading = WEBHOOK)]
    sign_with: Vec<String>,
    /// Make a new secret, sign with it alone, and print it once, in JSON as `secret`; `target rotate` keeps the old one for a while
    #[arg(long, conflicts_with = "sign_with", help_heading = WEBHOOK)]
    new_secret: bool,
    /// Send `authorization: Bearer` with this secret of the server's configuration
    #[arg(long, value_name = "NAME", help_heading = WEBHOOK)]
    bearer: Option<String>,
    /// The name of the connection in the server's configuration
    #[arg(long, value_name = "NAME", conflicts_with = "url", help_heading = BROKER)]
    connection: Option<String>,
    /// The form of the body [default: payload; envelope for a tube and a list]
    #[arg(long, value_name = "FORM", value_parser = words(&ContentForm::ALL, ContentForm::name))]
    body: Option<ContentForm>,
    /// A header of each message; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = header)]
    header: Vec<(String, String)>,
    /// The time for one attempt, 1s to 5m [default: 15s for a webhook, 10s for a broker]
    #[arg(long, value_name = "DURATION", value_parser = timeout, allow_hyphen_values = true)]
    timeout: Option<u64>,
    /// The largest number of messages under way at one time [default: 8 for a webhook, 512 for a broker]
    #[arg(long, value_name = "N", value_parser = |text: &str| values::number(text, 1, TARGET_CONCURRENCY_MAX))]
    concurrency: Option<u64>,
    /// Whether a message waits for the one before: of the same group, or of the same queue [default: none]
    #[arg(long, value_name = "ORDER", value_parser = words(&TargetOrder::ALL, TargetOrder::name))]
    order: Option<TargetOrder>,
    /// Send nothing until `target resume`
    #[arg(long)]
    disabled: bool,
}

/// The options that name a place in a broker: the member of the target, the word for its value, and the help.
const PLACES: [(&str, &str, &str); 7] = [
    ("topic", "TOPIC", "Kafka (experimental): the topic"),
    ("exchange", "EXCHANGE", "RabbitMQ: the exchange"),
    ("routing_key", "KEY", "RabbitMQ: the routing key [default: the name of the queue]"),
    ("subject", "SUBJECT", "NATS: the subject"),
    ("stream", "STREAM", "NATS: the stream that has to store the message; Redis: the stream that gets it"),
    ("list", "LIST", "Redis: the list that gets the message"),
    ("tube", "TUBE", "beanstalkd: the tube"),
];

/// The values of [`PLACES`] that were given, by their members.
#[derive(Debug)]
struct Places(BTreeMap<&'static str, String>);

impl Places {
    /// Puts the values into the settings of `target`.
    fn put_into(&self, mut target: TargetBody) -> TargetBody {
        for (member, text) in &self.0 {
            *target.place_mut(member).expect("each is a place") = Some(text.clone());
        }
        target
    }
}

impl Args for Places {
    fn augment_args(command: Command) -> Command {
        command.args(PLACES.map(|(member, value, help)| {
            Arg::new(member)
                .long(option(member))
                .value_name(value)
                .help(help)
                .help_heading(BROKER)
                .conflicts_with("file")
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Places {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = PLACES.iter().map(|(member, ..)| (*member, matches.get_one::<String>(member)));
        Ok(Self(given.filter_map(|(member, text)| Some((member, text?.clone()))).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns the option for a member, without the dashes before it.
fn option(member: &str) -> String {
    member.replace('_', "-")
}

/// A parser that takes the words of an enum of the API.
fn words<T>(all: &'static [T], name: fn(T) -> &'static str) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    PossibleValuesParser::new(all.iter().map(|value| name(*value))).map(move |text| {
        *all.iter().find(|value| name(**value) == text).expect("the parser takes the words alone")
    })
}

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("it takes a name and a value, such as x-shop=eu".to_owned()),
    }
}

fn timeout(text: &str) -> Result<u64, String> {
    let ms = values::delay(text)?;
    if (TARGET_TIMEOUT_MS_MIN..=TARGET_TIMEOUT_MS_MAX).contains(&ms) {
        return Ok(ms);
    }
    let (min, max) = (duration::format(TARGET_TIMEOUT_MS_MIN), duration::format(TARGET_TIMEOUT_MS_MAX));
    Err(format!("an attempt takes {min} to {max}"))
}

impl Members {
    /// Whether the command line says a whole target. Otherwise it changes the target that the queue has.
    pub(super) fn is_whole(&self) -> bool {
        self.file.is_some() || self.one_by_one.url.is_some() || self.one_by_one.connection.is_some()
    }

    /// The option of a place that needs a connection, for messages; `None`: none is given.
    pub(super) fn place(&self) -> Option<String> {
        let given = PLACES.iter().find(|(member, ..)| self.places.0.contains_key(member));
        given.map(|(member, ..)| format!("--{}", option(member)))
    }

    /// The words for mistakes; `None`: the settings come from a file, which has the words of the API.
    pub(super) fn words(&self) -> Option<TargetWords> {
        self.file.is_none().then(|| self.one_by_one.words())
    }

    /// Whether the caller has to make a secret.
    pub(super) fn wants_new_secret(&self) -> bool {
        self.one_by_one.new_secret
    }

    /// The whole target. `new_secret`: the secret that was made for it.
    ///
    /// # Errors
    /// The file cannot be read, or the settings are not valid.
    pub(super) fn made(self, new_secret: Option<&str>) -> Result<TargetBody> {
        match self.file {
            Some(name) => {
                let (text, place) = text_of(&name)?;
                let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
                // Most mistakes need no call.
                TargetBody::parse(text)
                    .map_err(|error| anyhow!("{place}: {error}; {}", hints::in_commands(&error.hint)))
            }
            None => {
                let kind = self.one_by_one.kind(&self.places)?;
                self.one_by_one.check(
                    &self.places,
                    kind,
                    &format!("a target of the kind `{}`", kind.name()),
                )?;
                self.one_by_one.change(&self.places, TargetBody::of_kind(kind), new_secret)
            }
        }
    }

    /// The target `now` with the settings that have an option.
    ///
    /// # Errors
    /// There is no option, or the settings are not valid.
    pub(super) fn changed(self, now: TargetBody, new_secret: Option<&str>) -> Result<TargetBody> {
        let before = now.clone();
        let whose = format!("the queue has a target of the kind `{}`, which", now.kind.name());
        self.one_by_one
            .check(&self.places, now.kind, &whose)
            .context("a new target needs --url or --connection")?;
        let target = self.one_by_one.change(&self.places, now, new_secret)?;
        if target == before {
            bail!("this changes nothing; name a setting, or --url, --connection or --file for a new target");
        }
        Ok(target)
    }
}

/// Returns the options that only a target of this kind takes, in words.
pub(super) fn options_of(kind: TargetKind) -> String {
    if kind == TargetKind::Webhook {
        return "--url, --method, --sign-with, --new-secret and --bearer".to_owned();
    }
    let members: Vec<_> =
        PLACES.iter().map(|(member, ..)| *member).filter(|member| kind.takes(member)).collect();
    let last = if members.iter().any(|member| kind.needs(member)) { "and" } else { "or" };
    listed(members.into_iter().map(|member| format!("--{}", option(member))), last)
}

/// Returns a list in words: `a, b and c`.
fn listed(words: impl Iterator<Item = String>, last_word: &str) -> String {
    let words: Vec<_> = words.collect();
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} {last_word} {last}", others.join(", ")),
        _ => words.concat(),
    }
}

impl OneByOne {
    /// All options that were given and do not go with every kind, each with its member.
    fn kept(&self, places: &Places) -> impl Iterator<Item = (String, &'static str)> {
        let others = [
            ("--method", "method", self.method.is_some()),
            ("--sign-with", "signing", !self.sign_with.is_empty()),
            ("--new-secret", "signing", self.new_secret),
            ("--bearer", "auth", self.bearer.is_some()),
            ("--header", "headers", !self.header.is_empty()),
        ];
        let others = others.into_iter().filter(|(.., is_given)| *is_given);
        let places = PLACES.iter().filter(|(member, ..)| places.0.contains_key(member));
        let places = places.map(|(member, ..)| (format!("--{}", option(member)), *member));
        places.chain(others.map(|(option, member, _)| (option.to_owned(), member)))
    }

    fn words(&self) -> TargetWords {
        TargetWords { signing: if self.new_secret { "--new-secret" } else { "--sign-with" } }
    }

    /// Checks that the options go with the kind. `whose`: the target in words.
    ///
    /// # Errors
    /// An option is for other kinds.
    fn check(&self, places: &Places, kind: TargetKind, whose: &str) -> Result<()> {
        let Some((option, member)) = self.kept(places).find(|(_, member)| !kind.takes(member)) else {
            return Ok(());
        };
        let kinds = TargetKind::ALL.into_iter().filter(|kind| kind.takes(member));
        let kinds = listed(kinds.map(|kind| format!("`{}`", kind.name())), "and");
        bail!("{option} is for {kinds}; {whose} takes {}", options_of(kind))
    }

    /// The kind whose place is given.
    fn kind(&self, places: &Places) -> Result<TargetKind> {
        if self.url.is_some() {
            return Ok(TargetKind::Webhook);
        }
        let mut brokers = TargetKind::ALL.into_iter().filter(|kind| *kind != TargetKind::Webhook);
        let has_place = |kind: &TargetKind| places.put_into(TargetBody::of_kind(*kind)).place().is_some();
        brokers.clone().find(has_place).ok_or_else(|| {
            let places = brokers.by_ref().map(|kind| format!("{} ({})", options_of(kind), kind.product()));
            anyhow!("--connection needs a place in the broker: {}", listed(places, "or"))
        })
    }

    /// Puts the options into the settings of `target`.
    fn change(self, places: &Places, mut target: TargetBody, new_secret: Option<&str>) -> Result<TargetBody> {
        let words = self.words();
        match (places.0.get("stream"), places.0.get("list")) {
            (Some(_), Some(_)) => {
                bail!("a target of the kind `redis` has either --stream or --list, and not both")
            }
            (Some(_), None) if target.list.is_some() => {
                bail!("the target has a list, so it takes no --stream; a new target needs --connection");
            }
            (None, Some(_)) if target.stream.is_some() => {
                bail!("the target has a stream, so it takes no --list; a new target needs --connection");
            }
            _ => {}
        }
        target = places.put_into(target);
        fn put<T>(member: &mut Option<T>, option: Option<T>) {
            if option.is_some() {
                *member = option;
            }
        }
        put(&mut target.url, self.url);
        put(&mut target.method, self.method);
        put(&mut target.body, self.body);
        put(&mut target.connection, self.connection);
        put(&mut target.timeout_ms, self.timeout);
        put(&mut target.concurrency, self.concurrency);
        put(&mut target.order, self.order);
        let bearer = |name| AuthBody { bearer: Some(SecretBody::Name(name)), basic: None };
        put(&mut target.auth, self.bearer.map(bearer));
        if !self.header.is_empty() {
            target.headers = self.header.into_iter().collect();
        }
        let secrets = new_secret.map(|secret| SecretBody::Text(secret.to_owned()));
        let secrets: Vec<_> =
            secrets.into_iter().chain(self.sign_with.into_iter().map(SecretBody::Name)).collect();
        if !secrets.is_empty() {
            let signing = |secret| SigningBody { secret, until_ms: None };
            target.signing = secrets.into_iter().map(signing).collect();
        }
        target.enabled &= !self.disabled;
        // Most mistakes need no call.
        TargetBody::parse(&target.to_json()).map_err(|mistake| anyhow!(words.mistake(&mistake)))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        members: Members,
    }

    fn line(text: &str) -> Result<Members, clap::Error> {
        Line::try_parse_from(["program"].into_iter().chain(text.split_whitespace())).map(|line| line.members)
    }

    fn made(text: &str) -> Result<String> {
        let target = line(text)?.made(None)?;
        Ok(String::from_utf8(target.to_json())?)
    }

    fn refused(text: &str) -> String {
        format!("{:#}", made(text).expect_err(text))
    }

    #[test]
    fn options_make_a_target_of_each_kind() {
        for (text, json) in [
            (
                "--url https://a.example/{queue} --method PUT --body cloudevents --header shop=eu=1 --header b= --sign-with x \
                 --sign-with y --bearer z --timeout 20s --concurrency 64 --order group --disabled",
                concat!(
                    r#"{"kind":"webhook","url":"https://a.example/{queue}","method":"PUT","body":"cloudevents","headers":{"b":"","shop":"eu=1"},"#,
                    r#""signing":[{"secret":{"name":"x"}},{"secret":{"name":"y"}}],"auth":{"bearer":{"name":"z"}},"timeout":"20s","#,
                    r#""concurrency":64,"order":"group","enabled":false}"#,
                ),
            ),
            ("--connection m --topic due", r#"{"kind":"kafka","connection":"m","topic":"due"}"#),
            (
                "--connection m --exchange orders --routing-key {tag.0}",
                r#"{"kind":"amqp","connection":"m","exchange":"orders","routing_key":"{tag.0}"}"#,
            ),
            (
                "--connection m --subject due.x --stream DUE",
                r#"{"kind":"nats","connection":"m","subject":"due.x","stream":"DUE"}"#,
            ),
            ("--connection m --stream due", r#"{"kind":"redis","connection":"m","stream":"due"}"#),
            ("--connection m --list due", r#"{"kind":"redis","connection":"m","list":"due"}"#),
            ("--connection m --tube due", r#"{"kind":"beanstalk","connection":"m","tube":"due"}"#),
        ] {
            assert_eq!(made(text).expect(text), json);
        }
    }

    #[test]
    fn mistakes_are_told_before_the_call() {
        for (text, part) in [
            ("--connection m", "--exchange and --routing-key (RabbitMQ), --subject and --stream (NATS)"),
            (
                "--connection m --topic a --tube b",
                "--tube is for `beanstalk`; a target of the kind `kafka` takes --topic",
            ),
            (
                "--connection m --list a --subject b",
                "--list is for `redis`; a target of the kind `nats` takes --subject and --stream",
            ),
            (
                "--connection m --topic a --sign-with b",
                "--sign-with is for `webhook`; a target of the kind `kafka` takes --topic",
            ),
            ("--connection m --topic a --new-secret", "--new-secret is for `webhook`; a target"),
            ("--connection m --topic a --bearer b", "--bearer is for `webhook`; a target"),
            ("--connection m --topic a --method PUT", "--method is for `webhook`; a target"),
            (
                "--connection m --tube a --header b=c",
                "--header is for `webhook`, `kafka`, `amqp`, `nats` and `redis`; a target of the kind `beanstalk` takes --tube",
            ),
            ("--connection m --subject a", "--stream is missing; a target of the kind `nats` needs it"),
            (
                "--connection m --stream a --list b",
                "a target of the kind `redis` has either --stream or --list, and not both",
            ),
            (
                "--url https://a.example --stream x",
                "--stream is for `nats` and `redis`; a target of the kind `webhook` takes --url, --method",
            ),
            ("--url https://a.example --connection m", "cannot be used with"),
            ("--url https://a.example --file x", "cannot be used with"),
            ("--new-secret --file x", "cannot be used with"),
            ("--url https://a.example --new-secret --sign-with x", "cannot be used with"),
            ("--url https://a.example --header x", "x-shop=eu"),
            ("--url https://a.example --timeout 1h", "1s to 5m"),
            ("--url https://a.example --order best", "none, group, queue"),
            ("--file /no/such/file", "failed to open"),
        ] {
            assert!(refused(text).contains(part), "{text}: {}", refused(text));
        }
    }

    #[test]
    fn a_mistake_names_no_member_of_the_api() {
        for text in [
            "--connection m --topic a --sign-with b".to_owned(),
            "--connection m --subject a".to_owned(),
            format!("--connection m --topic {}", "a".repeat(3_000)),
            format!("--url https://a.example --sign-with {}", "a".repeat(300)),
            format!("--url https://a.example --bearer {}", "a".repeat(300)),
            format!(
                "--url https://a.example {}",
                (0..33).map(|nth| format!("--header h{nth}=a ")).collect::<String>()
            ),
            format!("--url https://a.example {}", "--sign-with a ".repeat(6)),
        ] {
            let told = refused(&text);
            assert!(told.starts_with("--"), "{told}");
            for member in ["signing", "auth", "`stream`", "headers", "`topic`"] {
                assert!(!told.contains(member), "{member}: {told}");
            }
        }
    }

    #[test]
    fn a_stream_stays_a_stream() {
        for (json, text, told) in [
            (
                r#"{"kind":"redis","connection":"m","list":"a"}"#,
                "--stream b",
                "the target has a list, so it takes no --stream",
            ),
            (
                r#"{"kind":"redis","connection":"m","stream":"a"}"#,
                "--list b",
                "the target has a stream, so it takes no --list",
            ),
        ] {
            let now = TargetBody::parse(json.as_bytes()).expect("a target");
            let error = line(text).expect("options").changed(now, None).expect_err(text).to_string();
            assert!(error.starts_with(told), "{error}");
        }
    }

    #[test]
    fn a_change_keeps_what_has_no_option() {
        let now = concat!(
            r#"{"kind":"webhook","url":"https://a.example","headers":{"a":"b"},"signing":[{"secret":{"set":true,"id":"k2"}}],"#,
            r#""timeout":"20s"}"#,
        );
        let change = |text: &str, secret| {
            let now = TargetBody::parse(now.as_bytes()).expect("a target");
            let members = line(text)?;
            assert!(!members.is_whole(), "{text}");
            Ok::<_, anyhow::Error>(String::from_utf8(members.changed(now, secret)?.to_json())?)
        };
        let changed = change("--concurrency 3", None).expect("a change");
        assert_eq!(changed, now.replace(r#""timeout":"20s""#, r#""timeout":"20s","concurrency":3"#));
        let changed = change("--new-secret", Some("whsec_AAAA")).expect("a change");
        assert!(changed.contains(r#""signing":[{"secret":"whsec_AAAA"}]"#), "{changed}");
        let other = format!("{:#}", change("--stream due", None).expect_err("another kind"));
        let told = "--stream is for `nats` and `redis`; the queue has a target of the kind `webhook`, which takes --url, --method";
        assert!(
            other.starts_with("a new target needs --url or --connection: ") && other.contains(told),
            "{other}"
        );
        let nothing = change("--timeout 20s", None).expect_err("nothing changes").to_string();
        assert!(nothing.contains("changes nothing"), "{nothing}");
    }
}

//! `docs/reference/configuration.md`: every setting of the server.

use clap::Arg;
use tickwheel_push::KINDS;
use tickwheel_server::JOB_BYTES_MAX;

use super::markdown::{line, paragraph, row, sentence};
use super::option::{default, is_flag, meaning, spelled, variable};
use super::page;
use crate::config::{ConfigFile, Setting, serve, settings};

const PAGE: &str = "configuration.md";

/// The text before the settings.
const HEAD: &str = include_str!("configuration_head.txt");

/// The file on the page.
const EXAMPLE: &str = include_str!("example.toml");

/// Keys that name a file whose new contents a running server uses. `watched` in the server reads them.
const READ_AGAIN: [&str; 3] = ["token_file", "tls_cert", "tls_key"];

/// The values that a key may have. The tests below compare them with the parser.
struct Range {
    keys: &'static [&'static str],
    text: &'static str,
    inside: [String; 2],
    outside: [String; 2],
}

fn ranges() -> [Range; 10] {
    let texts = |texts: [&str; 2]| texts.map(str::to_owned);
    let around = |least: u64, most: u64| {
        ([least.to_string(), most.to_string()], [(least - 1).to_string(), (most + 1).to_string()])
    };
    let range = |keys, text, (inside, outside)| Range { keys, text, inside, outside };
    let delays = |count: usize| vec!["1s"; count].join(" ");
    [
        range(
            &[
                "backup_keep",
                "max_connections",
                "max_connections_per_address",
                "kept_connections",
                "max_large_bodies",
                "max_large_bodies_per_caller",
                "max_batches",
                "max_batches_per_caller",
                "max_jobs",
                "max_jobs_per_caller",
            ],
            "1 to 1,000,000",
            around(1, 1_000_000),
        ),
        range(&["max_job_size"], "1 to 16,777,216 (16 MiB)", around(1, JOB_BYTES_MAX.into())),
        range(
            &["max_answer_bytes"],
            "67,108,864 (64 MiB) to 1,099,511,627,776 (1 TiB)",
            around(64 << 20, 1 << 40),
        ),
        range(&["max_watched_bytes"], "4,096 (4 KiB) to 1,099,511,627,776 (1 TiB)", around(4 << 10, 1 << 40)),
        range(&["shards"], "1 to 1,024", around(1, 1_024)),
        range(&["clock_max_ahead"], "1s to 36500d", (texts(["1s", "36500d"]), texts(["999ms", "36501d"]))),
        range(&["stop_grace"], "0s to 10m", (texts(["0s", "10m"]), texts(["600001ms", "11m"]))),
        range(&["slow_commit"], "1ms to 1h", (texts(["1ms", "1h"]), texts(["0ms", "3600001ms"]))),
        range(&["backup_every"], "1s to 366d", (texts(["1s", "366d"]), texts(["999ms", "31622400001ms"]))),
        range(&["levels"], "1 to 1,000 delays", ([delays(1), delays(1_000)], [String::new(), delays(1_001)])),
    ]
}

fn range_of(key: &str) -> Option<Range> {
    ranges().into_iter().find(|range| range.keys.contains(&key))
}

/// The page up to the example, with the kinds of brokers and their members.
pub(crate) fn head() -> String {
    let kinds = KINDS.iter().map(|kind| {
        format!("`{}`{}", kind.kind.name(), if kind.is_experimental { " (experimental)" } else { "" })
    });
    let kinds: Vec<_> = kinds.collect();
    let members = KINDS.iter().flat_map(|kind| kind.members);
    let members =
        members.map(|member| row(&[String::new(), format!("`{}`", member.name), member.what.to_owned()]));
    HEAD.replace("{kinds}", &kinds.join(", ")).replace("{members}", &members.collect::<String>())
}

fn made() -> String {
    let (serve, settings) = (serve(), settings());
    let option = |setting: &Setting| -> Arg {
        serve.get_arguments().find(|option| *option.get_id() == setting.key).expect("there is one").clone()
    };
    let mut page = head();
    page.push_str(&format!(
        "```toml\n{EXAMPLE}```\n\n## All settings\n\n| key | default | what it sets |\n|---|---|---|\n"
    ));
    for setting in &settings {
        let (key, option) = (&setting.key, option(setting));
        let help = option.get_help().expect("each is described").to_string();
        let short = help.split(" [default").next().unwrap_or_default();
        page.push_str(&row(&[format!("[`{key}`](#{key})"), usual(&option), sentence(&line(short))]));
    }
    let mut last = "";
    for setting in &settings {
        if setting.group != last {
            page.push_str(&format!("\n## {}\n", setting.group));
            last = &setting.group;
        }
        section(&mut page, &setting.key, &option(setting));
    }
    page
}

fn usual(option: &Arg) -> String {
    if is_flag(option) { "`false`".to_owned() } else { default(option) }
}

fn section(page: &mut String, key: &str, option: &Arg) {
    let words = meaning(option);
    // The list of values is below.
    let words = words.split(" Values: ").next().unwrap_or_default();
    page.push_str(&format!("\n### `{key}`\n\n{words}\n\n"));
    let mut line = |what: &str, text: &str| page.push_str(&format!("- {what}: {text}\n"));
    line("option", &format!("`{}`", spelled(option)));
    line("variable", &format!("`{}`", variable(option).expect("each has one")));
    line("value", &kind(key, option));
    if let Some(range) = range_of(key) {
        line("range", range.text);
    }
    let usual = usual(option);
    line("default", if usual.is_empty() { "none" } else { &usual });
    if READ_AGAIN.contains(&key) {
        line("reload", "a running server reads this file again when it changes");
    }
}

/// The type of the value, with its unit.
fn kind(key: &str, option: &Arg) -> String {
    let values = option.get_possible_values();
    if is_flag(option) {
        return "`true` or `false`".to_owned();
    }
    if !values.is_empty() {
        let values: Vec<String> = values.iter().map(|value| format!("`{}`", value.get_name())).collect();
        return format!("one of {}", values.join(", "));
    }
    let names = option.get_value_names().expect("each has one");
    let text = match (key, names[0].as_str()) {
        ("allow_host", _) => "a name, or several with commas between them",
        (_, "FILE") => "the path of a file",
        (_, "DIR") => "the path of a directory",
        (_, "N") => "a number",
        (_, "BYTES") => "a number (bytes)",
        (_, "DURATION") => "a duration, such as `500ms`, `30m`, `1h` or `7d`",
        (_, "INSTANT") => "an instant, such as `2027-03-27T20:00:00Z`, or milliseconds since 1970",
        (_, "DELAYS") => "durations with spaces between them",
        (_, "ADDR:PORT|unix:PATH") => "an address with a port, or `unix:` and a path",
        (_, "ADDR:PORT|unix:PATH|off") => "an address with a port, `unix:` and a path, or `off`",
        (_, "PLACE") => "a place, or several with commas between them",
        (_, "NAME") => "a name",
        (_, "FILTER") => "a level, or a filter with commas",
        (_, "URL") => "a URL",
        (_, other) => panic!("{key} has the unknown value {other}"),
    };
    paragraph(text)
}

#[test]
fn the_page_of_settings_is_that_of_this_version() {
    page::compare(PAGE, &made(), "write_the_page_of_settings");
}

#[test]
#[ignore = "it writes docs/reference/configuration.md"]
fn write_the_page_of_settings() {
    page::write(PAGE, &made());
}

#[test]
fn a_server_would_start_with_the_example() {
    let file = ConfigFile::parse(EXAMPLE).expect("valid keys and values");
    assert_eq!(file.contradictions(), []);
    // Behind the first head of a table there are no more options.
    let options = EXAMPLE.lines().take_while(|line| !line.starts_with('['));
    assert_eq!(file.len(), options.filter(|line| line.contains(" = ")).count());
}

#[test]
fn each_range_is_that_of_the_parser() {
    let takes = |key: &str, value: &str| ConfigFile::parse(&format!("{key} = \"{value}\"")).is_ok();
    for Range { keys, inside, outside, .. } in ranges() {
        for key in keys {
            assert!(inside.iter().all(|value| takes(key, value)), "{key}: {inside:?}");
            assert!(!outside.iter().any(|value| takes(key, value)), "{key}: {outside:?}");
        }
    }
    let serve = serve();
    for Setting { key, .. } in settings() {
        let option = serve.get_arguments().find(|option| *option.get_id() == key).expect("an option");
        let names = option.get_value_names().unwrap_or_default();
        let is_amount = !is_flag(option) && ["N", "BYTES", "DURATION", "DELAYS"].contains(&names[0].as_str());
        assert_eq!(is_amount, range_of(&key).is_some(), "{key}");
    }
    assert!(READ_AGAIN.iter().all(|key| settings().iter().any(|setting| setting.key == *key)));
}

//! An option or an argument in words.

use clap::{Arg, ArgAction};

use super::markdown::{line, sentence};

pub(super) fn variable(option: &Arg) -> Option<String> {
    option.get_env().map(|name| name.to_string_lossy().into_owned())
}

pub(super) fn is_flag(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::SetTrue | ArgAction::Count)
}

pub(super) fn spelled(option: &Arg) -> String {
    let short = option.get_short().map_or_else(String::new, |short| format!("-{short}, "));
    let long = option.get_long().expect("each has a long name");
    let names = option.get_value_names().unwrap_or_default();
    let value =
        if is_flag(option) { String::new() } else { names.iter().map(|name| format!(" {name}")).collect() };
    format!("{short}--{long}{value}")
}

const DEFAULT: &str = " [default: ";

/// The default in the parser or, if there is none, at the end of the help text.
pub(super) fn default(option: &Arg) -> String {
    if is_flag(option) {
        return String::new();
    }
    if let Some(value) = option.get_default_values().first() {
        return format!("`{}`", value.to_string_lossy());
    }
    let help = option.get_help().map(ToString::to_string).unwrap_or_default();
    help.split_once(DEFAULT).map_or_else(String::new, |(_, rest)| line(rest.trim_end_matches(']')))
}

/// The whole help text with the possible values, without the default.
pub(super) fn meaning(argument: &Arg) -> String {
    let help = argument.get_help().map(ToString::to_string).expect("each argument is described");
    let is_place = argument.is_positional();
    let help =
        if is_place { &help } else { help.split_once(DEFAULT).map_or(help.as_str(), |(help, _)| help) };
    let mut texts = vec![sentence(&line(help))];
    if let Some(rest) = argument.get_long_help() {
        texts.extend(rest.to_string().split("\n\n").skip(1).map(|text| sentence(&line(text))));
    }
    if !is_flag(argument) {
        let values = argument.get_possible_values();
        let values: Vec<String> = values
            .iter()
            .map(|value| match value.get_help() {
                Some(help) => format!("`{}`: {}", value.get_name(), line(&help.to_string())),
                None => format!("`{}`", value.get_name()),
            })
            .collect();
        if !values.is_empty() {
            let separator = if values[0].contains(": ") { "; " } else { ", " };
            texts.push(format!("Values: {}.", values.join(separator)));
        }
    }
    for alias in argument.get_visible_aliases().unwrap_or_default() {
        texts.push(format!("`--{alias}` is the same option."));
    }
    texts.join(" ")
}

//! `docs/reference/cli.md`: every command of the command line.

use clap::{Arg, ArgAction, Command, CommandFactory};

use super::markdown::{after_help, line, paragraph, row, sentence};
use super::option::{default, meaning, spelled, variable};
use super::page;
use crate::cli::Cli;

const PAGE: &str = "cli.md";

/// The text before the commands. The names of options and variables in it are checked below.
const HEAD: &str = include_str!("commands_head.txt");

/// Options that each client command has. The page describes them once.
const OF_CLIENTS: [&str; 5] = ["server", "token_file", "ca_file", "retries", "output"];

fn made() -> String {
    let mut root = Cli::command();
    root.build();
    let mut page = HEAD.to_owned();
    page.push_str("\n## All commands\n\n| command | what it does |\n|---|---|\n");
    for command in commands(&root) {
        index(&mut page, command, "tickwheel");
    }
    let any = root.find_subcommand("get").expect("there is such a command");
    let common: Vec<&Arg> = OF_CLIENTS.iter().filter_map(|id| argument(any, id)).collect();
    page.push_str(
        "\n## Options of client commands\n\nA command that talks to a server has these options.\n\n",
    );
    option_table(&mut page, &common);
    for command in commands(&root) {
        section(&mut page, command, "tickwheel", 2, &common);
    }
    page
}

/// The commands below `command`, in the order of the help.
fn commands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| command.get_name() != "help")
}

fn argument<'a>(command: &'a Command, id: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|argument| argument.get_id() == id)
}

fn index(page: &mut String, command: &Command, parent: &str) {
    let name = format!("{parent} {}", command.get_name());
    let anchor = name.replace(' ', "-");
    page.push_str(&row(&[format!("[`{name}`](#{anchor})"), line(&about(command))]));
    commands(command).for_each(|command| index(page, command, &name));
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).expect("each command says what it does")
}

fn section(page: &mut String, command: &Command, parent: &str, level: usize, common: &[&Arg]) {
    let name = format!("{parent} {}", command.get_name());
    page.push_str(&format!("\n{} `{name}`\n\n", "#".repeat(level)));
    let what = command.get_long_about().map_or_else(|| about(command), ToString::to_string);
    for text in what.split("\n\n") {
        page.push_str(&format!("{}\n\n", sentence(&paragraph(text))));
    }
    let usage = command.clone().render_usage().to_string();
    let lines = usage.trim_start_matches("Usage:").lines().map(str::trim);
    page.push_str(&format!("```text\n{}\n```\n", lines.collect::<Vec<_>>().join("\n")));
    let is_common = |argument: &Arg| {
        common.iter().any(|common| {
            common.get_id() == argument.get_id()
                && common.get_help().map(ToString::to_string) == argument.get_help().map(ToString::to_string)
        })
    };
    let own: Vec<&Arg> =
        command.get_arguments().filter(|argument| is_shown(argument) && !is_common(argument)).collect();
    let (places, options): (Vec<&Arg>, Vec<&Arg>) =
        own.into_iter().partition(|argument| argument.is_positional());
    if !places.is_empty() {
        page.push_str("\n| argument | meaning |\n|---|---|\n");
        for place in places {
            page.push_str(&row(&[format!("`{place}`"), meaning(place)]));
        }
    }
    for (heading, options) in by_heading(&options) {
        match heading {
            Some(heading) => page.push_str(&format!("\n{heading}:\n\n")),
            None => page.push('\n'),
        }
        // The page of settings explains the options of the server.
        if command.get_name() == "serve" && heading.is_some() {
            link_table(page, &options);
        } else {
            option_table(page, &options);
        }
    }
    let shared: Vec<String> = command
        .get_arguments()
        .filter(|argument| is_common(argument))
        .map(|argument| format!("`--{}`", argument.get_long().expect("each has a long name")))
        .collect();
    if !shared.is_empty() {
        page.push_str(&format!("\nIn addition: [{}](#options-of-client-commands).\n", shared.join(" ")));
    }
    if let Some(text) = command.get_after_help() {
        page.push_str(&format!("\n{}", after_help(&text.to_string())));
    }
    for command in commands(command) {
        section(page, command, &name, level + 1, common);
    }
}

/// The options below each heading of the help, in the order of the first option of each.
fn by_heading<'a>(options: &[&'a Arg]) -> Vec<(Option<&'a str>, Vec<&'a Arg>)> {
    let mut groups: Vec<(Option<&str>, Vec<&Arg>)> = Vec::new();
    for &option in options {
        let heading = option.get_help_heading();
        match groups.iter_mut().find(|(of, _)| *of == heading) {
            Some((_, group)) => group.push(option),
            None => groups.push((heading, vec![option])),
        }
    }
    groups
}

fn is_shown(argument: &Arg) -> bool {
    !argument.is_hide_set()
        && !matches!(
            argument.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        )
}

/// The variable of the option, or an empty cell.
fn variable_cell(option: &Arg) -> String {
    variable(option).map_or_else(String::new, |name| format!("`{name}`"))
}

/// A table of options. The column of variables is there if one of them has a variable.
fn option_table(page: &mut String, options: &[&Arg]) {
    let has_variables = options.iter().any(|option| variable(option).is_some());
    page.push_str(if has_variables {
        "| option | meaning | default | variable |\n|---|---|---|---|\n"
    } else {
        "| option | meaning | default |\n|---|---|---|\n"
    });
    for option in options {
        let mut cells = vec![format!("`{}`", spelled(option)), meaning(option), default(option)];
        if has_variables {
            cells.push(variable_cell(option));
        }
        page.push_str(&row(&cells));
    }
}

/// A table of options that leads to the page of settings.
fn link_table(page: &mut String, options: &[&Arg]) {
    page.push_str("| option | default | variable |\n|---|---|---|\n");
    for option in options {
        let name = format!("[`{}`](configuration.md#{})", spelled(option), option.get_id());
        page.push_str(&row(&[name, default(option), variable_cell(option)]));
    }
}

#[test]
fn the_page_of_commands_is_that_of_this_version() {
    page::compare(PAGE, &made(), "write_the_page_of_commands");
}

#[test]
#[ignore = "it writes docs/reference/cli.md"]
fn write_the_page_of_commands() {
    page::write(PAGE, &made());
}

/// Each option and variable in the text before the commands belongs to the program.
#[test]
fn the_head_names_options_and_variables_that_exist() {
    fn collect(command: &Command, known: &mut Vec<String>) {
        for argument in command.get_arguments() {
            known.extend(argument.get_long().map(|long| format!("--{long}")));
            known.extend(variable(argument));
        }
        command.get_subcommands().for_each(|command| collect(command, known));
    }
    let mut root = Cli::command();
    root.build();
    let mut known = vec![crate::remote::TOKEN_VARIABLE.to_owned()];
    collect(&root, &mut known);
    let named = HEAD.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
    let named: Vec<&str> = named
        .filter(|word| {
            word.starts_with("--") && word.len() > 3 && !word.starts_with("---")
                || word.starts_with("TICKWHEEL_") && word.len() > "TICKWHEEL_".len()
        })
        .collect();
    assert!(named.len() > 5, "{named:?}");
    for name in named {
        assert!(known.iter().any(|known| known == name), "{name}");
    }
}

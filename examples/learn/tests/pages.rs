//! The tables on the pages of the textbook are what the programs print.

use std::fs;

use tickwheel_learn::chapter::CHAPTERS;

fn page(name: &str) -> String {
    let path = format!("{}/../../docs/learn/{name}.md", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn each_page_has_the_command_and_the_table_of_its_program() {
    for chapter in CHAPTERS {
        let page = page(chapter.name);
        let command = format!("`cargo run --release -p tickwheel-learn {}`", chapter.name);
        assert!(page.contains(&command), "docs/learn/{}.md does not say {command}", chapter.name);
        let table = (chapter.table)();
        let block = format!("```text\n{}\n```\n", table.trim_end());
        assert!(page.contains(&block), "docs/learn/{}.md does not have this table:\n{table}", chapter.name);
    }
}

/// The figures differ from machine to machine. Their rows and columns do not.
#[test]
fn each_page_has_figures_of_the_kind_that_its_program_prints() {
    for chapter in CHAPTERS {
        let page = page(chapter.name);
        let costs = (chapter.costs)(100);
        let words = words(costs.lines());
        let shown = page.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next());
        let found = shown.into_iter().any(|block| self::words(block.lines()) == words);
        assert!(found, "docs/learn/{}.md has no block like this one:\n{costs}", chapter.name);
    }
}

/// The words of each line, without numbers and what depends on them.
fn words<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let plain = |line: &str| {
        let words = line.split_whitespace().filter(|word| {
            let number = word.trim_start_matches('x').starts_with(|c: char| c.is_ascii_digit());
            !number && !["ns", "us"].contains(word)
        });
        words.collect::<Vec<_>>().join(" ")
    };
    lines.map(plain).collect()
}

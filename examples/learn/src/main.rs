//! Prints the worked table of a chapter, and the costs on this machine: `cargo run --release -p tickwheel-learn heap`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

use std::process::ExitCode;

use tickwheel_learn::chapter::CHAPTERS;

fn main() -> ExitCode {
    let word = std::env::args().nth(1).unwrap_or_default();
    let Some(chapter) = CHAPTERS.iter().find(|chapter| chapter.name == word) else {
        let names: Vec<&str> = CHAPTERS.iter().map(|chapter| chapter.name).collect();
        eprintln!("usage: cargo run --release -p tickwheel-learn CHAPTER\nchapters: {}", names.join(", "));
        return ExitCode::from(2);
    };
    println!("{}\ncosts on this machine\n{}", (chapter.table)().trim_end(), (chapter.costs)(1).trim_end());
    ExitCode::SUCCESS
}

//! Runs the stories over HTTP: the shell script, the Python program and the Rust program of one say the same.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use tickwheel_examples::http_story::with_server;

/// The program that runs the scripts, the ending of their names, and the program that they need.
const LANGUAGES: [(&str, &str, &str); 2] = [("sh", "sh", "curl"), ("python3", "py", "python3")];

/// Tells the story in all languages; `program` is the one in Rust.
fn tell(story: &str, program: &str) -> Result<()> {
    let by_rust = told(&mut Command::new(program))?;
    with_server(|client| {
        let server = format!("http://{}", client.address());
        for (interpreter, ending, needed) in LANGUAGES {
            if !tickwheel_testing::is_there(needed) {
                tickwheel_testing::missing_for(&format!("{story}.{ending}"), needed, "install it");
                continue;
            }
            let script = format!("{}/http/{story}.{ending}", env!("CARGO_MANIFEST_DIR"));
            // Twice, for what a story leaves behind must not be in the way of the next.
            for _ in 0..2 {
                let mut command = Command::new(interpreter);
                command.arg(&script).env("TICKWHEEL_SERVER", &server).env("PYTHONDONTWRITEBYTECODE", "1");
                let by_script = told(&mut command)?;
                ensure!(by_script == by_rust, "{script} says\n{by_script}and {program}\n{by_rust}");
            }
        }
        Ok(())
    })
}

/// The output of a program that ends well.
fn told(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("run {command:?}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}: {complaint}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("{command:?} prints no UTF-8"))
}

#[test]
fn close_unpaid_orders_is_one_story_in_all_languages() -> Result<()> {
    tell("close_unpaid_orders", env!("CARGO_BIN_EXE_close_unpaid_orders"))
}

#[test]
fn confirm_receipts_is_one_story_in_all_languages() -> Result<()> {
    tell("confirm_receipts", env!("CARGO_BIN_EXE_confirm_receipts"))
}

#[test]
fn switch_prices_is_one_story_in_all_languages() -> Result<()> {
    tell("switch_prices", env!("CARGO_BIN_EXE_switch_prices"))
}

#[test]
fn snooze_reminders_is_one_story_in_all_languages() -> Result<()> {
    tell("snooze_reminders", env!("CARGO_BIN_EXE_snooze_reminders"))
}

#[test]
fn download_centre_is_one_story_in_all_languages() -> Result<()> {
    tell("download_centre", env!("CARGO_BIN_EXE_download_centre"))
}

#[test]
fn retry_with_backoff_is_one_story_in_all_languages() -> Result<()> {
    tell("retry_with_backoff", env!("CARGO_BIN_EXE_retry_with_backoff"))
}

//! `tickwheel why`.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use tickwheel_api::StoryBody;

use crate::missing;
use crate::output::{print_json, print_line};
use crate::remote::Remote;
use crate::values;

/// Say in a few sentences why a task does not run now
///
/// The sentences name what the task waits for, or what has become of it: its due time, a pause or a limit of its queue, a worker, or its death.
/// If the queue has a target, they say in which state it is, since when and why, when the server tries it next, and which command resumes it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel why close order:1
  tickwheel why close order:1 -o json | jq .target.next_try")]
pub(crate) struct Why {
    /// The queue
    #[arg(value_parser = values::queue)]
    queue: String,
    /// The task's key
    #[arg(value_parser = values::key)]
    key: String,
    /// The output format: the sentences, or a JSON object with `queue`, `key`, `why`, and for a queue with a target also `target` and `last_attempt`
    #[arg(short, long, value_enum, default_value_t = Shape::Text)]
    output: Shape,
    #[command(flatten)]
    remote: Remote,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    Text,
    Json,
}

impl Why {
    /// Asks for the story and prints its sentences.
    ///
    /// # Errors
    /// There is no server, or there is no such task.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let Self { queue, key, output, remote } = self;
        let client = remote.client()?;
        let story = missing::in_queue(&client, &queue, client.story(&queue, &key))?;
        match output {
            Shape::Text => print_line(&story.why)?,
            Shape::Json => print_json(answer(&queue, &key, story))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The part of the story that is about now.
fn answer(queue: &str, key: &str, story: StoryBody) -> Vec<u8> {
    let StoryBody { why, target, last_attempt, .. } = story;
    let mut answer = Map::new();
    answer.insert("queue".to_owned(), json!(queue));
    answer.insert("key".to_owned(), json!(key));
    answer.insert("why".to_owned(), json!(why));
    answer.extend(target.map(|target| ("target".to_owned(), json!(target))));
    answer.extend(last_attempt.map(|attempt| ("last_attempt".to_owned(), json!(attempt))));
    serde_json::to_vec(&Value::Object(answer)).expect("an answer is plain JSON")
}

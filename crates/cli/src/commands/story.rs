//! `tickwheel story`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tickwheel_api::{StoryBody, StoryEvent, time};

use crate::missing;
use crate::output::{Format, Row, say};
use crate::remote::Remote;
use crate::values;

/// Show what happened to a task, and what comes
///
/// The story is made from what the server keeps of the task anyway, so it may have gaps: the last ten failed attempts are kept, and changes
/// by the owner without their instants. JSON output is one object with `events`, `next`, `why` and `complete`; for a queue with a target also `target`,
/// and `last_attempt` if the server has tried to send the task.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel story close order:1
  tickwheel story close order:1 -o json | jq -r .why")]
pub(crate) struct Story {
    /// The queue
    #[arg(value_parser = values::queue)]
    queue: String,
    /// The task's key
    #[arg(value_parser = values::key)]
    key: String,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

impl Story {
    /// Asks for the story and prints it.
    ///
    /// # Errors
    /// There is no server, or there is no such task.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let client = self.remote.client()?;
        let story = missing::in_queue(&client, &self.queue, client.story(&self.queue, &self.key))?;
        if self.format.is_json() {
            self.format.print([Whole(story)])?;
            return Ok(ExitCode::SUCCESS);
        }
        let StoryBody { events, next, why, complete, .. } = story;
        let happened = events.into_iter().map(|event| Line { event, is_next: false });
        let comes = next.into_iter().map(|event| Line { event, is_next: true });
        self.format.print(happened.chain(comes))?;
        say(&why);
        if !complete {
            say("the server does not keep all that happened");
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The story as one object.
struct Whole(StoryBody);

impl Row for Whole {
    const HEADER: &'static [&'static str] = &[];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(&self.0).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        Vec::new()
    }
}

/// One line of the story.
struct Line {
    event: StoryEvent,
    /// Whether the event is still to come.
    is_next: bool,
}

impl Row for Line {
    const HEADER: &'static [&'static str] = &["AT", "WHAT", "ATTEMPT", "WORKER", "REASON"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(&self.event).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        let StoryEvent { at_ms, what, attempt, reason, by } = &self.event;
        let what = if self.is_next { format!("next: {}", what.name()) } else { what.name().to_owned() };
        vec![
            at_ms.map_or("?".to_owned(), time::format),
            what,
            attempt.map(|attempt| attempt.to_string()).unwrap_or_default(),
            by.clone().unwrap_or_default(),
            reason.clone().unwrap_or_default(),
        ]
    }
}

//! [`Model`]: a wheel with its tasks, and its state as JSON.

use std::fmt::Write;

use tickwheel_core::{Handle, Refusal};

use crate::structure::{Kind, Spot, Structure};

/// A wheel that a page turns.
pub struct Model {
    wheel: Structure,
    slots: usize,
    tasks: Vec<Task>,
    next_id: u32,
    /// The effect of the last call.
    did: Did,
}

struct Task {
    id: u32,
    due: u64,
    handle: Handle,
}

/// The effect of a call.
#[derive(Default)]
struct Did {
    fired: Vec<u32>,
    cancelled: Option<u32>,
    inserted: Option<u32>,
    refused: Option<&'static str>,
    /// The tasks that moved, and where each one was.
    moved: Vec<(u32, Spot)>,
    /// The number of levels that were made.
    made: usize,
}

impl Model {
    /// An empty wheel at time 0.
    #[must_use]
    pub fn new(kind: Kind, slots: usize) -> Self {
        let wheel = Structure::new(kind, slots);
        Self { wheel, slots, tasks: Vec::new(), next_id: 0, did: Did::default() }
    }

    /// Inserts a task that is due after `delay` ticks.
    pub fn insert(&mut self, delay: u64) {
        self.observe(|model, did| {
            let queue = model.wheel.queue();
            let due = queue.now().saturating_add(delay);
            let id = model.next_id;
            match queue.insert(due, id) {
                Ok(handle) => {
                    model.next_id += 1;
                    model.tasks.push(Task { id, due, handle });
                    did.inserted = Some(id);
                }
                Err(refused) => {
                    did.refused = Some(match refused.why {
                        Refusal::TooFar => "too far",
                        Refusal::Elapsed => "elapsed",
                        _ => "full",
                    });
                }
            }
        });
    }

    /// Cancels a task, if it is pending.
    pub fn cancel(&mut self, id: u32) {
        self.observe(|model, did| {
            let task = model.tasks.iter().find(|task| task.id == id);
            did.cancelled = task.and_then(|task| model.wheel.queue().cancel(task.handle));
        });
    }

    /// Advances the time by one tick.
    pub fn tick(&mut self) {
        let now = self.wheel.read().now();
        self.advance(now.saturating_add(1));
    }

    /// Advances the time to the next stop of the wheel, if it has one.
    pub fn stop(&mut self) {
        let next = self.wheel.read().next_wake();
        self.advance(next.unwrap_or(0));
    }

    fn advance(&mut self, now: u64) {
        self.observe(|model, did| {
            model.wheel.queue().advance(now, &mut |_, id| did.fired.push(id));
        });
    }

    /// Makes a change, and notes which tasks it moved and which levels it made.
    fn observe(&mut self, change: impl FnOnce(&mut Self, &mut Did)) {
        let before: Vec<_> = self.tasks.iter().map(|task| self.wheel.look(task.handle)).collect();
        let levels = self.wheel.rings(self.slots).len();
        let mut did = Did::default();
        change(self, &mut did);
        for (task, before) in self.tasks.iter().zip(before) {
            let after = self.wheel.look(task.handle);
            if let (Some(before), Some(after)) = (before, after)
                && (before.level, before.slot) != (after.level, after.slot)
            {
                did.moved.push((task.id, before));
            }
        }
        self.tasks.retain(|task| self.wheel.look(task.handle).is_some());
        did.made = self.wheel.rings(self.slots).len() - levels;
        self.did = did;
    }

    /// The state and what the last call did, as JSON.
    #[must_use]
    pub fn state(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("a string takes all that is written to it");
        text
    }

    fn write(&self, to: &mut String) -> std::fmt::Result {
        let queue = self.wheel.read();
        write!(
            to,
            "{{\"now\":{},\"next\":{},\"slots\":{}",
            queue.now(),
            or_null(queue.next_wake()),
            self.slots
        )?;
        let rings = self.wheel.rings(self.slots);
        let rings = rings.iter().map(|ring| format!("{{\"tick\":{},\"clock\":{}}}", ring.tick, ring.clock));
        write!(to, ",\"levels\":{}", list(rings))?;
        let tasks = self.tasks.iter().filter_map(|task| {
            let Spot { level, slot, rounds } = self.wheel.look(task.handle)?;
            let Task { id, due, .. } = task;
            Some(format!(
                "{{\"id\":{id},\"due\":{due},\"level\":{level},\"slot\":{slot},\"rounds\":{rounds}}}"
            ))
        });
        write!(to, ",\"tasks\":{}", list(tasks))?;
        let buckets = self.wheel.buckets();
        let buckets =
            buckets.iter().map(|(expiry, level)| format!("{{\"expiry\":{expiry},\"level\":{level}}}"));
        write!(to, ",\"buckets\":{}", list(buckets))?;
        let Did { fired, cancelled, inserted, refused, moved, made } = &self.did;
        let refused = refused.map_or_else(|| "null".to_owned(), |why| format!("\"{why}\""));
        let moved = moved.iter().map(|(id, from)| format!("{{\"id\":{id},\"from\":{}}}", from.level));
        write!(
            to,
            ",\"did\":{{\"fired\":{},\"cancelled\":{},\"inserted\":{},\"refused\":{refused},\"moved\":{},\"made\":{made}}}}}",
            list(fired.iter().map(u32::to_string)),
            or_null(*cancelled),
            or_null(*inserted),
            list(moved),
        )
    }
}

fn or_null(number: Option<impl ToString>) -> String {
    number.map_or_else(|| "null".to_owned(), |number| number.to_string())
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_says_where_tasks_are_and_what_happened() {
        let mut model = Model::new(Kind::Kafka, 4);
        model.insert(30);
        let placed = r#""tasks":[{"id":0,"due":30,"level":2,"slot":1,"rounds":0}],"buckets":[{"expiry":16,"level":2}]"#;
        let state = model.state();
        assert!(
            state.contains(placed) && state.contains(r#""inserted":0,"refused":null,"moved":[],"made":2"#),
            "{state}"
        );
        model.stop();
        let state = model.state();
        assert!(
            state.starts_with(r#"{"now":16,"next":28,"#) && state.contains(r#""moved":[{"id":0,"from":2}]"#),
            "{state}"
        );
        model.stop();
        model.stop();
        let state = model.state();
        assert!(state.contains(r#""tasks":[]"#) && state.contains(r#""fired":[0]"#), "{state}");
    }

    #[test]
    fn refusals_and_cancels_are_told() {
        let mut model = Model::new(Kind::Simple, 4);
        model.insert(4);
        assert!(model.state().contains(r#""refused":"too far""#));
        model.insert(0);
        assert!(model.state().contains(r#""refused":"elapsed""#));
        model.insert(3);
        model.cancel(0);
        assert!(model.state().contains(r#""cancelled":0"#));
        model.cancel(0);
        assert!(model.state().contains(r#""cancelled":null"#));
    }
}

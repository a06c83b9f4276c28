//! [`Migration`]: the steps that give the bindings of the old exchange to the exchange of due messages. Nothing is deleted.

use std::fmt;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};

use super::management::{Binding, DestinationType, Exchange, Management};

/// The type of an exchange of the plugin for delayed messages.
const DELAYED: &str = "x-delayed-message";
/// The argument of such an exchange: the type by which it routes a message that is due.
const DELAYED_TYPE: &str = "x-delayed-type";

/// The names of a bridge and of the exchange that it replaces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Names {
    /// The exchange whose bindings are wanted. It may be that of the bridge.
    pub(crate) old: String,
    /// The exchange of the bridge.
    pub(crate) exchange: String,
    /// The exchange of due messages.
    pub(crate) due: String,
    /// The type of the exchange of due messages.
    pub(crate) kind: &'static str,
    /// The queue of the bridge.
    pub(crate) queue: String,
    /// The queue for messages that cannot be kept.
    pub(crate) refused: String,
}

/// The exchanges and bindings of a broker before a migration.
#[derive(Clone, PartialEq, Debug)]
struct Found {
    old: Exchange,
    /// The bindings from the old exchange.
    bindings: Vec<Binding>,
    /// The bindings to the old exchange.
    incoming: Vec<Binding>,
    /// The exchange of due messages, if there is one, and the bindings from it.
    due: Option<(Exchange, Vec<Binding>)>,
}

/// The steps that are missing, in their order.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Migration {
    names: Names,
    pub(crate) steps: Vec<Step>,
    /// The facts that an operator must know, because no step takes care of them.
    pub(crate) notes: Vec<String>,
    /// Whether the old exchange is that of a running bridge.
    is_bridged: bool,
}

/// One change at the broker. A second time it has no effect.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Step {
    /// Declare the exchange of due messages.
    Declare { exchange: String, kind: &'static str },
    /// Bind the destination of a binding of the old exchange.
    Bind { exchange: String, binding: Binding },
}

impl Migration {
    /// Finds the missing steps. Changes nothing.
    ///
    /// # Errors
    /// There is no old exchange, an exchange has another type than it must have, or the API does not answer.
    pub(crate) fn find(api: &Management, vhost: &str, names: Names) -> Result<Self> {
        let Names { old, exchange, due, .. } = &names;
        let found = api.exchange(old)?;
        let found = found.with_context(|| {
            let other = if old == exchange { "--old-exchange" } else { "the right --old-exchange" };
            format!(
                "there is no exchange `{old}` in the virtual host `{vhost}`; if it has another name, add {other}; if it is deleted, its \
                 bindings are lost: bind the queues of the consumers to `{due}`"
            )
        })?;
        let due = match api.exchange(due)? {
            Some(there) => Some((there, api.bindings_from(due)?)),
            None => None,
        };
        let (bindings, incoming) = (api.bindings_from(old)?, api.bindings_to(old)?);
        Self::of(names, Found { old: found, bindings, incoming, due })
    }

    fn of(names: Names, found: Found) -> Result<Self> {
        let Names { old, exchange, due, kind, .. } = &names;
        let to_bridge = |binding: &Binding| is_queue(binding) && binding.destination == names.queue;
        if old == exchange && found.old.kind == "fanout" && found.bindings.iter().any(to_bridge) {
            return Ok(Self { names, steps: Vec::new(), notes: Vec::new(), is_bridged: true });
        }
        if old == exchange && found.old.kind == "fanout" {
            bail!(
                "`{old}` is a fanout and no delayed exchange. If it is that of a bridge, name the queue of the bridge with --queue. If not, bridge \
                 another exchange: with the old bindings, consumers would get each message at once and again when it is due"
            );
        }
        check_old(&names, &found.old)?;
        let mut notes = Vec::new();
        let there = match &found.due {
            Some((exchange, bindings)) => {
                check_due(due, kind, exchange)?;
                bindings.as_slice()
            }
            None => &[],
        };
        let mut steps = Vec::new();
        if found.due.is_none() {
            steps.push(Step::Declare { exchange: due.clone(), kind });
        }
        for binding in found.bindings {
            if names.has(&binding) {
                // Due messages would come back to the bridge, again and again.
                notes.push(format!("not bound to {due}: {}, which is of the bridge", noun(&binding)));
                continue;
            }
            let is_there = there.iter().any(|other| other.is_as(&binding));
            let step = Step::Bind { exchange: due.clone(), binding };
            // Arguments that differ in their AMQP type only are the same here.
            if !is_there && !steps.contains(&step) {
                steps.push(step);
            }
        }
        for name in found.old.arguments.keys().filter(|name| *name != DELAYED_TYPE) {
            notes.push(format!(
                "the argument {name} of {old} is not taken over, because the bridge declares {due} without arguments; a policy can set it"
            ));
        }
        for Binding { source, routing_key, arguments, .. } in &found.incoming {
            notes.push(format!(
                "the exchange {source} is bound to {old} with {}; bind it to {exchange} when the bridge works",
                key(routing_key, arguments)
            ));
        }
        Ok(Self { names, steps, notes, is_bridged: false })
    }

    /// Returns the next steps of an operator after the migration.
    pub(crate) fn next(&self) -> String {
        let Names { old, exchange, due, .. } = &self.names;
        if self.is_bridged {
            return format!(
                "{exchange} is the exchange of the bridge already: it leads to the queue {}",
                self.names.queue
            );
        }
        let consumers = format!(
            "next: let the consumers bind their queues to {due}, if they do that at their start; the old bindings stay until you delete {old}"
        );
        if old == exchange {
            return format!(
                "{consumers}\n\
                 next: stop the publishers, and wait until the delayed messages of {old} have gone out; delete {old}, because the type of an \
                 exchange cannot be changed; and start the bridge with the same options, without --migrate"
            );
        }
        format!(
            "{consumers}\n\
             next: start the bridge with the same options, without --migrate; let the publishers publish to {exchange}; and delete {old} when its \
             delayed messages have gone out"
        )
    }
}

impl Names {
    /// Whether the destination of a binding is of the bridge itself.
    fn has(&self, binding: &Binding) -> bool {
        let Self { old, exchange, due, queue, refused, .. } = self;
        let own: &[&String] = match binding.destination_type {
            DestinationType::Queue => &[queue, refused],
            DestinationType::Exchange => &[old, exchange, due],
        };
        own.contains(&&binding.destination)
    }
}

impl Step {
    /// Makes the change.
    ///
    /// # Errors
    /// The broker refuses it.
    pub(crate) fn run(&self, api: &Management) -> Result<()> {
        match self {
            Self::Declare { exchange, kind } => api.declare(exchange, kind),
            Self::Bind { exchange, binding } => api.bind(exchange, binding),
        }
    }

    /// Returns the step as something that was done.
    pub(crate) fn done(&self) -> String {
        let text = self.to_string();
        match self {
            Self::Declare { .. } => text.replacen("declare", "declared", 1),
            Self::Bind { .. } => text.replacen("bind", "bound", 1),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Declare { exchange, kind } => write!(f, "declare exchange {exchange} ({kind})"),
            Self::Bind { exchange, binding } => {
                let key = key(&binding.routing_key, &binding.arguments);
                write!(f, "bind {} to {exchange} with {key}", noun(binding))
            }
        }
    }
}

fn is_queue(binding: &Binding) -> bool {
    binding.destination_type == DestinationType::Queue
}

/// Names the destination of a binding.
fn noun(binding: &Binding) -> String {
    let noun = if is_queue(binding) { "queue" } else { "exchange" };
    format!("{noun} {}", binding.destination)
}

fn key(routing_key: &str, arguments: &Map<String, Value>) -> String {
    let key = if routing_key.is_empty() { "an empty key".to_owned() } else { format!("key {routing_key}") };
    if arguments.is_empty() {
        return key;
    }
    format!("{key} and arguments {}", Value::Object(arguments.clone()))
}

/// Checks that the old exchange routes due messages as the bridge will do.
fn check_old(names: &Names, found: &Exchange) -> Result<()> {
    let Names { old, due, kind, .. } = names;
    let (noun, there) = if found.kind == DELAYED {
        (DELAYED_TYPE, found.arguments.get(DELAYED_TYPE).and_then(Value::as_str).unwrap_or_default())
    } else {
        ("type", found.kind.as_str())
    };
    if there == *kind {
        return Ok(());
    }
    if ["direct", "topic", "fanout", "headers"].contains(&there) {
        bail!(
            "the exchange `{old}` has the {noun} `{there}`, and `{due}` would have `{kind}`; add --type {there}, here and for the bridge"
        );
    }
    bail!("the exchange `{old}` has the {noun} `{there}`, for which there is no bridge")
}

/// Checks that an exchange of due messages that is there already is as the bridge declares it.
fn check_due(due: &str, kind: &str, found: &Exchange) -> Result<()> {
    let Exchange { kind: there, durable, auto_delete, internal, arguments } = found;
    ensure!(
        there == kind,
        "`{due}` exists with the type `{there}`; name it with --type, or delete the exchange"
    );
    ensure!(
        *durable && !auto_delete && !internal && arguments.is_empty(),
        "`{due}` exists and is not durable, is deleted by itself, is internal or has arguments, so the bridge cannot use it; delete it"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(old: &str) -> Names {
        let text = str::to_owned;
        Names {
            old: text(old),
            exchange: text("orders"),
            due: text("orders.due"),
            kind: "direct",
            queue: text("tickwheel.orders"),
            refused: text("tickwheel.orders.refused"),
        }
    }

    fn exchange(kind: &str, arguments: Value) -> Exchange {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        Exchange { kind: kind.to_owned(), durable: true, auto_delete: false, internal: false, arguments }
    }

    fn binding(source: &str, kind: DestinationType, to: &str, key: &str) -> Binding {
        let (source, destination, routing_key) = (source.to_owned(), to.to_owned(), key.to_owned());
        Binding { source, destination, destination_type: kind, routing_key, arguments: Map::new() }
    }

    fn queue(source: &str, to: &str, key: &str) -> Binding {
        binding(source, DestinationType::Queue, to, key)
    }

    fn delayed(kind: &str) -> Exchange {
        exchange(DELAYED, json!({ DELAYED_TYPE: kind }))
    }

    fn found(old: Exchange, bindings: Vec<Binding>) -> Found {
        Found { old, bindings, incoming: Vec::new(), due: None }
    }

    fn lines(migration: &Migration) -> Vec<String> {
        migration.steps.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_missing_steps_are_made() {
        let mut all = found(delayed("direct"), vec![queue("orders", "eu", "k"), queue("orders", "us", "")]);
        all.bindings[1].arguments.insert("a".to_owned(), json!(1));
        // Two AMQP types may have one form in JSON.
        all.bindings.push(all.bindings[1].clone());
        let migration = Migration::of(names("orders"), all.clone()).expect("steps");
        let expected = [
            "declare exchange orders.due (direct)",
            "bind queue eu to orders.due with key k",
            r#"bind queue us to orders.due with an empty key and arguments {"a":1}"#,
        ];
        assert_eq!(lines(&migration), expected);
        assert_eq!(migration.steps[0].done(), "declared exchange orders.due (direct)");
        assert_eq!(migration.steps[1].done(), "bound queue eu to orders.due with key k");
        assert!(migration.notes.is_empty());
        all.due = Some((exchange("direct", json!({})), vec![queue("orders.due", "eu", "k")]));
        let migration = Migration::of(names("orders"), all).expect("steps");
        assert_eq!(lines(&migration), expected[2..]);
    }

    #[test]
    fn a_due_message_does_not_come_back_to_the_bridge() {
        let mut all = found(delayed("direct"), vec![queue("old", "tickwheel.orders", "")]);
        for own in ["old", "orders", "orders.due", "other"] {
            all.bindings.push(binding("old", DestinationType::Exchange, own, "k"));
        }
        all.due = Some((exchange("direct", json!({})), Vec::new()));
        let migration = Migration::of(names("old"), all).expect("steps");
        assert_eq!(lines(&migration), ["bind exchange other to orders.due with key k"]);
        assert_eq!(migration.notes.len(), 4, "{:?}", migration.notes);
        assert!(migration.next().contains("publish to orders;"), "{}", migration.next());
    }

    #[test]
    fn a_running_bridge_needs_no_steps() {
        let all = found(exchange("fanout", json!({})), vec![queue("orders", "tickwheel.orders", "")]);
        let migration = Migration::of(names("orders"), all).expect("steps");
        assert!(migration.steps.is_empty() && migration.next().contains("already"), "{migration:?}");
    }

    #[test]
    fn an_operator_is_told_about_arguments_and_incoming_bindings() {
        let old = exchange(DELAYED, json!({ DELAYED_TYPE: "direct", "alternate-exchange": "lost" }));
        let mut all = found(old, Vec::new());
        all.incoming.push(binding("events", DestinationType::Exchange, "orders", "k"));
        let notes = Migration::of(names("orders"), all).expect("steps").notes;
        assert!(notes[0].starts_with("the argument alternate-exchange of orders"), "{notes:?}");
        assert!(notes[1].starts_with("the exchange events is bound to orders with key k"), "{notes:?}");
    }

    #[test]
    fn an_exchange_of_another_type_is_refused() {
        let refusal = |all: Found| Migration::of(names("orders"), all).expect_err("a refusal").to_string();
        for (old, words) in [
            (
                delayed("topic"),
                "x-delayed-type `topic`, and `orders.due` would have `direct`; add --type topic",
            ),
            (exchange("topic", json!({})), "the type `topic`"),
            (delayed("x-random"), "no bridge"),
        ] {
            let text = refusal(found(old, Vec::new()));
            assert!(text.contains(words), "{text}");
        }
        let mut all = found(delayed("direct"), Vec::new());
        all.due = Some((exchange("topic", json!({})), Vec::new()));
        assert!(refusal(all.clone()).contains("exists with the type `topic`"));
        all.due = Some((Exchange { durable: false, ..exchange("direct", json!({})) }, Vec::new()));
        assert!(refusal(all).contains("not durable"));
    }
}

//! Advice for a broker that refuses the exchanges and queues of a bridge.

use tickwheel_push::bridge::BridgePlan;

/// Returns the next step for an operator. `reason`: the words of the broker.
pub(crate) fn advice(plan: &BridgePlan, exchange: &str, queue: &str, reason: &str) -> String {
    let due = plan.due_exchange();
    let names = |noun: &str, name: &str| reason.contains(&format!("{noun} '{name}' in vhost"));
    if reason.starts_with("403") {
        return format!(
            "give the user the permissions to configure, write and read `{exchange}`, `{due}`, `{queue}` and `{}`",
            plan.refused_queue()
        );
    }
    if names("exchange", exchange) {
        return format!(
            "the old exchange `{exchange}` still exists, and the type of an exchange cannot be changed; give its bindings to \
             `{due}` with --migrate, wait until its delayed messages have gone out, delete it \
             (`rabbitmqadmin delete exchange name={exchange}`), and start the bridge again"
        );
    }
    if names("exchange", &due) {
        return format!(
            "`{due}` exists with another type; name that type with --type, or delete the exchange"
        );
    }
    if names("queue", queue) || names("queue", &plan.refused_queue()) {
        return "a queue of that name exists with other arguments; choose another name with --queue, or delete it when it is empty".to_owned();
    }
    "correct that at the broker, and start the bridge again".to_owned()
}

#[cfg(test)]
mod tests {
    use tickwheel_push::bridge::ExchangeType;

    use super::*;

    #[test]
    fn each_refusal_has_its_advice() {
        let plan = BridgePlan::new("orders", ExchangeType::Direct, "tickwheel.orders").expect("a plan");
        let type_of = |name: &str| {
            format!(
                "406 PRECONDITION_FAILED - inequivalent arg 'type' for exchange '{name}' in vhost '/': received 'fanout'"
            )
        };
        for (reason, advised) in [
            (type_of("orders"), "old exchange `orders`"),
            (type_of("orders.due"), "--type"),
            (
                "406 PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'tickwheel.orders' in vhost '/'"
                    .to_owned(),
                "--queue",
            ),
            ("403 ACCESS_REFUSED - access to exchange 'orders' in vhost '/' refused".to_owned(), "permissions"),
            ("540 NOT_IMPLEMENTED".to_owned(), "start the bridge again"),
        ] {
            let text = advice(&plan, "orders", "tickwheel.orders", &reason);
            assert!(text.contains(advised), "{reason}: {text}");
        }
    }
}

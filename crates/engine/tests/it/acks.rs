//! A second ack of a token that was acked.

use tickwheel_engine::*;

use crate::world::*;

#[test]
fn a_second_ack_is_told_what_the_first_was() {
    let mut world = World::new();
    world.put_in("a", 0);
    world.put_in("b", 0);
    let lost = world.lease(1, 10);
    world.pass_ms(10);
    let leased = world.lease(2, 1_000);
    let tokens = [leased[0].token, leased[0].token, lost[0].token, leased[1].token];
    let expected = vec![TokenAnswer::Acked, TokenAnswer::Acked, TokenAnswer::Expired, TokenAnswer::Acked];
    let twice = world.ask(Command::Ack(Ack::new(&queue("q"), tokens)));
    assert_eq!(twice, Answer::Ack(Ok(expected.clone())), "also within one call");
    for crash in [false, true] {
        if crash {
            world = world.crash();
        }
        assert_eq!(world.ask(Command::Ack(Ack::new(&queue("q"), tokens))), Answer::Ack(Ok(expected.clone())));
        for token in tokens {
            assert_eq!(world.nack(token, None), TokenAnswer::Expired, "an ack is not taken back");
            assert_eq!(world.extend(token, 10), TokenAnswer::Expired);
        }
        let other = Command::Ack(Ack::new(&queue("other"), [leased[0].token]));
        assert_eq!(world.ask(other), Answer::Ack(Ok(vec![TokenAnswer::Expired])), "of another queue");
    }
    // A new task of the same key is another task.
    world.put_in("a", 0);
    let new = world.lease(1, 1_000);
    assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
    assert_eq!(world.counts(), (0, 0, 1), "it does not end the new one");
    assert_eq!(world.cancel_by(Cancel::new(&queue("q"), key("a")).revoke()), Ok(Cancelled::Revoked));
    assert_eq!(world.ack(new[0].token), TokenAnswer::Revoked);
    let Answer::Stats(Ok(stats)) = world.ask(Command::Stats(GetStats(ListQueues::default()))) else {
        panic!("another answer")
    };
    assert_eq!(stats.acked_total, 0, "second acks are not counted, and the first were in another life");
}

#[test]
fn an_ack_by_a_token_of_an_earlier_life_is_remembered_too() {
    let mut world = World::new();
    world.put_in("a", 0);
    let leased = world.lease(1, 60_000);
    let mut world = world.crash();
    for _ in 0..2 {
        assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
    }
    world = world.crash().crash();
    assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
}

#[test]
fn an_ack_is_remembered_as_long_as_its_queue_says() {
    let mut world = World::new();
    let history = Some(Retention { keep_ms: 100, keys: 100 });
    let change = QueueChange::Settings(QueueSettings { history, ..QueueSettings::default() });
    world.ask(Command::ChangeQueue(ChangeQueue { queue: queue("q"), change }));
    world.put_in("a", 0);
    let leased = world.lease(1, 1_000);
    assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
    world.pass_ms(99);
    assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
    world.pass_ms(1);
    assert_eq!(world.ack(leased[0].token), TokenAnswer::Expired);
}

#[test]
fn the_tokens_of_one_call_are_answered_in_their_order_also_when_some_are_looked_up() {
    let mut world = World::new();
    world.put_in("a", 0);
    world.put_in("b", 0);
    let leased = world.lease(2, 1_000);
    assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
    assert_eq!(world.engine.tasks_in_memory(), 1, "the task that was acked has to be looked up");
    let [a, b] = [leased[0].token, leased[1].token];
    let mut extend = |tokens: &[Token]| {
        let tokens = tokens.to_vec();
        world.ask(Command::Extend(Extend { queue: queue("q"), tokens, lease_ms: Some(5_000) }))
    };
    let (expired, extended) = (TokenAnswer::Expired, TokenAnswer::Extended);
    assert_eq!(extend(&[a, b]), Answer::Extend(Ok(vec![expired, extended])));
    assert_eq!(extend(&[b, a, b]), Answer::Extend(Ok(vec![extended, expired, extended])));
}

//! A queue that does not exist: each command about one queue says so.

use crate::cli::client::World;

#[test]
fn a_queue_that_does_not_exist_is_told_with_the_nearest_name() {
    let world = World::new();
    for queue in ["mail", "shop/close"] {
        assert_eq!(world.run(&["put", queue, "k", "--in", "1h"]).code, 0);
    }
    for (queue, nearest) in [
        ("mial", "the nearest name is `mail`"),
        ("Mail", "the nearest name is `mail`"),
        ("close", "the nearest name is `shop/close`"),
        ("exports", "`tickwheel queues` lists the queues"),
    ] {
        for words in [
            &["queues", "show", queue][..],
            &["ls", queue],
            &["ls", queue, "--state", "ready"],
            &["dead", queue],
            &["dead", queue, "--groups"],
            &["get", queue, "k"],
            &["why", queue, "k"],
            &["story", queue, "k"],
            &["forecast", queue],
            &["leases", queue],
            &["schedules", "ls", queue],
            &["schedules", "show", queue, "s"],
            &["target", "show", queue],
        ] {
            let ran = world.run(words);
            assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{words:?}: {}", ran.err);
            let none = format!("there is no queue `{queue}`");
            assert!(ran.err.contains(&none) && ran.err.contains(nearest), "{words:?}: {}", ran.err);
        }
    }
    // A worker may ask before the first task comes, and a change that finds nothing has changed nothing.
    for words in [&["lease", "mial"][..], &["cancel", "mial", "--all"], &["purge", "mial", "--yes"]] {
        let ran = world.run(words);
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.err);
        assert!(ran.err.contains("the nearest name is `mail`"), "{words:?}: {}", ran.err);
    }
}

#[test]
fn a_queue_without_a_task_exists_with_its_settings_and_its_schedules() {
    let world = World::new();
    assert_eq!(world.run(&["queues", "set", "settings", "--max-in-flight", "3"]).code, 0);
    assert_eq!(world.run(&["schedules", "put", "rules", "s", "--every", "1h"]).code, 0);
    for queue in ["settings", "rules"] {
        for words in [&["queues", "show", queue][..], &["ls", queue], &["dead", queue], &["leases", queue]] {
            assert_eq!(world.run(words).code, 0, "{words:?}");
        }
    }
    // An emptied queue is listed for an hour, so it exists for an hour.
    assert_eq!(world.run(&["put", "mail", "k", "--in", "1h"]).code, 0);
    assert_eq!(world.run(&["cancel", "mail", "k"]).code, 0);
    assert_eq!(world.run(&["queues", "show", "mail"]).code, 0);
    let gone = world.run(&["get", "mail", "k"]);
    assert!(gone.code == 1 && gone.err.contains("no live task"), "{}", gone.err);
    world.advance(3_600_000);
    assert_eq!(world.run(&["queues", "show", "mail"]).code, 1);
}

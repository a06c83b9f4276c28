//! The figures of `docs/reference/limits.md`, compared with the constants of the code and with answers of a server.

use tickwheel_api::{BULK_MAX, JSON_DEPTH_MAX, LEASE_MS_MAX, LEASE_MS_MIN, LEASE_TASKS_MAX, WAIT_MS_MAX};
use tickwheel_engine::EngineConfig;
use tickwheel_queue::{Key, LEASE_MS_DEFAULT, QueueName, ScheduleRecord};
use tickwheel_server::{Config, Store};
use tickwheel_store::HistoryLimits;

use crate::served::Served;

const DAY_MS: u64 = 86_400_000;

/// A number with commas between its thousands.
fn grouped(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().ok().expect("a number of 64 bits").to_string();
    let places = digits.len();
    let spaced = digits.char_indices().map(|(at, digit)| {
        let comma = at > 0 && (places - at).is_multiple_of(3);
        format!("{}{digit}", if comma { "," } else { "" })
    });
    spaced.collect()
}

/// The number in the `detail` of a refusal of a body with this length.
fn limit_of(served: &Served, method: &str, target: &str, length: u64) -> u64 {
    let mut connection = served.connect();
    let host = served.addr;
    connection.send(
        format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n").as_bytes(),
    );
    number_in(&connection.reply().json()["detail"])
}

fn number_in(detail: &serde_json::Value) -> u64 {
    let detail = detail.as_str().expect("a detail");
    detail.split(' ').find_map(|word| word.parse().ok()).unwrap_or_else(|| panic!("no number in {detail}"))
}

/// The rows of the table, and phrases of the text below it.
fn figures() -> Vec<String> {
    let served = Served::memory();
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    let body = limit_of(&served, "PUT", "/v1/queues/q/tasks/k", 1 << 40);
    let batch = limit_of(&served, "POST", "/v1/queues/q/batch", 1 << 40);
    let lines = "{\"op\":\"cancel\",\"key\":\"k\"}\n".repeat(10_001);
    let refused = served.call("POST", "/v1/queues/q/batch", &lines).lines().pop().expect("a last line");
    let lines = number_in(&refused["problem"]["detail"]);
    let (engine, history, config) =
        (EngineConfig::default(), HistoryLimits::default(), Config::new(Store::Memory));
    let years = engine.farthest_ms / (365 * DAY_MS);
    let hours = |ms: u64| ms / 3_600_000;
    vec![
        format!("| queue name | 1 to {} bytes", QueueName::BYTES_MAX),
        format!("| key | 1 to {} bytes", Key::BYTES_MAX),
        format!("| due time, and so the maximum delay | up to {years} years ahead, to the millisecond |"),
        format!("| body of a request | {}; JSON up to {JSON_DEPTH_MAX} deep |", mib(body)),
        format!("| batch | {} lines, {}, each line within {} |", grouped(lines), mib(batch), mib(body)),
        format!(
            "| lease | {} s to {} h, default {} s; up to {} tasks at once; waits up to {} s |",
            LEASE_MS_MIN / 1_000,
            hours(LEASE_MS_MAX),
            LEASE_MS_DEFAULT / 1_000,
            grouped(LEASE_TASKS_MAX),
            WAIT_MS_MAX / 1_000
        ),
        format!(
            "| history | for {} hours, {} keys of each queue and {} in all,",
            hours(history.queue.keep_ms),
            grouped(history.queue.keys),
            grouped(history.total)
        ),
        format!(
            "| connections | {}, HTTP and beanstalkd together; {} from one address of another machine |",
            grouped(config.connections_max),
            grouped(config.connections_per_address_max)
        ),
        format!("| bulk cancel, move, purge | up to {} tasks within the call;", grouped(BULK_MAX)),
        format!("| waiting tasks of one schedule | {} |", grouped(ScheduleRecord::WAITING_MAX)),
        format!("| dead tasks | kept for {} days |", engine.dead_ms / DAY_MS),
        format!("within a budget of {}.", mib(engine.near_bytes_max)),
    ]
}

fn docs(name: &str) -> String {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("the page is there")
}

#[test]
fn the_page_of_limits_has_the_figures_of_this_version() {
    let page = docs("reference/limits.md");
    for figure in figures() {
        assert!(page.contains(&figure), "docs/reference/limits.md does not have: {figure}");
    }
    assert_eq!(EngineConfig::default().horizon_ms, 3_600_000, "the page says `more than an hour`");
    assert_eq!(
        page.lines().filter(|line| line.starts_with("| ")).count(),
        figures().len(),
        "each row is compared"
    );
    // The memory for each task was measured, and its page has the same figures.
    let measured = docs("performance/store.md");
    for (said, cells) in
        [("it has 442 or 683 MB", "| 442 | 29.3 |"), ("or by 54 with keys", "| 683 | 53.6 |")]
    {
        assert!(page.contains(said) && measured.contains(cells), "{said}: {cells}");
    }
}

//! [`Kind`]: the kinds of targets.

use std::path::{Path, PathBuf};

/// The programs of RabbitMQ behind the wrappers that change the user and the folder.
const RABBIT_PROGRAMS: &str = "/usr/lib/rabbitmq/bin";

/// A kind of target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Webhook,
    Kafka,
    Nats,
    Redis,
    Amqp,
    Beanstalk,
}

impl Kind {
    pub(super) const ALL: [Self; 6] =
        [Self::Webhook, Self::Kafka, Self::Nats, Self::Redis, Self::Amqp, Self::Beanstalk];

    /// Returns the word for the kind, in options and figures.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Kafka => "kafka",
            Self::Nats => "nats",
            Self::Redis => "redis",
            Self::Amqp => "amqp",
            Self::Beanstalk => "beanstalk",
        }
    }

    /// Returns the bare client beside which the kind is measured.
    pub(super) fn client(self) -> &'static str {
        match self {
            Self::Webhook => "hyper",
            Self::Kafka => "krafka",
            Self::Nats => "async-nats",
            Self::Redis => "redis",
            Self::Amqp => "lapin",
            Self::Beanstalk => "a raw socket",
        }
    }

    /// Returns the number of messages that are under way at one time.
    pub(super) fn in_flight(self) -> usize {
        match self {
            Self::Webhook => 64,
            _ => 512,
        }
    }

    /// Returns the program of the broker, and the environment variable that may name it; `None`: the receiver is this program.
    pub(super) fn program(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Webhook => None,
            Self::Kafka => Some(("tansu", "TICKWHEEL_TANSU")),
            Self::Nats => Some(("nats-server", "TICKWHEEL_NATS_SERVER")),
            Self::Redis => Some(("redis-server", "TICKWHEEL_REDIS_SERVER")),
            Self::Amqp => Some(("rabbitmq-server", "TICKWHEEL_RABBITMQ_SERVER")),
            Self::Beanstalk => Some(("beanstalkd", "TICKWHEEL_BEANSTALKD")),
        }
    }

    /// Finds a program of the broker: in the environment variable, in the folder of RabbitMQ, in the search path, or in `target/tools`.
    pub(super) fn find(program: &str, variable: &str) -> Option<PathBuf> {
        let set = std::env::var_os(variable).map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let in_path = std::env::split_paths(&path).map(|folder| folder.join(program));
        // The wrapper in the search path would change the user.
        let rabbit = program.starts_with("rabbitmq").then(|| Path::new(RABBIT_PROGRAMS).join(program));
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools");
        let tools = ["bin", "python/bin"].map(|folder| tools.join(folder).join(program));
        set.into_iter().chain(rabbit).chain(in_path).chain(tools).find(|path| path.is_file())
    }
}

//! The start of a bridge: its words, and its errors.

use std::path::Path;

use lapin::ExchangeKind;
use lapin::options::ExchangeDeclareOptions;
use lapin::types::FieldTable;

use crate::bridge::programs::{Program, failed_bridge, tickwheel};
use crate::rabbit::Broker;

/// An address with any free port.
pub(crate) const ANY: &str = "127.0.0.1:0";

/// Starts a server with the connection `main` to a broker, in a folder.
pub(crate) fn server_at(broker: &Broker, folder: &Path, listen: &str) -> Program {
    let uri = broker.uri();
    let place = uri.split('@').nth(1).expect("a host").trim_end_matches("/%2f");
    let config = format!(
        "[push.connections.main]\nkind = \"amqp\"\naddresses = [\"{place}\"]\nuser = \"guest\"\npassword_env = \"RABBIT_PASSWORD\"\n"
    );
    std::fs::write(folder.join("tickwheel.toml"), config).expect("a file");
    Program::server(&folder.join("server"), &folder.join("tickwheel.toml"), listen)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_exchange_is_named_with_the_way_on() {
    let Some(broker) = Broker::shared() else { return };
    let connection = broker.client().await;
    let channel = connection.create_channel().await.expect("a channel");
    // The plugin is not installed. For the broker any other type is as wrong as that of the plugin.
    let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    channel
        .exchange_declare("old".into(), ExchangeKind::Direct, durable, FieldTable::default())
        .await
        .expect("an exchange");
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().to_str().expect("UTF-8").to_owned();
    let output =
        tokio::task::block_in_place(|| failed_bridge(&broker, &["--exchange", "old", "--data", &data]));
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("the old exchange `old` still exists") && text.contains("delete it"), "{text}");
    assert!(text.contains("every user of this machine can read the password"), "{text}");
    assert!(!text.contains("guest:guest"), "{text}");
}

#[test]
fn a_server_without_the_connection_is_named() {
    let Some(broker) = Broker::shared() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let server = server_at(&broker, folder.path(), ANY);
    let options = ["--exchange", "unknown", "--server", &server.ready, "--connection", "other"];
    let output = failed_bridge(&broker, &options);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("no connection `other`") && text.contains("[push.connections.other]"), "{text}");
}

#[test]
fn a_second_start_finds_all_as_it_is() {
    let Some(broker) = Broker::shared() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let server = server_at(&broker, folder.path(), ANY);
    let options =
        ["--exchange", "twice", "--type", "topic", "--server", &server.ready, "--connection", "main"];
    for said in ["has a new target", "has its target already"] {
        let bridge = Program::bridge(&broker, &options);
        assert!(bridge.ready.starts_with("twice to twice.due at amqp://127.0.0.1:"), "{}", bridge.ready);
        assert!(bridge.said().iter().any(|line| line.contains(said)), "{:?}", bridge.said());
        let last = bridge.stop();
        assert!(last.starts_with("stopped: received 0"), "{last}");
    }
}

/// The lock of the directory keeps others out.
#[test]
fn a_directory_has_one_bridge() {
    let Some(broker) = Broker::shared() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("bridge");
    let options = ["--exchange", "locked", "--data", data.to_str().expect("UTF-8")];
    let bridge = Program::bridge(&broker, &options);
    let output = failed_bridge(&broker, &options);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && text.contains("failed to open"), "{text}");
    bridge.stop();
}

#[test]
fn a_command_line_without_a_place_for_messages_is_refused() {
    let url = ["bridge", "rabbitmq", "--url", "amqp://a.example", "--exchange", "orders"];
    let both: &[&str] = &["--data", "a", "--connection", "main"];
    for more in [&[] as &[&str], both] {
        let output = tickwheel(&url).args(more).output().expect("the program runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    let output =
        tickwheel(&["bridge", "rabbitmq", "--url", "http://a", "--exchange", "o", "--data", "a"]).output();
    assert_eq!(output.expect("the program runs").status.code(), Some(2));
}

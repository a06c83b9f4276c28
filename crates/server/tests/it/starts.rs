//! Starts, and refused starts.

use tickwheel_server::{Config, StartError, Store};

use crate::databases::is_left_out;
use crate::served::{Served, on_any_port, virtual_memory};

#[test]
fn an_address_that_others_can_reach_is_refused() {
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let config = Config { listen: listen.parse().expect("an address"), ..virtual_memory() };
        let Err(error) = Served::start(config) else { panic!("{listen} was taken") };
        assert!(matches!(error, StartError::NotLoopback { .. }), "{listen}: {error:?}");
        assert!(error.to_string().contains("--insecure"), "{error}");
    }
    let config =
        Config { listen: "0.0.0.0:0".parse().expect("an address"), insecure: true, ..virtual_memory() };
    assert!(Served::start(config).is_ok(), "it was asked for");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let served = Served::memory();
    let Err(error) = Served::start(Config { listen: served.addr.into(), ..virtual_memory() }) else {
        panic!("taken twice")
    };
    assert!(matches!(error, StartError::Listen { .. }), "{error:?}");
    assert!(error.to_string().contains(&served.addr.to_string()), "{error}");
    served.expect(200, "GET", "/readyz", "");
}

#[test]
fn a_directory_has_one_server_at_a_time() {
    if is_left_out("it is about a directory") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::Dir(directory.path().join("data"));
    let first = Served::start(on_any_port(store.clone())).expect("started");
    first.expect(201, "PUT", "/v1/queues/q/tasks/a", r#"{"delay":"1h"}"#);
    let Err(error) = Served::start(on_any_port(store.clone())) else {
        panic!("the directory was taken twice")
    };
    assert!(matches!(error, StartError::Open { .. }), "{error:?}");
    assert!(error.to_string().contains(&*directory.path().to_string_lossy()), "{error}");
    first.expect(200, "GET", "/v1/queues/q/tasks/a", "");
    first.stop();
    let second = Served::start(on_any_port(store)).expect("free again");
    second.expect(200, "GET", "/v1/queues/q/tasks/a", "");
}

#[test]
fn a_directory_keeps_its_kind_of_clock() {
    if is_left_out("it is about a directory") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::Dir(directory.path().join("data"));
    let test = Config { virtual_clock: true, ..on_any_port(store.clone()) };
    let served = Served::start(test.clone()).expect("started");
    let before = served.advance("15d");
    served.stop();
    let Err(error) = Served::start(on_any_port(store)) else { panic!("real time on a virtual directory") };
    assert!(matches!(error, StartError::Open { .. }), "{error:?}");
    let again = Served::start(test).expect("started");
    assert_eq!(again.advance("0s"), before, "virtual time goes on where it stood");
}

#[test]
fn the_ipv6_loopback_is_served_too() {
    let config = Config { listen: "[::1]:0".parse().expect("an address"), ..virtual_memory() };
    match Served::start(config) {
        Ok(served) => drop(served.expect(200, "GET", "/v1/queues", "")),
        // A container may have no IPv6 at all.
        Err(error) => assert!(matches!(error, StartError::Listen { .. }), "{error:?}"),
    }
}

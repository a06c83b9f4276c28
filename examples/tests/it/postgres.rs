//! Runs the example of PostgreSQL on a real one.

use std::process::Command;

#[test]
fn orders_in_postgres_have_a_close_exactly_if_they_are_committed() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    // The second run finds the tables.
    for first in [1, 4] {
        let program = env!("CARGO_BIN_EXE_orders_in_postgres");
        let output = Command::new(program).arg(database.url()).output().expect("the example starts");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("the examples print UTF-8");
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        let (paid, unpaid, undone) = (first, first + 1, first + 2);
        let expected =
            format!("order {paid} is paid\norder {unpaid} is closed\norder {undone} is not there\n");
        assert_eq!(text(&output.stdout), expected);
    }
}

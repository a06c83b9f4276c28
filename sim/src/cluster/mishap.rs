//! The faults of nodes and of the database as a whole.

use super::{Step, World};

impl World {
    /// Draws when the next fault happens.
    pub(super) fn plan_mishap(&mut self) {
        let lease_ns = u64::from(self.plan.lease_ms) * 1_000_000;
        let leases = self.rng.pick(&[1, 2, 4]);
        self.next_mishap_ns = self.now_ns + self.rng.below(leases * lease_ns) + 1;
    }

    pub(super) fn mishap(&mut self) -> Step {
        let lease_ns = u64::from(self.plan.lease_ms) * 1_000_000;
        let place = self.rng.index(self.nodes.len());
        self.mishaps += 1;
        let now_ns = self.now_ns;
        match self.rng.below(9) {
            0 | 1 if self.nodes[place].is_some() => {
                self.trace.event(format_args!("{now_ns} ns: n{place} is killed"));
                self.seen.mishaps[0] += 1;
                self.end_node(place);
            }
            2 | 3 => {
                let until_ns = now_ns + self.rng.below(3 * lease_ns) + 1;
                if let Some(node) = &mut self.nodes[place] {
                    self.trace.event(format_args!("{now_ns} ns: n{place} stops until {until_ns} ns"));
                    self.seen.mishaps[1] += 1;
                    node.stopped_until_ns = Some(until_ns);
                }
            }
            4 => {
                if let Some(node) = &mut self.nodes[place] {
                    self.trace.event(format_args!("{now_ns} ns: n{place} leaves"));
                    self.seen.mishaps[2] += 1;
                    node.is_leaving = true;
                }
            }
            5 => {
                self.trace.event(format_args!("{now_ns} ns: the sessions of n{place} end"));
                self.database.end_sessions(place);
            }
            6 => {
                let until_ns = now_ns + self.rng.below(3 * lease_ns) + 1;
                self.trace.event(format_args!("{now_ns} ns: n{place} is cut off until {until_ns} ns"));
                self.seen.mishaps[3] += 1;
                self.database.cut(place, true);
                self.connects_ns[place] = until_ns;
            }
            7 => {
                let (lost, down_ns) = (self.rng.index(6), self.rng.below(2 * lease_ns));
                let lost = self.database.fail_over(lost, down_ns);
                self.trace.event(format_args!("{now_ns} ns: a standby is promoted, {lost} commits are lost"));
                if lost > 0 {
                    self.ledger.lossy();
                    self.lose_rows();
                }
            }
            8 if self.plan.steps_clock => {
                let by_ms = self.rng.pick(&[300, 2_000, 100_000, 3_600_000]);
                let by_ms = if self.rng.chance(50) { by_ms } else { -by_ms };
                self.trace.event(format_args!("{now_ns} ns: the clock of the database steps by {by_ms} ms"));
                self.step_clock(by_ms);
            }
            _ => {}
        }
        self.plan_mishap();
        Ok(())
    }
}

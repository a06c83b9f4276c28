//! Plays steps on the wheels of core, and prints each step and the state after it. `compare.js` plays the same steps on the compiled wheels.

#![expect(clippy::print_stdout, reason = "a program whose output is read by another one")]

use tickwheel_wheel_page::Kind;
use tickwheel_wheel_page::model::Model;

/// Steps on each wheel.
const STEPS: u32 = 400;

fn main() {
    for kind in 0..4 {
        for slots in [4, 8] {
            let mut model = Model::new(Kind::from_number(kind).expect("one of four"), slots as usize);
            println!("begin {kind} {slots}\t{}", model.state());
            // The same steps each time; half of the tasks are cancelled.
            let mut number = kind * 8 + slots;
            for _ in 0..STEPS {
                number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let (choice, value) = ((number >> 24) % 8, (number >> 8) % 40);
                let step = match choice {
                    0..3 => {
                        model.insert(value.into());
                        format!("insert {value}")
                    }
                    3 => {
                        model.cancel(value);
                        format!("cancel {value}")
                    }
                    4 => {
                        model.stop();
                        "stop".to_owned()
                    }
                    _ => {
                        model.tick();
                        "tick".to_owned()
                    }
                };
                println!("{step}\t{}", model.state());
            }
        }
    }
}

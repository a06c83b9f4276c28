//! [`conformance_suite!`](crate::conformance_suite): one test for each check.

/// Makes a module of tests, one for each check of [`conformance`](crate::conformance), for a [`Family`](crate::conformance::Family). The
/// tests need the standard library, to catch panics.
#[macro_export]
macro_rules! conformance_suite {
    ($module:ident, $family:ty) => {
        mod $module {
            use super::*;
            $crate::conformance_suite!(@each $family:
                wh1_an_elapsed_deadline_is_refused_with_the_value,
                wh2_equal_deadlines_fire_in_order_of_insertion,
                wh2_a_rescheduled_entry_keeps_its_place_in_the_order,
                wh3_any_way_of_advancing_fires_the_same_list,
                wh4_next_wake_is_after_now_and_never_late,
                wh5_next_wake_is_exact,
                wh6_a_handle_works_once,
                wh7_a_rescheduled_entry_fires_once_at_its_last_deadline,
                wh8_a_refused_reschedule_changes_nothing,
                wh9_near_after_far_fires_first,
                wh10_neighbours_on_a_boundary_are_independent,
                wh11_moving_one_entry_leaves_the_other_on_time,
                wh12_without_entries_there_is_no_wake,
                wh13_powers_and_their_neighbours_are_exact,
                wh14_idle_time_changes_nothing,
                wh15_the_far_end_of_time_is_reached,
                wh15_what_is_beyond_the_reach_is_refused,
                wh16_time_never_runs_backwards,
                wh17_pairs_and_reschedules_keep_memory_flat,
                wh18_values_are_dropped_exactly_once,
                wh19_a_cancelled_entry_is_freed_at_once,
            );

            #[test]
            fn wh18_a_panic_in_fire_loses_nothing_else() {
                $crate::conformance::wh18_a_panic_in_fire_loses_nothing_else::<$family>(|body| {
                    ::std::panic::catch_unwind(::std::panic::AssertUnwindSafe(body)).is_err()
                });
            }
        }
    };
    (@each $family:ty: $($check:ident,)*) => {
        $(
            #[test]
            fn $check() {
                $crate::conformance::$check::<$family>();
            }
        )*
    };
}

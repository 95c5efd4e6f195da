//! What stands in the table of `benches/versus.rs` is computed and laid out right.

#[path = "../benches/versus/stats.rs"]
#[allow(dead_code)]
mod stats;
#[path = "../benches/versus/table.rs"]
mod table;

use std::time::Duration;

use stats::Samples;
use table::{Cell, Goal, Row, number, render};

fn samples(values: &[f64]) -> Samples {
    values.iter().copied().collect()
}

fn cell(typical: f64, worst: f64) -> Option<Cell> {
    Some(Cell { typical, worst: Some(worst) })
}

#[test]
fn the_median_is_the_middle_one_whatever_the_order() {
    assert_eq!(samples(&[9.0, 1.0, 5.0]).median(), Some(5.0));
    assert_eq!(samples(&[9.0, 1.0, 5.0, 6.0]).median(), Some(5.5));
    assert_eq!(samples(&[7.0]).median(), Some(7.0));
    assert_eq!(samples(&[]).median(), None);
}

#[test]
fn a_percentile_is_a_sample_that_so_many_do_not_exceed() {
    let hundred = samples(&(1..=100).rev().map(f64::from).collect::<Vec<_>>());
    assert_eq!(hundred.percentile(99.0), Some(99.0));
    assert_eq!(hundred.percentile(50.0), Some(50.0));
    assert_eq!(hundred.percentile(100.0), Some(100.0));
    assert_eq!(hundred.percentile(0.0), Some(1.0));
    assert_eq!(samples(&[1.0, 2.0, 3.0]).percentile(99.0), Some(3.0));
    assert_eq!(samples(&[]).percentile(99.0), None);
    let times: Samples = [3, 1, 2].map(Duration::from_millis).into_iter().collect();
    assert_eq!((times.largest(), times.count()), (Some(3.0), 3));
}

#[test]
fn numbers_have_as_many_digits_as_mean_something() {
    let texts = [0.0, 0.456, 9.994, 9.996, 12.34, 99.96, 1234.5, 1_234_567.0, -4.2, -1500.0].map(number);
    assert_eq!(texts, ["0", "0.46", "9.99", "10", "12.3", "100", "1,234", "1,234,567", "-4.2", "-1,500"]);
}

#[test]
fn better_is_less_of_a_cost_and_more_of_a_rate() {
    let cells = || vec![cell(10.0, 20.0), cell(50.0, 60.0)];
    assert_eq!(Row::cost("time", cells()).times_better(Some(1)), Some(5.0));
    assert_eq!(Row::rate("rate", cells()).times_better(Some(1)), Some(0.2));
    assert_eq!(Row::shape("growth", cells()).times_better(Some(1)), None);
    assert_eq!(Row::cost("alone", cells()).times_better(None), None);
    assert_eq!(Row::cost("missing", vec![cell(1.0, 1.0), None]).times_better(Some(1)), None);
}

#[test]
fn a_goal_is_met_when_all_of_it_is() {
    let row = |typical, worst| {
        Row::cost("kill", vec![cell(typical, worst), cell(1200.0, 1300.0)])
            .goal(Goal::AtMost(12.0))
            .goal(Goal::WorstAtMost(80.0))
            .goal(Goal::TimesBetter(80.0))
    };
    assert_eq!(row(12.0, 80.0).is_met(Some(1)), Some(true));
    assert_eq!(row(12.1, 80.0).is_met(Some(1)), Some(false));
    assert_eq!(row(11.0, 81.0).is_met(Some(1)), Some(false));
    // Nobody to compare with: what can be said is said.
    assert_eq!(row(11.0, 70.0).is_met(None), Some(true));
    let slow = Row::cost("kill", vec![cell(11.0, 12.0), cell(100.0, 100.0)]).goal(Goal::TimesBetter(80.0));
    assert_eq!(slow.is_met(Some(1)), Some(false));
    assert_eq!(slow.is_met(None), None);
    assert_eq!(Row::cost("kill", vec![None]).goal(Goal::AtMost(1.0)).is_met(None), None);
}

#[test]
fn the_table_stands_in_columns() {
    let names = ["watchfire".to_string(), "redis-sentinel".to_string()];
    let rows = [
        Row::cost("kill: agreed", vec![cell(9.8, 25.0), cell(1257.0, 1333.0)]).goal(Goal::AtMost(12.0)),
        Row::rate("queries", vec![Some(Cell { typical: 130.0, worst: None }), None]).goal(Goal::TimesBetter(1.0)),
    ];
    let expected = "\
| median (worst) | watchfire | redis-sentinel | better | goal | met |
|----------------|----------:|---------------:|-------:|------|-----|
| kill: agreed   |  9.8 (25) |  1,257 (1,333) |   128× | ≤ 12 | yes |
| queries        |       130 |              – |        | ≥ 1× |     |
";
    assert_eq!(render(&names, Some(1), &rows, true), expected);
    let expected = "\
| median (worst) | watchfire | redis-sentinel | better |
|----------------|----------:|---------------:|-------:|
| kill: agreed   |  9.8 (25) |  1,257 (1,333) |   128× |
| queries        |       130 |              – |        |
";
    assert_eq!(render(&names, Some(1), &rows, false), expected);
}

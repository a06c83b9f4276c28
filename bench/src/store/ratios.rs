//! Ours against the others, inside one round.

use super::catalog::Candidate;
use crate::sample::Sample;

/// What says something alone: it is about the machine or the task, or a ratio already.
fn is_alone(metric: &str) -> bool {
    metric.contains('/') || metric.starts_with("raw_") || ["record_bytes", "files_made"].contains(&metric)
}

/// For every figure of ours: its ratio to the same one of each other, by whose and `figure/other`. Nothing is divided by
/// nothing.
pub(crate) fn ratios(round: &[(&'static Candidate, Sample)]) -> Vec<(&'static str, String, f64)> {
    let mut ratios = Vec::new();
    for (ours, sample) in round.iter().filter(|(candidate, _)| candidate.ours) {
        for (metric, value) in sample.figures.iter().filter(|(metric, _)| !is_alone(metric)) {
            for (other, others) in round.iter().filter(|(candidate, _)| !candidate.ours) {
                let same = others.figures.iter().find(|(name, _)| name == metric);
                if let Some((_, divisor)) = same.filter(|(_, divisor)| *divisor > 0.0) {
                    ratios.push((ours.name, format!("{metric}/{}", other.name), value / divisor));
                }
            }
        }
    }
    ratios
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::catalog::find;

    #[test]
    fn ours_is_divided_by_a_peer_and_not_by_the_disk_again() {
        let sample = |figures: &[(&str, f64)]| Sample {
            figures: figures.iter().map(|&(name, value)| (name.to_owned(), value)).collect(),
            ..Sample::default()
        };
        let [store, fjall] = ["store", "fjall"].map(|name| find(name).expect("it is there"));
        let round = [
            (store, sample(&[("tasks_s", 6.0), ("raw_s", 1.0), ("tasks_s/1000-raw", 1.0), ("x", 1.0)])),
            (fjall, sample(&[("tasks_s", 4.0), ("raw_s", 2.0), ("tasks_s/1000-raw", 2.0), ("x", 0.0)])),
        ];
        assert_eq!(ratios(&round), [("store", "tasks_s/fjall".to_owned(), 1.5)]);
        assert_eq!(ratios(&round[1..]), []);
    }
}

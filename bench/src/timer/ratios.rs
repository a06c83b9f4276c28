//! Ours against the others, inside one round.

use super::catalog::Candidate;
use crate::sample::Sample;

/// What says something alone: it is a share, has to be nothing, or is about the machine.
const ALONE: [&str; 5] = ["early", "unfiled", "beside_p50_us", "beside_p99_us", "beside_max_us"];

/// For every figure of ours: its ratio to the same one of each other, by whose and `figure/other`. Nothing is divided by
/// nothing: a peer that never wakes has no ratio.
pub(crate) fn ratios(round: &[(&'static Candidate, Sample)]) -> Vec<(&'static str, String, f64)> {
    let mut ratios = Vec::new();
    for (ours, sample) in round.iter().filter(|(candidate, _)| candidate.ours) {
        for (metric, value) in sample.figures.iter().filter(|(metric, _)| !ALONE.contains(&metric.as_str())) {
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

    const OURS: Candidate = Candidate { name: "timer", ours: true, sample: |_, _| Ok(None) };
    const PEER: Candidate = Candidate { name: "peer", ours: false, ..OURS };

    #[test]
    fn ours_is_divided_by_everybody_who_has_the_figure() {
        let sample = |figures: &[(&str, f64)]| Sample {
            figures: figures.iter().map(|&(name, value)| (name.to_owned(), value)).collect(),
            ..Sample::default()
        };
        let round = [
            (&OURS, sample(&[("mops", 6.0), ("wakes", 1.0), ("early", 1.0)])),
            (&PEER, sample(&[("mops", 4.0), ("wakes", 0.0), ("early", 2.0)])),
        ];
        assert_eq!(ratios(&round), [("timer", "mops/peer".to_owned(), 1.5)]);
        assert_eq!(ratios(&round[1..]), []);
    }
}

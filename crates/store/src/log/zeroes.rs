//! [`last_not_zero`]: where the zeroes at the end of a log file begin.

/// As many bytes are compared at a time. A log file is made 64 MiB long, and most of a new one is zero.
const PIECE: usize = 4_096;

static ZEROES: [u8; PIECE] = [0; PIECE];

/// Returns the position of the last byte that is not zero; `None`: all are zero, or there is none. Reads each byte of the zeroes once.
pub(crate) fn last_not_zero(bytes: &[u8]) -> Option<usize> {
    let mut end = bytes.len();
    while end > 0 {
        let begin = end.saturating_sub(PIECE);
        let piece = &bytes[begin..end];
        // Comparing slices is one call of the system's library, which is fast in each build.
        if piece != &ZEROES[..piece.len()] {
            return piece.iter().rposition(|byte| *byte != 0).map(|at| begin + at);
        }
        end = begin;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_byte_that_is_not_zero_is_found_wherever_it_is() {
        assert_eq!(last_not_zero(&[]), None);
        assert_eq!(last_not_zero(&[0; 3 * PIECE + 5]), None);
        for at in [0, 1, 4, 5, 6, PIECE - 1, PIECE, PIECE + 4, PIECE + 5, 2 * PIECE + 5, 3 * PIECE + 4] {
            let mut bytes = vec![0; 3 * PIECE + 5];
            bytes[0] = 1;
            bytes[at] = 7;
            assert_eq!(last_not_zero(&bytes), Some(at));
            assert_eq!(last_not_zero(&bytes[..at]), (at > 0).then_some(0), "before {at}");
        }
    }
}

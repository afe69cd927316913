//! The rules of a round.

/// How many sparks are a round.
const SPARKS: u32 = 3;
/// What a spark is worth at most: it fades while it falls.
const WORTH: u32 = 100;

/// A round: sparks fall one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// How many sparks were caught.
    pub caught: u32,
    /// What they were worth.
    pub points: u32,
    /// How far the present spark has fallen, from 0 to 100; then it starts again.
    pub height: u32,
}

impl Round {
    /// Lets the spark fall a little.
    pub fn fall(&mut self) {
        self.height = (self.height + 1) % WORTH;
    }

    /// Catches the spark. Returns whether the round is over.
    pub fn catch(&mut self) -> bool {
        if self.caught < SPARKS {
            self.caught += 1;
            self.points += WORTH - self.height;
            self.height = 0;
        }
        self.caught == SPARKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spark_that_is_caught_early_is_worth_more() {
        let mut round = Round::default();
        assert!(!round.catch());
        (0..40).for_each(|_| round.fall());
        assert!(!round.catch());
        assert!(round.catch());
        assert_eq!(round.points, 100 + 60 + 100);
        assert!(round.catch(), "the round stays over");
        assert_eq!(round.points, 260);
    }
}

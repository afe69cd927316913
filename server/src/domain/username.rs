//! Usernames: how guests get theirs, and when two names are the same. (Rules
//! for chosen ones follow with the profile page.)

use crate::entropy::Entropy;

/// Fewest characters of a username.
pub const MIN_CHARS: usize = 3;
/// Most characters of a username.
pub const MAX_CHARS: usize = 24;

const ADJECTIVES: [&str; 96] = [
    "agile", "amber", "ample", "azure", "bold", "brave", "breezy", "bright", "brisk", "bubbly",
    "calm", "candid", "cheery", "civil", "clever", "coral", "cosmic", "cosy", "crisp", "curious",
    "daring", "dapper", "dizzy", "eager", "early", "earnest", "fancy", "fair", "frosty", "fleet",
    "fluffy", "frank", "fresh", "fluent", "gentle", "giddy", "glad", "golden", "grand", "happy",
    "hardy", "hasty", "honest", "humble", "ivory", "jolly", "keen", "kind", "lively", "loyal",
    "lucky", "lunar", "mellow", "merry", "mighty", "mild", "misty", "modest", "neat", "nifty",
    "nimble", "noble", "patient", "peppy", "plucky", "polite", "proud", "quick", "quiet", "rapid",
    "ready", "royal", "rustic", "sage", "sandy", "silent", "silver", "sleek", "smart", "snowy",
    "solar", "sparkly", "spry", "steady", "sturdy", "sunny", "swift", "tidy", "upbeat", "velvet",
    "vivid", "warm", "wise", "witty", "young", "zesty",
];

const ANIMALS: [&str; 96] = [
    "alpaca", "badger", "bat", "bear", "beaver", "bee", "bison", "bobcat", "bunny", "camel",
    "caribou", "cat", "cheetah", "cobra", "condor", "crab", "crane", "cricket", "deer", "dingo",
    "dolphin", "dove", "dragon", "duck", "eagle", "elk", "falcon", "ferret", "finch", "firefly",
    "fox", "gazelle", "gecko", "gibbon", "giraffe", "goose", "grouse", "hare", "hawk", "hedgehog",
    "heron", "hippo", "husky", "ibex", "iguana", "impala", "jackal", "jaguar", "kestrel", "kiwi",
    "koala", "lark", "lemur", "leopard", "lion", "llama", "lynx", "macaw", "magpie", "manta",
    "marlin", "marmot", "marten", "meerkat", "moose", "narwhal", "newt", "ocelot", "octopus",
    "oriole", "osprey", "otter", "owl", "panda", "parrot", "pelican", "penguin", "phoenix",
    "pigeon", "plover", "pony", "puffin", "puma", "quail", "rabbit", "raven", "robin", "salmon",
    "seal", "sparrow", "stork", "swan", "tiger", "turtle", "walrus", "zebra",
];

/// How many digits the number of each candidate has. The longer ones come
/// last, for the day when most short names are taken: 96 × 96 × 10⁷ of them
/// are never exhausted.
const DIGITS: [u32; 6] = [4, 4, 4, 5, 6, 7];

/// Names for a new guest, best first, such as `swift-otter-4821`.
#[must_use]
pub fn generate_guest_names(entropy: &dyn Entropy) -> Vec<String> {
    DIGITS
        .into_iter()
        .map(|digits| {
            let adjective = pick(&ADJECTIVES, entropy);
            let animal = pick(&ANIMALS, entropy);
            // The first digit is not zero, so that all names of a kind are of
            // one length and read as numbers.
            let low = 10_u64.pow(digits - 1);
            let number = low + u64::from_be_bytes(entropy.bytes()) % (9 * low);
            format!("{adjective}-{animal}-{number}")
        })
        .collect()
}

/// A word. The remainder's bias, one in 2⁵⁷, matters to no name.
fn pick(words: &'static [&'static str; 96], entropy: &dyn Entropy) -> &'static str {
    let index = u64::from_be_bytes(entropy.bytes()) % 96;
    words[usize::try_from(index).unwrap_or(0)]
}

/// What must be unique: two names that look alike have it in common.
#[must_use]
pub fn unique_key(name: &str) -> String {
    without_case(name)
}

/// What two names have in common that differ in case alone.
#[must_use]
pub fn without_case(name: &str) -> String {
    name.to_lowercase()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::entropy::SystemEntropy;

    /// Gives the same byte again and again.
    #[derive(Debug)]
    struct Constant(u8);

    impl Entropy for Constant {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0);
        }
    }

    #[test]
    fn the_longest_words_still_make_a_name_of_24_characters() {
        let longest = |words: &[&str]| words.iter().map(|word| word.len()).max().unwrap();
        let digits = usize::try_from(*DIGITS.iter().max().unwrap()).unwrap();
        assert!(longest(&ADJECTIVES) + 1 + longest(&ANIMALS) + 1 + digits <= MAX_CHARS);
    }

    #[test]
    fn the_words_are_distinct_and_plain() {
        for words in [ADJECTIVES, ANIMALS] {
            assert_eq!(words.iter().collect::<HashSet<_>>().len(), words.len());
            assert!(
                words
                    .iter()
                    .all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()))
            );
        }
    }

    #[test]
    fn a_name_is_two_words_and_a_number() {
        let names = generate_guest_names(&Constant(0));
        assert_eq!(names[0], "agile-alpaca-1000");
        assert_eq!(names.last().unwrap(), "agile-alpaca-1000000");
    }

    #[test]
    fn the_number_grows_when_short_names_are_taken() {
        for _ in 0..200 {
            for (name, digits) in generate_guest_names(&SystemEntropy).iter().zip(DIGITS) {
                assert!((MIN_CHARS..=MAX_CHARS).contains(&name.len()), "{name}");
                let number = name.rsplit('-').next().unwrap();
                assert_eq!(number.len(), usize::try_from(digits).unwrap(), "{name}");
                assert!(number.bytes().all(|byte| byte.is_ascii_digit()));
            }
        }
    }

    #[test]
    fn names_hardly_ever_repeat() {
        let names: HashSet<_> = (0..1_000)
            .flat_map(|_| generate_guest_names(&SystemEntropy))
            .collect();
        assert!(names.len() > 5_990, "{}", names.len());
    }

    #[test]
    fn case_does_not_tell_names_apart() {
        assert_eq!(without_case("Swift-OTTER-1"), without_case("swift-otter-1"));
        assert_eq!(without_case("ÉTÉ"), without_case("été"));
        assert_ne!(without_case("otter1"), without_case("otter2"));
    }
}

//! Generated names for guests.

use crate::entropy::Entropy;

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

/// How many digits the number of each candidate has. The longer ones come last, for when most short
/// names are taken: 96 × 96 × 10⁷ names are never exhausted.
const DIGITS: [u32; 6] = [4, 4, 4, 5, 6, 7];

/// Names for a new guest, best first, such as `swift-otter-4821`.
#[must_use]
pub fn generate_guest_names(entropy: &dyn Entropy) -> Vec<String> {
    DIGITS
        .into_iter()
        .map(|digits| {
            let adjective = pick(&ADJECTIVES, entropy);
            let animal = pick(&ANIMALS, entropy);
            // The first digit is not zero, so that all names of a kind have the same length and
            // read as numbers.
            let low = 10_u64.pow(digits - 1);
            let number = low + u64::from_be_bytes(entropy.bytes()) % (9 * low);
            format!("{adjective}-{animal}-{number}")
        })
        .collect()
}

/// Whether a name has the form of those that [`generate_guest_names`] makes, so that it is very
/// likely that its player did not choose it.
#[must_use]
pub fn is_generated(name: &str) -> bool {
    let mut parts = name.split('-');
    let (Some(adjective), Some(animal), Some(number), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    ADJECTIVES.contains(&adjective)
        && ANIMALS.contains(&animal)
        && number.len() >= 4
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Picks a word. The remainder's bias, one in 2⁵⁷, does not matter for names.
fn pick(words: &'static [&'static str; 96], entropy: &dyn Entropy) -> &'static str {
    let index = u64::from_be_bytes(entropy.bytes()) % 96;
    words[usize::try_from(index).unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::{MAX_CHARS, MIN_CHARS, unique_key};
    use super::*;
    use crate::entropy::SystemEntropy;

    /// Returns the same byte every time.
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
        assert!(names.iter().all(|name| is_generated(name)));
        for chosen in [
            "ada",
            "agile-alpaca",
            "agile-alpaca-one",
            "agile-alpaca-1000-x",
            "my-alpaca-1000",
        ] {
            assert!(!is_generated(chosen), "{chosen}");
        }
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
    fn no_two_generated_names_look_alike() {
        for words in [ADJECTIVES, ANIMALS] {
            let keys: HashSet<_> = words.iter().map(|word| unique_key(word)).collect();
            assert_eq!(keys.len(), words.len());
        }
        let digits: HashSet<_> = ('0'..='9')
            .map(|digit| unique_key(&digit.to_string()))
            .collect();
        assert_eq!(digits.len(), 10);
        assert_eq!(
            unique_key("-"),
            "-",
            "what parts words and number stays apart"
        );
    }

    #[test]
    fn a_generated_name_could_have_been_chosen() {
        for name in generate_guest_names(&SystemEntropy) {
            assert_eq!(super::super::check(&name).unwrap().as_str(), name);
        }
    }
}

//! What the set-up says before it begins: what is missing, how much it downloads, and how long that
//! takes.

use std::time::Duration;

use super::Purpose;
use super::steps::{Queue, Step};

/// The table of the missing steps, under a sentence with the sums. On a terminal of some width, rows are cut.
pub(super) fn announcement(missing: &[&Step], purpose: Purpose, width: Option<usize>) -> String {
    let things = match missing.len() {
        1 => "one thing that is".to_owned(),
        count => format!("{count} things that are"),
    };
    let megabytes = missing.iter().map(|step| step.megabytes).sum();
    let mut lines = vec![format!(
        "set-up: installing {things} missing on this machine, which happens only once: about {} to download, and about \
         {} on two cores with a fast network",
        size(megabytes),
        approximately(expected(missing)),
    )];
    let names = missing.iter().map(|step| step.name.len()).max();
    let names = names.unwrap_or_default();
    for step in missing {
        let (size, time) = (size(step.megabytes), approximately(seconds(step)));
        let optional = if step.is_optional(purpose) {
            "optional: "
        } else {
            ""
        };
        let row = format!(
            "  {:names$}  {size:>7}  {time:>6}  {optional}{}",
            step.name, step.why
        );
        lines.push(cut(row, width));
    }
    lines.join("\n")
}

/// A row that fits on the terminal: rows of a table that wrap cannot be read.
fn cut(row: String, width: Option<usize>) -> String {
    match width {
        Some(width) if row.chars().count() > width => {
            let start = row.chars().take(width.saturating_sub(1));
            start.chain(['…']).collect()
        }
        _ => row,
    }
}

/// The sentence about the compilation that follows the set-up, where nothing was compiled before.
pub(super) const fn first_compilation(purpose: Purpose) -> Option<&'static str> {
    match purpose {
        Purpose::Serve | Purpose::Cluster => Some(
            "set-up: after that, the server is compiled for the first time: about 450 crates, which takes about 5 minutes \
             on two cores and 3 GB of disk",
        ),
        Purpose::Test => Some(
            "set-up: after that, the server and every test are compiled for the first time: about 550 crates, which takes \
             about 10 minutes on two cores and 10 GB of disk. Then clippy checks them and every test runs, which takes \
             about an hour; `cargo xtask test <name>` runs only some",
        ),
        Purpose::Dist | Purpose::Tidy | Purpose::Fuzz | Purpose::Bench => None,
    }
}

/// The time of one step.
fn seconds(step: &Step) -> Duration {
    Duration::from_secs(step.seconds.into())
}

/// The time that steps take one after the other.
pub(super) fn one_by_one(steps: &[&Step]) -> Duration {
    steps.iter().copied().map(seconds).sum()
}

/// The time that steps take when their queues are worked off side by side. Two cores are shared by
/// three queues, so half of what the shorter ones take is added to the longest one.
fn expected(missing: &[&Step]) -> Duration {
    let queues = Queue::ALL.map(|queue| {
        missing
            .iter()
            .copied()
            .filter(|step| step.fix.queue() == queue)
            .map(seconds)
            .sum::<Duration>()
    });
    let longest = queues.iter().max().copied().unwrap_or_default();
    longest + (queues.iter().sum::<Duration>() - longest) / 2
}

/// Such as `12 MB` or `1.2 GB`.
fn size(megabytes: u32) -> String {
    if megabytes < 1000 {
        format!("{megabytes} MB")
    } else {
        format!("{:.1} GB", f64::from(megabytes) / 1000.0)
    }
}

/// Such as `8 s`, `1 min 30 s` or `3 min`: from a minute on it is rounded to half a minute.
pub(super) fn approximately(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 60 {
        return format!("{} s", seconds.max(1));
    }
    let halves = (seconds + 15) / 30;
    match (halves / 2, halves % 2) {
        (minutes, 0) => format!("{minutes} min"),
        (minutes, _) => format!("{minutes} min 30 s"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::steps::STEPS;
    use super::*;

    fn steps(names: &[&str]) -> Vec<&'static Step> {
        let steps = STEPS.iter().filter(|step| names.contains(&step.name));
        steps.collect()
    }

    #[test]
    fn the_first_line_has_the_sums_and_every_step_has_a_line() {
        let missing = steps(&["Node.js", "npm packages of the loader"]);
        let text = announcement(&missing, Purpose::Serve, None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        let megabytes: u32 = missing.iter().map(|step| step.megabytes).sum();
        assert!(
            lines[0].contains("installing 2 things that are missing"),
            "{text}"
        );
        assert!(lines[0].contains(&format!("about {megabytes} MB")));
        for (step, line) in missing.iter().zip(&lines[1..]) {
            assert!(line.contains(step.name) && line.contains(step.why));
            assert!(line.contains(&format!(" {} MB ", step.megabytes)), "{line}");
            assert!(line.contains(&format!(" {} s ", step.seconds)), "{line}");
            assert!(line.contains("  optional: "), "{line}");
        }
        let needed = announcement(&missing, Purpose::Test, None);
        assert!(!needed.contains("optional"), "{needed}");
    }

    #[test]
    fn a_row_is_cut_where_it_would_wrap() {
        let cut = |width| cut("12345".into(), width);
        assert_eq!(cut(Some(4)), "123…");
        assert_eq!(cut(Some(5)), "12345");
        assert_eq!(cut(None), "12345");
    }

    #[test]
    fn serving_and_testing_announce_what_is_compiled() {
        for purpose in [Purpose::Serve, Purpose::Cluster, Purpose::Test] {
            let line = first_compilation(purpose).unwrap();
            assert!(line.contains("minutes") && line.contains("GB"), "{line}");
        }
        assert_eq!(first_compilation(Purpose::Tidy), None);
    }

    #[test]
    fn one_missing_thing_is_no_plural() {
        let text = announcement(&steps(&["strace"]), Purpose::Test, None);
        assert!(
            text.starts_with("set-up: installing one thing that is missing on this"),
            "{text}"
        );
    }

    #[test]
    fn queues_side_by_side_take_less_than_their_sum() {
        let one = steps(&["Go", "Java"]);
        assert_eq!(expected(&one), one_by_one(&one), "one queue");
        let two = steps(&["Go", "s3s-fs"]);
        assert!(expected(&two) < one_by_one(&two));
        assert!(expected(&two) > one_by_one(&two) / 2);
    }

    #[test]
    fn sizes_and_times_are_for_people() {
        assert_eq!(size(999), "999 MB");
        assert_eq!(size(1234), "1.2 GB");
        for (seconds, text) in [
            (0, "1 s"),
            (59, "59 s"),
            (60, "1 min"),
            (80, "1 min 30 s"),
            (170, "3 min"),
        ] {
            assert_eq!(approximately(Duration::from_secs(seconds)), text);
        }
    }
}

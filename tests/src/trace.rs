//! Reads what `strace -f -y -xx` wrote, in the order in which it happened.

/// A system call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// The path of its first argument, a file descriptor.
    pub path: String,
    /// Every byte that it was given.
    pub data: Vec<u8>,
    /// Place in the trace where it began.
    pub began: usize,
    /// Place in the trace where it had ended; none if it was cut off.
    pub ended: Option<usize>,
    /// Whether it answered success.
    pub succeeded: bool,
}

/// Every call of a trace.
#[must_use]
pub fn calls(trace: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    // Calls that another thread's line has interrupted, by thread.
    let mut open: Vec<(&str, usize)> = Vec::new();
    for (place, line) in trace.lines().enumerate() {
        let Some((thread, rest)) = line.split_once(' ') else {
            continue;
        };
        let rest = rest.trim_start();
        if let Some(rest) = rest.strip_prefix("<... ") {
            if let Some(at) = open.iter().position(|(waiting, _)| *waiting == thread) {
                let (_, call) = open.swap_remove(at);
                calls[call].ended = Some(place);
                calls[call].succeeded = succeeded(rest);
            }
            continue;
        }
        let Some((name, arguments)) = rest.split_once('(') else {
            continue;
        };
        if !name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            continue;
        }
        let unfinished = arguments.ends_with("<unfinished ...>");
        if unfinished {
            open.push((thread, calls.len()));
        }
        calls.push(Call {
            name: name.to_owned(),
            path: path(arguments),
            data: data(arguments),
            began: place,
            ended: (!unfinished).then_some(place),
            succeeded: !unfinished && succeeded(arguments),
        });
    }
    calls
}

/// Whether the text after the last `=` is not an error.
fn succeeded(text: &str) -> bool {
    text.rsplit_once("= ")
        .is_some_and(|(_, answer)| !answer.starts_with('-') && !answer.starts_with('?'))
}

/// The path in `5<\x2f\x74…>, …`.
fn path(arguments: &str) -> String {
    let path = arguments
        .split_once('<')
        .and_then(|(_, rest)| rest.split_once('>'));
    String::from_utf8_lossy(&bytes(path.map_or("", |(path, _)| path))).into_owned()
}

/// Every quoted string, one after the other.
fn data(arguments: &str) -> Vec<u8> {
    arguments
        .split('"')
        .skip(1)
        .step_by(2)
        .flat_map(bytes)
        .collect()
}

/// The bytes of `\x2f\x74…`.
fn bytes(hex: &str) -> Vec<u8> {
    hex.split("\\x")
        .skip(1)
        .filter_map(|byte| u8::from_str_radix(byte, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = r#"7 pwrite64(3<\x2f\x61>, "\x68\x69", 2, 0) = 2
7 fdatasync(3<\x2f\x61> <unfinished ...>
8 writev(5<\x73>, [{iov_base="\x6f", iov_len=1}, {iov_base="\x6b", iov_len=1}], 2) = 2
7 <... fdatasync resumed>) = 0
8 fdatasync(3<\x2f\x61>) = -1 EIO (Input/output error)
8 +++ exited with 0 +++
9 fsync(3<\x2f\x61> <unfinished ...>
"#;

    #[test]
    fn calls_are_read_with_their_beginning_and_end() {
        let calls = calls(TRACE);
        let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(
            names,
            ["pwrite64", "fdatasync", "writev", "fdatasync", "fsync"]
        );
        assert_eq!(
            (calls[0].path.as_str(), calls[0].data.as_slice()),
            ("/a", b"hi".as_slice())
        );
        assert_eq!(
            (calls[1].began, calls[1].ended, calls[1].succeeded),
            (1, Some(3), true)
        );
        assert_eq!(
            (calls[2].data.as_slice(), calls[2].began),
            (b"ok".as_slice(), 2)
        );
        assert!(!calls[3].succeeded);
        assert_eq!((calls[4].ended, calls[4].succeeded), (None, false));
    }
}

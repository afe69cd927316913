//! Parses the output of `strace -f -y -xx`, in the order of the calls.

/// A system call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// The path of its first argument, a file descriptor.
    pub path: String,
    /// All bytes of its arguments.
    pub data: Vec<u8>,
    /// The position in the trace where it began.
    pub began: usize,
    /// The position in the trace where it had ended; `None` if it was cut off.
    pub ended: Option<usize>,
    /// Whether it succeeded.
    pub succeeded: bool,
}

/// Returns every call of a trace.
#[must_use]
pub fn calls(trace: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    // Calls that were interrupted by another thread's line, by thread.
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

/// Returns the path in `5<\x2f\x74…>, …`.
fn path(arguments: &str) -> String {
    let path = arguments
        .split_once('<')
        .and_then(|(_, rest)| rest.split_once('>'));
    String::from_utf8_lossy(&bytes(path.map_or("", |(path, _)| path))).into_owned()
}

/// Returns the concatenation of all quoted strings.
fn data(arguments: &str) -> Vec<u8> {
    arguments
        .split('"')
        .skip(1)
        .step_by(2)
        .flat_map(bytes)
        .collect()
}

/// Returns the bytes of `\x2f\x74…`.
fn bytes(hex: &str) -> Vec<u8> {
    hex.split("\\x")
        .skip(1)
        .filter_map(|byte| u8::from_str_radix(byte, 16).ok())
        .collect()
}

/// What is wrong with the order of write, sync and response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disorder {
    /// No response contains the text.
    NeverTold,
    /// No write to the database's log contains the row.
    NeverWritten,
    /// The log was not synced to the disk after the row was written to it.
    NeverForced,
    /// The response began before the log was on the disk.
    ToldTooEarly,
}

/// Checks that `row` was written to the write-ahead log, that a call which began after that write
/// synced the log to the disk, and that the HTTP response that contains `told` began only when that
/// call had ended successfully.
///
/// # Errors
/// What is out of order.
pub fn durable_before_told(calls: &[Call], row: &[u8], told: &[u8]) -> Result<(), Disorder> {
    let has = |call: &Call, part: &[u8]| call.data.windows(part.len()).any(|found| found == part);
    let answer = calls
        .iter()
        .find(|call| call.data.starts_with(b"HTTP/") && has(call, told))
        .ok_or(Disorder::NeverTold)?;
    let written = calls
        .iter()
        .find(|call| call.path.ends_with("-wal") && has(call, row))
        .ok_or(Disorder::NeverWritten)?;
    let forces = |call: &&Call| {
        (call.name == "fdatasync" || call.name == "fsync")
            && call.path == written.path
            && call.succeeded
            && written.ended.is_some_and(|ended| call.began > ended)
    };
    let forced = calls.iter().find(forces).and_then(|call| call.ended);
    match forced {
        None => Err(Disorder::NeverForced),
        Some(ended) if ended < answer.began => Ok(()),
        Some(_) => Err(Disorder::ToldTooEarly),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, path: &str, data: &str, began: usize, ended: usize) -> Call {
        let (name, path, data) = (name.to_owned(), path.to_owned(), data.as_bytes().to_vec());
        Call {
            name,
            path,
            data,
            began,
            ended: Some(ended),
            succeeded: true,
        }
    }

    /// Returns the order of a trace in which the log is synced from `began` to `ended` and the
    /// response begins at `told`.
    fn order(began: usize, ended: usize, told: usize) -> Result<(), Disorder> {
        let calls = [
            call("pwrite64", "/d/platform.db-wal", "..row..", 1, 2),
            call("fdatasync", "/d/platform.db-wal", "", began, ended),
            call("fdatasync", "/d/other", "", 3, 3),
            call("writev", "socket", "HTTP/1.1 200 OK told", told, told),
        ];
        durable_before_told(&calls, b"row", b"told")
    }

    #[test]
    fn only_an_answer_after_the_log_was_forced_is_in_order() {
        assert_eq!(order(3, 4, 5), Ok(()));
        assert_eq!(order(3, 6, 5), Err(Disorder::ToldTooEarly));
        assert_eq!(order(6, 7, 5), Err(Disorder::ToldTooEarly));
        assert_eq!(
            order(1, 4, 5),
            Err(Disorder::NeverForced),
            "it began before the row was written"
        );
        assert_eq!(
            durable_before_told(&[], b"row", b"told"),
            Err(Disorder::NeverTold)
        );
        let told = call("write", "socket", "HTTP/1.1 200 OK told", 1, 1);
        assert_eq!(
            durable_before_told(&[told], b"row", b"told"),
            Err(Disorder::NeverWritten)
        );
        let mut failed = call("fdatasync", "/d/platform.db-wal", "", 3, 3);
        failed.succeeded = false;
        let written = call("pwrite64", "/d/platform.db-wal", "row", 1, 1);
        let told = call("write", "socket", "HTTP/1.1 200 OK told", 5, 5);
        let order = durable_before_told(&[written, failed, told], b"row", b"told");
        assert_eq!(
            order,
            Err(Disorder::NeverForced),
            "a failed call forces nothing"
        );
    }

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

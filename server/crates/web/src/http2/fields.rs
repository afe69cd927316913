//! Counts the fields of a head while it arrives, without decoding it (RFC 7541 §6).
//!
//! A field of one byte can stand for one of the static table, which takes a hundred bytes when it is
//! decoded: a head of 30 kB would become one of 3 MB. `h2` limits the sum of names and values alone.

/// The maximum number of fields: the cookies of all sites under one domain, each in a field of its own, and
/// as many others as a head may have.
pub(super) const MAX_FIELDS: usize = 1_024;

/// Counts the fields of one head.
#[derive(Debug, Default)]
pub(crate) struct FieldCounter {
    count: usize,
    state: State,
}

/// What comes after a name or a value.
#[derive(Clone, Copy, Debug)]
enum Next {
    Field,
    Value,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    /// The first byte of a field.
    #[default]
    Field,
    /// The rest of a number that begins a field; a value comes after it, or the next field.
    Index(Next),
    /// The first byte of the length of a name or a value.
    Length(Next),
    /// The rest of this length.
    LengthRest {
        length: usize,
        shift: u32,
        next: Next,
    },
    /// The bytes of a name or a value that are still to come.
    Text { left: usize, next: Next },
}

impl FieldCounter {
    /// Returns the number of fields that have begun.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Reads the next bytes of the head.
    pub(super) fn read(&mut self, mut bytes: &[u8]) {
        while let Some((first, rest)) = bytes.split_first() {
            bytes = rest;
            self.state = match self.state {
                State::Field => {
                    self.count += 1;
                    field(*first)
                }
                State::Index(next) if first & 0x80 == 0 => after(next),
                State::Index(next) => State::Index(next),
                State::Length(next) => match usize::from(first & 0x7f) {
                    0x7f => State::LengthRest {
                        length: 0x7f,
                        shift: 0,
                        next,
                    },
                    left => text(left, next),
                },
                State::LengthRest {
                    length,
                    shift,
                    next,
                } => {
                    let more = usize::from(first & 0x7f).checked_shl(shift);
                    let length = length.saturating_add(more.unwrap_or(usize::MAX));
                    if first & 0x80 == 0 {
                        text(length, next)
                    } else {
                        State::LengthRest {
                            length,
                            shift: shift.saturating_add(7),
                            next,
                        }
                    }
                }
                State::Text { left, next } => {
                    // The first byte is one of them.
                    let passed = bytes.len().min(left - 1);
                    bytes = bytes.get(passed..).unwrap_or_default();
                    text(left - 1 - passed, next)
                }
            };
        }
    }
}

/// What comes after the first byte of a field.
const fn field(first: u8) -> State {
    // The bits of the number, and what comes after it: an indexed field, and a change of the table's size,
    // are complete; others have a value, and a name before it if the number is 0.
    let (bits, is_complete) = if first & 0x80 != 0 {
        (0x7f, true)
    } else if first & 0x40 != 0 {
        (0x3f, false)
    } else if first & 0x20 != 0 {
        (0x1f, true)
    } else {
        (0x0f, false)
    };
    let number = first & bits;
    if number == bits {
        State::Index(if is_complete {
            Next::Field
        } else {
            Next::Value
        })
    } else if is_complete {
        State::Field
    } else if number == 0 {
        State::Length(Next::Value)
    } else {
        State::Length(Next::Field)
    }
}

/// What comes after a number of several bytes.
const fn after(next: Next) -> State {
    match next {
        Next::Field => State::Field,
        Next::Value => State::Length(Next::Field),
    }
}

/// A name or a value with this many bytes to come.
const fn text(left: usize, next: Next) -> State {
    match (left, next) {
        (0, Next::Field) => State::Field,
        (0, Next::Value) => State::Length(Next::Field),
        (left, next) => State::Text { left, next },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields in each form, with their number: RFC 7541 Appendix C, and numbers of several bytes.
    fn examples() -> Vec<(usize, Vec<u8>)> {
        let long = [&[0x00, 0x7f, 0x80, 0x01][..], &[b'n'; 255], &[0x01, b'v']].concat();
        vec![
            (1, b"\x40\x0acustom-key\x0dcustom-header".to_vec()),
            (1, b"\x04\x0c/sample/path".to_vec()),
            (1, b"\x10\x08password\x06secret".to_vec()),
            (1, vec![0x82]),
            (4, b"\x82\x86\x84\x41\x0fwww.example.com".to_vec()),
            (1, vec![0xff, 0x80, 0x01]),
            (1, vec![0x3f, 0xe1, 0x1f]),
            (1, vec![0x7f, 0x0a, 0x00]),
            (2, vec![0x0f, 0x0a, 0x00, 0x82]),
            (1, long),
        ]
    }

    #[test]
    fn fields_of_every_form_are_counted_however_they_arrive() {
        let all = examples();
        let expected: usize = all.iter().map(|(count, _)| count).sum();
        let bytes: Vec<u8> = all.into_iter().flat_map(|(_, bytes)| bytes).collect();
        for piece in [1, 2, 7, bytes.len()] {
            let mut counter = FieldCounter::default();
            for piece in bytes.chunks(piece) {
                counter.read(piece);
            }
            assert_eq!(counter.count(), expected, "in pieces of {piece}");
            assert!(matches!(counter.state, State::Field), "{counter:?}");
        }
        for (count, bytes) in examples() {
            let mut counter = FieldCounter::default();
            counter.read(&bytes);
            assert_eq!(counter.count(), count, "{bytes:?}");
        }
    }

    #[test]
    fn a_length_beyond_all_bounds_is_one_field() {
        let mut counter = FieldCounter::default();
        counter.read(&[0x00, 0x7f]);
        counter.read(&[0xff; 40]);
        counter.read(&[0x01]);
        counter.read(&[0x82; 100]);
        assert_eq!(counter.count(), 1);
    }
}

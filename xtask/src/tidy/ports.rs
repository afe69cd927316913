//! The rule for ports: no program is told a port that was free a moment ago.

use super::Finding;

/// No file takes a port from the system and closes the socket at once: another process may get the port before
/// the program listens there. `platform-test-ports` reserves one.
pub(super) fn by_luck(path: &str, text: &str) -> Vec<Finding> {
    if !path.ends_with(".rs") {
        return Vec::new();
    }
    let named = text.match_indices(concat!("fn free_", "port("));
    let closed = text
        .match_indices("bind(")
        .filter(|(at, _)| closes_at_once(&text[*at..]));
    let places = named.chain(closed).map(|(at, _)| Finding {
        path: path.into(),
        line: text[..at].matches('\n').count() + 1,
        sentence: "A port that was free a moment ago may be another program's now: take a \
                   `ReservedPort` of `platform-test-ports`, and keep it while the program runs."
            .into(),
    });
    places.collect()
}

/// Whether this text, which begins with a call of `bind`, asks for any port, and has the port when the socket is
/// closed: the socket is in no variable, or in one of a block that ends with the port.
fn closes_at_once(text: &str) -> bool {
    let has_port = |code: &str| code.contains(".local_addr()") && code.contains(".port()");
    let end = text.find([';', '}']).unwrap_or(text.len());
    let (statement, rest) = text.split_at(end);
    let is_any = statement.contains(":0\"") || statement.contains(", 0)");
    let last = rest.strip_prefix(';').and_then(|rest| {
        let block = rest.split('}').next()?;
        (!block.contains(['{', ';'])).then_some(block)
    });
    is_any && (has_port(statement) || last.is_some_and(has_port))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines that are found; `BIND` stands for what this file may not contain, either.
    fn lines(text: &str) -> Vec<usize> {
        let findings = by_luck("tests/a.rs", &text.replace("BIND", "bind"));
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_port_whose_socket_is_closed_at_once_is_found() {
        let expression =
            "\nlet port = Listener::BIND(\"127.0.0.1:0\")\n.unwrap().local_addr().unwrap().port();";
        assert_eq!(lines(expression), [2]);
        let block = "let port = {\n    let free = TcpListener::BIND((Ipv4Addr::LOCALHOST, 0)).unwrap();\n    \
             free.local_addr().unwrap().port()\n};\n";
        assert_eq!(lines(block), [2]);
        let named = concat!("//! A.\n\nasync fn free_", "port() -> u16 {\n");
        assert_eq!(lines(named), [3]);
        let elsewhere = expression.replace("BIND", "bind");
        assert!(by_luck("docs/a.md", &elsewhere).is_empty());
    }

    #[test]
    fn a_port_whose_socket_stays_open_is_fine() {
        for text in [
            "let socket = TcpListener::BIND(\"127.0.0.1:0\").unwrap();\n\
             let port = socket.local_addr().unwrap().port();\nserve(socket);\n}",
            "let port = TcpListener::BIND(\"127.0.0.1:80\").unwrap().local_addr().unwrap().port();",
            "let socket = TcpListener::BIND(\"127.0.0.1:0\").unwrap();\n\
             let server = Server { port: socket.local_addr().unwrap().port() };\nserve(socket);\n}",
            "let given = free_port_after(port);",
        ] {
            assert_eq!(lines(text), [0; 0], "{text}");
        }
    }
}

//! A name server on this machine for tests, whose records they write. It ends with the runtime that
//! started it.

#![expect(clippy::unwrap_used, reason = "everything here is for tests")]

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use hickory_resolver::proto::op::{Message, ResponseCode};
pub use hickory_resolver::proto::rr::RData;
pub use hickory_resolver::proto::rr::rdata::{A, AAAA};
use hickory_resolver::proto::rr::rdata::{CAA, CNAME, TXT};
use hickory_resolver::proto::rr::{Name, Record, RecordType};
use tokio::net::UdpSocket;

/// A running name server, without records at first.
pub struct TestDns {
    /// Where it answers, over UDP.
    pub address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
}

#[derive(Default)]
struct Zone {
    records: Vec<(String, RData)>,
    fails: bool,
    is_silent: bool,
    asked: usize,
}

impl fmt::Debug for TestDns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestDns")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Zone {
    /// Returns the answer, unless there is to be none.
    fn said(&mut self, asked: &Message) -> Option<Message> {
        self.asked += 1;
        (!self.is_silent).then(|| self.answer(asked))
    }

    fn answer(&self, asked: &Message) -> Message {
        let query = asked.queries.first().unwrap().clone();
        let name = query.name().to_lowercase().to_ascii();
        let name = name.trim_end_matches('.');
        let mut answer = Message::response(asked.metadata.id, asked.metadata.op_code);
        answer.metadata.recursion_desired = true;
        answer.metadata.recursion_available = true;
        if self.fails {
            answer.metadata.response_code = ResponseCode::ServFail;
        }
        for (owner, data) in &self.records {
            let fits = [query.query_type(), RecordType::CNAME].contains(&data.record_type());
            if owner == name && fits && !self.fails {
                answer.add_answer(Record::from_rdata(query.name().clone(), 60, data.clone()));
            }
        }
        answer.add_query(query);
        answer
    }
}

impl TestDns {
    /// Starts one on a port of its own.
    ///
    /// # Panics
    /// Panics if no port is free.
    pub async fn start() -> Self {
        Self::start_at("127.0.0.1:0").await
    }

    /// Starts one at this address, such as that of the machine's name server, on a machine of the test's own.
    ///
    /// # Panics
    /// Panics if nobody may listen there.
    pub async fn start_at(address: &str) -> Self {
        let socket = UdpSocket::bind(address).await.unwrap();
        let address = socket.local_addr().unwrap();
        let zone = Arc::new(Mutex::new(Zone::default()));
        let answers = Arc::clone(&zone);
        tokio::spawn(async move {
            let mut buffer = [0; 4_096];
            while let Ok((length, peer)) = socket.recv_from(&mut buffer).await {
                let asked = Message::from_vec(buffer.get(..length).unwrap()).unwrap();
                let answer = answers.lock().unwrap().said(&asked);
                if let Some(answer) = answer {
                    let answer = answer.to_vec().unwrap();
                    socket.send_to(&answer, peer).await.unwrap();
                }
            }
        });
        Self { address, zone }
    }

    /// Adds a record.
    ///
    /// # Panics
    /// Never in practice: no holder of the records panics.
    pub fn add(&self, name: &str, data: RData) {
        let mut zone = self.zone.lock().unwrap();
        zone.records.push((name.to_owned(), data));
    }

    /// Removes every record of a name.
    ///
    /// # Panics
    /// Never in practice: no holder of the records panics.
    pub fn remove(&self, name: &str) {
        let mut zone = self.zone.lock().unwrap();
        zone.records.retain(|(owner, _)| owner != name);
    }

    /// Answers every question with an error from now on, or no longer.
    ///
    /// # Panics
    /// Never in practice: no holder of the records panics.
    pub fn fail(&self, fails: bool) {
        self.zone.lock().unwrap().fails = fails;
    }

    /// Answers no question any more from now on, or answers again.
    ///
    /// # Panics
    /// Never in practice: no holder of the records panics.
    pub fn silence(&self, is_silent: bool) {
        self.zone.lock().unwrap().is_silent = is_silent;
    }

    /// Returns how many questions have arrived.
    ///
    /// # Panics
    /// Never in practice: no holder of the records panics.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.zone.lock().unwrap().asked
    }

    /// Adds a TXT record.
    pub fn text(&self, name: &str, value: &str) {
        self.add(name, RData::TXT(TXT::new(vec![value.to_owned()])));
    }

    /// Adds a CNAME record.
    ///
    /// # Panics
    /// Panics if `to` is no name.
    pub fn alias(&self, name: &str, to: &str) {
        let to = Name::from_ascii(format!("{to}.")).unwrap();
        self.add(name, RData::CNAME(CNAME(to)));
    }

    /// Adds a CAA record that lets only this authority issue certificates (RFC 8659 §4.2).
    ///
    /// # Panics
    /// Panics if `authority` is no name.
    pub fn allow(&self, name: &str, authority: &str) {
        let authority = Some(Name::from_ascii(authority).unwrap());
        self.add(
            name,
            RData::CAA(CAA::new_issue(false, authority, Vec::new())),
        );
    }
}

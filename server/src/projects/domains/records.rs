//! Reads the DNS records of a domain: always from the DNS servers, never from a cache, since their
//! owner may have changed them a moment ago.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use hickory_resolver::config::{NameServerConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::xfer::{DnsHandle as _, RetryDnsHandle};
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::{DnsRequestOptions, Query};
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::system_conf::read_system_conf;
use hickory_resolver::{NameServerPool, PoolContext, TlsConfig};

/// The time limit of one question to the DNS servers.
const ASK: Duration = Duration::from_secs(3);
/// How often a question is repeated that got no answer.
const REPEATS: usize = 1;
/// Records of one answer beyond this number are not read.
const RECORDS: usize = 100;

type Servers = RetryDnsHandle<NameServerPool<TokioRuntimeProvider>>;

/// Reads records.
#[derive(Clone, Debug)]
pub struct Records {
    /// The servers of the settings; none for the system's.
    servers: Vec<SocketAddr>,
}

/// Where a name leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// The names that it stands for, in lower case.
    pub aliases: Vec<String>,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

/// A CAA record: what a certificate authority may do (RFC 8659 §4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// `issue`, `issuewild` or another property, in lower case.
    pub tag: String,
    /// Its value, such as the name of an authority.
    pub value: String,
}

/// The servers gave no answer, or one that says nothing. The text is a part of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAnswer(String);

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<NetError> for NoAnswer {
    fn from(error: NetError) -> Self {
        Self(match error {
            NetError::Timeout => "there was no answer in time".to_owned(),
            NetError::Dns(DnsError::ResponseCode(code)) => {
                format!("the answer was \u{201c}{code}\u{201d}")
            }
            _ => "the question could not be asked".to_owned(),
        })
    }
}

impl Records {
    /// Asks these servers, or those of the system's configuration if there are none.
    #[must_use]
    pub const fn new(servers: Vec<SocketAddr>) -> Self {
        Self { servers }
    }

    /// Returns the values of the TXT records at a name.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn texts(&self, name: &str) -> Result<Vec<String>, NoAnswer> {
        let found = ask(&self.servers()?, name, RecordType::TXT).await?;
        let texts = found.into_iter().filter_map(|data| match data {
            // A long value is several strings (RFC 7208 §3.3).
            RData::TXT(text) => Some(String::from_utf8_lossy(&text.txt_data.concat()).into_owned()),
            _ => None,
        });
        Ok(texts.collect())
    }

    /// Returns where a name leads to.
    ///
    /// # Errors
    /// [`NoAnswer`], if nothing is known of it.
    pub async fn way(&self, name: &str) -> Result<Way, NoAnswer> {
        let servers = self.servers()?;
        let asked = tokio::join!(
            ask(&servers, name, RecordType::CNAME),
            ask(&servers, name, RecordType::A),
            ask(&servers, name, RecordType::AAAA),
        );
        let mut way = Way::default();
        let mut failed = None;
        for found in [asked.0, asked.1, asked.2] {
            match found {
                Ok(found) => found.iter().for_each(|data| way.add(data)),
                Err(error) => failed = Some(error),
            }
        }
        // Such names never leave this machine (RFC 6761 §6.3).
        if way == Way::default() && name.ends_with(".localhost") {
            way.addresses = vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        }
        match failed {
            Some(error) if way == Way::default() => Err(error),
            _ => Ok(way),
        }
    }

    /// Returns the CAA records that hold for a name: its own, or those of the nearest name above it that has
    /// some (RFC 8659 §3). Without any, every authority may issue certificates.
    ///
    /// # Errors
    /// [`NoAnswer`]
    pub async fn permissions(&self, name: &str) -> Result<Vec<Permission>, NoAnswer> {
        let servers = self.servers()?;
        let mut next = Some(name);
        while let Some(name) = next {
            let found = ask(&servers, name, RecordType::CAA).await?;
            let found = found.into_iter().filter_map(|data| match data {
                RData::CAA(record) => Some(Permission {
                    tag: record.tag.to_ascii_lowercase(),
                    value: String::from_utf8_lossy(&record.value).into_owned(),
                }),
                _ => None,
            });
            let found: Vec<Permission> = found.collect();
            if !found.is_empty() {
                return Ok(found);
            }
            next = name.split_once('.').map(|(_, above)| above);
        }
        Ok(Vec::new())
    }

    /// Returns the servers, with new connections.
    fn servers(&self) -> Result<Servers, NoAnswer> {
        let (servers, mut options) = if self.servers.is_empty() {
            let (config, options) = read_system_conf()?;
            (config.name_servers().to_vec(), options)
        } else {
            let servers = self.servers.iter().map(server).collect();
            (servers, ResolverOpts::default())
        };
        options.timeout = ASK;
        let context = Arc::new(PoolContext::new(options, TlsConfig::new()?));
        let provider = TokioRuntimeProvider::default();
        let pool = NameServerPool::from_config(servers, context, provider);
        Ok(RetryDnsHandle::new(pool, REPEATS))
    }
}

fn server(address: &SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    for connection in &mut server.connections {
        connection.port = address.port();
    }
    server
}

impl Way {
    fn add(&mut self, data: &RData) {
        match data {
            RData::CNAME(name) => {
                let name = name.0.to_lowercase().to_ascii();
                let name = name.strip_suffix('.').unwrap_or(&name).to_owned();
                if !self.aliases.contains(&name) {
                    self.aliases.push(name);
                }
            }
            RData::A(address) => self.addresses.push(address.0.into()),
            RData::AAAA(address) => self.addresses.push(address.0.into()),
            _ => {}
        }
    }
}

/// Returns the records of the answer to a question; none if there are none.
async fn ask(servers: &Servers, name: &str, kind: RecordType) -> Result<Vec<RData>, NoAnswer> {
    let name = Name::from_ascii(format!("{name}.")).map_err(NetError::from)?;
    let query = Query::query(name, kind);
    let mut answers = servers.lookup(query, DnsRequestOptions::default());
    match answers.next().await {
        Some(Ok(answer)) => {
            let records = answer.answers.iter().take(RECORDS);
            Ok(records.map(|record| record.data.clone()).collect())
        }
        Some(Err(error)) if error.is_no_records_found() => Ok(Vec::new()),
        Some(Err(error)) => Err(error.into()),
        None => Err(NetError::NoConnections.into()),
    }
}

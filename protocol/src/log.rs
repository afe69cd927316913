//! Frontend log records: what happened in a player's page.

use serde::{Deserialize, Serialize};

/// The body of `POST /__platform/logs`. `M` is the type for any JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogBatch<M> {
    /// The page's id, as in its heartbeats.
    pub page: String,
    /// At most [`LOG_RECORDS`](crate::limits::LOG_RECORDS), in the order in which they were made.
    pub records: Vec<LogRecord<M>>,
}

/// One frontend log record. `M` is the type for any JSON. In an optional member, `null` means that
/// it was not given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogRecord<M> {
    /// When it was made, by the page's clock: milliseconds since the epoch.
    pub time: f64,
    /// How severe it is.
    pub level: LogLevel,
    /// What made it.
    pub source: LogSource,
    /// The text, at most [`LOG_MESSAGE_BYTES`](crate::limits::LOG_MESSAGE_BYTES) long.
    pub message: String,
    /// The stack of an error, at most [`LOG_STACK_BYTES`](crate::limits::LOG_STACK_BYTES) long.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// The file or resource, at most [`LOG_URL_BYTES`](crate::limits::LOG_URL_BYTES) long.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Line in that file, from 1.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column in that line, from 1.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// What the game added.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub metadata: Option<M>,
    /// How many equal records this one stands for; 1 if it is not given.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
}

/// The default of an optional member, whatever its type.
const fn none<T>() -> Option<T> {
    None
}

/// How severe a record is, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// `console.debug`, `console.trace`
    Debug,
    /// `console.log`, `console.info`
    Info,
    /// `console.warn`
    Warn,
    /// `console.error`, a failed `console.assert`, and every uncaught error
    Error,
}

impl LogLevel {
    /// Every level, in ascending order.
    pub const ALL: [LogLevel; 4] = [
        LogLevel::Debug,
        LogLevel::Info,
        LogLevel::Warn,
        LogLevel::Error,
    ];

    /// The level as it stands in JSON and in settings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        }
    }
}

/// What made a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogSource {
    /// A method of `console`.
    Console,
    /// An uncaught error.
    Error,
    /// A rejected promise that was not handled.
    UnhandledRejection,
    /// A script, style sheet, picture or the like that did not load.
    Resource,
    /// `platform.reportError`
    Report,
}

impl LogSource {
    /// Every source.
    pub const ALL: [LogSource; 5] = [
        LogSource::Console,
        LogSource::Error,
        LogSource::UnhandledRejection,
        LogSource::Resource,
        LogSource::Report,
    ];

    /// The source as it stands in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            LogSource::Console => "console",
            LogSource::Error => "error",
            LogSource::UnhandledRejection => "unhandledrejection",
            LogSource::Resource => "resource",
            LogSource::Report => "report",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn levels_and_sources_are_spelled_alike_everywhere() {
        for level in LogLevel::ALL {
            assert_eq!(serde_json::to_value(level).unwrap(), level.as_str());
        }
        for source in LogSource::ALL {
            assert_eq!(serde_json::to_value(source).unwrap(), source.as_str());
        }
    }

    #[test]
    fn null_and_absence_are_the_same_and_unknown_members_are_passed_over() {
        let short = json!({"time": 1.5, "level": "warn", "source": "report", "message": "m"});
        let mut long = short.clone();
        for member in ["stack", "url", "line", "column", "metadata", "count"] {
            long[member] = Value::Null;
        }
        long["later"] = json!({"a": 1});
        let read = |value: Value| serde_json::from_value::<LogRecord<Value>>(value).unwrap();
        assert_eq!(read(long), read(short.clone()));
        assert_eq!(serde_json::to_value(read(short.clone())).unwrap(), short);
    }

    #[test]
    fn a_record_of_another_shape_is_refused() {
        let good = json!({"time": 1, "level": "warn", "source": "report", "message": "m"});
        for (member, bad) in [
            ("time", json!("1")),
            ("time", Value::Null),
            ("level", json!("trace")),
            ("level", json!("WARN")),
            ("source", json!("window")),
            ("message", json!(1)),
            ("stack", json!(["a"])),
            ("line", json!(-1)),
            ("line", json!(1.5)),
            ("count", json!("2")),
        ] {
            let mut record = good.clone();
            record[member] = bad;
            let read = serde_json::from_value::<LogRecord<Value>>(record.clone());
            assert!(read.is_err(), "{record}");
        }
        for member in ["time", "level", "source", "message"] {
            let mut record = good.clone();
            record.as_object_mut().unwrap().remove(member);
            assert!(
                serde_json::from_value::<LogRecord<Value>>(record).is_err(),
                "{member}"
            );
        }
    }
}

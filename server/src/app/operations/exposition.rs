//! `/metrics`: what the server has counted, and what it is like now, in the formats of Prometheus: text, and
//! protobuf, which alone has native histograms.

mod now;
mod process;

use std::fmt;
use std::sync::Arc;

use axum::http::{HeaderMap, header};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeMetric as _, MetricEncoder, NativeHistogram, NativeHistogramBuckets,
    NoLabelSet, prometheus_protobuf, prometheus_text,
};
use prometheus_client::registry::Registry;

use self::now::Now;
pub(super) use self::now::Slow;
use super::Readiness;
use crate::app::state::AppState;
use crate::domain::histogram::{Counted, Native, SCHEMA};
use crate::platform::metrics::names::{self, Metric};
use crate::platform::metrics::{Figures, Labels};
use crate::store::figures::DatabaseFigures;

/// A format of Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Text, which everybody reads.
    Text,
    /// Protobuf, which Prometheus asks for where native histograms are switched on.
    Protobuf,
}

impl Format {
    /// Returns the format for a request with these headers.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let accept = headers.get_all(header::ACCEPT).iter();
        let mut ranges = accept
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','));
        let is_protobuf = |range: &str| {
            let mut parts = range.split(';').map(str::trim);
            parts.next() == Some("application/vnd.google.protobuf")
                && parts
                    .clone()
                    .any(|part| part == "proto=io.prometheus.client.MetricFamily")
                && parts.any(|part| part == "encoding=delimited")
        };
        if ranges.any(is_protobuf) {
            Self::Protobuf
        } else {
            Self::Text
        }
    }

    /// Returns the media type.
    pub(super) const fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }
}

/// Returns the whole exposition, or `None` if nothing is counted.
pub(super) async fn expose(
    state: &AppState,
    readiness: &Readiness,
    slow: &Slow,
    format: Format,
) -> Option<Vec<u8>> {
    let figures = state.platform.metrics.figures()?;
    let exposition = Exposition {
        now: Now::look(state, readiness, slow, &figures).await,
        databases: state.platform.store.figures(),
        figures,
    };
    let mut registry = Registry::default();
    registry.register_collector(Box::new(exposition));
    // Writing into memory cannot fail.
    Some(match format {
        Format::Text => {
            let mut text = String::new();
            let _ = prometheus_text::encode(&mut text, &registry);
            text.into_bytes()
        }
        Format::Protobuf => prometheus_protobuf::encode_to_vec(&registry).unwrap_or_default(),
    })
}

/// Everything that is exported at one moment.
#[derive(Debug)]
struct Exposition {
    figures: Arc<Figures>,
    databases: Vec<DatabaseFigures>,
    now: Now,
}

impl Collector for Exposition {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut write = Writer(encoder);
        self.requests(&mut write)?;
        let figures = &*self.figures;
        for (metric, counters) in [
            (&names::LIMIT_REFUSALS, &figures.limit_refusals),
            (&names::TOKENS, &figures.tokens),
            (&names::GUESTS, &figures.guests),
            (&names::SIGN_INS, &figures.sign_ins),
            (&names::DEPLOYS, &figures.deploys),
            (&names::LOG_RECORDS, &figures.log_records),
            (&names::CERTIFICATE_ORDERS, &figures.certificate_orders),
            (&names::JOB_RUNS, &figures.job_runs),
        ] {
            counters.encode(write.begin(metric)?)?;
        }
        figures
            .job_seconds
            .encode(write.begin(&names::JOB_SECONDS)?)?;
        figures.job_done.encode(write.begin(&names::JOB_DONE)?)?;
        self.databases(&mut write)?;
        for (metric, samples) in self.now.samples() {
            write.numbers(metric, samples)?;
        }
        Ok(())
    }
}

impl Exposition {
    fn requests(&self, write: &mut Writer<'_>) -> fmt::Result {
        let routes: Vec<_> = self.figures.requests.read().collect();
        let mut counts = Vec::new();
        let mut durations = Vec::new();
        for route in routes {
            let labels = vec![
                ("host", route.host.name().to_owned()),
                ("route", route.pattern.to_owned()),
            ];
            for (status, count) in route.statuses {
                let mut labels = labels.clone();
                labels.push(("status", status));
                counts.push((labels, count));
            }
            durations.push((labels, route.seconds));
        }
        write.counts(&names::REQUESTS, &counts)?;
        write.durations(&names::REQUEST_SECONDS, &durations)
    }

    fn databases(&self, write: &mut Writer<'_>) -> fmt::Result {
        let named = |one: &DatabaseFigures| vec![("database", one.name.to_owned())];
        let all = || self.databases.iter();
        let writes: Vec<_> = all().map(|one| (named(one), one.writes.writes())).collect();
        write.counts(&names::WRITES, &writes)?;
        let failed: Vec<_> = all()
            .map(|one| (named(one), one.writes.failures()))
            .collect();
        write.counts(&names::COMMIT_FAILURES, &failed)?;
        let commits: Vec<_> = all()
            .map(|one| (named(one), one.writes.commits()))
            .collect();
        write.durations(&names::COMMIT_SECONDS, &commits)
    }
}

/// Native buckets as the protobuf format has them.
#[derive(Debug, Default, PartialEq)]
struct Sparse {
    /// Runs of buckets: how many empty ones are before it, for the first the index of its first bucket, and its
    /// length.
    spans: Vec<(i32, u32)>,
    /// The count of each bucket in these runs, less that of the one before.
    deltas: Vec<i64>,
}

impl Sparse {
    /// Returns the form of these buckets, which are in order.
    fn of(buckets: &[(i32, u64)]) -> Self {
        let mut sparse = Self::default();
        let (mut next, mut before) = (0, 0);
        for (index, count) in buckets {
            match sparse.spans.last_mut() {
                Some((_, length)) if *index == next => *length += 1,
                _ => sparse.spans.push((index - next, 1)),
            }
            next = index + 1;
            sparse.deltas.push(count.cast_signed() - before);
            before = count.cast_signed();
        }
        sparse
    }
}

/// Writes metrics of the table.
struct Writer<'a>(DescriptorEncoder<'a>);

impl Writer<'_> {
    /// Writes what a metric is. Its values follow.
    fn begin(&mut self, metric: &'static Metric) -> Result<MetricEncoder<'_>, fmt::Error> {
        let (name, kind) = (metric.encoded_name(), metric.encoded_kind());
        self.0.encode_descriptor(name, metric.help, None, kind)
    }

    fn counts(&mut self, metric: &'static Metric, samples: &[(Labels, u64)]) -> fmt::Result {
        let mut family = self.begin(metric)?;
        for (labels, count) in samples {
            let mut one = family.encode_family(labels)?;
            one.encode_counter::<NoLabelSet, _, u64>(count, None)?;
        }
        Ok(())
    }

    fn durations(&mut self, metric: &'static Metric, samples: &[(Labels, Counted)]) -> fmt::Result {
        let mut family = self.begin(metric)?;
        for (labels, counted) in samples {
            let mut one = family.encode_family(labels)?;
            let Counted {
                buckets,
                native,
                count,
                seconds,
            } = counted;
            let sparse = Sparse::of(&native.buckets);
            let native = NativeHistogram {
                schema: SCHEMA,
                zero_threshold: Native::THRESHOLD,
                zero_count: native.shortest,
                negative: NativeHistogramBuckets {
                    spans: &[],
                    deltas: &[],
                },
                positive: NativeHistogramBuckets {
                    spans: &sparse.spans,
                    deltas: &sparse.deltas,
                },
                created: None,
            };
            one.encode_histogram_with_native::<NoLabelSet>(
                *seconds, *count, buckets, None, native,
            )?;
        }
        Ok(())
    }

    fn numbers(&mut self, metric: &'static Metric, samples: &[(Labels, f64)]) -> fmt::Result {
        let mut family = self.begin(metric)?;
        for (labels, number) in samples {
            let mut one = family.encode_family(labels)?;
            match metric.kind {
                names::Kind::Counter => one.encode_counter::<NoLabelSet, _, u64>(number, None)?,
                names::Kind::Gauge | names::Kind::Histogram => one.encode_gauge(number)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protobuf_is_for_who_asks_for_it() {
        let format = |accept: &str| {
            let value = accept.parse().unwrap();
            Format::of(&HeaderMap::from_iter([(header::ACCEPT, value)]))
        };
        let native = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        let prometheus = format!("{native},text/plain;version=0.0.4;q=0.5,*/*;q=0.1");
        assert_eq!(format(&prometheus), Format::Protobuf);
        assert_eq!(format(Format::Protobuf.media_type()), Format::Protobuf);
        for text in [
            "*/*",
            "text/plain",
            "application/vnd.google.protobuf",
            "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text",
        ] {
            assert_eq!(format(text), Format::Text, "{text}");
        }
        assert_eq!(Format::of(&HeaderMap::new()), Format::Text);
    }

    #[test]
    fn runs_of_buckets_are_spans_and_counts_are_differences() {
        let sparse = Sparse::of(&[(-3, 2), (-2, 5), (0, 1), (4, 9)]);
        assert_eq!(sparse.spans, [(-3, 2), (1, 1), (3, 1)]);
        assert_eq!(sparse.deltas, [2, 3, -4, 8]);
        assert_eq!(Sparse::of(&[(0, 7)]).spans, [(0, 1)]);
        assert_eq!(Sparse::of(&[]), Sparse::default());
    }
}

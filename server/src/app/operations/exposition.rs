//! `/metrics`: what the server has counted, and what it is like now, in the text format of Prometheus.

mod now;
mod process;

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeMetric as _, MetricEncoder, NoLabelSet, prometheus_text,
};
use prometheus_client::registry::Registry;

use self::now::Now;
pub(super) use self::now::Slow;
use super::Readiness;
use crate::app::state::AppState;
use crate::domain::histogram::Counted;
use crate::platform::metrics::names::{self, Metric};
use crate::platform::metrics::{Figures, Labels};
use crate::store::figures::DatabaseFigures;

/// The media type of the text format.
pub(super) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns the whole exposition, or `None` if nothing is counted.
pub(super) async fn expose(state: &AppState, readiness: &Readiness, slow: &Slow) -> Option<String> {
    let figures = state.platform.metrics.figures()?;
    let exposition = Exposition {
        now: Now::look(state, readiness, slow, &figures).await,
        databases: state.platform.store.figures(),
        figures,
    };
    let mut registry = Registry::default();
    registry.register_collector(Box::new(exposition));
    let mut text = String::new();
    // Writing into a string cannot fail.
    let _ = prometheus_text::encode(&mut text, &registry);
    Some(text)
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
                count,
                seconds,
            } = counted;
            one.encode_histogram::<NoLabelSet>(*seconds, *count, buckets, None)?;
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

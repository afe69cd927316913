//! Charts of players over time: SVG drawn by plotters, from numbers and times only.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use time::OffsetDateTime;

use crate::clock::Millis;
use crate::domain::counting::{DAY, HOUR, MINUTE};

/// Pixels left of and below the drawing, for labels. The console's page also uses these values, to
/// show the data under the pointer.
const LEFT: u32 = 44;
const BOTTOM: u32 = 26;
const TOP: u32 = 10;
const RIGHT: u32 = 16;
/// The width that a label on the lower axis needs, in pixels.
const LABEL: u32 = 72;
/// The maximum number of horizontal lines.
const LINES: f64 = 5.0;
/// The font size, which plotters divides by 1.24.
const TEXT: u32 = 15;
/// Possible intervals between two labels; the first one with enough space is used.
const STEPS: [Millis; 14] = [
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
    14 * DAY,
    28 * DAY,
];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The appearance of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// Whether to use light lines, for a dark page.
    pub is_dark: bool,
    /// The offset from UTC of the times on the axis.
    pub utc_offset: Millis,
}

/// The data cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[error("a chart could not be drawn: {0}")]
pub struct ChartError(String);

/// The number of concurrent players in a step.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The start.
    pub start: Millis,
    /// The maximum.
    pub peak: f64,
    /// The mean.
    pub mean: f64,
}

struct Colours {
    ink: RGBColor,
    line: RGBColor,
    data: RGBColor,
}

impl Look {
    /// The colours of the pages' stylesheet.
    const fn colours(self) -> Colours {
        if self.is_dark {
            Colours {
                ink: RGBColor(0xa6, 0xb1, 0xbe),
                line: RGBColor(0x2c, 0x35, 0x41),
                data: RGBColor(0x83, 0xc4, 0xf2),
            }
        } else {
            Colours {
                ink: RGBColor(0x4f, 0x5b, 0x69),
                line: RGBColor(0xd8, 0xde, 0xe6),
                data: RGBColor(0x17, 0x59, 0x8c),
            }
        }
    }
}

/// An axis and the positions of its labels.
struct Axis {
    range: Range<f64>,
    labels: Vec<(f64, String)>,
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let part = (value - self.range.start) / (self.range.end - self.range.start);
        limit.0 + (part * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.labels.iter().map(|(value, _)| *value).collect()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        let label = self.labels.iter().find(|(at, _)| at == value);
        label.map(|(_, text)| text.clone()).unwrap_or_default()
    }
}

impl Axis {
    /// Returns an axis from zero to at least `most`, in round steps.
    fn of_players(most: f64) -> Self {
        let least = (most / LINES).max(0.4);
        let magnitude = 10_f64.powf(least.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * magnitude);
        let step = steps.into_iter().find(|step| *step >= least);
        let step = step.unwrap_or(magnitude * 10.0).max(1.0);
        let count = (most / step).ceil().max(2.0);
        let labels = (0..=count as u32).map(|number| {
            let value = f64::from(number) * step;
            (value, players(value))
        });
        Self {
            range: 0.0..count * step,
            labels: labels.collect(),
        }
    }

    /// Returns an axis of the times between these two, with labels in local time.
    fn of_time(from: Millis, to: Millis, look: Look) -> Self {
        let room = Millis::from((look.width / LABEL).max(2));
        let step = STEPS.into_iter().find(|step| (to - from) / step <= room);
        let step = step.unwrap_or(STEPS[STEPS.len() - 1]);
        let local = from + look.utc_offset;
        let first = local + (step - local.rem_euclid(step)) % step - look.utc_offset;
        let labels = (0..)
            .map(|number| first + number * step)
            .take_while(|time| *time <= to)
            .map(|time| (time as f64, moment(time + look.utc_offset)));
        Self {
            range: from as f64..to as f64,
            labels: labels.collect(),
        }
    }

    /// Returns an axis with positions for these bars, and as many labels as there is space for.
    fn of_bars(periods: &[(String, u64)], look: Look) -> Self {
        let room = (look.width / LABEL).max(2) as usize;
        let every = periods.len().div_ceil(room).max(1);
        let labels = periods.iter().enumerate().rev().step_by(every);
        let labels = labels.map(|(at, (period, _))| (at as f64 + 0.5, period_name(period)));
        Self {
            range: 0.0..periods.len() as f64,
            labels: labels.collect(),
        }
    }
}

/// Draws the number of concurrent players: the maximum as an area, the mean as a line.
///
/// # Errors
/// None in practice.
pub fn playing(points: &[Point], to: Millis, look: Look) -> Result<String, ChartError> {
    let from = points.first().map_or(to - 1, |point| point.start);
    let most = points.iter().map(|point| point.peak).fold(0.0, f64::max);
    let colours = look.colours();
    draw(look, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_top(TOP)
            .margin_right(RIGHT)
            .x_label_area_size(BOTTOM)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(Axis::of_time(from, to, look), Axis::of_players(most))?;
        mesh(&mut chart, &colours)?;
        let peaks = points.iter().map(|point| (point.start as f64, point.peak));
        chart.draw_series(
            AreaSeries::new(peaks, 0.0, colours.data.mix(0.2)).border_style(colours.data.mix(0.5)),
        )?;
        let means = points.iter().map(|point| (point.start as f64, point.mean));
        chart.draw_series(LineSeries::new(means, colours.data.stroke_width(2)))?;
        Ok(())
    })
}

/// Draws the number of unique players in each period, oldest first.
///
/// # Errors
/// None in practice.
pub fn distinct(periods: &[(String, u64)], look: Look) -> Result<String, ChartError> {
    let most = periods.iter().map(|(_, players)| *players).max();
    let most = most.unwrap_or(0) as f64;
    let colours = look.colours();
    draw(look, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_top(TOP)
            .margin_right(RIGHT)
            .x_label_area_size(BOTTOM)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(Axis::of_bars(periods, look), Axis::of_players(most))?;
        mesh(&mut chart, &colours)?;
        let bars = periods.iter().enumerate().map(|(at, (_, players))| {
            let (left, right) = (at as f64 + 0.12, at as f64 + 0.88);
            Rectangle::new(
                [(left, *players as f64), (right, 0.0)],
                colours.data.filled(),
            )
        });
        chart.draw_series(bars)?;
        Ok(())
    })
}

type Backend<'svg> = SVGBackend<'svg>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw(
    look: Look,
    draw: impl FnOnce(&DrawingArea<Backend<'_>, Shift>) -> Drawn,
) -> Result<String, ChartError> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (look.width, look.height)).into_drawing_area();
        let drawn = draw(&area).and_then(|()| Ok(area.present()?));
        drawn.map_err(|error| ChartError(error.to_string()))?;
    }
    Ok(svg)
}

fn mesh(
    chart: &mut ChartContext<'_, Backend<'_>, Cartesian2d<Axis, Axis>>,
    colours: &Colours,
) -> Drawn {
    let style = TextStyle::from(("system-ui, sans-serif", TEXT).into_font()).color(&colours.ink);
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(colours.line)
        .light_line_style(TRANSPARENT)
        .axis_style(colours.line)
        .label_style(style)
        .draw()?;
    Ok(())
}

/// Formats a number to fit next to the axis.
fn players(number: f64) -> String {
    if number >= 1e6 {
        format!("{} M", number / 1e6)
    } else if number >= 1e4 {
        format!("{} k", number / 1e3)
    } else {
        number.to_string()
    }
}

/// Returns the date at the start of a day, otherwise the time of day.
fn moment(local: Millis) -> String {
    let Ok(time) = OffsetDateTime::from_unix_timestamp(local.div_euclid(1_000)) else {
        return String::new();
    };
    if local.rem_euclid(DAY) == 0 {
        format!(
            "{} {}",
            time.day(),
            MONTHS[usize::from(u8::from(time.month())) - 1]
        )
    } else {
        format!("{:02}:{:02}", time.hour(), time.minute())
    }
}

/// Returns `21 Nov` for `2026-11-21`, `Nov` for `2026-11`.
fn period_name(period: &str) -> String {
    let mut parts = period.split('-').skip(1);
    let month = parts.next().and_then(|month| month.parse::<usize>().ok());
    let month = month.and_then(|month| MONTHS.get(month.wrapping_sub(1)));
    match (month, parts.next()) {
        (Some(month), Some(day)) => format!("{} {month}", day.trim_start_matches('0')),
        (Some(month), None) => (*month).to_owned(),
        (None, _) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-21T12:00:00Z
    const NOW: Millis = 1_795_262_400_000;

    fn look(width: u32) -> Look {
        Look {
            width,
            height: 200,
            is_dark: false,
            utc_offset: 0,
        }
    }

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.labels.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn players_have_round_steps_that_reach_over_the_most() {
        for (most, expected) in [
            (0.0, vec!["0", "1", "2"]),
            (1.0, vec!["0", "1", "2"]),
            (5.0, vec!["0", "1", "2", "3", "4", "5"]),
            (7.0, vec!["0", "2", "4", "6", "8"]),
            (1_000.0, vec!["0", "200", "400", "600", "800", "1000"]),
            (41_000.0, vec!["0", "10 k", "20 k", "30 k", "40 k", "50 k"]),
            (
                2_500_000.0,
                vec!["0", "500 k", "1 M", "1.5 M", "2 M", "2.5 M"],
            ),
        ] {
            assert_eq!(texts(&Axis::of_players(most)), expected, "{most}");
        }
    }

    #[test]
    fn times_are_those_of_the_clock_on_the_wall() {
        let hour = Axis::of_time(NOW - HOUR, NOW, look(500));
        assert_eq!(
            texts(&hour),
            [
                "11:00", "11:10", "11:20", "11:30", "11:40", "11:50", "12:00"
            ]
        );
        let day = Axis::of_time(NOW - DAY, NOW, look(400));
        assert_eq!(texts(&day), ["12:00", "18:00", "21 Nov", "06:00", "12:00"]);
        let east = Look {
            utc_offset: 5 * HOUR + 30 * MINUTE,
            ..look(400)
        };
        let day = Axis::of_time(NOW - DAY, NOW, east);
        assert_eq!(texts(&day), ["18:00", "21 Nov", "06:00", "12:00"]);
        let long = Axis::of_time(NOW - 90 * DAY, NOW, look(600));
        assert!((4..=8).contains(&long.labels.len()), "{:?}", long.labels);
    }

    #[test]
    fn bars_have_the_newest_period_below_them() {
        let days: Vec<_> = (1..=30)
            .map(|day| (format!("2026-11-{day:02}"), day))
            .collect();
        let axis = Axis::of_bars(&days, look(360));
        assert_eq!(
            texts(&axis),
            ["30 Nov", "24 Nov", "18 Nov", "12 Nov", "6 Nov"]
        );
        let months = [("2026-09".to_owned(), 1), ("2026-10".to_owned(), 2)];
        assert_eq!(texts(&Axis::of_bars(&months, look(360))), ["Oct", "Sep"]);
    }

    #[test]
    fn a_chart_is_svg_without_anything_that_acts() {
        let points: Vec<_> = (0..60)
            .map(|minute| Point {
                start: NOW + minute * MINUTE,
                peak: minute as f64,
                mean: minute as f64 / 2.0,
            })
            .collect();
        let days = [("2026-11-21".to_owned(), 5)];
        for svg in [
            playing(&points, NOW + HOUR, look(500)).unwrap(),
            playing(&[], NOW, look(500)).unwrap(),
            distinct(&days, look(280)).unwrap(),
            distinct(&[], look(280)).unwrap(),
        ] {
            assert!(svg.starts_with("<svg "), "{svg}");
            assert!(svg.trim_end().ends_with("</svg>"), "{svg}");
            for active in ["<script", "style=", "href", "NaN", "inf"] {
                assert!(!svg.contains(active), "{active}: {svg}");
            }
        }
    }
}

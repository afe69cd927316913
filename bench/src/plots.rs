//! Plots of growth: SVG drawn by plotters, both axes logarithmic, in the colours of the reader's
//! light or dark scheme.

use std::ops::Range;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::statistics::Estimate;

/// Pixels.
const SIZE: (u32, u32) = (860, 340);
const TEXT: u32 = 14;
const TITLE: u32 = 19;
const FONT: &str = "system-ui, sans-serif";

/// A colour in a light scheme, and its counterpart in a dark one.
struct Colour {
    light: RGBColor,
    dark: RGBColor,
}

const GROUND: Colour = Colour {
    light: RGBColor(0xff, 0xff, 0xff),
    dark: RGBColor(0x15, 0x1a, 0x21),
};
const INK: Colour = Colour {
    light: RGBColor(0x2b, 0x34, 0x3f),
    dark: RGBColor(0xd3, 0xda, 0xe3),
};
const GRID: Colour = Colour {
    light: RGBColor(0xd8, 0xde, 0xe6),
    dark: RGBColor(0x33, 0x3d, 0x49),
};
const OURS: Colour = Colour {
    light: RGBColor(0x17, 0x59, 0x8c),
    dark: RGBColor(0x83, 0xc4, 0xf2),
};
const BARE: Colour = Colour {
    light: RGBColor(0xa8, 0x4a, 0x12),
    dark: RGBColor(0xf0, 0xa8, 0x6e),
};

/// A figure with its title, and panels beside each other.
pub(super) struct Plot<'a> {
    pub(super) title: &'a str,
    /// A sentence on the machine.
    pub(super) note: &'a str,
    /// The names of the lines; the second may be empty.
    pub(super) ours: &'a str,
    pub(super) bare: &'a str,
    pub(super) panels: Vec<Panel<'a>>,
}

/// One pair of axes, each named with its unit.
pub(super) struct Panel<'a> {
    pub(super) x: &'a str,
    pub(super) y: &'a str,
    pub(super) ours: Line,
    pub(super) bare: Line,
}

/// Figures by size.
pub(super) struct Line(pub(super) Vec<(f64, Estimate)>);

type Area<'svg> = DrawingArea<SVGBackend<'svg>, Shift>;
type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

/// Draws it.
pub(super) fn draw(plot: &Plot<'_>) -> Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let drawn = draw_on(&area, plot).and_then(|()| Ok(area.present()?));
        drawn.map_err(|error| anyhow!("{} could not be drawn: {error}", plot.title))?;
    }
    Ok(with_schemes(&svg))
}

/// Adds the colours of the dark scheme. Rules of a stylesheet are stronger than the attributes.
fn with_schemes(svg: &str) -> String {
    let rules = [GROUND, INK, GRID, OURS, BARE].map(|Colour { light, dark }| {
        let [light, dark] =
            [light, dark].map(|RGBColor(r, g, b)| format!("#{r:02X}{g:02X}{b:02X}"));
        format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}")
    });
    let style = format!(
        "<style>@media (prefers-color-scheme: dark){{{}}}</style>\n",
        rules.concat()
    );
    match svg.find(">\n") {
        Some(end) => [&svg[..end + 2], &style, &svg[end + 2..]].concat(),
        None => svg.to_owned(),
    }
}

fn text(size: u32) -> TextStyle<'static> {
    TextStyle::from((FONT, size).into_font()).color(&INK.light)
}

fn draw_on(area: &Area<'_>, plot: &Plot<'_>) -> Drawn {
    area.fill(&GROUND.light)?;
    let (head, body) = area.split_vertically(66);
    head.draw_text(plot.title, &text(TITLE), (14, 10))?;
    head.draw_text(plot.note, &text(12), (14, 34))?;
    let mut left = 14;
    for (name, colour) in [(plot.ours, OURS.light), (plot.bare, BARE.light)] {
        if !name.is_empty() {
            head.draw(&Circle::new((left + 4, 58), 4, colour.filled()))?;
            head.draw_text(name, &text(TEXT), (left + 14, 51))?;
            left += 40 + name.chars().count() as i32 * 7;
        }
    }
    let places = body.split_evenly((1, plot.panels.len().max(1)));
    for (place, panel) in places.iter().zip(&plot.panels) {
        draw_panel(place, panel)?;
    }
    Ok(())
}

fn draw_panel(area: &Area<'_>, panel: &Panel<'_>) -> Drawn {
    let all: Vec<&(f64, Estimate)> = panel.ours.0.iter().chain(&panel.bare.0).collect();
    if all.is_empty() {
        let sentence = format!("{}, by {}: not measured", panel.y, panel.x);
        area.draw_text(&sentence, &text(TEXT), (60, 100))?;
        return Ok(());
    }
    let sizes = around(all.iter().map(|(size, _)| *size));
    let values = around(all.iter().flat_map(|(_, figure)| ends(figure)));
    let mut chart = ChartBuilder::on(area)
        .margin_top(10)
        .margin_right(26)
        .x_label_area_size(48)
        .y_label_area_size(66)
        .build_cartesian_2d(sizes.log_scale(), values.log_scale())?;
    chart
        .configure_mesh()
        .bold_line_style(GRID.light)
        .light_line_style(TRANSPARENT)
        .axis_style(GRID.light)
        .label_style(text(TEXT))
        .axis_desc_style(text(TEXT))
        .x_desc(panel.x)
        .y_desc(panel.y)
        .x_labels(6)
        .y_labels(6)
        .x_label_formatter(&|value| number(*value))
        .y_label_formatter(&|value| number(*value))
        .draw()?;
    for (line, colour) in [(&panel.bare, BARE.light), (&panel.ours, OURS.light)] {
        let points = line.0.iter().map(|(size, figure)| (*size, figure.value));
        chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?;
        chart.draw_series(points.map(|point| Circle::new(point, 3, colour.filled())))?;
        // The interval that holds the true value in 95 of 100 runs.
        chart.draw_series(line.0.iter().map(|(size, figure)| {
            let [low, high] = ends(figure);
            PathElement::new([(*size, low), (*size, high)], colour.stroke_width(1))
        }))?;
    }
    Ok(())
}

/// The finite ends of an interval.
fn ends(figure: &Estimate) -> [f64; 2] {
    [figure.low, figure.high].map(|end| if end.is_finite() { end } else { figure.value })
}

/// The powers of ten around these numbers.
fn around(numbers: impl Iterator<Item = f64>) -> Range<f64> {
    // A logarithmic axis has no zero.
    let (low, high) = numbers
        .map(|number| number.max(1e-3))
        .fold((f64::INFINITY, 1e-3_f64), |(low, high), number| {
            (low.min(number), high.max(number))
        });
    let low = 10_f64.powf(low.log10().floor());
    let high = 10_f64.powf(high.log10().ceil());
    low..high.max(low * 10.0)
}

/// A number short enough for an axis.
fn number(value: f64) -> String {
    if value >= 1e6 {
        format!("{} M", value / 1e6)
    } else if value >= 1e3 {
        format!("{} k", value / 1e3)
    } else {
        // What a logarithm and a power leave behind.
        ((value * 1e6).round() / 1e6).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: &[(f64, f64)]) -> String {
        let line = || {
            let points = points.iter();
            Line(points.map(|(x, y)| (*x, Estimate::certain(*y))).collect())
        };
        let panel = || Panel {
            x: "players",
            y: "look-up, µs",
            ours: line(),
            bare: line(),
        };
        let plot = Plot {
            title: "Look-ups",
            note: "2 processors.",
            ours: "the platform",
            bare: "SQLite alone",
            panels: vec![panel(), panel()],
        };
        draw(&plot).unwrap()
    }

    #[test]
    fn a_plot_names_its_axes_and_lines() {
        let svg = plot(&[(100.0, 3.0), (1_000.0, 4.0), (1e6, 50.0)]);
        for text in ["Look-ups", "players", "look-up, µs", "SQLite alone", "1 M"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
    }

    #[test]
    fn every_colour_has_one_for_dark_pages() {
        let svg = plot(&[(100.0, 3.0), (1_000.0, 4.0)]);
        let (style, drawn) = svg.split_once("</style>").unwrap();
        assert!(style.contains("prefers-color-scheme: dark"));
        for part in drawn.split("=\"#").skip(1) {
            let colour = &part[..6];
            assert!(style.contains(&format!("=\"#{colour}\"")), "{colour}");
        }
    }

    #[test]
    fn nothing_active_and_no_broken_number_is_drawn() {
        for svg in [plot(&[]), plot(&[(100.0, 0.0)]), plot(&[(10.0, 5.0)])] {
            for wrong in ["<script", "href", "NaN", "inf"] {
                assert!(!svg.contains(wrong), "{wrong}: {svg}");
            }
        }
    }

    #[test]
    fn an_axis_reaches_from_a_power_of_ten_to_another() {
        assert_eq!(around([3.0, 250.0].into_iter()), 1.0..1_000.0);
        assert_eq!(around([100.0].into_iter()), 100.0..1_000.0);
        let zero = around([0.0].into_iter());
        assert!(zero.start > 0.0 && zero.end > zero.start);
    }

    #[test]
    fn numbers_on_axes_are_short() {
        let all = [0.01, 1.0, 100.0, 10_000.0, 1e6].map(number);
        assert_eq!(all, ["0.01", "1", "100", "10 k", "1 M"]);
    }
}

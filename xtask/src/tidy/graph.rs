//! `cargo xtask tidy --graph`: prints and draws the imports between the server's slices.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use super::files;
use super::layers::{self, Graph, Import, LEVELS, level};
use crate::terminal;
use crate::workspace::Workspace;

/// A box's width and height, and the space between boxes and between rows.
const BOX: (usize, usize) = (120, 34);
const SPACE: (usize, usize) = (36, 34);
/// Room around the picture.
const MARGIN: usize = 24;

/// Reads the server's files, reports circles and imports against the arrow, and draws the picture
/// if one is wanted.
pub(super) fn run(workspace: &Workspace, picture: Option<&Path>) -> Result<()> {
    let mut imports = Vec::new();
    for path in files::list(&workspace.root)? {
        if let Some(text) = files::read(&workspace.root, &path)? {
            imports.extend(layers::imports(&path, &text));
        }
    }
    let graph = layers::graph(&imports);
    terminal::note(&summary(&graph, &imports));
    if let Some(picture) = picture {
        std::fs::write(picture, draw(&graph))
            .with_context(|| format!("{} cannot be written", picture.display()))?;
        terminal::note(&format!("tidy: {} shows them", picture.display()));
    }
    Ok(())
}

/// How many slices and imports there are, and which are wrong.
fn summary(graph: &Graph, imports: &[Import]) -> String {
    let mut slices: Vec<&String> = graph.keys().flat_map(|(from, to)| [from, to]).collect();
    slices.sort();
    slices.dedup();
    let mut text = format!(
        "tidy: {} slices, {} arrows between them",
        slices.len(),
        graph.len()
    );
    let circles = layers::circles(graph);
    if circles.is_empty() {
        text.push_str(", no circles");
    }
    for circle in &circles {
        let _ = write!(text, "\n  a circle: {}", circle.join(", "));
    }
    for import in imports
        .iter()
        .filter(|import| is_upward(&import.from, &import.to))
    {
        let Import {
            path,
            line,
            from,
            to,
        } = import;
        let _ = write!(text, "\n  {path}:{line}: upward from {from} to {to}");
    }
    text
}

/// Whether an import does not lead from a higher level to a lower one.
fn is_upward(from: &str, to: &str) -> bool {
    match (level(from), level(to)) {
        (Some(from), Some(to)) => from <= to,
        _ => true,
    }
}

/// The upper left corner of a slice's box.
fn place(slice: &str, width: usize) -> Option<(usize, usize)> {
    let level = level(slice)?;
    let row = LEVELS[level];
    let column = row.iter().position(|other| *other == slice)?;
    let wide = row.len() * BOX.0 + (row.len() - 1) * SPACE.0;
    let left = (width - wide) / 2 + column * (BOX.0 + SPACE.0);
    let top = MARGIN + (LEVELS.len() - 1 - level) * (BOX.1 + SPACE.1);
    Some((left, top))
}

/// The picture: one row per level, the highest first.
fn draw(graph: &Graph) -> String {
    let widest = LEVELS.iter().map(|level| level.len()).max().unwrap_or(1);
    // Long arrows go around the boxes in between.
    let width = 2 * MARGIN + widest * (BOX.0 + SPACE.0) + 400;
    let height = 2 * MARGIN + LEVELS.len() * (BOX.1 + SPACE.1) - SPACE.1;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for (number, ((from, to), files)) in graph.iter().enumerate() {
        svg.push_str(&arrow(from, to, *files, number, width).unwrap_or_default());
    }
    let circles = layers::circles(graph);
    for slice in LEVELS.concat() {
        let Some((left, top)) = place(slice, width) else {
            continue;
        };
        let turns = circles.iter().flatten().any(|other| other == slice);
        let edge = if turns { "#c22" } else { "#456" };
        let (middle, baseline) = (left + BOX.0 / 2, top + BOX.1 / 2 + 5);
        let _ = writeln!(
            svg,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"#eef3f8\" \
             stroke=\"{edge}\"/><text x=\"{middle}\" y=\"{baseline}\" \
             text-anchor=\"middle\">{slice}</text>",
            BOX.0, BOX.1
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// One arrow: straight down to the next level, else around the boxes in between.
fn arrow(from: &str, to: &str, files: usize, number: usize, width: usize) -> Option<String> {
    let ((x1, y1), (x2, y2)) = (place(from, width)?, place(to, width)?);
    let (x1, x2) = (x1 + BOX.0 / 2, x2 + BOX.0 / 2);
    let upward = is_upward(from, to);
    let (y1, y2) = if upward {
        (y1, y2 + BOX.1)
    } else {
        (y1 + BOX.1, y2)
    };
    let apart = level(from)?.abs_diff(level(to)?);
    let bend = apart.saturating_sub(1) * 22;
    // Alternately to the left and to the right.
    let middle = (x1 + x2) / 2;
    let bent = if number.is_multiple_of(2) {
        middle + bend
    } else {
        middle.saturating_sub(bend)
    };
    let (color, opacity) = if upward { ("#c22", 1.0) } else { ("#456", 0.4) };
    let third = y2.abs_diff(y1) / 3;
    let (c1, c2) = if y2 > y1 {
        (y1 + third, y2 - third)
    } else {
        (y1.saturating_sub(third), y2 + third)
    };
    Some(format!(
        "<path d=\"M{x1} {y1}C{bent} {c1} {bent} {c2} {x2} {y2}\" fill=\"none\" \
         stroke=\"{color}\" stroke-opacity=\"{opacity}\"><title>{from} to {to}, in {files} \
         files</title></path>\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slice_is_drawn_and_an_upward_arrow_is_red() {
        let edge = |from: &str, to: &str| ((from.to_owned(), to.to_owned()), 1);
        let sound = draw(&Graph::from([edge("app", "auth"), edge("auth", "games")]));
        for slice in LEVELS.concat() {
            assert!(sound.contains(&format!(">{slice}</text>")), "{slice}");
        }
        assert!(sound.contains("<title>app to auth, in 1 files</title>"));
        assert!(!sound.contains("#c22"));
        let bent = Graph::from([edge("app", "auth"), edge("auth", "app")]);
        assert!(draw(&bent).contains("#c22"));
        assert!(summary(&bent, &[]).contains("a circle: app, auth"));
    }
}

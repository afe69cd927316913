//! Tables with many columns: on a phone each of their rows is a block, in which every cell says of
//! which column it is.

use pulldown_cmark::{Event, Tag, TagEnd};

/// The least number of columns that a phone has no room for.
const WIDE: usize = 4;

/// Names the column of each cell of a wide table, in an attribute that the stylesheet shows.
pub(super) fn name_cells(events: &mut [Event<'_>]) {
    let mut names: Vec<String> = Vec::new();
    let (mut is_wide, mut is_head) = (false, false);
    let mut column = 0;
    for event in events {
        match event {
            Event::Start(Tag::Table(columns)) => {
                is_wide = columns.len() >= WIDE;
                names.clear();
            }
            Event::Start(Tag::TableHead) => is_head = is_wide,
            Event::End(TagEnd::TableHead) => is_head = false,
            Event::Start(Tag::TableRow) => column = 0,
            Event::Start(Tag::TableCell) if is_head => names.push(String::new()),
            Event::Text(part) | Event::Code(part) if is_head => {
                if let Some(name) = names.last_mut() {
                    name.push_str(part);
                }
            }
            Event::Start(Tag::TableCell) if is_wide => {
                let name = names.get(column).map_or("", String::as_str);
                let name = name.replace('&', "&amp;").replace('"', "&quot;");
                *event = Event::Html(format!("<td data-column=\"{name}\">").into());
                column += 1;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use pulldown_cmark::{Options, Parser, html};

    use super::*;

    fn rendered(text: &str) -> String {
        let mut events: Vec<_> = Parser::new_ext(text, Options::ENABLE_TABLES).collect();
        name_cells(&mut events);
        let mut html = String::new();
        html::push_html(&mut html, events.into_iter());
        html
    }

    #[test]
    fn the_cells_of_a_wide_table_alone_name_their_columns() {
        let wide = rendered("| a | in `b` | c \"&\" | d |\n|--|--|--|--|\n| 1 | 2 | 3 | 4 |\n");
        for cell in [
            "<th>in <code>b</code></th>",
            "<td data-column=\"a\">1</td>",
            "<td data-column=\"in b\">2</td>",
            "<td data-column=\"c &quot;&amp;&quot;\">3</td>",
            "<td data-column=\"d\">4</td>",
        ] {
            assert!(wide.contains(cell), "{cell}: {wide}");
        }
        let both = "| a | b |\n|--|--|\n| 1 | 2 |\n\n| a | b | c | d |\n|--|--|--|--|\n| 5 | 6 | 7 | 8 |\n\n| a | b |\n|--|--|\n| 3 | 4 |\n";
        let both = rendered(both);
        assert_eq!(both.matches("data-column").count(), 4, "{both}");
    }
}

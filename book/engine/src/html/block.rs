//! The block of a cell: what came out of it, recorded and own.

use std::fmt::Write as _;

use record::{Abscissa, Entry, Output, Series, Table, Text, Value};

use super::{OutputInput, Shown, escape, lines, provenance, state, table};

/// The block of a cell: recorded output, the reader's own beside it, states as words, provenance and raw data folded. One HTML
/// block without a blank line in it.
pub fn output_block(input: &OutputInput<'_>) -> String {
    let cell = input.reference.rsplit_once('.').map_or(input.reference.as_str(), |(_, cell)| cell);
    let mut html = format!(
        "<section class=\"lab-out\" id=\"{}\" aria-label=\"Output of {}\">\n<header><p class=\"lab-name\"><span class=\"lab-mark\">Out</span> <code>{}</code> {}</p>\n",
        escape(&input.id),
        escape(&input.reference),
        escape(cell),
        escape(input.title)
    );
    html += &sources(input);
    html += "</header>\n";
    for shown in input.recorded.iter().chain(&input.own) {
        html += &state::message(&shown.state);
    }
    html += &outputs(input, cell);
    let shown: Vec<&Shown<'_>> = input.recorded.iter().chain(&input.own).collect();
    html += &provenance::disclosure(&shown);
    html += "</section>\n";
    html
}

/// `H200 · driver 580 · 2026-12-03 · fresh` and `yours: …`, each on its own line where there is little room.
fn sources(input: &OutputInput<'_>) -> String {
    let mut html = String::from("<p class=\"lab-from\">");
    for shown in &input.recorded {
        let _ = write!(html, "<span class=\"recorded\">{}</span> ", state::source(shown));
    }
    match &input.own {
        Some(own) => {
            let _ = write!(html, "<span class=\"own\">yours: {}</span>", state::source(own));
        }
        None => html += "<span class=\"own\">yours: <span class=\"lab-state missing\">not run</span></span>",
    }
    html += "</p>\n";
    html
}

/// An output with the reader's own of the same name.
struct Pair<'a> {
    recorded: Option<(&'a str, &'a Output)>,
    own: Option<&'a Output>,
}

fn outputs(input: &OutputInput<'_>, cell: &str) -> String {
    let own_device = input.own.as_ref().and_then(|own| own.record).map_or("", state::device);
    let pairs = pairs(input, cell);
    let figures: Vec<&str> = pairs
        .iter()
        .filter_map(|pair| pair.recorded.map(|(_, output)| output).or(pair.own))
        .filter_map(|output| match output {
            Output::Figure(figure) => Some(figure.series.iter().map(String::as_str)),
            _ => None,
        })
        .flatten()
        .collect();
    let has_map = input
        .recorded
        .iter()
        .chain(&input.own)
        .flat_map(|shown| &shown.outputs)
        .any(|output| matches!(output, Output::HeatMap(_)));

    let tables: Vec<&Table> = pairs
        .iter()
        .filter_map(|pair| pair.recorded.map(|(_, output)| output).or(pair.own).and_then(as_table))
        .collect();

    let mut html = String::new();
    let mut values: Vec<(Option<&Value>, Option<&Value>)> = Vec::new();
    let mut values_from = "";
    for pair in &pairs {
        let device = pair.recorded.map_or("", |(device, _)| device);
        let either = pair.recorded.map(|(_, output)| output).or(pair.own);
        if let Some(Output::Value(_)) = either {
            // Values in a row make one list.
            if values.is_empty() || values_from == device {
                values_from = device;
            } else {
                values_from = "recorded";
            }
            values.push((pair.recorded.and_then(|(_, output)| value(output)), pair.own.and_then(value)));
            continue;
        }
        if !values.is_empty() {
            html += &table::values(values_from, own_device, &std::mem::take(&mut values));
        }
        match either {
            Some(Output::Text(_)) => html += &texts(pair),
            Some(Output::Table(_)) => {
                let recorded = pair.recorded.and_then(|(device, output)| Some((device, as_table(output)?)));
                html += &table::table(recorded, pair.own.and_then(as_table).map(|table| (own_device, table)));
            }
            // What a figure shows has its table there, and a column of a table need not be said again.
            Some(Output::Series(series))
                if !figures.contains(&series.name.as_str())
                    && !tables.iter().any(|table| is_column(table, series)) =>
            {
                let recorded = pair.recorded.and_then(|(device, output)| Some((device, as_series(output)?)));
                html +=
                    &table::series(recorded, pair.own.and_then(as_series).map(|series| (own_device, series)));
            }
            _ => {}
        }
    }
    if !values.is_empty() {
        html += &table::values(values_from, own_device, &values);
    }
    if html.is_empty() && figures.is_empty() && !has_map {
        let waiting = "<p class=\"lab-note\">Nothing has come out of this cell yet.</p>\n";
        return waiting.to_owned();
    }
    html
}

/// The recorded outputs in the order of the story, each with the reader's own; then what only the reader has.
fn pairs<'a>(input: &'a OutputInput<'_>, cell: &str) -> Vec<Pair<'a>> {
    let own: &[&Output] = input.own.as_ref().map_or(&[], |own| &own.outputs);
    let mut own_left: Vec<Option<&Output>> = own.iter().copied().map(Some).collect();
    let mut take_own = |wanted: &Output| {
        let place =
            own_left.iter().position(|output| output.is_some_and(|output| same_name(output, wanted)))?;
        own_left[place].take()
    };
    let mut recorded: Vec<(&str, &Output)> = input
        .recorded
        .iter()
        .flat_map(|shown| {
            let device = shown.record.map_or(shown.slug, state::device);
            shown.outputs.iter().map(move |output| (device, *output))
        })
        .collect();
    // Two records give parts of one cell: the cell of the first that knows it all says in which order they were said.
    let order = input.recorded.iter().filter_map(|shown| shown.record).find_map(|record| {
        let cells = record.cells.iter().chain(record.profile.iter().flat_map(|profile| &profile.cells));
        cells.into_iter().find(|known| known.id == cell).map(|known| &known.outputs)
    });
    if let Some(order) = order {
        let place =
            |output: &Output| order.iter().position(|known| same_name(known, output)).unwrap_or(usize::MAX);
        recorded.sort_by_key(|(_, output)| place(output));
    }
    let mut pairs: Vec<Pair<'_>> = recorded
        .into_iter()
        .map(|(device, output)| Pair { recorded: Some((device, output)), own: take_own(output) })
        .collect();
    pairs.extend(own_left.into_iter().flatten().map(|output| Pair { recorded: None, own: Some(output) }));
    pairs
}

fn same_name(a: &Output, b: &Output) -> bool {
    match (a, b) {
        (Output::Text(a), Output::Text(b)) => a.kind == b.kind,
        (Output::Value(a), Output::Value(b)) => a.name == b.name,
        (Output::Series(a), Output::Series(b)) => a.name == b.name,
        (Output::Table(a), Output::Table(b)) => a.name == b.name,
        (Output::Figure(a), Output::Figure(b)) => a.name == b.name,
        (Output::Timeline(a), Output::Timeline(b)) => a.title == b.title,
        (Output::HeatMap(a), Output::HeatMap(b)) => a.name == b.name,
        _ => false,
    }
}

/// Whether the numbers of a series stand in one column of a table, in the rows that begin with its abscissas.
fn is_column(table: &Table, series: &Series) -> bool {
    let row = |x: &Abscissa| {
        table.rows.iter().find(|row| match (row.first(), x) {
            (Some(Entry::Text(first)), Abscissa::Label(label)) => first == label,
            (Some(Entry::Number(first)), Abscissa::Number(number)) => first == number,
            _ => false,
        })
    };
    let stands_in = |column: usize| {
        series.x.iter().zip(&series.points).all(|(x, point)| match row(x).and_then(|row| row.get(column)) {
            Some(Entry::Number(number)) => point.value == Some(*number),
            Some(Entry::NeedsGpu(())) => point.value.is_none(),
            _ => false,
        })
    };
    (1..table.columns.len()).any(stands_in)
}

fn texts(pair: &Pair<'_>) -> String {
    let shown = |text: &Text, class: &str| {
        // Sentences are wrapped; what a terminal printed keeps its lines.
        let prose = if text.text.lines().any(|line| line.len() > SENTENCE) { " prose" } else { "" };
        let text = lines(text.text.trim_end());
        format!("<pre class=\"lab-text{class}{prose}\" tabindex=\"0\">{text}</pre>\n")
    };
    let recorded = pair.recorded.and_then(|(_, output)| text(output));
    match (recorded, pair.own.and_then(text)) {
        (Some(recorded), Some(own)) if recorded.text == own.text => shown(recorded, ""),
        (Some(recorded), Some(own)) => {
            format!("{}<p class=\"lab-note\">yours:</p>\n{}", shown(recorded, ""), shown(own, " own"))
        }
        (Some(text), None) => shown(text, ""),
        (None, Some(text)) => shown(text, " own"),
        (None, None) => String::new(),
    }
}

/// No terminal is so wide: a longer line is a sentence.
const SENTENCE: usize = 140;

fn text(output: &Output) -> Option<&Text> {
    if let Output::Text(text) = output { Some(text) } else { None }
}

fn value(output: &Output) -> Option<&Value> {
    if let Output::Value(value) = output { Some(value) } else { None }
}

fn as_series(output: &Output) -> Option<&Series> {
    if let Output::Series(series) = output { Some(series) } else { None }
}

fn as_table(output: &Output) -> Option<&Table> {
    if let Output::Table(table) = output { Some(table) } else { None }
}

#[cfg(test)]
mod tests {
    use record::{Entry, Kind, Provenance, Record, SCHEMA, Status};

    use super::*;
    use crate::directive::well_formed;
    use crate::records::State;

    fn record(device: &str) -> Record {
        let provenance = Provenance {
            device: device.into(),
            driver: "580.159.04".into(),
            date: "2026-12-03T10:11:12Z".into(),
            ..Provenance::default()
        };
        let chapter = "ch03-memory".into();
        Record {
            schema: SCHEMA,
            chapter,
            status: Status::Complete,
            provenance,
            inputs: vec![],
            cells: vec![],
            profile: None,
        }
    }

    fn shown<'a>(slug: &'a str, record: &'a Record, outputs: &'a [Output], state: State) -> Shown<'a> {
        Shown { slug, record: Some(record), outputs: outputs.iter().collect(), state }
    }

    fn block(recorded: Vec<Shown<'_>>, own: Option<Shown<'_>>) -> String {
        let (id, reference) = ("out".into(), "ch03-memory.strides".into());
        let html = output_block(&OutputInput {
            id,
            reference,
            chapter: "ch03-memory",
            title: "A < B",
            recorded,
            own,
        });
        well_formed(&html).unwrap_or_else(|what| panic!("{what}: {html}"));
        html
    }

    fn strides(rows: &[(f64, f64, Option<f64>)]) -> Output {
        let mut table =
            Table::new("strides").exact("stride", "").exact("sectors", "").measured("rate", "GB/s");
        for &(stride, sectors, rate) in rows {
            let rate = rate.map_or(Entry::NeedsGpu(()), Entry::Number);
            table.push([Entry::Number(stride), Entry::Number(sectors), rate]);
        }
        Output::Table(table)
    }

    #[test]
    fn states_are_words() {
        let h200 = record("NVIDIA H200");
        for (state, word) in [
            (State::Fresh, "fresh"),
            (
                State::Stale(vec!["kernel add".into(), "a".into(), "b".into()]),
                "stale (kernel add, a and 1 more)",
            ),
            (
                State::OtherHardware { ratio: Some(0.3141), than: "NVIDIA H200".into() },
                "other hardware (×0.314 of the H200)",
            ),
            (State::Running { cell: "copies".into(), done: 3, total: 7 }, "running 3/7: copies"),
            (State::Failed { cell: "copies".into(), message: "a\n\nb <".into() }, "failed in copies"),
            (State::Interrupted { cell: "copies".into() }, "stopped in copies"),
            (State::Missing(String::new()), "not run"),
        ] {
            let html = block(vec![shown("h200", &h200, &[], state)], None);
            assert!(html.contains(&format!(">{word}</span>")), "{word} in {html}");
            assert!(html.contains("H200 · driver 580 · "), "{html}");
        }
    }

    #[test]
    fn own_columns_stand_beside_and_equal_counts_once() {
        let (h200, emulated) = (record("NVIDIA H200"), record("Emulated H200"));
        let recorded = [strides(&[(1.0, 4.0, Some(4262.3)), (2.0, 8.0, Some(2140.0))])];
        let own = [strides(&[(1.0, 4.0, None), (2.0, 8.0, None)])];
        let html = block(
            vec![shown("h200", &h200, &recorded, State::Fresh)],
            Some(shown("local", &emulated, &own, State::Fresh)),
        );
        assert!(html.contains("colspan=\"2\">H200</th>"), "{html}");
        assert!(html.contains("colspan=\"1\">yours: Emulated H200</th>"), "the counts are equal: {html}");
        assert_eq!(html.matches("needs a GPU").count(), 2, "{html}");
        // Another count is shown, and a size that only one of them has is a row.
        let own = [strides(&[(1.0, 5.0, None), (4.0, 16.0, None)])];
        let html = block(
            vec![shown("h200", &h200, &recorded, State::Fresh)],
            Some(shown("local", &emulated, &own, State::Fresh)),
        );
        assert!(html.contains("colspan=\"2\">yours: Emulated H200</th>"), "{html}");
        assert_eq!(html.matches("<th scope=\"row\"").count(), 3, "{html}");
    }

    #[test]
    fn a_series_that_stands_in_a_table_is_not_said_again() {
        let table = Table::new("kernels").exact("kernel", "").exact("sectors", "");
        let table = table.row(["scalar".into(), 4.0.into()]).row(["float4".into(), 16.0.into()]);
        let told = Series::exact("sectors", "").point("scalar", 4.0).point("float4", 16.0);
        let untold = Series::exact("lanes", "").point("scalar", 32.0).point("float4", 8.0);
        assert!(is_column(&table, &told));
        assert!(!is_column(&table, &untold));
        assert!(!is_column(&table, &Series::exact("sectors", "").point("strided", 4.0)));
    }

    #[test]
    fn text_keeps_its_blank_lines() {
        let h200 = record("NVIDIA H200");
        let text = [Output::Text(Text { kind: Kind::Exact, text: "a\n\n  b < c\n".into() })];
        let html = block(vec![shown("h200", &h200, &text, State::Fresh)], None);
        assert!(html.contains("a&#10;&#10;  b &lt; c</pre>"), "{html}");
    }

    #[test]
    fn a_cell_that_nobody_ran_says_so() {
        let missing =
            Shown { slug: "h200", record: None, outputs: vec![], state: State::Missing(String::new()) };
        let html = block(vec![missing], None);
        assert!(html.contains("Nothing has come out of this cell yet."), "{html}");
    }
}

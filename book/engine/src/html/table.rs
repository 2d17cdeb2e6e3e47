//! Tables and lists of values, recorded and own side by side.

use std::fmt::Write as _;

use record::{Entry, Kind, Point, Series, Table, Value, format};

use super::{escape, head_unit, in_column, point_in_column};

/// What a cell of a table says.
fn entry(entry: Option<&Entry>, unit: &str) -> String {
    match entry {
        None => "<td></td>".to_owned(),
        Some(Entry::NeedsGpu(())) => {
            format!("<td>{}</td>", point_in_column(&Point::default(), unit))
        }
        Some(Entry::Number(value)) => format!("<td>{}</td>", in_column(*value, unit)),
        Some(Entry::Text(text)) => format!("<td class=\"word\">{}</td>", escape(text)),
    }
}

/// A table, the reader's own columns to the right. Columns that must be the same on every device, and are, stand once.
pub(super) fn table(recorded: Option<(&str, &Table)>, own: Option<(&str, &Table)>) -> String {
    let Some((whose, main)) = recorded.or(own) else { return String::new() };
    let own = own.filter(|_| recorded.is_some());
    let Some((own_whose, own_table)) = own else {
        return wrapped(
            &headed(main, &(0..main.columns.len()).collect::<Vec<_>>(), whose, None),
            &body(main, None),
        );
    };
    let Some(rows) = aligned(main, own_table) else {
        // Unlike tables cannot stand side by side: the reader's own follows.
        return table(recorded, None) + &table(None, Some((own_whose, own_table)));
    };
    let columns: Vec<usize> = (1..main.columns.len())
        .filter(|&column| {
            let same = |&(left, right): &(Option<usize>, Option<usize>)| match (left, right) {
                (Some(left), Some(right)) => main.rows[left].get(column) == own_table.rows[right].get(column),
                _ => false,
            };
            main.columns[column].kind == Kind::Measured || !rows.iter().all(same)
        })
        .collect();
    let left: Vec<usize> = (0..main.columns.len()).collect();
    if columns.is_empty() {
        return wrapped(&headed(main, &left, whose, None), &body(main, None)) + SAME;
    }
    wrapped(
        &headed(main, &left, whose, Some((own_whose, &columns))),
        &body(main, Some((own_table, &columns, &rows))),
    )
}

pub(super) const SAME: &str = "<p class=\"lab-note\">Yours is the same.</p>\n";

type Row = (Option<usize>, Option<usize>);

/// Rows of two tables that belong together, by what their first column says; `None` when they do not have the same columns,
/// or the first column does not tell rows apart.
fn aligned(main: &Table, own: &Table) -> Option<Vec<Row>> {
    let names = |table: &Table| table.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
    if names(main) != names(own) || main.columns.is_empty() {
        return None;
    }
    let find = |table: &Table, key: Option<&Entry>| table.rows.iter().position(|row| row.first() == key);
    let distinct = |table: &Table| {
        table.rows.iter().enumerate().all(|(index, row)| find(table, row.first()) == Some(index))
    };
    if !distinct(main) || !distinct(own) {
        let same = main.rows.len() == own.rows.len();
        return same.then(|| (0..main.rows.len()).map(|row| (Some(row), Some(row))).collect());
    }
    let mut rows: Vec<Row> =
        main.rows.iter().enumerate().map(|(index, row)| (Some(index), find(own, row.first()))).collect();
    let only_own = own.rows.iter().enumerate().filter(|(_, row)| find(main, row.first()).is_none());
    rows.extend(only_own.map(|(index, _)| (None, Some(index))));
    Some(rows)
}

fn headed(table: &Table, left: &[usize], whose: &str, own: Option<(&str, &[usize])>) -> String {
    let mut html = String::from("<thead>");
    if let Some((own_whose, columns)) = own {
        let _ = write!(
            html,
            "<tr class=\"whose\"><td></td><th scope=\"colgroup\" colspan=\"{}\">{}</th><th scope=\"colgroup\" class=\"own first\" colspan=\"{}\">yours: {}</th></tr>",
            left.len() - 1,
            escape(whose),
            columns.len(),
            escape(own_whose)
        );
    }
    html += "<tr>";
    for &column in left {
        html += &heading(table, column, "");
    }
    for (index, &column) in own.iter().flat_map(|(_, columns)| columns.iter().enumerate()) {
        html += &heading(table, column, if index == 0 { "own first" } else { "own" });
    }
    html + "</tr></thead>"
}

fn heading(table: &Table, column: usize, class: &str) -> String {
    let record::Column { name, unit, .. } = &table.columns[column];
    let words = table.rows.iter().all(|row| matches!(row.get(column), Some(Entry::Text(_))));
    let class = format!("{class}{}", if words && !table.rows.is_empty() { " word" } else { "" });
    let class = if class.trim().is_empty() { String::new() } else { format!(" class=\"{}\"", class.trim()) };
    format!("<th scope=\"col\"{class}>{}{}</th>", escape(name), head_unit(unit))
}

fn body(main: &Table, own: Option<(&Table, &[usize], &[Row])>) -> String {
    let mut html = String::from("<tbody>");
    let unit = |column: usize| main.columns[column].unit.as_str();
    let alone: Vec<Row> = (0..main.rows.len()).map(|row| (Some(row), None)).collect();
    for &(left, right) in own.map_or(&alone[..], |(_, _, rows)| rows) {
        html += "<tr>";
        let first = left.map_or_else(
            || right.and_then(|right| own.and_then(|(table, ..)| table.rows[right].first())),
            |left| main.rows[left].first(),
        );
        html += &entry(first, unit(0)).replacen("<td", "<th scope=\"row\"", 1).replace("</td>", "</th>");
        for column in 1..main.columns.len() {
            html += &entry(left.and_then(|left| main.rows[left].get(column)), unit(column));
        }
        if let Some((table, columns, _)) = own {
            for (index, &column) in columns.iter().enumerate() {
                let class = if index == 0 { "own first" } else { "own" };
                let text = entry(right.and_then(|right| table.rows[right].get(column)), unit(column));
                html += &with_class(&text, class);
            }
        }
        html += "</tr>";
    }
    html + "</tbody>"
}

/// Adds classes to a `<td>` that may already have some.
fn with_class(cell: &str, class: &str) -> String {
    match cell.strip_prefix("<td class=\"") {
        Some(rest) => format!("<td class=\"{class} {rest}"),
        None => cell.replacen("<td", &format!("<td class=\"{class}\""), 1),
    }
}

/// A table that scrolls by itself where the page is narrower, reachable by keyboard.
fn wrapped(head: &str, body: &str) -> String {
    format!("<div class=\"lab-scroll\" tabindex=\"0\"><table>{head}{body}</table></div>\n")
}

/// Values by name, the reader's own beside them with the ratio where both are measured.
pub(super) fn values(
    recorded_name: &str,
    own_name: &str,
    rows: &[(Option<&Value>, Option<&Value>)],
) -> String {
    let with_own =
        rows.iter().any(|(_, own)| own.is_some()) && rows.iter().any(|(recorded, _)| recorded.is_some());
    let noted =
        rows.iter().any(|(recorded, own)| recorded.or(*own).is_some_and(|value| !value.note.is_empty()));
    let mut html = String::from("<div class=\"lab-scroll\" tabindex=\"0\"><table class=\"lab-values\">");
    if with_own {
        let _ = write!(
            html,
            "<thead><tr class=\"whose\"><td></td><th scope=\"col\">{}</th><th scope=\"col\" class=\"own first\">yours: {}</th>{}</tr></thead>",
            escape(recorded_name),
            escape(own_name),
            if noted { "<td></td>" } else { "" }
        );
    }
    html += "<tbody>";
    for (recorded, own) in rows {
        let Some(value) = recorded.or(*own) else { continue };
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(&value.name.replace('_', " ")));
        if with_own {
            let _ = write!(html, "<td>{}</td>", recorded.map_or_else(String::new, amount));
            let ratio = recorded.zip(*own).map_or_else(String::new, |(recorded, own)| ratio(recorded, own));
            let _ =
                write!(html, "<td class=\"own first\">{}{ratio}</td>", own.map_or_else(String::new, amount));
        } else {
            let _ = write!(html, "<td>{}</td>", amount(value));
        }
        if noted {
            let _ = write!(html, "<td class=\"note\">{}</td>", escape(&value.note));
        }
        html += "</tr>";
    }
    html + "</tbody></table></div>\n"
}

/// A value with unit and spread.
fn amount(value: &Value) -> String {
    if value.point.value.is_none() {
        return point_in_column(&value.point, &value.unit);
    }
    let spread = format::spread(value.point, if format::is_scaled(&value.unit) { &value.unit } else { "" })
        .map_or_else(String::new, |spread| format!(" <span class=\"spread\">{}</span>", escape(&spread)));
    escape(&format::point(value.point, &value.unit)) + &spread
}

fn ratio(recorded: &Value, own: &Value) -> String {
    match (recorded.point.value, own.point.value) {
        (Some(recorded_value), Some(own_value))
            if own.kind == Kind::Measured && recorded_value != 0.0 && recorded.unit == own.unit =>
        {
            format!(" <span class=\"ratio\">×{}</span>", format::number(own_value / recorded_value))
        }
        _ => String::new(),
    }
}

/// A series that no figure of the cell shows, as a table: its name, its unit, one row a point.
pub(super) fn series(recorded: Option<(&str, &Series)>, own: Option<(&str, &Series)>) -> String {
    fn as_table<'a>((whose, series): (&'a str, &Series)) -> (&'a str, Table) {
        let unit = series.unit.clone();
        let label = if series.label.is_empty() { &series.name } else { &series.label };
        let column = |name: String, unit: String, kind: Kind| record::Column { name, unit, kind };
        let rows = series.x.iter().zip(&series.points).map(|(x, point)| {
            let x = match x {
                record::Abscissa::Number(value) => Entry::Number(*value),
                record::Abscissa::Label(label) => Entry::Text(label.clone()),
            };
            vec![x, point.value.map_or(Entry::NeedsGpu(()), Entry::Number)]
        });
        let table = Table {
            name: series.name.clone(),
            columns: vec![
                column(String::new(), String::new(), Kind::Exact),
                column(label.clone(), unit, series.kind),
            ],
            rows: rows.collect(),
        };
        (whose, table)
    }
    let (recorded, own) = (recorded.map(as_table), own.map(as_table));
    table(
        recorded.as_ref().map(|(whose, table)| (*whose, table)),
        own.as_ref().map(|(whose, table)| (*whose, table)),
    )
}

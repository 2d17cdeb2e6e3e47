//! The data of a figure as a table: for who cannot see it, for who wants the digits, and for the read-out.

use std::fmt::Write as _;

use record::{Abscissa, Scale, Timeline, format};

use super::span::duration;
use super::{FigureInput, bars, chart, label};
use crate::html::{escape, head_unit, in_column, point_in_column};

/// One row an abscissa, one column a curve.
pub(super) fn of_figure(input: &FigureInput<'_>) -> String {
    let axis = &input.figure.x;
    let mut html =
        format!("<table><thead><tr><th scope=\"col\">{}</th>", heading(&axis.label, &axis.unit, ""));
    for curve in &input.curves {
        let device = if curve.own { format!("yours: {}", curve.device) } else { curve.device.to_owned() };
        let class = chart::series_class(curve.place, curve.own);
        let name = if curve.own {
            format!("{}, yours", label(curve.series))
        } else {
            label(curve.series).to_owned()
        };
        let _ = write!(
            html,
            "<th scope=\"col\" class=\"{class}\" data-name=\"{}\">{}</th>",
            escape(&name),
            heading(label(curve.series), &curve.series.unit, &device)
        );
    }
    html += "</tr></thead><tbody>";
    if axis.scale == Scale::Labels {
        for row in bars::row_labels(input) {
            add_row(&mut html, input, &row, |x| bars::row_label(x) == row);
        }
    } else {
        for value in chart::abscissas(&input.curves) {
            add_row(&mut html, input, &in_column(value, &axis.unit), |x| *x == Abscissa::Number(value));
        }
    }
    for line in &input.limits {
        let whose = if line.own { "yours: " } else { "" };
        let value = format::point(line.value.point, &line.value.unit);
        let _ = write!(
            html,
            "<tr class=\"limit-row\"><th scope=\"row\">{} ({whose}{})</th><td colspan=\"{}\">{value}</td></tr>",
            escape(line.label),
            escape(line.device),
            input.curves.len().max(1)
        );
    }
    html += "</tbody></table>";
    html
}

/// One row a lane and name: how often, how long in all.
pub(super) fn of_timeline(timeline: &Timeline) -> String {
    let mut html = String::from(
        "<table><thead><tr><th scope=\"col\">lane</th><th scope=\"col\">name</th><th scope=\"col\">times</th><th scope=\"col\">in all</th></tr></thead><tbody>",
    );
    for lane in &timeline.lanes {
        let mut sums: Vec<(&str, usize, f64)> = Vec::new();
        for span in &lane.spans {
            let busy = span.end_us - span.start_us;
            match sums.iter_mut().find(|(name, ..)| *name == span.name) {
                Some((_, count, sum)) => (*count, *sum) = (*count + 1, *sum + busy),
                None => sums.push((&span.name, 1, busy)),
            }
        }
        for (name, count, sum) in sums {
            let _ = write!(
                html,
                "<tr><th scope=\"row\">{}</th><td class=\"word\">{}</td><td>{count}</td><td>{}</td></tr>",
                escape(&lane.name),
                escape(name),
                duration(sum)
            );
        }
    }
    html += "</tbody></table>";
    html
}

fn heading(name: &str, unit: &str, device: &str) -> String {
    let mut html = escape(name) + &head_unit(unit);
    if !device.is_empty() {
        let _ = write!(html, " <span class=\"device\">{}</span>", escape(device));
    }
    html
}

fn add_row(html: &mut String, input: &FigureInput<'_>, heading: &str, is_row: impl Fn(&Abscissa) -> bool) {
    let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(heading));
    for curve in &input.curves {
        let position = curve.series.x.iter().position(&is_row);
        let point = position.and_then(|position| curve.series.points.get(position));
        let _ = write!(
            html,
            "<td>{}</td>",
            point.map_or_else(String::new, |point| point_in_column(point, &curve.series.unit))
        );
    }
    html.push_str("</tr>");
}

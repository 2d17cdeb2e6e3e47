//! Series over labels, as bars.

use record::format::quantity;
use record::{Axis, Series};

use super::{abscissa, label, left};

/// The longest bar.
const WIDTH: f64 = 36.0;

/// A bar for each label and series, each with its number.
pub(super) fn lines(series: &[&Series], axis: &Axis) -> String {
    let numbers = || series.iter().flat_map(|series| series.points.iter().filter_map(|point| point.value));
    let largest = numbers().fold(0.0, f64::max);
    let name = |series: &Series, place: usize| match series.x.get(place) {
        Some(x) if place == 0 || series.x.len() > 1 => abscissa(x),
        _ => String::new(),
    };
    let mut rows = Vec::new();
    let places = series.iter().map(|series| series.x.len()).max().unwrap_or(0);
    for place in 0..places {
        for one in series {
            let Some(point) = one.points.get(place) else { continue };
            let mut words = name(one, place);
            if series.len() > 1 {
                words = format!("{words} {}", label(one));
            }
            rows.push((words, point.value));
        }
    }
    let width = rows.iter().map(|(words, _)| words.chars().count()).max().unwrap_or(0);
    rows.iter()
        .map(|(words, value)| {
            let (bar, number) = match value {
                Some(value) => (bar(value / largest), quantity(*value, &axis.unit)),
                None => (String::new(), record::format::NEEDS_GPU.to_owned()),
            };
            format!("{}  {bar} {number}\n", left(words, width))
        })
        .collect()
}

/// A bar in steps of an eighth of a character.
fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * WIDTH * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

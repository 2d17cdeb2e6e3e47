//! Heat maps, as numbers where they fit, else as shades.

use record::{Colours, HeatMap, format};

use super::{WIDTH, left, right};

const SHADES: [char; 4] = ['░', '▒', '▓', '█'];

/// One line a row.
pub(super) fn lines(map: &HeatMap) -> String {
    let shown: Vec<Vec<String>> = map
        .numbers
        .iter()
        .map(|row| row.iter().map(|number| number.map_or(String::new(), format::number)).collect())
        .collect();
    let longest =
        |texts: &mut dyn Iterator<Item = &String>| texts.map(|text| text.chars().count()).max().unwrap_or(0);
    let name = longest(&mut map.rows.names.iter());
    let width = longest(&mut shown.iter().flatten());
    let columns = map.columns.names.len();
    let has_room = |each: usize| name + 2 + (each + 1) * columns <= WIDTH - 2;

    let mut text =
        format!("{}\n\n{} down, {} across, {}", map.title, map.rows.label, map.columns.label, map.label);
    if has_room(width) {
        text.push_str(" in the squares\n");
        let heads: Vec<_> = map.columns.names.iter().map(|column| right(column, width)).collect();
        if longest(&mut heads.iter()) <= width {
            text.push_str(&format!("{}  {}\n", left("", name), heads.join(" ")));
        }
        for (row, numbers) in map.rows.names.iter().zip(&shown) {
            let numbers: Vec<_> = numbers.iter().map(|number| right(number, width)).collect();
            text.push_str(&format!("{}  {}\n", left(row, name), numbers.join(" ")));
        }
        return text;
    }
    if map.colours == Colours::Identity || name + 2 + columns > WIDTH - 2 {
        text.push_str(" (a heat map: see the page)\n");
        return text;
    }
    let largest = map.numbers.iter().flatten().flatten().copied().fold(0.0, f64::max);
    let shade = |number: &Option<f64>| match number {
        Some(number) if *number > 0.0 => SHADES[(number / largest * SHADES.len() as f64).ceil() as usize - 1],
        _ => '·',
    };
    text.push_str(&format!(": · is none, █ is {}\n", format::quantity(largest, &map.unit)));
    for (row, numbers) in map.rows.names.iter().zip(&map.numbers) {
        let shades: String = numbers.iter().map(shade).collect();
        text.push_str(&format!("{}  {shades}\n", left(row, name)));
    }
    text
}

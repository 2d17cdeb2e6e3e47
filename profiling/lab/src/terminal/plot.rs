//! Series over numbers, as a sketch of lines and marks.

use record::format::quantity;
use record::{Abscissa, Axis, Figure, Scale, Series};

use super::{label, left, right};

/// The drawing's size in characters, without its labels.
const COLUMNS: usize = 60;
const ROWS: usize = 16;

const MARKS: [char; 8] = ['●', '○', '▲', '△', '■', '□', '◆', '◇'];

/// The sketch with its axes and a legend.
pub(super) fn lines(figure: &Figure, series: &[&Series], limits: &[(&str, f64)]) -> String {
    let curves: Vec<Vec<(f64, f64)>> = series.iter().map(|series| points(series, figure)).collect();
    let all = || curves.iter().flatten();
    let (Some(x), Some(y)) = (
        Range::of(figure.x.scale, all().map(|point| point.0)),
        Range::of(figure.y.scale, all().map(|point| point.1).chain(limits.iter().map(|limit| limit.1))),
    ) else {
        return "no number fits these axes\n".to_owned();
    };

    let mut canvas = vec![[' '; COLUMNS]; ROWS];
    for (_, limit) in limits {
        canvas[row(&y, *limit)].fill('╌');
    }
    for curve in &curves {
        draw_line(&mut canvas, &x, &y, curve);
    }
    for (curve, mark) in curves.iter().zip(MARKS.iter().cycle()) {
        for point in curve {
            canvas[row(&y, point.1)][column(&x, point.0)] = *mark;
        }
    }
    frame(figure, &canvas, &x, &y) + &legend(series, limits, &figure.y)
}

/// The points of a series that its axes can show: a logarithm needs a positive number.
fn points(series: &Series, figure: &Figure) -> Vec<(f64, f64)> {
    let fits = |scale: Scale, value: f64| scale == Scale::Linear || value > 0.0;
    let mut points: Vec<(f64, f64)> = series
        .x
        .iter()
        .zip(&series.points)
        .filter_map(|(x, point)| match (x, point.value) {
            (Abscissa::Number(x), Some(y)) => Some((*x, y)),
            _ => None,
        })
        .filter(|(x, y)| fits(figure.x.scale, *x) && fits(figure.y.scale, *y))
        .collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    points
}

/// An axis from its lowest to its highest number.
struct Range {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Range {
    /// The range that holds the numbers; a linear one begins at zero. `None` without numbers.
    fn of(scale: Scale, numbers: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let low = numbers.clone().reduce(f64::min)?;
        let high = numbers.reduce(f64::max)?;
        let low = if scale == Scale::Linear { low.min(0.0) } else { low };
        let high = if high > low { high } else { low + low.abs().max(1.0) };
        Some(Self { scale, low, high })
    }

    /// Where a number stands, from 0 to 1.
    fn place(&self, number: f64) -> f64 {
        match self.scale {
            Scale::Log2 | Scale::Log10 => (number / self.low).ln() / (self.high / self.low).ln(),
            Scale::Linear | Scale::Labels => (number - self.low) / (self.high - self.low),
        }
    }

    /// A few round numbers in the range, lowest first.
    fn ticks(&self, wanted: usize) -> Vec<f64> {
        match self.scale {
            Scale::Linear | Scale::Labels => {
                let rough = (self.high - self.low) / wanted as f64;
                let power = 10f64.powf(rough.log10().floor());
                let step =
                    [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| *step >= rough);
                let step = step.unwrap_or(rough);
                let first = (self.low / step).ceil() as i64;
                let last = (self.high / step).floor() as i64;
                (first..=last).map(|place| place as f64 * step).collect()
            }
            Scale::Log2 | Scale::Log10 => {
                let base: f64 = if self.scale == Scale::Log2 { 2.0 } else { 10.0 };
                let power = |number: f64| number.ln() / base.ln();
                // The small allowance keeps 2^10, whose logarithm may come out as 10.000000000000002.
                let first = (power(self.low) - 1e-9).ceil() as i32;
                let last = (power(self.high) + 1e-9).floor() as i32;
                if last - first < 2 && self.scale == Scale::Log10 {
                    // Less than two decades: round numbers between the powers too.
                    let digits =
                        (first - 1..=last).flat_map(|power| [1.0, 2.0, 5.0].map(|d| d * base.powi(power)));
                    return digits.filter(|tick| (self.low..=self.high).contains(tick)).collect();
                }
                let step = ((last - first).max(0) as usize).div_ceil(wanted).max(1);
                (first..=last).step_by(step).map(|power| base.powi(power)).collect()
            }
        }
    }
}

fn column(x: &Range, number: f64) -> usize {
    ((x.place(number) * (COLUMNS - 1) as f64).round() as usize).min(COLUMNS - 1)
}

fn row(y: &Range, number: f64) -> usize {
    ROWS - 1 - ((y.place(number) * (ROWS - 1) as f64).round() as usize).min(ROWS - 1)
}

/// Dots between neighbouring points, one in each column.
fn draw_line(canvas: &mut [[char; COLUMNS]], x: &Range, y: &Range, curve: &[(f64, f64)]) {
    for pair in curve.windows(2) {
        let (from, to) = (column(x, pair[0].0), column(x, pair[1].0));
        let (low, high) = (y.place(pair[0].1), y.place(pair[1].1));
        for step in 1..to - from {
            let share = step as f64 / (to - from) as f64;
            let place = low + (high - low) * share;
            let row = ROWS - 1 - (place * (ROWS - 1) as f64).round() as usize;
            let cell = &mut canvas[row][from + step];
            if *cell == ' ' {
                *cell = '·';
            }
        }
    }
}

fn frame(figure: &Figure, canvas: &[[char; COLUMNS]], x: &Range, y: &Range) -> String {
    let ticks: Vec<(usize, String)> =
        y.ticks(4).into_iter().map(|tick| (row(y, tick), quantity(tick, &figure.y.unit))).collect();
    let width = ticks.iter().map(|(_, words)| words.chars().count()).max().unwrap_or(0);
    let mut text = format!("{} {}\n", " ".repeat(width), axis_label(&figure.y));
    for (place, line) in canvas.iter().enumerate() {
        let tick = ticks.iter().find(|(row, _)| *row == place);
        let (words, edge) = tick.map_or(("", '│'), |(_, words)| (words.as_str(), '┤'));
        let line: String = line.iter().collect();
        text.push_str(&format!("{} {edge}{}\n", right(words, width), line.trim_end()));
    }

    let mut edge = ['─'; COLUMNS];
    let mut words = String::new();
    for tick in x.ticks(6) {
        let here = column(x, tick);
        let tick = quantity(tick, &figure.x.unit);
        let begin = here.saturating_sub(tick.chars().count() / 2);
        // A label that would touch the one before it is left out, with its mark.
        let free = words.chars().count();
        if begin > free || free == 0 {
            words = left(&words, begin) + &tick;
            edge[here] = '┬';
        }
    }
    let edge: String = edge.iter().collect();
    text.push_str(&format!("{} └{edge}\n", " ".repeat(width)));
    text.push_str(&format!("{}  {words}\n", " ".repeat(width)));
    text.push_str(&format!("{}  {}\n", " ".repeat(width), axis_label(&figure.x)));
    text
}

fn axis_label(axis: &Axis) -> String {
    // The unit stands at the ticks.
    axis.label.clone()
}

fn legend(series: &[&Series], limits: &[(&str, f64)], axis: &Axis) -> String {
    let mut text = String::from("\n");
    for (series, mark) in series.iter().zip(MARKS.iter().cycle()) {
        let known = series.points.iter().any(|point| point.value.is_some());
        let missing = if known { String::new() } else { format!(": {}", record::format::NEEDS_GPU) };
        text.push_str(&format!("{mark} {}{missing}\n", label(series)));
    }
    for (label, limit) in limits {
        text.push_str(&format!("╌ {label}: {}\n", quantity(*limit, &axis.unit)));
    }
    text
}

use record::{Axis, Cell, Entry, Figure, HeatMap, Kind, Output, Point, Series, Table, Text, Value};

use super::*;

fn cell_of(outputs: Vec<Output>) -> Cell {
    Cell { id: "c".into(), title: "What it is".into(), seconds: 0.0, order_dependent: false, outputs }
}

fn value(name: &str, point: impl Into<Point>, unit: &str) -> Output {
    Output::Value(Value {
        name: name.into(),
        kind: Kind::Measured,
        unit: unit.into(),
        point: point.into(),
        note: String::new(),
    })
}

/// The rendered cell below its title, with plain spaces.
fn rendered(outputs: Vec<Output>) -> String {
    let text = cell(&cell_of(outputs), true).replace(format::SPACE, " ");
    let (_, body) = text.split_once("─\n").unwrap();
    body.to_owned()
}

#[test]
fn values_are_aligned_and_times_that_need_a_gpu_say_so() {
    let sampled = Point { value: Some(0.0148), low: Some(0.0146), high: Some(0.0151), samples: Some(25) };
    assert_eq!(
        rendered(vec![
            Output::Text(Text { kind: Kind::Exact, text: "1 + 2 = 3\n".into() }),
            value("kernel", sampled, "s"),
            value("h2d", None::<f64>, "s"),
        ]),
        "  1 + 2 = 3\n\n  kernel  14.8 ms  (14.6–15.1 ms)\n  h2d     needs a GPU\n\n"
    );
}

#[test]
fn only_a_time_on_the_emulated_gpu_needs_a_gpu() {
    let table = Table::new("t").exact("kernel", "").exact("sectors", "").measured("time", "s").row([
        "scalar".into(),
        Entry::NeedsGpu(()),
        Entry::NeedsGpu(()),
    ]);
    let last_line = |emulated: bool| {
        let text = cell(&cell_of(vec![Output::Table(table.clone())]), emulated);
        text.trim_end().lines().last().unwrap().to_owned()
    };
    assert_eq!(last_line(true), "  scalar        –  needs a GPU");
    assert_eq!(last_line(false), "  scalar        –     –");
}

#[test]
fn tables_have_their_units_where_they_can_be_read() {
    let table = Table::new("t")
        .exact("kernel", "")
        .exact("sectors per load request", "")
        .measured("rate", "GB/s")
        .measured("time", "s")
        .row(["scalar".into(), 4.into(), 3440.2.into(), 0.00075.into()])
        .row(["float4".into(), 16.into(), Entry::NeedsGpu(()), 0.0000023.into()]);
    let expected = "
           sectors
          per load         rate
  kernel   request         GB/s     time
  ──────  ────────  ───────────  ───────
  scalar         4        3 440   750 µs
  float4        16  needs a GPU  2.30 µs

";
    let text = rendered(vec![Output::Table(table)]);
    assert_eq!(text, expected.trim_start_matches('\n'));
}

#[test]
fn a_sketch_fits_into_80_columns_and_shows_every_point() {
    let mut fast = Series::measured("fast", "GB/s");
    let mut slow = Series::measured("slow", "GB/s");
    for power in 10..=28 {
        let n = 1u64 << power;
        fast.push(n, 4400.0 * (n as f64 / (n as f64 + 3e6)));
        slow.push(n, 3300.0 * (n as f64 / (n as f64 + 6e6)));
    }
    let figure = Figure::new("How fast?", "")
        .x(Axis::log2("elements", ""))
        .y(Axis::linear("rate", "GB/s"))
        .series(["fast", "slow"])
        .limit("copy", "copy, measured");
    let text = rendered(vec![
        Output::Series(fast),
        Output::Series(slow),
        value("copy", 4380.0, "GB/s"),
        Output::Figure(figure),
    ]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("● fast") && text.contains("○ slow"), "{text}");
    assert!(text.contains("╌ copy, measured: 4 380 GB/s"), "{text}");
    assert!(text.contains("4 000 GB/s ┤"), "{text}");
    let line_of = |words: &str| text.lines().position(|line| line.contains(words)).unwrap();
    assert!(line_of("How fast?") < line_of("rate"), "{text}");
}

#[test]
fn labels_are_bars_and_missing_numbers_are_told() {
    let series =
        Series::measured("s", "GB/s").point("tree", 100.0).point("shuffle", 200.0).point("x", None::<f64>);
    let figure =
        Figure::new("Who?", "").x(Axis::labels("step")).y(Axis::linear("rate", "GB/s")).series(["s"]);
    let text = rendered(vec![Output::Series(series), Output::Figure(figure)]);
    let bar = |name: &str| {
        text.lines().find(|line| line.contains(name)).unwrap().chars().filter(|c| *c == '█').count()
    };
    assert_eq!((bar("tree"), bar("shuffle")), (18, 36), "{text}");
    assert!(text.contains("x         needs a GPU"), "{text}");
}

#[test]
fn a_figure_without_a_single_number_says_why() {
    let series = Series::measured("s", "s").point(1, None::<f64>);
    let figure = Figure::new("Who?", "").x(Axis::log2("n", "")).series(["s"]);
    assert!(rendered(vec![Output::Series(series), Output::Figure(figure)]).contains("needs a GPU"));
}

#[test]
fn one_point_and_equal_points_can_be_drawn() {
    for points in [&[(4, 1.0)][..], &[(4, 0.0), (4, 0.0)], &[(4, -1.0), (8, -1.0)]] {
        let mut series = Series::exact("s", "");
        for (x, y) in points {
            series.push(*x, *y);
        }
        for axis in [Axis::linear("y", ""), Axis::log10("y", "")] {
            let figure = Figure::new("f", "").x(Axis::log2("x", "")).y(axis).series(["s"]);
            rendered(vec![Output::Series(series.clone()), Output::Figure(figure)]);
        }
    }
}

#[test]
fn a_short_logarithmic_axis_has_more_than_one_number() {
    let series = Series::measured("s", "s").point(1, 1.2e-6).point(2, 40e-6);
    let figure = Figure::new("f", "").x(Axis::log2("n", "")).y(Axis::log10("time", "s")).series(["s"]);
    let text = rendered(vec![Output::Series(series), Output::Figure(figure)]);
    for tick in ["2 µs ┤", "5 µs ┤", "10", "20"] {
        assert!(text.contains(tick), "{tick}: {text}");
    }
}

#[test]
fn a_heat_map_is_numbers_or_shades() {
    let map = |columns: u32| {
        let mut map = HeatMap::exact("m", "Which bank?", "")
            .amounts("lanes", "")
            .rows("access")
            .columns("bank", 0..columns);
        map.push("row", (0..columns).map(|_| 1.0));
        map.push("column", (0..columns).map(|bank| if bank == 0 { Some(32.0) } else { None }));
        rendered(vec![Output::HeatMap(map)])
    };
    assert!(map(4).contains("row      1  1  1  1\n"), "{}", map(4));
    assert!(map(4).contains("column  32\n"), "{}", map(4));
    assert!(map(32).contains("· is none, █ is 32") && map(32).contains("column  █······"), "{}", map(32));
    assert!(map(32).lines().chain(map(100).lines()).all(|line| line.chars().count() <= 80));
    assert!(map(100).contains("see the page"), "{}", map(100));
}

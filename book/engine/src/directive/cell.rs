//! What a cell gave: its outputs, its figure, and the head of a chapter's page. Here it is decided which record each output is
//! read from; `html` and `plot` draw it.

use std::borrow::Cow;

use record::{Cell, Entry, Figure, HeatMap, Kind, Output, Record, Table};

use super::{Page, checked};
use crate::html::{self, OutputInput, Shown, StateInput};
use crate::plot::{self, Curve, FigureInput, HeatMapInput, Line, TimelineInput};
use crate::records::{EMULATED, GPU, LOCAL, Loaded, State, speed_ratio};
use crate::reference::{Reference, known_chapter, record};

/// `out CELL`.
pub(super) fn out(page: &Page<'_>, arguments: &str) -> Result<String, String> {
    let reference = Reference::parse(arguments)?;
    if reference.name.is_some() || reference.x.is_some() {
        return Err(format!("`out` shows a whole cell: write {}.{}", reference.chapter, reference.cell));
    }
    let chapter = known_chapter(&reference, page.root)?;
    let sources = sources(page, &reference, chapter)?;
    let own = own(page, chapter, &reference.cell);
    let parts = recorded_outputs(&sources);
    let title =
        sources.iter().find_map(|source| source.cell).map(|cell| cell.title.as_str()).unwrap_or_default();
    let reference_cell = sources.iter().find(|source| source.slug == GPU).and_then(|source| source.cell);
    let recorded = sources
        .iter()
        .zip(&parts)
        .filter(|(source, part)| !part.is_empty() || source.is_worth_a_word(&parts))
        .map(|(source, part)| Shown {
            slug: &source.slug,
            record: source.record,
            outputs: part.iter().map(Cow::as_ref).collect(),
            state: source.state.clone(),
        })
        .collect();
    checked(html::output_block(&OutputInput {
        id: page.unique_id(&format!("{}-{}", chapter, reference.cell)),
        reference: format!("{}.{}", reference.chapter, reference.cell),
        chapter,
        title,
        recorded,
        own: own.as_ref().map(|own| own.shown(reference_cell)),
    }))
}

/// `plot CELL` or `plot CELL.FIGURE`; a cell that has no figure shows its timelines.
pub(super) fn plot(page: &Page<'_>, arguments: &str) -> Result<String, String> {
    let reference = Reference::parse(arguments)?;
    if reference.x.is_some() {
        return Err(format!("`{reference}`: a figure has no [x]"));
    }
    let chapter = known_chapter(&reference, page.root)?;
    let sources = sources(page, &reference, chapter)?;
    let own = own(page, chapter, &reference.cell);
    // The GPU's record says how it is drawn, and where there is none yet the emulated GPU's, or the reader's own.
    let cells: Vec<(&Source<'_>, &Cell)> =
        sources.iter().filter_map(|source| Some((source, source.cell?))).collect();
    let name = reference.name.as_deref().unwrap_or_default();
    let own_cell = own.as_ref().and_then(|own| own.cell);
    let mut drawn_from = cells.iter().map(|(_, cell)| *cell).chain(own_cell);
    let figure = drawn_from.find_map(|cell| choose_figure(cell, reference.name.as_deref()));
    let Some(figure) = figure else {
        let is_map = cells.iter().any(|(_, cell)| choose_heat_map(cell, reference.name.as_deref()).is_some());
        return match heat_maps(page, &reference, &cells, own.as_ref()) {
            maps if !maps.is_empty() => checked(maps),
            // It is measured, and the record that measured it is not there.
            _ if is_map => Err(record(page.records, reference.gpu.as_deref().unwrap_or(GPU), chapter)
                .err()
                .unwrap_or_else(|| format!("`{reference}` is in no record that it is read from"))),
            _ => timelines(page, &reference, &cells, own.as_ref()),
        };
    };
    let mut curves = Vec::new();
    let mut limits = Vec::new();
    for (source, cell) in &cells {
        let wanted = |kind| source.gives(kind, &cells);
        curves.extend(curves_of(figure, cell, source, false).filter(|curve| wanted(curve.series.kind)));
        limits.extend(limits_of(figure, cell, source, false).filter(|line| wanted(line.value.kind)));
    }
    if let Some((source, cell)) = own.as_ref().and_then(|own| Some((own, own.cell?))) {
        curves.extend(curves_of(figure, cell, source, true));
        limits.extend(limits_of(figure, cell, source, true));
    }
    for place in 0..figure.series.len() {
        if !curves.iter().any(|curve| curve.place == place) {
            let series = &figure.series[place];
            let nowhere = || {
                format!(
                    "`{reference}` shows the series `{series}`, which no record has where it is read from"
                )
            };
            let slug = reference.gpu.as_deref().unwrap_or(GPU);
            return Err(record(page.records, slug, chapter).err().unwrap_or_else(nowhere));
        }
    }
    let id = page.unique_id(&format!("plot-{chapter}-{}-{name}", reference.cell));
    checked(plot::figure(&FigureInput { id: id.trim_end_matches('-').to_owned(), figure, curves, limits }))
}

/// `state CHAPTER`.
pub(super) fn state<'a>(page: &Page<'a>, arguments: &'a str) -> Result<String, String> {
    let chapter = page.root.chapter(arguments).map_err(|error| format!("{error}"))?;
    let shown = |slug: &'a str| match page.records.get(slug, &chapter.name) {
        Some(loaded) => Shown {
            slug: &loaded.slug,
            record: loaded.record.as_ref().ok(),
            outputs: Vec::new(),
            state: loaded.state.clone(),
        },
        None => Shown { slug, record: None, outputs: Vec::new(), state: State::Missing(String::new()) },
    };
    checked(html::state_block(&StateInput {
        chapter: &chapter.name,
        short: chapter.short(),
        heavy: chapter.heavy,
        recorded: vec![shown(GPU), shown(EMULATED)],
        own: page.records.get(LOCAL, &chapter.name).map(|_| shown(LOCAL)),
    }))
}

/// A record that a cell is read from.
struct Source<'a> {
    slug: Cow<'a, str>,
    record: Option<&'a Record>,
    cell: Option<&'a Cell>,
    state: State,
    /// Named by the page with `@`: everything is read from it.
    named: bool,
}

impl<'a> Source<'a> {
    fn new(slug: &str, loaded: Option<&'a Loaded>, cell: &str) -> Source<'a> {
        let record = loaded.and_then(|loaded| loaded.record.as_ref().ok());
        Source {
            slug: Cow::Owned(slug.to_owned()),
            record,
            cell: record.and_then(|record| record.cell(cell)),
            state: loaded.map_or(State::Missing(String::new()), |loaded| loaded.state.clone()),
            named: false,
        }
    }

    /// Whether outputs of that kind are read from this record. A cell that the emulated GPU cannot run has its exact outputs in
    /// the GPU's record alone, which the block names.
    fn gives(&self, kind: Kind, cells: &[(&Source<'_>, &Cell)]) -> bool {
        let emulated_has_it = cells.iter().any(|(source, _)| source.slug == EMULATED);
        match kind {
            _ if self.named => true,
            Kind::Measured => self.slug == GPU,
            Kind::Exact => self.slug == EMULATED || !emulated_has_it,
        }
    }

    /// A record without outputs here is named only if something of it is missing: measured outputs that were not recorded.
    fn is_worth_a_word(&self, parts: &[Vec<Cow<'_, Output>>]) -> bool {
        self.named || (self.slug == GPU && self.cell.is_none()) || parts.iter().all(Vec::is_empty)
    }

    fn device(&self) -> &'a str {
        self.record.map(|record| record.provenance.device.as_str()).unwrap_or_default()
    }

    fn shown<'s>(&'s self, recorded: Option<&Cell>) -> Shown<'s> {
        let mut state = self.state.clone();
        if let (State::OtherHardware { ratio, .. }, Some(own), Some(recorded)) =
            (&mut state, self.cell, recorded)
        {
            *ratio = speed_ratio(own, recorded);
        }
        let outputs = self.cell.map(|cell| cell.outputs.iter().collect()).unwrap_or_default();
        Shown { slug: &self.slug, record: self.record, outputs, state }
    }
}

/// The committed records that a cell is read from: the one that the page names, else the GPU's and the emulated GPU's.
fn sources<'a>(page: &Page<'a>, reference: &Reference, chapter: &str) -> Result<Vec<Source<'a>>, String> {
    let slugs = match &reference.gpu {
        Some(gpu) => vec![gpu.as_str()],
        None => vec![GPU, EMULATED],
    };
    let mut sources = Vec::new();
    let mut known: Vec<&str> = Vec::new();
    let mut complaint = None;
    for slug in slugs {
        match record(page.records, slug, chapter) {
            Ok((_, record)) => known.extend(record.all_cells().map(|cell| cell.id.as_str())),
            Err(why) => complaint = complaint.or(Some(why)),
        }
        let mut source = Source::new(slug, page.records.get(slug, chapter), &reference.cell);
        source.named = reference.gpu.is_some();
        sources.push(source);
    }
    // A cell that only the reader has run so far is shown beside "missing": that is how a chapter is written.
    let own = own(page, chapter, &reference.cell);
    if sources.iter().chain(&own).any(|source| source.cell.is_some()) {
        return Ok(sources);
    }
    known.sort_unstable();
    known.dedup();
    Err(match complaint {
        Some(complaint) if known.is_empty() => complaint,
        _ => format!("{chapter} has no cell `{}`; there are: {}", reference.cell, known.join(", ")),
    })
}

/// The reader's own record of this chapter, if there is one.
fn own<'a>(page: &Page<'a>, chapter: &str, cell: &str) -> Option<Source<'a>> {
    page.records.get(LOCAL, chapter).map(|loaded| Source::new(LOCAL, Some(loaded), cell))
}

/// For each source the outputs that are read from it.
fn recorded_outputs<'a>(sources: &[Source<'a>]) -> Vec<Vec<Cow<'a, Output>>> {
    let cells: Vec<(&Source<'_>, &Cell)> =
        sources.iter().filter_map(|source| Some((source, source.cell?))).collect();
    let emulated =
        cells.iter().find(|(source, _)| source.slug == EMULATED && !source.named).map(|(_, cell)| *cell);
    let outputs = |source: &Source<'a>| {
        let outputs = source.cell.map(|cell| cell.outputs.iter()).into_iter().flatten();
        outputs
            .filter(|output| source.gives(kind(output), &cells))
            .map(|output| match (output, emulated) {
                (Output::Table(table), Some(emulated)) if source.slug == GPU => {
                    fill_in(output, table, emulated)
                }
                _ => Cow::Borrowed(output),
            })
            .collect()
    };
    sources.iter().map(outputs).collect()
}

fn kind(output: &Output) -> Kind {
    match output {
        Output::Text(text) => text.kind,
        Output::Value(value) => value.kind,
        Output::Series(series) => series.kind,
        Output::Table(table) if table.columns.iter().all(|column| column.kind == Kind::Exact) => Kind::Exact,
        Output::Table(_) | Output::Timeline(_) => Kind::Measured,
        Output::HeatMap(map) => map.kind,
        // Drawn by `plot`; a figure goes with whichever record gives measured outputs.
        Output::Figure(_) => Kind::Measured,
    }
}

/// A GPU's table whose exact columns come from the emulated GPU's table of the same name, by the rows' first entries: a GPU
/// counts no sectors while it is timed.
fn fill_in<'a>(output: &'a Output, table: &'a Table, emulated: &Cell) -> Cow<'a, Output> {
    let Some(exact) = emulated.table(&table.name).filter(|exact| exact.columns.len() == table.columns.len())
    else {
        return Cow::Borrowed(output);
    };
    let mut filled = table.clone();
    for row in &mut filled.rows {
        let Some(same) = exact.rows.iter().find(|candidate| candidate.first() == row.first()) else {
            continue;
        };
        for ((column, entry), known) in table.columns.iter().zip(row).zip(same) {
            if column.kind == Kind::Exact && *known != Entry::NeedsGpu(()) {
                *entry = known.clone();
            }
        }
    }
    Cow::Owned(Output::Table(filled))
}

/// The heat map of that name, or the cell's only one: the recorded one, and the reader's own where it is another.
fn heat_maps(
    page: &Page<'_>,
    reference: &Reference,
    cells: &[(&Source<'_>, &Cell)],
    own: Option<&Source<'_>>,
) -> String {
    let chosen = |cell| choose_heat_map(cell, reference.name.as_deref());
    let recorded = cells.iter().find_map(|(source, cell)| {
        let map = chosen(cell)?;
        source.gives(map.kind, cells).then_some((*source, map))
    });
    let mine = own.and_then(|own| Some((own, chosen(own.cell?)?)));
    let same = matches!((recorded, mine), (Some((_, recorded)), Some((_, mine))) if recorded.numbers == mine.numbers);
    let shown = recorded
        .map(|found| (found, false))
        .into_iter()
        .chain(mine.filter(|_| !same).map(|found| (found, true)));
    shown
        .map(|((source, map), own)| {
            plot::heat_map(&HeatMapInput {
                id: page.unique_id(&format!("plot-{}-{}-{}", reference.chapter, reference.cell, map.name)),
                map,
                device: source.device(),
                own,
                same,
            })
        })
        .collect()
}

fn choose_heat_map<'a>(cell: &'a Cell, name: Option<&str>) -> Option<&'a HeatMap> {
    let mut maps = cell.outputs.iter().filter_map(|output| match output {
        Output::HeatMap(map) => Some(map),
        _ => None,
    });
    match name {
        Some(name) => maps.find(|map| map.name == name),
        None => maps.next().filter(|_| maps.next().is_none()),
    }
}

/// The figure of that name, or the cell's only one.
fn choose_figure<'a>(cell: &'a Cell, name: Option<&str>) -> Option<&'a Figure> {
    let mut figures = cell.outputs.iter().filter_map(|output| match output {
        Output::Figure(figure) => Some(figure),
        _ => None,
    });
    match name {
        Some(name) => figures.find(|figure| figure.name == name),
        None => figures.next().filter(|_| figures.next().is_none()),
    }
}

fn curves_of<'a>(
    figure: &'a Figure,
    cell: &'a Cell,
    source: &Source<'a>,
    own: bool,
) -> impl Iterator<Item = Curve<'a>> {
    let device = source.device();
    figure
        .series
        .iter()
        .enumerate()
        .filter_map(move |(place, name)| Some(Curve { series: cell.series(name)?, device, own, place }))
}

fn limits_of<'a>(
    figure: &'a Figure,
    cell: &'a Cell,
    source: &Source<'a>,
    own: bool,
) -> impl Iterator<Item = Line<'a>> {
    let device = source.device();
    figure.limits.iter().filter_map(move |limit| {
        Some(Line { value: cell.value(&limit.value)?, label: &limit.label, device, own })
    })
}

fn timelines(
    page: &Page<'_>,
    reference: &Reference,
    cells: &[(&Source<'_>, &Cell)],
    own: Option<&Source<'_>>,
) -> Result<String, String> {
    let mut html = String::new();
    let recorded = cells.iter().map(|(source, cell)| (*source, *cell, false));
    let mine = own.and_then(|own| Some((own, own.cell?, true)));
    let outputs = recorded
        .chain(mine)
        .flat_map(|(source, cell, own)| cell.outputs.iter().map(move |output| (source, output, own)));
    let mut figures: Vec<&str> = Vec::new();
    for (source, output, own) in outputs {
        match output {
            Output::Timeline(timeline) if reference.name.is_none() => {
                html.push_str(&plot::timeline(&TimelineInput {
                    id: page.unique_id(&format!("plot-{}-{}", reference.chapter, reference.cell)),
                    timeline,
                    device: source.device(),
                    own,
                }))
            }
            Output::Figure(figure) => figures.push(&figure.name),
            Output::HeatMap(map) => figures.push(&map.name),
            _ => {}
        }
    }
    figures.sort_unstable();
    figures.dedup();
    match (html.is_empty(), figures.is_empty()) {
        (false, _) => checked(html),
        (true, true) => {
            Err(format!("`{reference}` has nothing to draw: its cell has no figure and no timeline"))
        }
        (true, false) => {
            Err(format!("`{reference}`: name one of the cell's figures: {}", figures.join(", ")))
        }
    }
}

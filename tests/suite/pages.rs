//! The pages in a browser: nothing from other hosts, no complaint, readable in light and dark and on a phone.

use book::root::Root;
use book::serve::{Options, Server};
use record::{
    Axis, Cell, Entry, Figure, HeatMap, Kind, Lane, Output, Point, Record, Series, Span, Status, Table,
    Timeline, Value,
};
use serde_json::Value as Json;

use crate::browser::Browser;
use crate::fixture::{Fixture, copy_folder, empty_record, repository};

/// Whether the page is wider than the window, and what sticks out. Boxes that scroll by themselves may be wider inside.
const STICKING_OUT: &str = r#"(() => {
    const width = document.documentElement.clientWidth;
    if (document.scrollingElement.scrollWidth <= width) return [];
    return Array.from(document.querySelectorAll("main *"))
        .filter((e) => e.getBoundingClientRect().right > width + 0.5)
        .map((e) => `${e.tagName}.${e.getAttribute("class")}`).slice(0, 8).concat("page");
})()"#;

/// The contrast of every text of our own with what it stands on, where it is below 4.5.
const TOO_FAINT: &str = r#"(() => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgb = (color, under) => {
        canvas.clearRect(0, 0, 1, 1);
        if (under) { canvas.fillStyle = under; canvas.fillRect(0, 0, 1, 1); }
        canvas.fillStyle = color;
        canvas.fillRect(0, 0, 1, 1);
        return Array.from(canvas.getImageData(0, 0, 1, 1).data);
    };
    const light = ([r, g, b]) => {
        const part = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    };
    // A number in a heat map stands on its square.
    const square = (text) => Array.from(text.closest("svg")?.querySelectorAll("rect.heat, rect.cell") ?? []).find((rect) => {
        const inside = (at, from, size) => Number(from) <= Number(at) && Number(at) <= Number(from) + Number(size);
        const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => rect.getAttribute(name));
        return inside(text.getAttribute("x"), x, width) && inside(text.getAttribute("y"), y, height);
    });
    const ground = (element) => {
        const below = element.matches(".value-light, .value-dark") && square(element);
        if (below) return getComputedStyle(below).fill;
        for (let e = element; e; e = e.parentElement) {
            const color = getComputedStyle(e).backgroundColor;
            if (rgb(color)[3] > 250) return color;
        }
        return "white";
    };
    const own = ".lab-out, .lab-out *, .lab-plot, .lab-plot *, .lab-head, .lab-head *, .lab-code *, .lab-tabs *, .lab-claim *, main > p, main > h1, main > h2, main a";
    const faint = new Set();
    for (const element of document.querySelectorAll(own)) {
        const text = Array.from(element.childNodes).some((n) => n.nodeType === 3 && n.textContent.trim());
        if (!text || element.getClientRects().length === 0) continue;
        const style = getComputedStyle(element);
        const color = element.closest("svg") ? style.fill : style.color;
        const below = ground(element);
        const [a, b] = [light(rgb(color, below)), light(rgb(below))].sort((a, b) => b - a);
        const contrast = (a + 0.05) / (b + 0.05);
        if (contrast < 4.5) faint.add(`${element.tagName}.${element.getAttribute("class")}: ${color} on ${below}, ${contrast.toFixed(2)}`);
    }
    return Array.from(faint);
})()"#;

#[test]
fn a_page_with_everything_works_in_a_browser() {
    let fixture = everything();
    let server = fixture.serve(false);
    let page = format!("http://{}/{}.html", server.address(), fixture.chapter);
    let mut browser = Browser::start();

    for theme in ["light", "rust", "coal", "navy", "ayu"] {
        browser.look(1200, 900, false);
        browser.open(&page);
        browser.evaluate(&format!("localStorage.setItem('mdbook-theme', '{theme}')"));
        for width in [1200, 360] {
            browser.look(width, 900, false);
            browser.open(&page);
            assert_eq!(browser.evaluate("document.querySelectorAll('.lab-problem').length"), 0);
            let shown = "Array.from(document.querySelectorAll('.lab-plot svg[role=img]')).filter((e) => e.getClientRects().length).length";
            // The reader's own timeline stands under the recorded one.
            assert_eq!(browser.evaluate(shown), 7, "each figure once, {width} px, {theme}");
            assert_eq!(browser.evaluate(STICKING_OUT), Json::from(Vec::<Json>::new()), "{width} px, {theme}");
            assert_eq!(browser.evaluate(TOO_FAINT), Json::from(Vec::<Json>::new()), "{width} px, {theme}");
        }
    }
    let small = "Math.min(...Array.from(document.querySelectorAll('.lab-plot .lab-narrow svg[role=img] text')).map((e) => e.getBoundingClientRect().height))";
    let small = browser.evaluate(small).as_f64().expect("a number");
    assert!(small >= 9.0, "text in a figure is {small} px high on a phone");
    nothing_foreign(&browser, &server);
}

#[test]
fn a_figure_is_read_out_by_pointer_and_keys() {
    let fixture = everything();
    let server = fixture.serve(false);
    let mut browser = Browser::start();
    browser.look(1200, 900, false);
    browser.open(&format!("http://{}/{}.html", server.address(), fixture.chapter));
    let place = browser.evaluate(
        "(() => { const svg = document.querySelector('.lab-wide svg[data-stops]'); svg.scrollIntoView({ block: 'center', behavior: 'instant' });
           const r = svg.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; })()",
    );
    let (x, y) = (place[0].as_f64().expect("a number"), place[1].as_f64().expect("a number"));
    browser.point(x, y);
    let read = browser.evaluate("document.querySelector('.lab-readout')?.innerText ?? ''");
    let read = read.as_str().expect("text");
    assert!(read.contains("float4") && read.contains("GB/s"), "{read:?}");

    // The arrow keys turn the pages of the book, but not while a figure has the focus.
    browser.evaluate("document.querySelector('.lab-wide svg[data-stops]').focus()");
    browser.press("ArrowRight");
    let here = browser.evaluate("location.pathname");
    assert_eq!(here, format!("/{}.html", fixture.chapter));
    let first = browser.evaluate("document.querySelector('.lab-readout').innerText");
    browser.press("ArrowRight");
    assert_ne!(browser.evaluate("document.querySelector('.lab-readout').innerText"), first);
    browser.press("Escape");
    assert_eq!(browser.evaluate("document.querySelector('.lab-readout')"), Json::Null);
    nothing_foreign(&browser, &server);
}

#[test]
fn a_choice_of_language_holds_for_every_page() {
    let fixture = everything();
    let server = fixture.serve(false);
    let page = format!("http://{}/{}.html", server.address(), fixture.chapter);
    let mut browser = Browser::start();
    browser.open(&page);
    browser.evaluate("document.querySelectorAll('.lab-tab-label')[1].click()");
    browser.open(&page);
    let shown = browser.evaluate(
        "Array.from(document.querySelectorAll('.lab-tab-panel')).map((e) => e.getClientRects().length > 0)",
    );
    assert_eq!(shown, Json::from(vec![false, true]));
}

#[test]
fn the_run_button_runs_the_chapter_and_the_page_follows() {
    let fixture = Fixture::new("button");
    with_theme(&fixture);
    let server = fixture.serve(false);
    let mut browser = Browser::start();
    browser.open(&format!("http://{}/{}.html", server.address(), fixture.chapter));
    browser.evaluate("document.querySelector('button[data-run]').click()");
    let wait = |text: &str| {
        format!(
            "(async () => {{ for (let i = 0; i < 2400; i++) {{ if (document.body?.innerText.includes('{text}')) return true; await new Promise((r) => setTimeout(r, 50)); }} return document.body.innerText; }})()"
        )
    };
    assert_eq!(browser.evaluate(&wait("copies 1/2")), true);
    assert_eq!(browser.evaluate("document.querySelector('button[data-run]').disabled"), true);
    browser.evaluate("window.before = 1");
    fixture.step("go");
    // The page loads again by itself; a script that waits across that would be cut off.
    let start = std::time::Instant::now();
    while browser.evaluate("window.before ?? 0") == 1 {
        assert!(start.elapsed() < crate::fixture::PATIENCE, "the page does not refresh");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(browser.evaluate(&wait("yours: Emulated H200")), true);
    let quiet = "(async () => { while (document.readyState !== 'complete') await new Promise((r) => setTimeout(r, 20)); return document.querySelector('.lab-live').hidden; })()";
    assert_eq!(browser.evaluate(quiet), true);
    nothing_foreign(&browser, &server);
}

#[test]
fn every_page_of_the_book_fits_a_phone_and_asks_no_other_host() {
    let root = Root::open(repository()).expect("the repository");
    let server = Server::start(&root, &Options { port: 0, open: false, run: false }).expect("a server");
    let mut browser = Browser::start();
    browser.look(1200, 900, false);
    browser.open(&format!("http://{}/", server.address()));
    let pages = browser.evaluate("Array.from(new Set(Array.from(document.querySelectorAll('#mdbook-sidebar a[href]')).map((a) => a.href.split('#')[0])))");
    let pages: Vec<String> = serde_json::from_value(pages).expect("addresses");
    assert!(pages.len() >= 3, "{pages:?}");
    for page in &pages {
        for (width, dark) in [(1200, false), (360, true)] {
            browser.look(width, 900, dark);
            browser.open(page);
            assert_eq!(browser.evaluate(STICKING_OUT), Json::from(Vec::<Json>::new()), "{page}, {width} px");
            assert_eq!(browser.evaluate(TOO_FAINT), Json::from(Vec::<Json>::new()), "{page}, {width} px");
            let problems = browser
                .evaluate("Array.from(document.querySelectorAll('.lab-problem')).map((e) => e.innerText)");
            assert_eq!(problems, Json::from(Vec::<Json>::new()), "{page}");
        }
    }
    nothing_foreign(&browser, &server);
}

#[track_caller]
fn nothing_foreign(browser: &Browser, server: &Server) {
    let own = format!("http://{}/", server.address());
    let foreign: Vec<&String> = browser
        .requests
        .iter()
        .filter(|address| {
            !address.starts_with(&own) && !address.starts_with("data:") && *address != "about:blank"
        })
        .collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
}

/// The real theme and its settings in a fixture.
fn with_theme(fixture: &Fixture) {
    copy_folder(&repository().join("book/theme"), &fixture.path("book/theme"));
    std::fs::copy(repository().join("book/book.toml"), fixture.path("book/book.toml")).expect("a copy");
}

/// A fixture whose page shows every kind of block.
fn everything() -> Fixture {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let fixture = Fixture::new(&format!("everything-{count}"));
    with_theme(&fixture);
    fixture.write("kernels/cuda/add_01_scalar.cu", KERNEL);
    fixture.write("kernels/cuda/add_02_guarded.cu", &KERNEL.replace("    c[i]", "    if (i < n) c[i]"));
    fixture.write("tests/peers/add_cupy.py", "import cupy\nc = cupy.asarray(a) + cupy.asarray(b)\n");
    let name = &fixture.chapter;
    let page = format!(
        "# A chapter\n\n{{{{#lab state {name}}}}}\n\nIt takes {{{{#lab val {name}.rates.kernel_time}}}} and no [link](introduction.md) more, `a + b` in words.\n\n\
         ## Steps\n\n{{{{#lab code kernels/add_01_scalar.cu}}}}\n\n{{{{#lab diff kernels/add_01_scalar.cu kernels/add_02_guarded.cu}}}}\n\n\
         {{{{#lab out {name}.rates}}}}\n\n{{{{#lab plot {name}.rates.rise}}}}\n\n{{{{#lab plot {name}.rates.steps}}}}\n\n{{{{#lab plot {name}.counts}}}}\n\n\
         {{{{#lab claim {name}.rates.kernel_time > 1e-6}}}}\n\n{{{{#lab out {name}.counts}}}}\n\n{{{{#lab plot {name}.maps.banks}}}}\n\n{{{{#lab plot {name}.maps.blocks}}}}\n\n{{{{#lab plot {name}.timeline}}}}\n\n\
         {{{{#lab tabs kernels/add_01_scalar.cu tests/peers/add_cupy.py}}}}\n"
    );
    fixture.write(&format!("book/src/{name}.md"), &page);
    for (slug, device, factor) in
        [("h200", "NVIDIA H200", 1.0), ("local", "NVIDIA T4", 0.07), ("emulated", "Emulated H200", 0.0)]
    {
        let mut record = empty_record(name, Status::Complete);
        record.provenance.device = device.into();
        record.provenance.emulated = factor == 0.0;
        record.provenance.driver = "580.159.04".into();
        record.provenance.facts.insert("SM clock".into(), "1980 MHz".into());
        record.cells = cells(factor);
        save(&fixture, slug, &record);
    }
    fixture
}

fn save(fixture: &Fixture, slug: &str, record: &Record) {
    let path = record::path(&fixture.path("book/records").join(slug), &record.chapter);
    record.save(&path).expect("a record");
}

const KERNEL: &str = "extern \"C\" __global__ void add(const float* a, const float* b, float* c, int n) {\n    const int i = blockIdx.x * blockDim.x + threadIdx.x;  // a line that is longer than a phone is wide\n    c[i] = a[i] + b[i];\n}\n";

/// What a run gives on a device of that speed; 0 is the emulated GPU, which has no times.
fn cells(factor: f64) -> Vec<Cell> {
    let sampled = |value: f64| match factor {
        0.0 => Point::default(),
        _ => {
            Point { value: Some(value), low: Some(value * 0.97), high: Some(value * 1.04), samples: Some(25) }
        }
    };
    let value = |name: &str, value: f64, unit: &str| {
        Output::Value(Value {
            name: name.into(),
            kind: Kind::Measured,
            unit: unit.into(),
            point: sampled(value),
            note: String::new(),
        })
    };
    let rise = |name: &str, label: &str, peak: f64| {
        let mut series = Series::measured(name, "GB/s").label(label);
        for power in 10..=28 {
            let n = f64::from(2_u32.pow(power));
            series.push(n, sampled(factor * peak * n / (n + 4e6)));
        }
        Output::Series(series)
    };
    let mut steps = Series::measured("time", "s").label("time");
    for (step, seconds) in [("allocate", 3e-4), ("copy to the device", 1.9e-2), ("kernel", 7e-4)] {
        steps.push(step, sampled(seconds / factor));
    }
    let mut sectors = Series::exact("sectors", "").label("sectors a request");
    let mut table = Table::new("strides")
        .exact("stride", "elements")
        .exact("sectors/request", "")
        .measured("useful rate", "GB/s");
    for power in 0..=6 {
        let stride = f64::from(2_u32.pow(power));
        let count = (4.0 * stride).min(32.0);
        sectors.push(stride, count);
        let rate = if factor == 0.0 { Entry::NeedsGpu(()) } else { Entry::Number(factor * 4262.3 / stride) };
        table.push([Entry::Number(stride), Entry::Number(count), rate]);
    }
    let span = |name: &str, start_us: f64, end_us: f64| Span { name: name.into(), start_us, end_us };
    let timeline = Timeline {
        title: "The device waits while the host copies".into(),
        alt: "Three lanes: the kernel fills a tenth of the time.".into(),
        lanes: vec![
            Lane {
                name: "NVTX ch90".into(),
                spans: vec![span("h2d", 0.0, 3800.0), span("measure", 3900.0, 7000.0)],
            },
            Lane { name: "CUDA API".into(), spans: vec![span("cuMemcpyHtoD_v2", 10.0, 3790.0)] },
            Lane {
                name: "stream 7".into(),
                spans: (0..400)
                    .map(|i| span("add", 4000.0 + 5.0 * f64::from(i), 4004.0 + 5.0 * f64::from(i)))
                    .collect(),
            },
        ],
    };
    let cell = |id: &str, outputs: Vec<Output>| Cell {
        id: id.into(),
        title: "What it costs".into(),
        seconds: 1.0,
        order_dependent: false,
        outputs,
    };
    let rates = Figure::new(
        "Only float4 comes near the copy",
        "Two curves rise; the higher comes near the dashed line.",
    )
    .name("rise")
    .x(Axis::log2("elements", ""))
    .y(Axis::linear("useful bytes per second", "GB/s"))
    .series(["scalar", "float4"])
    .limit("copy", "a kernel that only copies");
    let bars = Figure::new(
        "The copies take nearly all the time",
        "Three bars; the middle one is by far the longest.",
    )
    .name("steps")
    .x(Axis::labels("step"))
    .y(Axis::linear("time", "s"))
    .series(["time"]);
    let counts = Figure::new(
        "A stray step fetches eight times the bytes",
        "A curve doubles from 4 to 32 and stays there.",
    )
    .x(Axis::log2("stride", "elements"))
    .y(Axis::log2("sectors a request", ""))
    .series(["sectors"]);
    let mut banks = HeatMap::exact("banks", "Which bank does each lane want?", "A column of 32s.")
        .amounts("lanes", "")
        .rows("access")
        .columns("bank", 0..32);
    for (access, step) in [("row", 1), ("column", 32), ("padded column", 33)] {
        let wanting = |bank: u32| (0..32).filter(|lane| lane * step % 32 == bank).count() as f64;
        banks.push(access, (0..32).map(wanting));
    }
    let mut blocks = HeatMap::exact("blocks", "Which block wrote which element?", "Four squares.")
        .identities("block")
        .rows("y")
        .columns("x", 0..8);
    for y in 0..8 {
        blocks.push(y, (0..8).map(|x| f64::from(x / 4 + y / 4 * 2)));
    }
    vec![
        cell(
            "rates",
            vec![
                value("kernel_time", 3.4e-6 / factor, "s"),
                value("copy", 4512.0 * factor, "GB/s"),
                rise("scalar", "scalar", 3440.0),
                rise("float4", "float4", 4396.0),
                Output::Series(steps),
                Output::Figure(rates),
                Output::Figure(bars),
            ],
        ),
        cell("counts", vec![Output::Series(sectors), Output::Table(table), Output::Figure(counts)]),
        cell("maps", vec![Output::HeatMap(banks), Output::HeatMap(blocks)]),
        // A profiler sees a GPU only.
        cell("timeline", if factor == 0.0 { Vec::new() } else { vec![Output::Timeline(timeline)] }),
    ]
}

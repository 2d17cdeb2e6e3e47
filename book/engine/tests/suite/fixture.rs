//! A small repository: one chapter, two kernels, one page, records of an emulated GPU and of an H200.

use std::fs;
use std::path::{Path, PathBuf};

use book::root::Root;
use book::static_book::{self, Options, Problem};
use record::{
    Axis, Cell, Figure, HeatMap, Input, InputKind, Kind, Output, Provenance, Record, SCHEMA, Series, Status,
    Table, Text, Value,
};
use tempfile::TempDir;

pub(crate) const CHAPTER: &str = "ch01-sample";

const SOURCE: &str = "\
//! The chapter.

// ANCHOR: add
/// Adds.
pub fn add(a: u32, b: u32) -> u32 {
    // one and one
    a + b
}
// ANCHOR_END: add
";

const KERNEL: &str = "\
extern \"C\" __global__ void copy_01_scalar(const float* a, float* b) {
    // ANCHOR: copy
    b[threadIdx.x] = a[threadIdx.x];
    // ANCHOR_END: copy
}
";

const PTX: &str = "\
// copy
.version 8.0
.target sm_75
.address_size 64
.visible .entry copy_01_scalar()
{
\tret;
}
";

pub(crate) struct Fixture {
    folder: TempDir,
}

impl Fixture {
    /// The repository with this page for its chapter.
    pub(crate) fn new(page: &str) -> Fixture {
        let fixture = Fixture { folder: tempfile::tempdir().expect("a temporary folder") };
        fixture.write(
            "book/book.toml",
            "[book]\ntitle = \"Sample\"\n\n[preprocessor.lab]\ncommand = \"false\"\nrenderers = [\"html\"]\nbefore = \
             [\"links\"]\n\n[output.html.playground]\nrunnable = false\n",
        );
        fixture.write("book/src/SUMMARY.md", "# Summary\n\n- [Sample](ch01-sample.md)\n");
        fixture.page(page);
        fixture.write(
            "chapters/ch01-sample/Cargo.toml",
            "[package]\nname = \"ch01-sample\"\nversion = \"0.0.0\"\n\n[package.metadata.lab]\ntitle = \"What is \
             one?\"\nlibraries = [\"cudarc\"]\nparameters = { largest = 1024 }\n",
        );
        fixture.write("chapters/ch01-sample/src/lib.rs", SOURCE);
        fixture.write("kernels/cuda/copy_01_scalar.cu", KERNEL);
        fixture.write(
            "kernels/cuda/copy_02_guard.cu",
            &KERNEL
                .replace("    b[thr", "    if (threadIdx.x < 9) b[thr")
                .replace("copy_01_scalar", "copy_02_guard"),
        );
        fixture.write("kernels/ptx/copy_01_scalar.ptx", PTX);
        fixture.write("kernels/ptx/copy_02_guard.ptx", &PTX.replace("copy_01_scalar", "copy_02_guard"));
        fixture.write("profiling/lab/src/timing.rs", "//! Times.\npub fn time() {}\n");
        fixture.write("tests/peers/ch01_numba.py", "# ANCHOR: add\nc = a + b\n# ANCHOR_END: add\n");
        fixture.write("Cargo.toml", "[workspace]\nmembers = [\"chapters/*\"]\n");
        fixture.lock("0.19.10");
        fixture.record("emulated");
        fixture.record("h200");
        fixture
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn root(&self) -> Root {
        Root::open(self.path().to_owned()).expect("the fixture's repository")
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path().join(path)).expect(path)
    }

    pub(crate) fn replace(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert!(text.contains(from), "{path} does not hold {from}");
        self.write(path, &text.replace(from, to));
    }

    pub(crate) fn page(&self, text: &str) {
        self.write("book/src/ch01-sample.md", text);
    }

    pub(crate) fn lock(&self, cudarc: &str) {
        let lock = format!(
            "version = 4\n\n[[package]]\nname = \"cudarc\"\nversion = \"{cudarc}\"\nsource = \"registry\"\n\n\
             [[package]]\nname = \"other\"\nversion = \"1.0.0\"\nsource = \"registry\"\n"
        );
        self.write("Cargo.lock", &lock);
    }

    /// Writes the record that a run on that device leaves now.
    pub(crate) fn record(&self, slug: &str) -> PathBuf {
        self.save(slug, &self.fresh(slug))
    }

    pub(crate) fn save(&self, slug: &str, record: &Record) -> PathBuf {
        let path = record::path(&self.path().join("book/records").join(slug), CHAPTER);
        record.save(&path).expect("a record");
        path
    }

    pub(crate) fn fresh(&self, slug: &str) -> Record {
        let emulated = slug == "emulated";
        let provenance = Provenance {
            device: if emulated { "NVIDIA H200 (emulated)" } else { "NVIDIA H200" }.to_owned(),
            emulated,
            date: "2026-12-03T10:11:12Z".to_owned(),
            driver: if emulated { "" } else { "580.159.04" }.to_owned(),
            seconds: 1.5,
            ..Provenance::default()
        };
        Record {
            schema: SCHEMA,
            chapter: CHAPTER.to_owned(),
            status: Status::Complete,
            provenance,
            inputs: self.inputs(),
            cells: vec![copies(emulated), words()],
            profile: None,
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let input = |kind, name: &str, hash: String| Input { kind, name: name.to_owned(), hash };
        let file = |name: &str| record::inputs::file(&self.path().join(name)).expect(name);
        let source = "chapters/ch01-sample/src/lib.rs";
        let timing = record::inputs::TIMING;
        vec![
            input(InputKind::Source, source, file(source)),
            input(
                InputKind::Kernel,
                "copy_01_scalar",
                record::inputs::ptx(&self.read("kernels/ptx/copy_01_scalar.ptx")),
            ),
            input(InputKind::Timing, timing, file(timing)),
            input(InputKind::Parameter, "largest", "1024".to_owned()),
            input(InputKind::Parameter, "quick", "false".to_owned()),
            input(InputKind::Library, "cudarc", "0.19.10".to_owned()),
        ]
    }

    /// Builds the book; problems fail it.
    pub(crate) fn build(&self) -> Vec<Problem> {
        self.build_with(false)
    }

    pub(crate) fn build_with(&self, problems_on_page: bool) -> Vec<Problem> {
        let options = Options { destination: self.path().join("out"), problems_on_page };
        static_book::build(&self.root(), &options).expect("mdBook runs")
    }

    /// The built page.
    pub(crate) fn html(&self) -> String {
        self.read("out/ch01-sample.html")
    }

    /// What `check` says, a line each.
    pub(crate) fn check(&self) -> Vec<String> {
        book::check::check(&self.root()).expect("the check runs").iter().map(ToString::to_string).collect()
    }
}

/// One line for each problem.
pub(crate) fn lines(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}

/// A cell with counts that the emulated GPU knows and times that the GPU knows.
fn copies(emulated: bool) -> Cell {
    let time = |seconds: f64| (!emulated).then_some(seconds);
    let count = |count: f64| emulated.then_some(count);
    let value = |name: &str, kind, unit: &str, number: Option<f64>| {
        Output::Value(Value {
            name: name.into(),
            kind,
            unit: unit.into(),
            point: number.into(),
            note: String::new(),
        })
    };
    let rate = Series::measured("rate", "GB/s").point(8, time(2000.0)).point(16, time(4000.0));
    let sectors = Series::exact("sectors", "").point(8, 32.0).point("all", 4.0);
    let table = Table::new("strides")
        .exact("stride", "")
        .exact("sectors", "")
        .measured("rate", "GB/s")
        .row([8.into(), count(32.0).into(), time(2000.0).into()]);
    let figure = Figure::new("Where does it stop?", "A line that falls.")
        .x(Axis::log2("stride", ""))
        .y(Axis::linear("rate", "GB/s"))
        .series(["rate"])
        .limit("ceiling", "copy kernel");
    let mut banks = HeatMap::exact("banks", "Which bank does each lane want?", "Two rows.")
        .amounts("lanes", "")
        .rows("access")
        .columns("bank", 0..4);
    banks.push("row", [count(1.0); 4]);
    banks.push("column", [count(4.0), count(0.0), count(0.0), count(0.0)]);
    Cell {
        id: "copies".into(),
        title: "Copies at several strides".into(),
        seconds: 0.5,
        order_dependent: false,
        outputs: vec![
            Output::Text(Text {
                kind: Kind::Exact,
                text: "every element <b>copied</b>\n\nand checked\n".into(),
            }),
            value("elements", Kind::Exact, "", Some(65536.0)),
            value("ceiling", Kind::Measured, "GB/s", time(4262.31)),
            value("trip", Kind::Measured, "s", time(0.0148)),
            Output::Series(rate),
            Output::Series(sectors),
            Output::Table(table),
            Output::Figure(figure),
            Output::HeatMap(banks),
        ],
    }
}

fn words() -> Cell {
    let text = Text { kind: Kind::Exact, text: "said\n".into() };
    Cell {
        id: "words".into(),
        title: "What it says".into(),
        seconds: 0.0,
        order_dependent: false,
        outputs: vec![Output::Text(text)],
    }
}

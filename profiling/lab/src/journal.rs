//! The record of a run, kept on disk while the run goes on.
//!
//! It is written anew, whole, whenever something happens: a cell begins, ends or fails, or the reader stops the run. So a
//! page that is open shows the progress, and what had finished stays when something goes wrong.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use record::{Cell, Input, Provenance, Record, SCHEMA, Status};

/// A run's record and where it is kept.
pub(crate) struct Journal {
    record: Record,
    /// `None` keeps nothing.
    file: Option<PathBuf>,
    /// The ids of all cells, in the order of the story.
    order: Vec<&'static str>,
    /// How many cells this run computes.
    total: usize,
    done: usize,
    begun: Instant,
}

impl Journal {
    /// A record without cells, except for those of the `previous` one that this run does not compute and that still hold:
    /// same device, same sources and parameters. What a profiler added stays too; it has inputs of its own.
    pub(crate) fn new(
        chapter: &str,
        order: Vec<&'static str>,
        computed: &[&'static str],
        provenance: Provenance,
        inputs: Vec<Input>,
        previous: Option<Record>,
        file: Option<PathBuf>,
    ) -> Self {
        let mut record = Record {
            schema: SCHEMA,
            chapter: chapter.to_owned(),
            status: Status::Complete,
            provenance,
            inputs,
            cells: Vec::new(),
            profile: None,
        };
        if let Some(previous) =
            previous.filter(|previous| previous.provenance.device == record.provenance.device)
        {
            if still_holds(&previous, &record) {
                let kept =
                    |cell: &Cell| order.contains(&cell.id.as_str()) && !computed.contains(&cell.id.as_str());
                record.cells = previous.cells.into_iter().filter(kept).collect();
            }
            if !record.cells.is_empty() {
                // The kernels of the cells that stay. If one has changed since, its hash here says so.
                let kernels = previous.inputs.into_iter().filter(is_kernel);
                record.inputs.extend(kernels);
            }
            record.profile = previous.profile;
        }
        Self { record, file, order, total: computed.len(), done: 0, begun: Instant::now() }
    }

    /// A cell is at work.
    pub(crate) fn begin(&mut self, cell: &str) -> Result<()> {
        self.record.status = Status::Running { cell: cell.to_owned(), done: self.done, total: self.total };
        self.save()
    }

    /// A cell has finished, with these kernels loaded so far.
    pub(crate) fn finish(&mut self, cell: Cell, kernels: Vec<Input>) -> Result<()> {
        for kernel in kernels {
            self.record.inputs.retain(|input| !(is_kernel(input) && input.name == kernel.name));
            self.record.inputs.push(kernel);
        }
        self.record.inputs.sort();
        self.record.cells.push(cell);
        let place = |cell: &Cell| self.order.iter().position(|id| *id == cell.id);
        self.record.cells.sort_by_key(place);
        self.done += 1;
        self.save()
    }

    /// Every cell has finished.
    pub(crate) fn complete(&mut self) -> Result<()> {
        self.record.status = Status::Complete;
        self.save()
    }

    /// A cell has failed.
    pub(crate) fn fail(&mut self, cell: &str, message: String) -> Result<()> {
        self.record.status = Status::Failed { cell: cell.to_owned(), message };
        self.save()
    }

    /// The run is being stopped from outside.
    pub(crate) fn interrupt(&mut self) -> Result<()> {
        if let Status::Running { cell, .. } = &self.record.status {
            self.record.status = Status::Interrupted { cell: cell.clone() };
        }
        self.save()
    }

    /// A fact about the machine that was seen during the run.
    pub(crate) fn note(&mut self, name: &str, fact: String) {
        self.record.provenance.facts.insert(name.to_owned(), fact);
    }

    fn save(&mut self) -> Result<()> {
        self.record.provenance.seconds = self.begun.elapsed().as_secs_f64();
        match &self.file {
            Some(file) => self.record.save(file),
            None => Ok(()),
        }
    }
}

fn is_kernel(input: &Input) -> bool {
    input.kind == record::InputKind::Kernel
}

/// Whether cells of the previous record may stand beside those of this one.
fn still_holds(previous: &Record, now: &Record) -> bool {
    let but_kernels = |record: &Record| -> Vec<Input> {
        let mut inputs: Vec<Input> =
            record.inputs.iter().filter(|input| !is_kernel(input)).cloned().collect();
        inputs.sort();
        inputs
    };
    but_kernels(previous) == but_kernels(now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::InputKind;

    fn cell(id: &str) -> Cell {
        Cell { id: id.into(), title: id.into(), seconds: 0.0, order_dependent: false, outputs: Vec::new() }
    }

    fn input(kind: InputKind, name: &str, hash: &str) -> Input {
        Input { kind, name: name.into(), hash: hash.into() }
    }

    /// A journal in a folder, for a run of `computed` of the cells a, b and c.
    struct Sample {
        folder: tempfile::TempDir,
    }

    impl Sample {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().unwrap() }
        }

        fn path(&self) -> PathBuf {
            record::path(self.folder.path(), "ch99-sample")
        }

        fn read(&self) -> Record {
            Record::load(&self.path()).unwrap().unwrap()
        }

        fn start(&self, computed: &[&'static str], source: &str) -> Journal {
            Journal::new(
                "ch99-sample",
                vec!["a", "b", "c"],
                computed,
                Provenance { device: "GPU".into(), ..Provenance::default() },
                vec![input(InputKind::Source, "lib.rs", source)],
                Record::load(&self.path()).unwrap(),
                Some(self.path()),
            )
        }

        fn run(&self, computed: &[&'static str], source: &str) -> Record {
            let mut journal = self.start(computed, source);
            for id in computed {
                journal.begin(id).unwrap();
                journal.finish(cell(id), vec![input(InputKind::Kernel, id, source)]).unwrap();
            }
            journal.complete().unwrap();
            self.read()
        }
    }

    fn ids(record: &Record) -> Vec<&str> {
        record.cells.iter().map(|cell| cell.id.as_str()).collect()
    }

    #[test]
    fn the_record_follows_the_run() {
        let sample = Sample::new();
        let mut journal = sample.start(&["a", "b", "c"], "1");
        journal.begin("a").unwrap();
        assert_eq!(sample.read().status, Status::Running { cell: "a".into(), done: 0, total: 3 });
        journal.finish(cell("a"), Vec::new()).unwrap();
        journal.begin("b").unwrap();
        assert_eq!(sample.read().status, Status::Running { cell: "b".into(), done: 1, total: 3 });
        assert_eq!(ids(&sample.read()), ["a"]);
        journal.fail("b", "no memory".into()).unwrap();
        let failed = sample.read();
        assert_eq!(failed.status, Status::Failed { cell: "b".into(), message: "no memory".into() });
        assert_eq!(ids(&failed), ["a"]);
    }

    #[test]
    fn an_interrupted_run_names_the_cell_that_was_at_work() {
        let sample = Sample::new();
        let mut journal = sample.start(&["a", "b", "c"], "1");
        journal.begin("a").unwrap();
        journal.finish(cell("a"), Vec::new()).unwrap();
        journal.begin("b").unwrap();
        journal.interrupt().unwrap();
        assert_eq!(sample.read().status, Status::Interrupted { cell: "b".into() });
    }

    #[test]
    fn what_has_completed_or_failed_is_not_interrupted_afterwards() {
        let sample = Sample::new();
        let mut journal = sample.start(&["a"], "1");
        journal.begin("a").unwrap();
        journal.fail("a", "why".into()).unwrap();
        journal.interrupt().unwrap();
        assert!(matches!(sample.read().status, Status::Failed { .. }));
    }

    #[test]
    fn one_cell_again_keeps_the_others_in_the_storys_order() {
        let sample = Sample::new();
        sample.run(&["a", "b", "c"], "1");
        let record = sample.run(&["b"], "1");
        assert_eq!(ids(&record), ["a", "b", "c"]);
        let kernels: Vec<&str> =
            record.inputs.iter().filter(|input| is_kernel(input)).map(|input| input.name.as_str()).collect();
        assert_eq!(kernels, ["a", "b", "c"]);
    }

    #[test]
    fn cells_of_other_sources_or_of_another_device_do_not_stay() {
        let sample = Sample::new();
        sample.run(&["a", "b", "c"], "1");
        assert_eq!(ids(&sample.run(&["b"], "2")), ["b"]);

        let mut other = sample.read();
        other.provenance.device = "another".into();
        other.save(&sample.path()).unwrap();
        assert_eq!(ids(&sample.run(&["c"], "2")), ["c"]);
    }

    #[test]
    fn what_a_profiler_added_stays() {
        let sample = Sample::new();
        let mut record = sample.run(&["a"], "1");
        record.profile = Some(record::Profile::default());
        record.save(&sample.path()).unwrap();
        assert!(sample.run(&["a", "b", "c"], "2").profile.is_some());
    }
}

//! What this chapter says is exact is computed again on the emulated GPU, and must equal the
//! committed record.

use std::path::Path;
use std::process::Command;

use record::{Record, Status};

const CHAPTER: &str = env!("CARGO_PKG_NAME");

#[test]
fn exact_outputs_equal_the_committed_ones() {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../book/records/emulated");
    let committed =
        Record::load(&record::path(&records, CHAPTER)).unwrap().expect("the record is committed");
    let folder = tempfile::tempdir().unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_ch10-libraries"))
        .args(["--device", "emulated", "--record"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));

    let computed = Record::load(&record::path(folder.path(), CHAPTER))
        .unwrap()
        .expect("the run leaves a record");
    assert_eq!(computed.status, Status::Complete);
    assert_eq!(computed.exact_outputs(), committed.exact_outputs());
    assert!(!computed.exact_outputs().is_empty());
    assert_eq!(computed.exact_differences(&committed), [""; 0]);
}

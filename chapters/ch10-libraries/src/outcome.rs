//! One operation, done by hand and by a call.

use anyhow::Result;
use lab::libraries::Missing;
use lab::timing::Timing;
use lab::{Cell, Point, Table, row};

/// What came out of an operation that was done in two ways.
pub struct Outcome {
    /// The operation, in a few words.
    pub what: &'static str,
    /// The library.
    pub library: &'static str,
    /// The way without it.
    pub by_hand: &'static str,
    /// What our way took.
    pub hand: Option<Timing>,
    /// How far it was off, as [`cpu::error`](crate::cpu::error) says it.
    pub hand_error: f64,
    /// What the library did.
    pub call: Result<Call, Missing>,
}

/// What a library did.
pub struct Call {
    /// What the call took.
    pub time: Option<Timing>,
    /// How far it was off.
    pub error: f64,
}

impl Outcome {
    /// How many times as fast as by hand the call was.
    pub fn gain(&self) -> Point {
        let call = self.call.as_ref().ok().and_then(|call| call.time);
        match (self.hand, call) {
            (Some(hand), Some(call)) => (hand.median / call.median).into(),
            _ => None::<f64>.into(),
        }
    }

    /// Says it as a table of two rows, a value `gain`, and the reason where the library was not
    /// called.
    pub fn tell(&self, cell: &mut Cell) {
        let mut table =
            Table::new("ways").measured("way", "").measured("time", "s").measured("error", "");
        table.push(row![self.by_hand, self.hand.map(Timing::seconds), self.hand_error]);
        match &self.call {
            Ok(call) => table.push(row![self.library, call.time.map(Timing::seconds), call.error]),
            Err(missing) => cell.measured_text(format!("{missing}.")),
        }
        cell.table(table);
        cell.measured("gain", self.gain(), "");
    }
}

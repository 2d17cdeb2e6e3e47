//! What the emulated GPU counted in a launch.

/// The exact counts of one launch, by the names that the emulated GPU gives them.
#[derive(Clone, Debug, PartialEq)]
pub struct Counts {
    /// The kernel's name.
    pub kernel: String,
    counters: serde_json::Map<String, serde_json::Value>,
}

impl Counts {
    /// A counter by its name, such as `global_load_sectors`.
    pub fn get(&self, counter: &str) -> Option<f64> {
        self.counters.get(counter)?.as_f64()
    }
}

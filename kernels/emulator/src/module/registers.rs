//! Registers of a kernel, as ptxas gave them.
//!
//! Only ptxas knows how many registers a kernel takes on a card. Whoever has asked it can write the answer into the PTX, in
//! comments that every other reader of PTX skips:
//!
//! ```text
//! // ptxas sm_90: vector_add 12 registers
//! ```
//!
//! The emulated GPU takes the number of its own architecture, and estimates where there is none.

use std::collections::HashMap;

/// The registers that comments tell of kernels on cards of this compute capability.
pub(super) fn known<'a>(texts: &[&'a str], (major, minor): (u32, u32)) -> HashMap<&'a str, u32> {
    let lines = texts
        .iter()
        .flat_map(|text| text.lines())
        .filter_map(|line| line.trim_start().strip_prefix("// ptxas sm_"));
    lines
        .filter_map(|line| {
            let (architecture, kernel) = line.split_once(": ")?;
            let architecture = architecture.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
            let (name, registers) = kernel.trim_end().strip_suffix(" registers")?.rsplit_once(' ')?;
            let registers = registers.parse().ok().filter(|registers| (1..=255).contains(registers))?;
            (architecture.parse::<u32>().ok()? == major * 10 + minor).then_some((name, registers))
        })
        .collect()
}

/// What ptxas may give a kernel whose decoded form has so many bytes of rows.
pub(super) fn estimate(row_bytes: u32, max_threads: u32) -> u32 {
    (row_bytes / 128).clamp(16, 255).min(65_536 / max_threads.max(1)).next_multiple_of(8).min(255)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_read_for_the_own_architecture() {
        let text = "// ptxas sm_90: add 12 registers\n// ptxas sm_75: add 14 registers\n  // ptxas sm_90a: mul 40 registers\r\n\
                    // ptxas sm_90: broken registers\n// ptxas sm_90: wild 999 registers\n";
        let found = known(&[text], (9, 0));
        assert_eq!((found.get("add"), found.get("mul"), found.len()), (Some(&12), Some(&40), 2));
        assert_eq!(known(&[text], (7, 5)).get("add"), Some(&14));
    }
}

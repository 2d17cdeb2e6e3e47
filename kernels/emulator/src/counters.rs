//! What a launch did, counted exactly.
//!
//! Instructions are PTX instructions, not SASS: their counts serve for ratios, and never equal Nsight Compute's. Requests
//! and sectors of global memory follow from the addresses alone and equal its
//! `smsp__sass_l1tex_t_{requests,sectors}_pipe_lsu_mem_global_op_*`; wavefronts of shared memory equal its
//! `smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_*` for the same PTX assembled by `ptxas -O0`, since higher
//! levels merge accesses. Pages of managed memory are those that the kernel touched; which of them a GPU would have had to
//! fetch depends on where they were.

use crate::memory::Touched;

/// Counts of one launch, or of a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Instructions that a warp executed, however many of its lanes were active.
    pub warp_instructions: u64,
    /// The same, times the active lanes. Lanes that a guard turned off count, as in `smsp__thread_inst_executed`.
    pub thread_instructions: u64,
    /// Branches that a warp executed.
    pub branches: u64,
    /// Those whose lanes went different ways.
    pub branches_divergent: u64,
    /// Barriers that a block completed.
    pub barriers: u64,
    /// Loads from global memory.
    pub global_load: Sectors,
    /// Stores to global memory.
    pub global_store: Sectors,
    /// Atomics and reductions on global memory.
    pub global_atomic: Sectors,
    /// Loads from local memory.
    pub local_load: Sectors,
    /// Stores to local memory.
    pub local_store: Sectors,
    /// Loads from shared memory.
    pub shared_load: Wavefronts,
    /// Stores to shared memory.
    pub shared_store: Wavefronts,
    /// Atomics and reductions on shared memory.
    pub shared_atomic: Wavefronts,
    /// Pages of managed memory that were touched.
    pub managed: Touched,
}

/// Traffic of a kind of access to global or local memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sectors {
    /// Warp instructions with at least one active lane.
    pub requests: u64,
    /// 32-byte sectors that they touched.
    pub sectors: u64,
}

/// Traffic of a kind of access to shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wavefronts {
    /// Warp instructions with at least one active lane.
    pub instructions: u64,
    /// Passes through the 32 banks that they took.
    pub wavefronts: u64,
    /// Passes beyond those that the width of the access needs.
    pub bank_conflicts: u64,
}

impl Counters {
    /// Every count with the name that `EMULATED_GPU_COUNTERS` gives it.
    pub fn named(&self) -> Vec<(&'static str, u64)> {
        let mut named = vec![
            ("warp_instructions", self.warp_instructions),
            ("thread_instructions", self.thread_instructions),
            ("branches", self.branches),
            ("branches_divergent", self.branches_divergent),
            ("branches_uniform", self.branches - self.branches_divergent),
        ];
        macro_rules! sectors {
            ($($field:ident)*) => {$(
                named.push((concat!(stringify!($field), "_requests"), self.$field.requests));
                named.push((concat!(stringify!($field), "_sectors"), self.$field.sectors));
            )*};
        }
        macro_rules! wavefronts {
            ($($field:ident)*) => {$(
                named.push((concat!(stringify!($field), "_instructions"), self.$field.instructions));
                named.push((concat!(stringify!($field), "_wavefronts"), self.$field.wavefronts));
                named.push((concat!(stringify!($field), "_bank_conflicts"), self.$field.bank_conflicts));
            )*};
        }
        sectors!(global_load global_store global_atomic local_load local_store);
        wavefronts!(shared_load shared_store shared_atomic);
        named.push(("barriers", self.barriers));
        named.push(("managed_pages", self.managed.pages));
        named.push(("managed_pages_written", self.managed.written));
        named.push(("managed_blocks", self.managed.blocks));
        named
    }

    /// Adds the counts of another part of the launch. Two parts may touch the same pages, so these are the launch's own.
    pub fn add(&mut self, other: &Counters) {
        self.warp_instructions += other.warp_instructions;
        self.thread_instructions += other.thread_instructions;
        self.branches += other.branches;
        self.branches_divergent += other.branches_divergent;
        self.barriers += other.barriers;
        for (own, other) in [
            (&mut self.global_load, &other.global_load),
            (&mut self.global_store, &other.global_store),
            (&mut self.global_atomic, &other.global_atomic),
            (&mut self.local_load, &other.local_load),
            (&mut self.local_store, &other.local_store),
        ] {
            own.requests += other.requests;
            own.sectors += other.sectors;
        }
        for (own, other) in [
            (&mut self.shared_load, &other.shared_load),
            (&mut self.shared_store, &other.shared_store),
            (&mut self.shared_atomic, &other.shared_atomic),
        ] {
            own.instructions += other.instructions;
            own.wavefronts += other.wavefronts;
            own.bank_conflicts += other.bank_conflicts;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_under_their_names() {
        let mut part = Counters { branches: 3, branches_divergent: 1, ..Counters::default() };
        part.shared_atomic.bank_conflicts = 7;
        part.local_store.sectors = 5;
        let mut total = part;
        total.add(&part);
        let named: std::collections::HashMap<_, _> = total.named().into_iter().collect();
        assert_eq!(named["branches_uniform"], 4);
        assert_eq!(named["shared_atomic_bank_conflicts"], 14);
        assert_eq!(named["local_store_sectors"], 10);
        assert_eq!(named.len(), 5 + 5 * 2 + 3 * 3 + 1 + 3);
    }
}

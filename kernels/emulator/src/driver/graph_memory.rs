//! Memory of graphs: nodes that allocate and free, and what a device holds for them.

use std::{
    collections::HashMap,
    ffi::c_void,
    sync::{Arc, Mutex},
};

use super::{
    abi::{In, Out, driver},
    allocations,
    error::{CUresult, Result},
    graph::{CUgraph, CUgraphNode},
    graph_nodes::add,
    pool::{Access, PINNED, Properties},
    state::{CUdevice, Context, current, device, lock},
    work::Work,
};
use crate::memory::Kind;

/// Memory of a graph, which goes with the graph if nobody frees it.
pub(crate) struct GraphMemory {
    address: u64,
    bytes: u64,
    number: Option<u64>,
    ordinal: u32,
}

/// `CUDA_MEM_ALLOC_NODE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct AllocateParams {
    properties: Properties,
    access: In<Access>,
    access_count: usize,
    bytes: usize,
    address: u64,
}

/// Bytes in use for graphs and the most that were, by device.
static USED: Mutex<Option<HashMap<u32, (u64, u64)>>> = Mutex::new(None);

driver! {
    /// Adds an allocation, and answers its address, which is the same at every launch.
    call cuGraphAddMemAllocNode 11040 (
        answer: Out<CUgraphNode>, graph: CUgraph, after: In<CUgraphNode>, count: usize, params: Out<AllocateParams>,
    ) {
        add(answer, graph, after, count, || allocate(params))
    }

    /// Adds the end of an allocation.
    call cuGraphAddMemFreeNode 11040 (
        answer: Out<CUgraphNode>, graph: CUgraph, after: In<CUgraphNode>, count: usize, address: u64,
    ) {
        add(answer, graph, after, count, || free(address))
    }

    /// Answers an allocation.
    call cuGraphMemAllocNodeGetParams 11040 (node: CUgraphNode, answer: Out<AllocateParams>) {
        answer.check()?;
        match &*lock(&node.get()?.work) {
            Work::Allocate(memory) => answer.set(AllocateParams {
                properties: Properties::of_device(memory.ordinal as CUdevice),
                access: In::NULL,
                access_count: 0,
                bytes: memory.bytes as usize,
                address: memory.address,
            }),
            _ => Err(CUresult::INVALID_VALUE),
        }
    }

    /// Answers the address that a node frees.
    call cuGraphMemFreeNodeGetParams 11040 (node: CUgraphNode, answer: Out<u64>) {
        answer.check()?;
        match &*lock(&node.get()?.work) {
            Work::Free(address) => answer.set(*address),
            _ => Err(CUresult::INVALID_VALUE),
        }
    }

    /// Answers how much memory graphs use; what is in use is all that is reserved.
    call cuDeviceGetGraphMemAttribute 11040 (ordinal: CUdevice, number: u32, answer: Out<c_void>) {
        let ordinal = device(ordinal)?.ordinal;
        let (used, most) = lock(&USED).get_or_insert_default().get(&ordinal).copied().unwrap_or_default();
        answer.cast::<u64>().set(match number {
            0 | 2 => used,
            1 | 3 => most,
            _ => return Err(CUresult::INVALID_VALUE),
        })
    }

    /// Sets the most that was in use back to what is.
    call cuDeviceSetGraphMemAttribute 11040 (ordinal: CUdevice, number: u32, value: Out<c_void>) {
        let ordinal = device(ordinal)?.ordinal;
        if !matches!(number, 1 | 3) || value.cast::<u64>().read()? != 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        let mut used = lock(&USED);
        let (used, most) = used.get_or_insert_default().entry(ordinal).or_default();
        *most = *used;
        Ok(())
    }

    /// Does nothing: no memory is kept that is not in use.
    call cuDeviceGraphMemTrim 11040 (ordinal: CUdevice) {
        device(ordinal).map(drop)
    }
}

impl GraphMemory {
    /// Memory that was allocated for a graph.
    pub(crate) fn new(context: &Context, address: u64, bytes: u64) -> GraphMemory {
        let ordinal = context.device.ordinal;
        let mut used = lock(&USED);
        let (used, most) = used.get_or_insert_default().entry(ordinal).or_default();
        *used += bytes;
        *most = *used.max(most);
        let number = allocations::find(address).map(|allocation| allocation.number);
        GraphMemory { address, bytes, number, ordinal }
    }
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        if let Some((used, _)) = lock(&USED).get_or_insert_default().get_mut(&self.ordinal) {
            *used = used.saturating_sub(self.bytes);
        }
        // The program may have freed it, and the address may be somebody else's by now.
        if allocations::find(self.address).map(|allocation| allocation.number) == self.number {
            let _freed = allocations::free(self.address, &[Kind::Device]);
        }
    }
}

/// Allocates for a graph, and answers the address in the parameters.
pub(crate) fn allocate(params: Out<AllocateParams>) -> Result<Work> {
    let given = params.read()?;
    if given.properties.kind != PINNED || given.bytes == 0 {
        return Err(CUresult::INVALID_VALUE);
    }
    let owner = given.properties.device()?;
    given.access.list(given.access_count)?;
    let context = current()?;
    if !std::ptr::eq(owner, context.device) {
        return Err(CUresult::NOT_SUPPORTED);
    }
    let bytes = given.bytes as u64;
    let address = allocations::allocate(&context, bytes, Kind::Device, 0, None)?;
    let memory = Arc::new(GraphMemory::new(&context, address, bytes));
    params.set(AllocateParams { address, ..given })?;
    Ok(Work::Allocate(memory))
}

/// Ends an allocation.
pub(crate) fn free(address: u64) -> Result<Work> {
    let found = allocations::find(address).is_some_and(|allocation| allocation.address == address);
    if found { Ok(Work::Free(address)) } else { Err(CUresult::INVALID_VALUE) }
}

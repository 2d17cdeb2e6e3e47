//! `CUgraphNodeParams`: the parameters of a node of whatever type, in one structure.

use std::sync::Arc;

use super::{
    abi::{In, Out, driver},
    copy::Memcpy3D,
    error::{CUresult, Result},
    event::Event,
    graph::{CUgraph, CUgraphExec, CUgraphNode, EdgeData},
    graph_memory::{self, AllocateParams},
    graph_nodes::{self, HostParams, KernelParamsV2, MemsetParams, add, copy_work, set},
    handle::Handle,
    log,
    state::CUcontext,
    work::Work,
};

/// `CUgraphNodeParams`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct NodeParams {
    kind: u32,
    reserved: [u32; 3],
    /// What the type says it is.
    body: [u64; 29],
    reserved_too: u64,
}

/// `CUDA_MEMCPY_NODE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
struct MemcpyParams {
    flags: i32,
    reserved: i32,
    context: CUcontext,
    copy: Memcpy3D,
}

const BODY: usize = std::mem::offset_of!(NodeParams, body);
const _: () = assert!(size_of::<MemcpyParams>() <= size_of::<[u64; 29]>());
const _: () = assert!(size_of::<AllocateParams>() <= size_of::<[u64; 29]>());

driver! {
    /// Adds a node.
    call cuGraphAddNode 12020 (
        answer: Out<CUgraphNode>, graph: CUgraph, after: In<CUgraphNode>, count: usize, params: Out<NodeParams>,
    ) {
        add(answer, graph, after, count, || work(params))
    }

    /// Adds a node. Data of edges loosen an order, which holds here in full.
    call cuGraphAddNode_v2 12030 (
        answer: Out<CUgraphNode>, graph: CUgraph, after: In<CUgraphNode>, _edges: In<EdgeData>, count: usize,
        params: Out<NodeParams>,
    ) {
        add(answer, graph, after, count, || work(params))
    }

    /// Changes a node.
    call cuGraphNodeSetParams 12020 (node: CUgraphNode, params: Out<NodeParams>) {
        node.get()?;
        set(node, changed(params)?)
    }

    /// Changes a node of a graph that can be launched.
    call cuGraphExecNodeSetParams 12020 (exec: CUgraphExec, node: CUgraphNode, params: Out<NodeParams>) {
        exec.get()?.change_work(node, changed(params)?)
    }
}

/// What the parameters stand for. Memory is allocated, and its address answered there.
fn work(params: Out<NodeParams>) -> Result<Work> {
    let kind = params.read()?.kind;
    let body = params.at::<u64>(BODY);
    match kind {
        0 => body.cast::<KernelParamsV2>().read()?.work(),
        1 => {
            let copy = body.cast::<MemcpyParams>();
            if copy.read()?.flags != 0 {
                return Err(CUresult::INVALID_VALUE);
            }
            copy_work(copy.at::<Memcpy3D>(std::mem::offset_of!(MemcpyParams, copy)).input())
        }
        2 => body.cast::<MemsetParams>().read()?.work(),
        3 => body.cast::<HostParams>().read()?.work(),
        4 => graph_nodes::child(body.cast::<CUgraph>().read()?),
        5 => Ok(Work::Empty),
        6 => event(body).map(Work::Wait),
        7 => event(body).map(Work::Record),
        10 => graph_memory::allocate(body.cast()),
        11 => graph_memory::free(body.cast::<u64>().read()?),
        8 | 9 | 12 | 13 => {
            log::once(
                "graphs have no nodes for external semaphores, memory operations of streams and conditions here",
            );
            Err(CUresult::NOT_SUPPORTED)
        }
        _ => Err(CUresult::INVALID_VALUE),
    }
}

/// What parameters stand for that may change a node. Memory stays as it was allocated.
fn changed(params: Out<NodeParams>) -> Result<Work> {
    match params.read()?.kind {
        10 | 11 => Err(CUresult::INVALID_VALUE),
        _ => match work(params)? {
            Work::ChildGraph(child) => Ok(Work::Graph(Arc::new(child.chain()?))),
            other => Ok(other),
        },
    }
}

fn event(body: Out<u64>) -> Result<Handle<Event>> {
    let event: Handle<Event> = body.cast().read()?;
    event.get()?;
    Ok(event)
}

//! `cuGraphAdd*Node` and the parameters of nodes.

use std::{ffi::c_void, sync::Arc};

use super::{
    abi::{In, Out, driver},
    copy::{Copy, Memcpy3D},
    error::{CUresult, Result},
    event::Event,
    function::CUfunction,
    graph::{CUgraph, CUgraphExec, CUgraphNode},
    handle::Handle,
    launch::{KernelLaunch, Shape},
    set::Set,
    state::{CUcontext, lock},
    work::{HostFunction, Work},
};

/// `CUDA_KERNEL_NODE_PARAMS`; the second version has a kernel of a library and a context behind it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct KernelParams {
    function: CUfunction,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared_bytes: u32,
    params: In<In<u8>>,
    extra: In<usize>,
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct KernelParamsV2 {
    first: KernelParams,
    kernel: CUfunction,
    context: CUcontext,
}

/// `CUDA_MEMSET_NODE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct MemsetParams {
    address: u64,
    pitch: usize,
    value: u32,
    element: u32,
    width: usize,
    height: usize,
}

/// `CUDA_HOST_NODE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct HostParams {
    function: Option<extern "C" fn(*mut c_void)>,
    data: *mut c_void,
}

driver! {
    /// Adds a node that only stands in an order.
    call cuGraphAddEmptyNode 10000 (
        answer: Out<CUgraphNode>, graph: CUgraph, after: In<CUgraphNode>, count: usize,
    ) {
        add(answer, graph, after, count, || Ok(Work::Empty))
    }

    /// Adds a kernel.
    call cuGraphAddKernelNode 10000 (
        answer: Out<CUgraphNode>, graph: CUgraph, after: In<CUgraphNode>, count: usize, params: In<KernelParams>,
    ) {
        add(answer, graph, after, count, || params.get()?.work())
    }

    /// Adds a kernel.
    call cuGraphAddKernelNode_v2 12000 (
        answer: Out<CUgraphNode>, graph: CUgraph, after: In<CUgraphNode>, count: usize, params: In<KernelParamsV2>,
    ) {
        add(answer, graph, after, count, || params.get()?.work())
    }

    /// Adds a copy.
    call cuGraphAddMemcpyNode 10000 (
        answer: Out<CUgraphNode>, graph: CUgraph, after: In<CUgraphNode>, count: usize, params: In<Memcpy3D>,
        _context: CUcontext,
    ) {
        add(answer, graph, after, count, || copy_work(params))
    }

    /// Adds a fill.
    call cuGraphAddMemsetNode 10000 (
        answer: Out<CUgraphNode>, graph: CUgraph, after: In<CUgraphNode>, count: usize, params: In<MemsetParams>,
        _context: CUcontext,
    ) {
        add(answer, graph, after, count, || params.get()?.work())
    }

    /// Adds a function of the program.
    call cuGraphAddHostNode 10000 (
        answer: Out<CUgraphNode>, graph: CUgraph, after: In<CUgraphNode>, count: usize, params: In<HostParams>,
    ) {
        add(answer, graph, after, count, || params.get()?.work())
    }

    /// Adds a graph, as it is now.
    call cuGraphAddChildGraphNode 10000 (
        answer: Out<CUgraphNode>, graph: CUgraph, after: In<CUgraphNode>, count: usize, child: CUgraph,
    ) {
        add(answer, graph, after, count, || Ok(Work::Graph(Arc::new(child.get()?.chain()?))))
    }

    /// Adds the recording of an event.
    call cuGraphAddEventRecordNode 11010 (
        answer: Out<CUgraphNode>, graph: CUgraph, after: In<CUgraphNode>, count: usize, event: Handle<Event>,
    ) {
        add(answer, graph, after, count, || event.get().map(|_| Work::Record(event)))
    }

    /// Adds a wait for an event.
    call cuGraphAddEventWaitNode 11010 (
        answer: Out<CUgraphNode>, graph: CUgraph, after: In<CUgraphNode>, count: usize, event: Handle<Event>,
    ) {
        add(answer, graph, after, count, || event.get().map(|_| Work::Wait(event)))
    }

    /// Changes a kernel.
    call cuGraphKernelNodeSetParams 10000 (node: CUgraphNode, params: In<KernelParams>) {
        set(node, params.get()?.work()?)
    }

    /// Changes a kernel.
    call cuGraphKernelNodeSetParams_v2 12000 (node: CUgraphNode, params: In<KernelParamsV2>) {
        set(node, params.get()?.work()?)
    }

    /// Changes a copy.
    call cuGraphMemcpyNodeSetParams 10000 (node: CUgraphNode, params: In<Memcpy3D>) {
        set(node, copy_work(params)?)
    }

    /// Changes a fill.
    call cuGraphMemsetNodeSetParams 10000 (node: CUgraphNode, params: In<MemsetParams>) {
        set(node, params.get()?.work()?)
    }

    /// Changes a function of the program.
    call cuGraphHostNodeSetParams 10000 (node: CUgraphNode, params: In<HostParams>) {
        set(node, params.get()?.work()?)
    }

    /// Answers a fill.
    call cuGraphMemsetNodeGetParams 10000 (node: CUgraphNode, answer: Out<MemsetParams>) {
        answer.check()?;
        match &*lock(&node.get()?.work) {
            Work::Set(set) => answer.set(MemsetParams {
                address: set.address,
                pitch: set.pitch as usize,
                value: set.value,
                element: set.element,
                width: set.width as usize,
                height: set.height as usize,
            }),
            _ => Err(CUresult::INVALID_VALUE),
        }
    }

    /// Answers a function of the program.
    call cuGraphHostNodeGetParams 10000 (node: CUgraphNode, answer: Out<HostParams>) {
        answer.check()?;
        match &*lock(&node.get()?.work) {
            Work::Host(host) => {
                answer.set(HostParams { function: Some(host.function), data: host.data as *mut c_void })
            }
            _ => Err(CUresult::INVALID_VALUE),
        }
    }

    /// Answers the event that a node records.
    call cuGraphEventRecordNodeGetEvent 11010 (node: CUgraphNode, answer: Out<Handle<Event>>) {
        answer.check()?;
        match &*lock(&node.get()?.work) {
            Work::Record(event) => answer.set(*event),
            _ => Err(CUresult::INVALID_VALUE),
        }
    }

    /// Answers the event that a node waits for.
    call cuGraphEventWaitNodeGetEvent 11010 (node: CUgraphNode, answer: Out<Handle<Event>>) {
        answer.check()?;
        match &*lock(&node.get()?.work) {
            Work::Wait(event) => answer.set(*event),
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

    /// Changes a kernel of a graph that can be launched.
    call cuGraphExecKernelNodeSetParams 10010 (exec: CUgraphExec, node: CUgraphNode, params: In<KernelParams>) {
        exec.get()?.change_work(node, params.get()?.work()?)
    }

    /// Changes a kernel of a graph that can be launched.
    call cuGraphExecKernelNodeSetParams_v2 12000 (exec: CUgraphExec, node: CUgraphNode, params: In<KernelParamsV2>) {
        exec.get()?.change_work(node, params.get()?.work()?)
    }

    /// Changes a copy of a graph that can be launched.
    call cuGraphExecMemcpyNodeSetParams 10020 (
        exec: CUgraphExec, node: CUgraphNode, params: In<Memcpy3D>, _context: CUcontext,
    ) {
        exec.get()?.change_work(node, copy_work(params)?)
    }

    /// Changes a fill of a graph that can be launched.
    call cuGraphExecMemsetNodeSetParams 10020 (
        exec: CUgraphExec, node: CUgraphNode, params: In<MemsetParams>, _context: CUcontext,
    ) {
        exec.get()?.change_work(node, params.get()?.work()?)
    }

    /// Changes a function of the program in a graph that can be launched.
    call cuGraphExecHostNodeSetParams 10020 (exec: CUgraphExec, node: CUgraphNode, params: In<HostParams>) {
        exec.get()?.change_work(node, params.get()?.work()?)
    }
}

impl KernelParams {
    fn work(&self) -> Result<Work> {
        let &KernelParams { function, grid, block, dynamic_shared_bytes, params, extra } = self;
        let shape = Shape { grid, block, dynamic_shared_bytes };
        KernelLaunch::new(function, shape, false, params, extra).map(Work::Kernel)
    }
}

impl KernelParamsV2 {
    fn work(&self) -> Result<Work> {
        let mut params = self.first;
        if params.function.is_null() {
            params.function = self.kernel;
        }
        params.work()
    }
}

impl MemsetParams {
    fn work(&self) -> Result<Work> {
        let set = Set {
            address: self.address,
            pitch: self.pitch as u64,
            value: self.value,
            element: self.element,
            width: self.width as u64,
            height: self.height as u64,
        };
        set.check()?;
        Ok(Work::Set(set))
    }
}

impl HostParams {
    fn work(&self) -> Result<Work> {
        let function = self.function.ok_or(CUresult::INVALID_VALUE)?;
        Ok(Work::Host(HostFunction { function, data: self.data as usize }))
    }
}

fn copy_work(params: In<Memcpy3D>) -> Result<Work> {
    let copy = Copy::box_shaped(&params.get()?)?;
    copy.check()?;
    Ok(Work::Copy(copy))
}

fn add(
    answer: Out<CUgraphNode>,
    graph: CUgraph,
    after: In<CUgraphNode>,
    count: usize,
    work: impl FnOnce() -> Result<Work>,
) -> Result {
    answer.check()?;
    let graph = graph.get()?;
    let after = after.list(count)?;
    answer.set(graph.add(work()?, &after)?)
}

fn set(node: CUgraphNode, work: Work) -> Result {
    lock(&node.get()?.work).exchange(work)
}

//! `cuGraphAdd*Node` and the parameters of nodes.

use std::{ffi::c_void, sync::Arc};

use super::{
    abi::{In, Out, driver},
    copy::{Copy, Memcpy3D},
    error::{CUresult, Result},
    event::Event,
    function::CUfunction,
    graph::{CUgraph, CUgraphExec, CUgraphNode, ChildGraph, Node, Told},
    handle::Handle,
    launch::{CLUSTER_DIMENSION, COOPERATIVE, KernelLaunch, LAST_ATTRIBUTE, Shape},
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
        add(answer, graph, after, count, || self::child(child))
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

    /// Answers a kernel. The parameters are the node's, and stay as long as they do not change.
    call cuGraphKernelNodeGetParams 10000 (node: CUgraphNode, answer: Out<KernelParams>) {
        answer.check()?;
        answer.set(kernel_params(&*node.get()?)?)
    }

    /// Answers a kernel. The parameters are the node's, and stay as long as they do not change.
    call cuGraphKernelNodeGetParams_v2 12000 (node: CUgraphNode, answer: Out<KernelParamsV2>) {
        answer.check()?;
        let first = kernel_params(&*node.get()?)?;
        answer.set(KernelParamsV2 { first, kernel: Handle::NULL, context: Handle::NULL })
    }

    /// Answers an attribute of a kernel's launch.
    call cuGraphKernelNodeGetAttribute 11000 (node: CUgraphNode, number: u32, answer: Out<[u64; 8]>) {
        answer.check()?;
        let node = node.get()?;
        let Work::Kernel(launch) = &*lock(&node.work) else { return Err(CUresult::INVALID_VALUE) };
        check_attribute(number)?;
        let mut value = lock(&node.attributes).get(&number).copied().unwrap_or_default();
        if number == COOPERATIVE {
            value[0] = launch.cooperative.into();
        }
        answer.set(value)
    }

    /// Sets an attribute of a kernel's launch.
    call cuGraphKernelNodeSetAttribute 11000 (node: CUgraphNode, number: u32, value: In<[u64; 8]>) {
        let node = node.get()?;
        let Work::Kernel(launch) = &mut *lock(&node.work) else { return Err(CUresult::INVALID_VALUE) };
        check_attribute(number)?;
        let value = value.get()?;
        // The first three words are the dimensions; zeros mean no cluster.
        if number == CLUSTER_DIMENSION && (value[0] | 1 << 32 | 1) != (1 << 32 | 1) {
            return Err(CUresult::NOT_SUPPORTED);
        }
        if number == COOPERATIVE {
            launch.cooperative = value[0] as u32 != 0;
        }
        lock(&node.attributes).insert(number, value);
        Ok(())
    }

    /// Copies the attributes of one kernel's launch to another's.
    call cuGraphKernelNodeCopyAttributes 11000 (to: CUgraphNode, from: CUgraphNode) {
        let (to, from) = (to.get()?, from.get()?);
        let attributes = lock(&from.attributes).clone();
        let Work::Kernel(KernelLaunch { cooperative, .. }) = *lock(&from.work) else {
            return Err(CUresult::INVALID_VALUE);
        };
        let Work::Kernel(launch) = &mut *lock(&to.work) else { return Err(CUresult::INVALID_VALUE) };
        launch.cooperative = cooperative;
        *lock(&to.attributes) = attributes;
        Ok(())
    }

    /// Answers a copy.
    call cuGraphMemcpyNodeGetParams 10000 (node: CUgraphNode, answer: Out<Memcpy3D>) {
        answer.check()?;
        match &*lock(&node.get()?.work) {
            Work::Copy(copy) => answer.set(copy.params()),
            _ => Err(CUresult::INVALID_VALUE),
        }
    }

    /// Changes the event that a node records.
    call cuGraphEventRecordNodeSetEvent 11010 (node: CUgraphNode, event: Handle<Event>) {
        event.get()?;
        set(node, Work::Record(event))
    }

    /// Changes the event that a node waits for.
    call cuGraphEventWaitNodeSetEvent 11010 (node: CUgraphNode, event: Handle<Event>) {
        event.get()?;
        set(node, Work::Wait(event))
    }

    /// Changes the event that a node of a graph that can be launched records.
    call cuGraphExecEventRecordNodeSetEvent 11010 (exec: CUgraphExec, node: CUgraphNode, event: Handle<Event>) {
        event.get()?;
        exec.get()?.change_work(node, Work::Record(event))
    }

    /// Changes the event that a node of a graph that can be launched waits for.
    call cuGraphExecEventWaitNodeSetEvent 11010 (exec: CUgraphExec, node: CUgraphNode, event: Handle<Event>) {
        event.get()?;
        exec.get()?.change_work(node, Work::Wait(event))
    }

    /// Changes the graph that is a node of a graph that can be launched.
    call cuGraphExecChildGraphNodeSetParams 11010 (exec: CUgraphExec, node: CUgraphNode, child: CUgraph) {
        let child = Work::Graph(Arc::new(child.get()?.chain()?));
        exec.get()?.change_work(node, child)
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
    pub(crate) fn work(&self) -> Result<Work> {
        let &KernelParams { function, grid, block, dynamic_shared_bytes, params, extra } = self;
        let shape = Shape { grid, block, dynamic_shared_bytes };
        KernelLaunch::new(function, shape, false, params, extra).map(Work::Kernel)
    }
}

impl KernelParamsV2 {
    pub(crate) fn work(&self) -> Result<Work> {
        let mut params = self.first;
        if params.function.is_null() {
            params.function = self.kernel;
        }
        params.work()
    }
}

impl MemsetParams {
    pub(crate) fn work(&self) -> Result<Work> {
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
    pub(crate) fn work(&self) -> Result<Work> {
        let function = self.function.ok_or(CUresult::INVALID_VALUE)?;
        Ok(Work::Host(HostFunction { function, data: self.data as usize }))
    }
}

/// A copy.
pub(crate) fn copy_work(params: In<Memcpy3D>) -> Result<Work> {
    let copy = Copy::box_shaped(&params.get()?)?;
    copy.check()?;
    Ok(Work::Copy(copy))
}

/// A graph, as it is now.
pub(crate) fn child(graph: CUgraph) -> Result<Work> {
    Ok(Work::ChildGraph(Arc::new(ChildGraph::new(&*graph.get()?)?)))
}

/// The parameters of a node's kernel.
fn kernel_params(node: &Node) -> Result<KernelParams> {
    let Work::Kernel(launch) = &*lock(&node.work) else { return Err(CUresult::INVALID_VALUE) };
    let function = &launch.function;
    let mut told = lock(&node.told);
    if told.as_ref().is_none_or(|told| told.bytes != launch.params) {
        let bytes = launch.params.clone();
        let addresses =
            function.kernel.params.iter().map(|param| bytes.as_ptr().addr() + param.offset as usize);
        let pointers = addresses.collect();
        *told = Some(Told { bytes, pointers });
    }
    let pointers = told.as_ref().filter(|told| !told.pointers.is_empty());
    Ok(KernelParams {
        function: function.module.function(function.module_handle, &function.kernel.name)?,
        grid: launch.grid,
        block: launch.block,
        dynamic_shared_bytes: launch.dynamic_shared_bytes,
        params: pointers.map_or(In::NULL, |told| In::of(told.pointers.as_ptr().cast())),
        extra: In::NULL,
    })
}

/// Fails for attributes that a launch does not have.
fn check_attribute(number: u32) -> Result {
    if (1..=LAST_ATTRIBUTE).contains(&number) { Ok(()) } else { Err(CUresult::INVALID_VALUE) }
}

/// Adds a node.
pub(crate) fn add(
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

/// Changes a node.
pub(crate) fn set(node: CUgraphNode, work: Work) -> Result {
    let work = match work {
        Work::Graph(_) => return Err(CUresult::INVALID_VALUE),
        other => other,
    };
    lock(&node.get()?.work).exchange(work)
}

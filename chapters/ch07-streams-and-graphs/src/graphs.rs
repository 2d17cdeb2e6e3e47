//! A chain of small kernels, launched by hand or as a graph.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use cudarc::driver::sys::{
    self, CUDA_KERNEL_NODE_PARAMS, CUgraph, CUgraphExec, CUgraphExecUpdateResultInfo,
    CUgraphInstantiate_flags, CUgraphNode, CUlaunchAttribute, CUlaunchAttributeID,
    CUlaunchAttributeValue, CUlaunchConfig, CUstreamCaptureMode,
};
use cudarc::driver::{CudaContext, CudaGraph, CudaSlice, CudaStream, DevicePtrMut, result};
use kernels::{chain_01_step, chain_02_early, launch_01_empty};

/// Numbers that a link works on: one a thread of a warp.
pub const NUMBERS: usize = 32;

/// How a link is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// After the link before it has ended.
    Ordinary,
    /// While the link before it runs; it waits itself.
    Early,
    /// Nothing but a launch.
    Empty,
}

/// Numbers on the device, and kernels that pass them on.
pub struct Chain {
    step: chain_01_step::Kernel,
    /// Only where the device has such launches.
    early: Option<chain_02_early::Kernel>,
    empty: launch_01_empty::Kernel,
    numbers: CudaSlice<u32>,
    stream: Arc<CudaStream>,
    expected: Vec<u32>,
}

impl Chain {
    /// A chain on a stream of its own. Turns off the tracking of events in `context`: what is captured into a graph may not
    /// wait for events that were recorded outside of it.
    pub fn new(context: &Arc<CudaContext>) -> Result<Self> {
        // SAFETY: everything here is done in one stream, in order, and `drop` waits for it.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream()?;
        let expected: Vec<u32> = (0..NUMBERS as u32).collect();
        let (major, _) = context.compute_capability()?;
        Ok(Self {
            step: chain_01_step::Kernel::load(context)?,
            early: (major >= 9).then(|| chain_02_early::Kernel::load(context)).transpose()?,
            empty: launch_01_empty::Kernel::load(context)?,
            numbers: stream.clone_htod(&expected)?,
            stream,
            expected,
        })
    }

    /// The stream of the chain.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Whether links of this kind run on this device.
    pub fn has(&self, link: Link) -> bool {
        link != Link::Early || self.early.is_some()
    }

    // ANCHOR: by_hand
    /// Enqueues `links` links, one by one.
    pub fn by_hand(&mut self, link: Link, links: usize, amount: u32) -> Result<()> {
        for _ in 0..links {
            match link {
                Link::Ordinary => {
                    let (numbers, n) = (&mut self.numbers, NUMBERS as u32);
                    self.step
                        .launch(&self.stream, chain_01_step::Arguments { numbers, amount, n })?;
                }
                Link::Early => self.launch_early(amount)?,
                Link::Empty => self.empty.launch(&self.stream)?,
            }
        }
        Ok(())
    }
    // ANCHOR_END: by_hand

    fn launch_early(&mut self, mut amount: u32) -> Result<()> {
        let kernel = self.early.as_ref().context("this device cannot launch a kernel early")?;
        let (mut numbers, _guard) = self.numbers.device_ptr_mut(&self.stream);
        let mut n = NUMBERS as u32;
        let mut arguments: [*mut c_void; 3] =
            [(&raw mut numbers).cast(), (&raw mut amount).cast(), (&raw mut n).cast()];
        // ANCHOR: launch_early
        let mut early = CUlaunchAttribute {
            id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value: CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
        };
        let config = CUlaunchConfig {
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: NUMBERS as u32,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: self.stream.cu_stream(),
            attrs: &raw mut early,
            numAttrs: 1,
        };
        let function = kernel.handle().cu_function();
        // SAFETY: the arguments are those of the kernel, which waits itself for the link before it; the driver copies them
        // and the attribute during the call.
        unsafe { sys::cuLaunchKernelEx(&config, function, arguments.as_mut_ptr(), ptr::null_mut()) }
            .result()
            .context("launching a link early")
        // ANCHOR_END: launch_early
    }

    // ANCHOR: capture
    /// Records `links` launches instead of doing them. The graph uses the chain's memory: it is launched while that lives.
    pub fn capture(&mut self, link: Link, links: usize, amount: u32) -> Result<CudaGraph> {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        self.stream.begin_capture(mode)?;
        let recorded = self.by_hand(link, links, amount);
        let graph = self.stream.end_capture(CUgraphInstantiate_flags(0));
        recorded?;
        graph?.context("capturing a chain gave no graph")
    }
    // ANCHOR_END: capture

    /// Builds the same graph node by node.
    pub fn build(&mut self, links: usize, amount: u32) -> Result<Built> {
        let (numbers, _guard) = self.numbers.device_ptr_mut(&self.stream);
        let mut built =
            Built::empty(self.step.handle().cu_function(), numbers, self.stream.clone())?;
        for _ in 0..links {
            built.add(amount)?;
        }
        built.instantiate()?;
        Ok(built)
    }

    /// Says that so many links have been launched, and an error unless the numbers show it: each tells how many links
    /// there were, and with which amounts in which order.
    pub fn check(&mut self, links: usize, amount: u32) -> Result<()> {
        for number in &mut self.expected {
            for _ in 0..links {
                *number = number.wrapping_mul(3).wrapping_add(amount);
            }
        }
        let found = self.stream.clone_dtoh(&self.numbers)?;
        self.stream.synchronize()?;
        ensure!(found == self.expected, "after {links} links the numbers are {found:?}");
        Ok(())
    }

    /// Forgets what was launched: the numbers are what they were at first.
    pub fn restart(&mut self) -> Result<()> {
        self.expected = (0..NUMBERS as u32).collect();
        self.stream.memcpy_htod(&self.expected, &mut self.numbers)?;
        Ok(self.stream.synchronize()?)
    }

    /// The address of the numbers, for a peer that does the same.
    pub fn address(&mut self) -> u64 {
        self.numbers.device_ptr_mut(&self.stream).0
    }
}

impl Drop for Chain {
    /// Links may be on their way, and their memory is about to be freed.
    fn drop(&mut self) {
        let context = self.stream.context();
        context.record_err(self.stream.synchronize());
    }
}

/// A chain as a graph that was built node by node. Its kernels use the chain's memory: it is launched while that lives.
pub struct Built {
    graph: CUgraph,
    exec: CUgraphExec,
    nodes: Vec<CUgraphNode>,
    function: sys::CUfunction,
    numbers: u64,
    stream: Arc<CudaStream>,
}

impl Built {
    fn empty(function: sys::CUfunction, numbers: u64, stream: Arc<CudaStream>) -> Result<Self> {
        stream.context().bind_to_thread()?;
        let mut graph = ptr::null_mut();
        // SAFETY: `graph` outlives the call, which writes to it.
        unsafe { sys::cuGraphCreate(&mut graph, 0) }.result().context("creating a graph")?;
        Ok(Self { graph, exec: ptr::null_mut(), nodes: Vec::new(), function, numbers, stream })
    }

    // ANCHOR: build
    /// Adds a kernel that waits for the last one.
    fn add(&mut self, amount: u32) -> Result<()> {
        let before: Vec<CUgraphNode> = self.nodes.last().copied().into_iter().collect();
        let mut node = ptr::null_mut();
        self.with_parameters(amount, |parameters| {
            // SAFETY: the graph and the node before live; the driver copies the parameters.
            unsafe {
                sys::cuGraphAddKernelNode_v2(
                    &mut node,
                    self.graph,
                    before.as_ptr(),
                    before.len(),
                    parameters,
                )
            }
        })
        .context("adding a kernel to a graph")?;
        self.nodes.push(node);
        Ok(())
    }
    // ANCHOR_END: build

    fn instantiate(&mut self) -> Result<()> {
        // SAFETY: the graph lives.
        self.exec = unsafe { result::graph::instantiate(self.graph, CUgraphInstantiate_flags(0)) }
            .context("instantiating a graph")?;
        Ok(())
    }

    /// Launches it.
    pub fn launch(&self) -> Result<()> {
        self.stream.context().bind_to_thread()?;
        // SAFETY: graph and stream live.
        unsafe { result::graph::launch(self.exec, self.stream.cu_stream()) }
            .context("launching a graph")
    }

    // ANCHOR: set_amount
    /// Gives every kernel another amount, in the graph that can be launched. The next launch uses it.
    pub fn set_amount(&self, amount: u32) -> Result<()> {
        for &node in &self.nodes {
            self.with_parameters(amount, |parameters| {
                // SAFETY: graph and node live; the driver copies the parameters.
                unsafe { sys::cuGraphExecKernelNodeSetParams_v2(self.exec, node, parameters) }
            })
            .context("giving a kernel of a graph new arguments")?;
        }
        Ok(())
    }
    // ANCHOR_END: set_amount

    /// Takes over all parameters of another graph of the same shape.
    pub fn update_from(&self, other: &CudaGraph) -> Result<()> {
        // SAFETY: numbers and null pointers are a value of this type; the driver overwrites it.
        let mut answer: CUgraphExecUpdateResultInfo = unsafe { std::mem::zeroed() };
        // SAFETY: both graphs live, and `answer` outlives the call.
        unsafe { sys::cuGraphExecUpdate_v2(self.exec, other.cu_graph(), &mut answer) }
            .result()
            .context("updating a graph from another")
    }

    /// Calls `use_them` with the parameters of a link.
    fn with_parameters(
        &self,
        mut amount: u32,
        use_them: impl FnOnce(&CUDA_KERNEL_NODE_PARAMS) -> sys::CUresult,
    ) -> Result<(), cudarc::driver::DriverError> {
        let (mut numbers, mut n) = (self.numbers, NUMBERS as u32);
        let mut arguments: [*mut c_void; 3] =
            [(&raw mut numbers).cast(), (&raw mut amount).cast(), (&raw mut n).cast()];
        let parameters = CUDA_KERNEL_NODE_PARAMS {
            func: self.function,
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: NUMBERS as u32,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            kernelParams: arguments.as_mut_ptr(),
            extra: ptr::null_mut(),
            kern: ptr::null_mut(),
            ctx: ptr::null_mut(),
        };
        use_them(&parameters).result()
    }
}

impl Drop for Built {
    fn drop(&mut self) {
        let context = self.stream.context();
        context.record_err(self.stream.synchronize());
        // SAFETY: both come from this type's own functions and are destroyed only here, after their last launch has ended.
        unsafe {
            if !self.exec.is_null() {
                context.record_err(result::graph::exec_destroy(self.exec));
            }
            context.record_err(result::graph::destroy(self.graph));
        }
    }
}

//! Work: what a stream does and what a graph's node holds.

use std::{ffi::c_void, fmt, sync::Arc};

use super::{
    capture,
    copy::Copy,
    error::{CUresult, Result},
    event::Event,
    graph::{Chain, ChildGraph},
    graph_memory::GraphMemory,
    handle::Handle,
    launch::KernelLaunch,
    order::{self, Use},
    set::Set,
    stream::Stream,
};

/// A piece of work.
#[derive(Clone)]
pub(crate) enum Work {
    /// A kernel.
    Kernel(KernelLaunch),
    /// A copy.
    Copy(Copy),
    /// A fill.
    Set(Set),
    /// A function of the program.
    Host(HostFunction),
    /// Nothing, with an order.
    Empty,
    /// Records an event.
    Record(Handle<Event>),
    /// Waits for an event, which has happened already.
    Wait(Handle<Event>),
    /// Another graph, in a graph that can be launched.
    Graph(Arc<Chain>),
    /// Another graph, in a graph that is being made.
    ChildGraph(Arc<ChildGraph>),
    /// Memory of a graph, allocated when the node was made.
    Allocate(Arc<GraphMemory>),
    /// Frees memory of a graph. It is given back with the graph.
    Free(u64),
}

/// A function of the program.
#[derive(Clone, Copy)]
pub(crate) struct HostFunction {
    /// The function.
    pub(crate) function: extern "C" fn(*mut c_void),
    /// Its argument.
    pub(crate) data: usize,
}

/// Does work in a stream, or makes it a node where the stream is capturing.
pub(crate) fn submit(stream: &Stream, work: Work) -> Result {
    stream.context.check()?;
    if let Some(capture) = stream.capture() {
        return capture.add(stream, work);
    }
    if stream.legacy {
        capture::refuse_implicit(stream)?;
    }
    run(stream, &work)
}

/// Does work of a stream.
pub(crate) fn run(stream: &Stream, work: &Work) -> Result {
    let context = &stream.context;
    match work {
        // These wait for nothing and hold nothing up here.
        Work::Host(host) => {
            let HostFunction { function, data } = *host;
            context.host_functions.run(move || function(data as *mut c_void));
            return Ok(());
        }
        Work::Record(event) => {
            // An event that a graph records may have been destroyed meanwhile.
            event.get()?.record();
            order::recorded(event.number(), stream);
            return Ok(());
        }
        Work::Wait(event) => {
            order::waited(stream, event.number());
            return Ok(());
        }
        _ => {}
    }
    context.host_functions.wait();
    let device = context.device.work();
    match work {
        Work::Kernel(launch) => launch.run(stream),
        Work::Copy(copy) => {
            copy.run()?;
            note(stream, "a copy", || copy.uses());
            Ok(())
        }
        Work::Set(set) => {
            set.run()?;
            note(stream, "a fill", || vec![set.used()]);
            Ok(())
        }
        Work::Graph(chain) => {
            drop(device);
            chain.run(stream)
        }
        // A child graph became a chain when its graph was made one that can be launched.
        Work::ChildGraph(_)
        | Work::Empty
        | Work::Allocate(_)
        | Work::Free(_)
        | Work::Host(_)
        | Work::Record(_)
        | Work::Wait(_) => Ok(()),
    }
}

/// Notes the bytes that an operation used, where the order of streams is checked. What nothing orders is a fault.
pub(crate) fn note(stream: &Stream, what: &str, uses: impl FnOnce() -> Vec<Use>) {
    if order::is_checked()
        && let Some(report) = order::operation(stream, what, &uses())
    {
        stream.context.print();
        eprint!("{report}");
        stream.context.fail(CUresult::LAUNCH_FAILED);
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Work::Kernel(launch) => {
                let (grid, block) = (launch.grid, launch.block);
                write!(f, "kernel {} {grid:?} {block:?}", launch.function.kernel.name)
            }
            Work::Copy(_) => f.write_str("copy"),
            Work::Set(_) => f.write_str("fill"),
            Work::Host(_) => f.write_str("host function"),
            Work::Empty => f.write_str("empty"),
            Work::Record(_) => f.write_str("event record"),
            Work::Wait(_) => f.write_str("event wait"),
            Work::Graph(_) | Work::ChildGraph(_) => f.write_str("graph"),
            Work::Allocate(_) => f.write_str("allocation"),
            Work::Free(address) => write!(f, "free {address:#x}"),
        }
    }
}

impl Work {
    /// `CUgraphNodeType`
    pub(crate) fn node_type(&self) -> u32 {
        match self {
            Work::Kernel(_) => 0,
            Work::Copy(_) => 1,
            Work::Set(_) => 2,
            Work::Host(_) => 3,
            Work::Graph(_) | Work::ChildGraph(_) => 4,
            Work::Empty => 5,
            Work::Wait(_) => 6,
            Work::Record(_) => 7,
            Work::Allocate(_) => 10,
            Work::Free(_) => 11,
        }
    }

    /// Puts new parameters in the place of those of the same type.
    pub(crate) fn exchange(&mut self, new: Work) -> Result {
        if self.node_type() != new.node_type() {
            return Err(CUresult::INVALID_VALUE);
        }
        *self = new;
        Ok(())
    }
}

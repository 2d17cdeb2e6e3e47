//! Work: what a stream does and what a graph's node holds, and how it becomes jobs of a stream's queue.

use std::{
    ffi::c_void,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use super::{
    abi, capture,
    copy::Copy,
    error::{CUresult, Result},
    event::{Event, Moment},
    graph::{Chain, ChildGraph},
    graph_memory::GraphMemory,
    handle::Handle,
    host,
    launch::KernelLaunch,
    log, order,
    queue::{self, Job, Pace, Point},
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
    /// Waits for an event.
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

/// Hands work to a stream, or makes it a node where the stream is capturing.
pub(crate) fn submit(stream: &Arc<Stream>, work: Work) -> Result {
    stream.context.check()?;
    if let Some(capture) = stream.capture() {
        return capture.add(stream, work);
    }
    give(stream, work).map(drop)
}

/// Hands work to a stream that is not capturing, and answers the point behind it.
pub(crate) fn give(stream: &Arc<Stream>, work: Work) -> Result<Point> {
    give_after(stream, work, None)
}

/// The same, for work that waits for something more.
pub(crate) fn give_after(stream: &Arc<Stream>, work: Work, after: Option<Point>) -> Result<Point> {
    if stream.legacy {
        capture::refuse_implicit(stream)?;
    }
    let mut plan = Plan::default();
    plan.add(stream, work)?;
    plan.give(stream, after)
}

/// Jobs for a stream.
#[derive(Default)]
struct Plan {
    jobs: Vec<Job>,
    /// Events that are recorded, where, and who tells when.
    records: Vec<(Arc<Event>, usize, Arc<Moment>)>,
}

impl Plan {
    /// Turns work into jobs. What the check of streams wants to know is noted now, in the order of the program's calls.
    fn add(&mut self, stream: &Arc<Stream>, work: Work) -> Result {
        let job = match work {
            Work::Kernel(launch) => {
                let ticket = order::begin(stream, || format!("kernel {}", launch.function.kernel.name));
                job(stream, Pace::Long, move |stream| launch.run(stream, ticket))
            }
            Work::Copy(copy) => {
                order::operation(stream, "a copy", || copy.uses());
                job(stream, copy.pace(), move |_| copy.run())
            }
            Work::Set(set) => {
                order::operation(stream, "a fill", || vec![set.used()]);
                job(stream, set.pace(), move |_| set.run())
            }
            Work::Host(HostFunction { function, data }) => job(stream, Pace::Program, move |_| {
                function(data as *mut c_void);
                Ok(())
            }),
            Work::Record(event) => {
                // An event that a graph records may have been destroyed meanwhile.
                let recorded = event.get()?;
                order::recorded(event.number(), stream);
                let moment = Arc::<Moment>::default();
                self.records.push((recorded, self.jobs.len(), Arc::clone(&moment)));
                // Also where a kernel has failed: nobody shall wait for it for ever.
                Job::new(Pace::Quick, move || moment.is_now())
            }
            Work::Wait(event) => {
                order::waited(stream, event.number());
                // One that was destroyed meanwhile stands for nothing.
                Job::new(Pace::Quick, || {}).after(event.get().ok().and_then(|event| event.point()))
            }
            Work::Graph(chain) => {
                chain.links().try_for_each(|link| self.add(stream, link.clone()))?;
                // Memory of the graph stays until all of it is done.
                Job::new(Pace::Quick, move || drop(chain))
            }
            Work::Allocate(memory) => Job::new(Pace::Quick, move || drop(memory)),
            // A child graph became a chain when its graph was made one that can be launched.
            Work::ChildGraph(_) | Work::Empty | Work::Free(_) => Job::new(Pace::Quick, || {}),
        };
        self.jobs.push(job);
        Ok(())
    }

    fn give(mut self, stream: &Stream, after: Option<Point>) -> Result<Point> {
        if let Some(first) = self.jobs.first_mut() {
            first.after.extend(stream.context.gate());
            first.after.extend(after);
        }
        let last = self.jobs.len() - 1;
        let first = queue::give(stream.lane(), self.jobs);
        for (event, index, moment) in self.records {
            event.record(first.later(index), moment);
        }
        Ok(first.later(last))
    }
}

/// A job that is left out when a kernel of the context has failed.
pub(crate) fn job(
    stream: &Arc<Stream>,
    pace: Pace,
    run: impl FnOnce(&Stream) -> Result + Send + 'static,
) -> Job {
    let stream = Arc::clone(stream);
    Job::new(pace, move || {
        if stream.context.check().is_err() {
            return;
        }
        host::forget();
        let result = catch_unwind(AssertUnwindSafe(|| run(&stream))).unwrap_or_else(|panic| {
            let message = abi::message(&*panic);
            log::always(&format!("work failed inside the emulated GPU: {message}. Please report it."));
            Err(CUresult::UNKNOWN)
        });
        if let Err(error) = result {
            stream.context.fail(error);
        }
    })
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

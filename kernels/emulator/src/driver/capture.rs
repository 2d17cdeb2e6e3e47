//! Stream capture: work that becomes nodes of a graph instead of being done.

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, ThreadId},
};

use super::{
    abi::{In, Out, driver},
    error::{CUresult, Result},
    event::{Event, Recorded},
    graph::{CUgraph, CUgraphNode, EdgeData, Graph},
    handle::Handle,
    state::{Context, lock},
    stream::{self, CUstream, Stream},
    work::Work,
};

/// A capture: one graph, and the streams whose work goes to it.
pub(crate) struct Capture {
    id: u64,
    graph: CUgraph,
    context_id: u64,
    origin: u64,
    mode: Mode,
    thread: ThreadId,
    /// The graph is the program's own, and stays its own.
    into_existing: bool,
    invalidated: AtomicBool,
    streams: Mutex<HashMap<u64, Member>>,
}

/// A stream of a capture.
struct Member {
    stream: Weak<Stream>,
    blocking: bool,
    /// What its next node comes after.
    frontier: Vec<CUgraphNode>,
}

/// A place in a capture: behind these nodes.
#[derive(Clone)]
pub(crate) struct Point {
    capture: Arc<Capture>,
    nodes: Vec<CUgraphNode>,
}

/// Which calls a capture forbids.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Unsafe calls of any thread.
    Global,
    /// Unsafe calls of the thread that began it.
    ThreadLocal,
    /// None.
    Relaxed,
}

/// Captures that have not ended.
static ACTIVE: Mutex<Vec<Arc<Capture>>> = Mutex::new(Vec::new());

thread_local! {
    /// What this thread lets captures forbid it.
    static INTERACTION: Cell<Mode> = const { Cell::new(Mode::Global) };
}

const STATUS_NONE: u32 = 0;
const STATUS_ACTIVE: u32 = 1;
const STATUS_INVALIDATED: u32 = 2;

driver! {
    /// Begins a capture in the mode that forbids the most.
    call cuStreamBeginCapture 10000, cuStreamBeginCapture_ptsz 10000 (stream: CUstream) {
        begin(stream, None, &[], 0)
    }

    /// Begins a capture.
    call cuStreamBeginCapture_v2 10010, cuStreamBeginCapture_v2_ptsz 10010 (stream: CUstream, mode: u32) {
        begin(stream, None, &[], mode)
    }

    /// Begins a capture that adds to a graph.
    call cuStreamBeginCaptureToGraph 12030, cuStreamBeginCaptureToGraph_ptsz 12030 (
        stream: CUstream, graph: CUgraph, after: In<CUgraphNode>, _edges: In<EdgeData>, count: usize, mode: u32,
    ) {
        graph.get()?;
        begin(stream, Some(graph), &after.list(count)?, mode)
    }

    /// Ends a capture and answers its graph.
    call cuStreamEndCapture 10000, cuStreamEndCapture_ptsz 10000 (stream: CUstream, answer: Out<CUgraph>) {
        answer.check()?;
        answer.set(Handle::NULL)?;
        let stream = stream::get(stream)?;
        let capture = stream.capture().ok_or(CUresult::ILLEGAL_STATE)?;
        answer.set(capture.end(&stream)?)
    }

    /// Answers whether the stream is capturing.
    call cuStreamIsCapturing 10000, cuStreamIsCapturing_ptsz 10000 (stream: CUstream, answer: Out<u32>) {
        answer.check()?;
        let stream = stream::get(stream)?;
        if stream.legacy {
            refuse_implicit(&stream)?;
        }
        answer.set(status(&stream))
    }

    /// Answers whether the stream is capturing, and in which capture.
    call cuStreamGetCaptureInfo 10010, cuStreamGetCaptureInfo_ptsz 10010 (
        stream: CUstream, answer: Out<u32>, id: Out<u64>,
    ) {
        answer.check()?;
        let stream = stream::get(stream)?;
        if let Some(capture) = stream.capture() {
            id.set_if_wanted(capture.id);
        }
        answer.set(status(&stream))
    }

    /// The same, with the graph and what the next node comes after.
    call cuStreamGetCaptureInfo_v2 11030, cuStreamGetCaptureInfo_v2_ptsz 11030 (
        stream: CUstream, answer: Out<u32>, id: Out<u64>, graph: Out<CUgraph>,
        after: Out<*const CUgraphNode>, count: Out<usize>,
    ) {
        info(stream, answer, id, graph, after, count)
    }

    /// The same, with the data of edges, which is always the default.
    call cuStreamGetCaptureInfo_v3 12030, cuStreamGetCaptureInfo_v3_ptsz 12030 (
        stream: CUstream, answer: Out<u32>, id: Out<u64>, graph: Out<CUgraph>,
        after: Out<*const CUgraphNode>, edges: Out<*const EdgeData>, count: Out<usize>,
    ) {
        edges.set_if_wanted(std::ptr::null());
        info(stream, answer, id, graph, after, count)
    }

    /// Changes what the stream's next node comes after.
    call cuStreamUpdateCaptureDependencies 11030, cuStreamUpdateCaptureDependencies_ptsz 11030 (
        stream: CUstream, after: In<CUgraphNode>, count: usize, flags: u32,
    ) {
        update(stream, &after.list(count)?, flags)
    }

    /// The same, with the data of edges, which only can be the default.
    call cuStreamUpdateCaptureDependencies_v2 12030, cuStreamUpdateCaptureDependencies_v2_ptsz 12030 (
        stream: CUstream, after: In<CUgraphNode>, _edges: In<EdgeData>, count: usize, flags: u32,
    ) {
        update(stream, &after.list(count)?, flags)
    }

    /// Exchanges what this thread lets captures forbid it.
    call cuThreadExchangeStreamCaptureMode 10010 (mode: Out<u32>) {
        let new = Mode::of(mode.read()?)?;
        let old = INTERACTION.replace(new);
        mode.set(old as u32)
    }
}

impl Mode {
    fn of(number: u32) -> Result<Mode> {
        [Mode::Global, Mode::ThreadLocal, Mode::Relaxed]
            .get(number as usize)
            .copied()
            .ok_or(CUresult::INVALID_VALUE)
    }
}

impl Capture {
    /// Adds a node behind what the stream did last.
    pub(crate) fn add(&self, stream: &Stream, work: Work) -> Result {
        self.check()?;
        let graph = self.graph.get()?;
        let mut streams = lock(&self.streams);
        let member = streams.get_mut(&stream.id).ok_or(CUresult::STREAM_CAPTURE_INVALIDATED)?;
        let node = graph.add(work, &member.frontier)?;
        member.frontier = vec![node];
        Ok(())
    }

    /// The graph that is being made.
    pub(crate) fn graph(&self) -> Result<Arc<Graph>> {
        self.graph.get()
    }

    /// Where the stream is.
    pub(crate) fn point(self: &Arc<Self>, stream: &Stream) -> Result<Point> {
        self.check()?;
        let streams = lock(&self.streams);
        let nodes = streams.get(&stream.id).map(|member| member.frontier.clone()).unwrap_or_default();
        Ok(Point { capture: Arc::clone(self), nodes })
    }

    /// Spoils the capture: it can only be ended, without a graph.
    pub(crate) fn invalidate(&self) {
        self.invalidated.store(true, Ordering::Release);
    }

    fn check(&self) -> Result {
        match self.invalidated.load(Ordering::Acquire) {
            true => Err(CUresult::STREAM_CAPTURE_INVALIDATED),
            false => Ok(()),
        }
    }

    fn is_active(self: &Arc<Self>) -> bool {
        lock(&ACTIVE).iter().any(|active| Arc::ptr_eq(active, self))
    }

    fn join(self: &Arc<Self>, stream: &Arc<Stream>, frontier: &[CUgraphNode]) {
        let member =
            Member { stream: Arc::downgrade(stream), blocking: stream.blocking, frontier: frontier.to_vec() };
        lock(&self.streams).insert(stream.id, member);
        stream.join_capture(Arc::clone(self));
    }

    fn end(self: &Arc<Self>, stream: &Stream) -> Result<CUgraph> {
        if stream.id != self.origin {
            // The stream that began it can end it, and gets no graph.
            self.invalidate();
            return Err(CUresult::STREAM_CAPTURE_UNMATCHED);
        }
        if self.mode != Mode::Relaxed && self.thread != thread::current().id() {
            return Err(CUresult::STREAM_CAPTURE_WRONG_THREAD);
        }
        lock(&ACTIVE).retain(|active| !Arc::ptr_eq(active, self));
        let streams = std::mem::take(&mut *lock(&self.streams));
        streams
            .values()
            .filter_map(|member| member.stream.upgrade())
            .for_each(|stream| stream.leave_capture());
        let result = self.check().and_then(|()| self.check_joined(&streams));
        if result.is_err() && !self.into_existing {
            self.graph.take()?;
        }
        result.map(|()| self.graph)
    }

    /// Everything that another stream did must come before something that the first stream did.
    fn check_joined(&self, streams: &HashMap<u64, Member>) -> Result {
        let graph = self.graph.get()?;
        let mut joined: HashSet<usize> = HashSet::new();
        let mut left: Vec<CUgraphNode> =
            streams.get(&self.origin).map(|own| own.frontier.clone()).unwrap_or_default();
        while let Some(node) = left.pop() {
            if joined.insert(node.number()) {
                left.extend(graph.dependencies(node)?);
            }
        }
        let mut others = streams.values().flat_map(|member| &member.frontier);
        match others.all(|node| joined.contains(&node.number())) {
            true => Ok(()),
            false => Err(CUresult::STREAM_CAPTURE_UNJOINED),
        }
    }
}

/// Makes a stream wait for an event, as far as captures are concerned.
pub(crate) fn wait(stream: &Arc<Stream>, event: &Event) -> Result {
    match (stream.capture(), event.recorded()) {
        (None, Recorded::Captured(point)) => {
            if !point.capture.is_active() {
                return Err(CUresult::CAPTURED_EVENT);
            }
            if stream.legacy {
                point.capture.invalidate();
                return Err(CUresult::STREAM_CAPTURE_IMPLICIT);
            }
            point.capture.check()?;
            point.capture.join(stream, &point.nodes);
            Ok(())
        }
        (Some(capture), Recorded::Captured(point)) => {
            if !Arc::ptr_eq(&capture, &point.capture) {
                capture.invalidate();
                return Err(CUresult::STREAM_CAPTURE_MERGE);
            }
            capture.check()?;
            let mut streams = lock(&capture.streams);
            if let Some(member) = streams.get_mut(&stream.id) {
                for node in point.nodes {
                    if !member.frontier.contains(&node) {
                        member.frontier.push(node);
                    }
                }
            }
            Ok(())
        }
        (Some(capture), Recorded::Given(..)) => {
            capture.invalidate();
            Err(CUresult::STREAM_CAPTURE_ISOLATION)
        }
        (_, Recorded::Never) | (None, Recorded::Given(..)) => Ok(()),
    }
}

/// Fails, and spoils the captures, when a stream of the context is capturing.
pub(crate) fn refuse_in(context: &Context) -> Result {
    refuse(CUresult::STREAM_CAPTURE_UNSUPPORTED, |capture| capture.context_id == context.id)
}

/// Fails, and spoils the captures, for work in the legacy stream while a stream that waits for it is capturing.
pub(crate) fn refuse_implicit(stream: &Stream) -> Result {
    refuse(CUresult::STREAM_CAPTURE_IMPLICIT, |capture| {
        capture.context_id == stream.context.id
            && lock(&capture.streams).values().any(|member| member.blocking)
    })
}

/// Fails, and spoils the captures, for a call that one may not make while capturing, such as `cuMemAlloc`.
pub(crate) fn refuse_unsafe() -> Result {
    let own = thread::current().id();
    let interaction = INTERACTION.get();
    refuse(CUresult::STREAM_CAPTURE_UNSUPPORTED, |capture| match interaction {
        Mode::Relaxed => false,
        Mode::ThreadLocal => capture.thread == own && capture.mode != Mode::Relaxed,
        Mode::Global => {
            (capture.thread == own && capture.mode != Mode::Relaxed) || capture.mode == Mode::Global
        }
    })
}

fn refuse(error: CUresult, concerned: impl Fn(&Capture) -> bool) -> Result {
    let active = lock(&ACTIVE).clone();
    let mut result = Ok(());
    for capture in active.iter().filter(|capture| concerned(capture)) {
        capture.invalidate();
        result = Err(error);
    }
    result
}

fn begin(handle: CUstream, graph: Option<CUgraph>, after: &[CUgraphNode], mode: u32) -> Result {
    static CAPTURES: AtomicU64 = AtomicU64::new(1);
    let mode = Mode::of(mode)?;
    let stream = stream::get(handle)?;
    stream.context.check()?;
    if stream.legacy {
        return Err(CUresult::STREAM_CAPTURE_UNSUPPORTED);
    }
    if stream.capture().is_some() {
        return Err(CUresult::ILLEGAL_STATE);
    }
    let into_existing = graph.is_some();
    let capture = Arc::new(Capture {
        id: CAPTURES.fetch_add(1, Ordering::Relaxed),
        graph: graph.unwrap_or_else(Graph::make),
        context_id: stream.context.id,
        origin: stream.id,
        mode,
        thread: thread::current().id(),
        into_existing,
        invalidated: AtomicBool::new(false),
        streams: Mutex::default(),
    });
    capture.join(&stream, after);
    lock(&ACTIVE).push(capture);
    Ok(())
}

fn status(stream: &Stream) -> u32 {
    match stream.capture() {
        None => STATUS_NONE,
        Some(capture) if capture.check().is_err() => STATUS_INVALIDATED,
        Some(_) => STATUS_ACTIVE,
    }
}

fn info(
    handle: CUstream,
    answer: Out<u32>,
    id: Out<u64>,
    graph: Out<CUgraph>,
    after: Out<*const CUgraphNode>,
    count: Out<usize>,
) -> Result {
    thread_local! {
        /// The answer stays valid until the next call that concerns the stream.
        static NODES: Cell<Vec<CUgraphNode>> = const { Cell::new(Vec::new()) };
    }
    answer.check()?;
    let stream = stream::get(handle)?;
    if let Some(capture) = stream.capture() {
        id.set_if_wanted(capture.id);
        graph.set_if_wanted(capture.graph);
        let nodes = capture.point(&stream).map(|point| point.nodes).unwrap_or_default();
        count.set_if_wanted(nodes.len());
        after.set_if_wanted(nodes.as_ptr());
        NODES.set(nodes);
    }
    answer.set(status(&stream))
}

fn update(handle: CUstream, after: &[CUgraphNode], flags: u32) -> Result {
    let stream = stream::get(handle)?;
    let capture = stream.capture().ok_or(CUresult::ILLEGAL_STATE)?;
    capture.check()?;
    let graph = capture.graph()?;
    for node in after {
        graph.dependencies(*node)?;
    }
    let mut streams = lock(&capture.streams);
    let member = streams.get_mut(&stream.id).ok_or(CUresult::ILLEGAL_STATE)?;
    match flags {
        0 => member.frontier.extend_from_slice(after),
        1 => member.frontier = after.to_vec(),
        _ => return Err(CUresult::INVALID_VALUE),
    }
    Ok(())
}

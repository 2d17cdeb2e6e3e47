//! Graphs: work with dependencies, made once and launched often.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap},
    ffi::c_char,
    sync::{Arc, Mutex, Weak},
};

use super::{
    abi::{In, Out, Text, driver},
    error::{CUresult, Result},
    handle::{Handle, objects},
    log,
    queue::{self, Point},
    state::{Context, current, lock},
    stream::{self, CUstream},
    user_object::References,
    work::{self, Work},
};

/// A graph, as C names it.
pub(crate) type CUgraph = Handle<Graph>;
/// A node, as C names it.
pub(crate) type CUgraphNode = Handle<Node>;
/// A graph that can be launched, as C names it.
pub(crate) type CUgraphExec = Handle<Exec>;

/// A graph.
#[derive(Default)]
pub(crate) struct Graph {
    nodes: Mutex<Vec<CUgraphNode>>,
    /// Things of the program that it keeps alive.
    pub(crate) users: References,
    /// How deep graphs are nested in it.
    depth: Mutex<u32>,
}

/// A node.
pub(crate) struct Node {
    /// Its graph; a node of a destroyed graph is no node.
    graph: Weak<Graph>,
    /// What it does.
    pub(crate) work: Mutex<Work>,
    /// What comes before it.
    dependencies: Mutex<Vec<CUgraphNode>>,
    /// The node that it is a copy of.
    origin: Option<CUgraphNode>,
    /// Attributes of a launch that were set.
    pub(crate) attributes: Mutex<BTreeMap<u32, [u64; 8]>>,
    /// What a program was told of its kernel's parameters.
    pub(crate) told: Mutex<Option<Told>>,
}

/// Parameters of a kernel, and a pointer to each, which a program may use as long as they do not change.
pub(crate) struct Told {
    /// The parameters.
    pub(crate) bytes: Vec<u8>,
    /// Their addresses.
    pub(crate) pointers: Vec<usize>,
}

/// A graph that is a node of another.
pub(crate) struct ChildGraph {
    /// The handle of a copy that nobody else has.
    pub(crate) graph: CUgraph,
}

/// A graph that can be launched.
pub(crate) struct Exec {
    chain: Mutex<Chain>,
    context: Arc<Context>,
    flags: u64,
    /// The end of its last launch.
    last: Mutex<Option<Point>>,
}

/// Work in an order that its dependencies allow.
#[derive(Clone, Default)]
pub(crate) struct Chain {
    links: Vec<Link>,
    /// Things of the program that it keeps alive, until the last launch is done.
    _users: Arc<References>,
}

/// A piece of it.
#[derive(Clone)]
struct Link {
    node: CUgraphNode,
    work: Work,
    enabled: bool,
}

objects!(Graph: INVALID_VALUE, Node: INVALID_VALUE, Exec: INVALID_VALUE);

/// `CUgraphEdgeData`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct EdgeData {
    from_port: u8,
    to_port: u8,
    kind: u8,
    reserved: [u8; 5],
}

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
struct InstantiateParams {
    flags: u64,
    stream: CUstream,
    error_node: CUgraphNode,
    result: u32,
}

/// `CUgraphExecUpdateResultInfo`
#[repr(C)]
#[derive(Clone, Copy)]
struct UpdateResult {
    result: u32,
    error_node: CUgraphNode,
    error_from: CUgraphNode,
}

/// Graphs nested deeper than this are nobody's.
const MOST_NESTED: u32 = 64;
const DEFAULT_EDGE: EdgeData = EdgeData { from_port: 0, to_port: 0, kind: 0, reserved: [0; 5] };
const UPDATE_TOPOLOGY_CHANGED: u32 = 2;
const UPDATE_TYPE_CHANGED: u32 = 3;

driver! {
    /// Writes a graph in the language of Graphviz.
    call cuGraphDebugDotPrint 11030 (handle: CUgraph, name: Text, _flags: u32) {
        let graph = handle.get()?;
        let name = name.get()?;
        std::fs::write(&name, graph.dot()?).map_err(|error| {
            log::reason(&format!("{name} cannot be written: {error}"));
            CUresult::OPERATING_SYSTEM
        })
    }

    /// Makes an empty graph.
    call cuGraphCreate 10000 (answer: Out<CUgraph>, flags: u32) {
        answer.check()?;
        if flags != 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        answer.set(Graph::make())
    }

    /// Destroys a graph and its nodes.
    call cuGraphDestroy 10000 (handle: CUgraph) {
        handle.take().map(drop)
    }

    /// Makes a copy with nodes of its own.
    call cuGraphClone 10000 (answer: Out<CUgraph>, handle: CUgraph) {
        answer.check()?;
        answer.set(handle.get()?.copied()?)
    }

    /// Answers the copy of a node in a copy of its graph.
    call cuGraphNodeFindInClone 10000 (answer: Out<CUgraphNode>, original: CUgraphNode, copy: CUgraph) {
        answer.check()?;
        original.get()?;
        answer.set(copy.get()?.copy_of(original)?)
    }

    /// Answers the graph that is a node. It belongs to the node.
    call cuGraphChildGraphNodeGetGraph 10000 (node: CUgraphNode, answer: Out<CUgraph>) {
        answer.check()?;
        match &*lock(&node.get()?.work) {
            Work::ChildGraph(child) => answer.set(child.graph),
            _ => Err(CUresult::INVALID_VALUE),
        }
    }

    /// Answers nodes: as many as there is room for, or how many there are.
    call cuGraphGetNodes 10000 (handle: CUgraph, answer: Out<CUgraphNode>, count: Out<usize>) {
        let nodes = lock(&handle.get()?.nodes).clone();
        list(&nodes, answer, count)
    }

    /// Answers nodes that come after nothing.
    call cuGraphGetRootNodes 10000 (handle: CUgraph, answer: Out<CUgraphNode>, count: Out<usize>) {
        let graph = handle.get()?;
        let mut roots = Vec::new();
        for &node in lock(&graph.nodes).iter() {
            if graph.dependencies(node)?.is_empty() {
                roots.push(node);
            }
        }
        list(&roots, answer, count)
    }

    /// Answers pairs of nodes, each before the other.
    call cuGraphGetEdges 10000 (handle: CUgraph, from: Out<CUgraphNode>, to: Out<CUgraphNode>, count: Out<usize>) {
        edges(&*handle.get()?, from, to, None, count)
    }

    /// Answers pairs of nodes, each before the other, and that there is nothing special about it.
    call cuGraphGetEdges_v2 12030 (
        handle: CUgraph, from: Out<CUgraphNode>, to: Out<CUgraphNode>, data: Out<EdgeData>, count: Out<usize>,
    ) {
        edges(&*handle.get()?, from, to, Some(data), count)
    }

    /// Answers what comes before a node.
    call cuGraphNodeGetDependencies 10000 (node: CUgraphNode, answer: Out<CUgraphNode>, count: Out<usize>) {
        let dependencies = lock(&node.get()?.dependencies).clone();
        list(&dependencies, answer, count)
    }

    /// Answers what comes before a node.
    call cuGraphNodeGetDependencies_v2 12030 (
        node: CUgraphNode, answer: Out<CUgraphNode>, data: Out<EdgeData>, count: Out<usize>,
    ) {
        let dependencies = lock(&node.get()?.dependencies).clone();
        fill_edges(data, dependencies.len(), count)?;
        list(&dependencies, answer, count)
    }

    /// Answers what comes after a node.
    call cuGraphNodeGetDependentNodes 10000 (node: CUgraphNode, answer: Out<CUgraphNode>, count: Out<usize>) {
        list(&dependents(node)?, answer, count)
    }

    /// Answers what comes after a node.
    call cuGraphNodeGetDependentNodes_v2 12030 (
        node: CUgraphNode, answer: Out<CUgraphNode>, data: Out<EdgeData>, count: Out<usize>,
    ) {
        let dependents = dependents(node)?;
        fill_edges(data, dependents.len(), count)?;
        list(&dependents, answer, count)
    }

    /// Answers what a node does.
    call cuGraphNodeGetType 10000 (node: CUgraphNode, answer: Out<u32>) {
        answer.check()?;
        answer.set(lock(&node.get()?.work).node_type())
    }

    /// Puts nodes in an order.
    call cuGraphAddDependencies 10000 (
        handle: CUgraph, from: In<CUgraphNode>, to: In<CUgraphNode>, count: usize,
    ) {
        connect(&*handle.get()?, &from.list(count)?, &to.list(count)?)
    }

    /// Puts nodes in an order.
    call cuGraphAddDependencies_v2 12030 (
        handle: CUgraph, from: In<CUgraphNode>, to: In<CUgraphNode>, _data: In<EdgeData>, count: usize,
    ) {
        connect(&*handle.get()?, &from.list(count)?, &to.list(count)?)
    }

    /// Ends an order of nodes.
    call cuGraphRemoveDependencies 10000 (
        handle: CUgraph, from: In<CUgraphNode>, to: In<CUgraphNode>, count: usize,
    ) {
        disconnect(&*handle.get()?, &from.list(count)?, &to.list(count)?)
    }

    /// Ends an order of nodes.
    call cuGraphRemoveDependencies_v2 12030 (
        handle: CUgraph, from: In<CUgraphNode>, to: In<CUgraphNode>, _data: In<EdgeData>, count: usize,
    ) {
        disconnect(&*handle.get()?, &from.list(count)?, &to.list(count)?)
    }

    /// Removes a node.
    call cuGraphDestroyNode 10000 (node: CUgraphNode) {
        let graph = node.get()?.graph()?;
        let mut nodes = lock(&graph.nodes);
        nodes.retain(|other| *other != node);
        for other in nodes.iter() {
            lock(&other.get()?.dependencies).retain(|dependency| *dependency != node);
        }
        drop(nodes);
        node.take().map(drop)
    }

    /// Makes a graph that can be launched. The messages of older versions are never needed.
    call cuGraphInstantiate 10000, cuGraphInstantiate_v2 11000 (
        answer: Out<CUgraphExec>, graph: CUgraph, error_node: Out<CUgraphNode>, message: Out<c_char>, room: usize,
    ) {
        answer.check()?;
        error_node.set_if_wanted(Handle::NULL);
        if !message.is_null() && room > 0 {
            message.set_text("", room)?;
        }
        answer.set(Exec::make(&*graph.get()?, 0)?)
    }

    /// Makes a graph that can be launched.
    call cuGraphInstantiateWithFlags 11040 (answer: Out<CUgraphExec>, graph: CUgraph, flags: u64) {
        answer.check()?;
        answer.set(Exec::make(&*graph.get()?, flags)?)
    }

    /// Makes a graph that can be launched.
    call cuGraphInstantiateWithParams 12000, cuGraphInstantiateWithParams_ptsz 12000 (
        answer: Out<CUgraphExec>, graph: CUgraph, params: Out<InstantiateParams>,
    ) {
        answer.check()?;
        let given = params.read()?;
        let exec = Exec::make(&*graph.get()?, given.flags)?;
        params.set(InstantiateParams { error_node: Handle::NULL, result: 0, ..given })?;
        answer.set(exec)
    }

    /// Answers the flags.
    call cuGraphExecGetFlags 12000 (exec: CUgraphExec, answer: Out<u64>) {
        answer.check()?;
        answer.set(exec.get()?.flags)
    }

    /// Destroys a graph that can be launched.
    call cuGraphExecDestroy 10000 (exec: CUgraphExec) {
        exec.take().map(drop)
    }

    /// Does nothing: there is nowhere to upload to.
    call cuGraphUpload 11010, cuGraphUpload_ptsz 11010 (exec: CUgraphExec, stream: CUstream) {
        exec.get()?;
        stream::get(stream)?.context.check()
    }

    /// Launches a graph.
    call cuGraphLaunch 10000, cuGraphLaunch_ptsz 10000 (exec: CUgraphExec, stream: CUstream) {
        let exec = exec.get()?;
        let stream = stream::get(stream)?;
        stream.refuse_while_capturing()?;
        stream.context.check()?;
        let chain = Arc::new(lock(&exec.chain).clone());
        chain.check()?;
        // A graph never runs twice at the same moment.
        let mut last = lock(&exec.last);
        *last = Some(work::give_after(&stream, Work::Graph(chain), *last)?);
        drop(last);
        queue::make_room(stream.lane());
        Ok(())
    }

    /// Takes over the parameters of a graph of the same shape.
    call cuGraphExecUpdate 10020 (
        exec: CUgraphExec, graph: CUgraph, error_node: Out<CUgraphNode>, answer: Out<u32>,
    ) {
        let (result, node) = update(&*exec.get()?, &*graph.get()?)?;
        error_node.set_if_wanted(node);
        answer.set_if_wanted(result);
        if result == 0 { Ok(()) } else { Err(CUresult::GRAPH_EXEC_UPDATE_FAILURE) }
    }

    /// Takes over the parameters of a graph of the same shape.
    call cuGraphExecUpdate_v2 12000 (exec: CUgraphExec, graph: CUgraph, answer: Out<UpdateResult>) {
        let (result, error_node) = update(&*exec.get()?, &*graph.get()?)?;
        answer.set_if_wanted(UpdateResult { result, error_node, error_from: Handle::NULL });
        if result == 0 { Ok(()) } else { Err(CUresult::GRAPH_EXEC_UPDATE_FAILURE) }
    }

    /// Turns a node of a graph that can be launched on or off.
    call cuGraphNodeSetEnabled 11060 (exec: CUgraphExec, node: CUgraphNode, enabled: u32) {
        exec.get()?.change(node, |link| {
            // Only what changes memory can be turned off.
            if link.work.node_type() > 2 {
                return Err(CUresult::INVALID_VALUE);
            }
            link.enabled = enabled != 0;
            Ok(())
        })
    }

    /// Answers whether a node of a graph that can be launched is on.
    call cuGraphNodeGetEnabled 11060 (exec: CUgraphExec, node: CUgraphNode, answer: Out<u32>) {
        answer.check()?;
        exec.get()?.change(node, |link| answer.set(u32::from(link.enabled)))
    }
}

impl Graph {
    /// Makes an empty graph.
    pub(crate) fn make() -> CUgraph {
        Handle::new(Graph::default())
    }

    /// Adds a node.
    pub(crate) fn add(self: &Arc<Self>, work: Work, after: &[CUgraphNode]) -> Result<CUgraphNode> {
        for (index, dependency) in after.iter().enumerate() {
            self.dependencies(*dependency)?;
            if after[..index].contains(dependency) {
                return Err(CUresult::INVALID_VALUE);
            }
        }
        if let Work::ChildGraph(child) = &work {
            let depth = lock(&child.graph.get()?.depth).saturating_add(1);
            let mut own = lock(&self.depth);
            if depth > MOST_NESTED {
                log::reason(&format!("graphs are nested at most {MOST_NESTED} deep"));
                return Err(CUresult::NOT_SUPPORTED);
            }
            *own = depth.max(*own);
        }
        Ok(self.push(work, after.to_vec(), None))
    }

    fn push(
        self: &Arc<Self>,
        work: Work,
        after: Vec<CUgraphNode>,
        origin: Option<CUgraphNode>,
    ) -> CUgraphNode {
        let node = Handle::new(Node {
            graph: Arc::downgrade(self),
            work: Mutex::new(work),
            dependencies: Mutex::new(after),
            origin,
            attributes: Mutex::default(),
            told: Mutex::default(),
        });
        lock(&self.nodes).push(node);
        node
    }

    /// What comes before a node of this graph.
    pub(crate) fn dependencies(&self, node: CUgraphNode) -> Result<Vec<CUgraphNode>> {
        let node = node.get()?;
        if !std::ptr::eq(node.graph.as_ptr(), self) {
            return Err(CUresult::INVALID_VALUE);
        }
        Ok(lock(&node.dependencies).clone())
    }

    /// The nodes in an order that the dependencies allow: that in which they were made, where it is one.
    fn ordered(&self) -> Result<Vec<(CUgraphNode, Arc<Node>)>> {
        let handles = lock(&self.nodes).clone();
        let nodes = handles.iter().map(|handle| handle.get()).collect::<Result<Vec<_>>>()?;
        let places: HashMap<usize, usize> =
            handles.iter().enumerate().map(|(place, handle)| (handle.number(), place)).collect();
        let mut waits = vec![0; nodes.len()];
        let mut dependents = vec![Vec::new(); nodes.len()];
        for (place, node) in nodes.iter().enumerate() {
            for before in lock(&node.dependencies).iter() {
                let before = *places.get(&before.number()).ok_or(CUresult::INVALID_VALUE)?;
                dependents[before].push(place);
                waits[place] += 1;
            }
        }
        let mut ready: BinaryHeap<_> =
            (0..nodes.len()).filter(|&place| waits[place] == 0).map(Reverse).collect();
        let mut ordered = Vec::with_capacity(nodes.len());
        while let Some(Reverse(place)) = ready.pop() {
            ordered.push((handles[place], Arc::clone(&nodes[place])));
            for &dependent in &dependents[place] {
                waits[dependent] -= 1;
                if waits[dependent] == 0 {
                    ready.push(Reverse(dependent));
                }
            }
        }
        if ordered.len() == nodes.len() { Ok(ordered) } else { Err(CUresult::INVALID_VALUE) }
    }

    /// The work in that order.
    pub(crate) fn chain(&self) -> Result<Chain> {
        let links = self.ordered()?.into_iter().map(|(handle, node)| {
            let work = lock(&node.work).clone();
            let work = match work {
                Work::ChildGraph(child) => Work::Graph(Arc::new(child.chain()?)),
                other => other,
            };
            Ok(Link { node: handle, work, enabled: true })
        });
        Ok(Chain { links: links.collect::<Result<_>>()?, _users: Arc::new(self.users.copied()) })
    }

    /// The graph in the language of Graphviz.
    fn dot(&self) -> Result<String> {
        let mut text = String::from("digraph dot {\n");
        for (number, link) in self.chain()?.links.iter().enumerate() {
            let label = link.work.to_string().replace('"', "");
            text.push_str(&format!(
                "  node_{:x} [shape=box, label=\"{number}: {label}\"];\n",
                link.node.number()
            ));
            for before in self.dependencies(link.node)? {
                text.push_str(&format!("  node_{:x} -> node_{:x};\n", before.number(), link.node.number()));
            }
        }
        text.push_str("}\n");
        Ok(text)
    }

    /// A copy with nodes of its own. Memory has one graph.
    pub(crate) fn copied(&self) -> Result<CUgraph> {
        let nodes = self.ordered()?;
        let is_memory = |node: &Node| matches!(*lock(&node.work), Work::Allocate(_) | Work::Free(_));
        if nodes.iter().any(|(_, node)| is_memory(node)) {
            return Err(CUresult::NOT_SUPPORTED);
        }
        let copy = Arc::new(Graph {
            nodes: Mutex::default(),
            users: self.users.copied(),
            depth: Mutex::new(*lock(&self.depth)),
        });
        let mut copies: HashMap<usize, CUgraphNode> = HashMap::new();
        for (handle, node) in nodes {
            let after = lock(&node.dependencies).clone();
            let after = after.iter().filter_map(|node| copies.get(&node.number()).copied()).collect();
            let work = lock(&node.work).clone();
            let work = match work {
                Work::ChildGraph(child) => Work::ChildGraph(Arc::new(ChildGraph::new(&*child.graph.get()?)?)),
                other => other,
            };
            let new = copy.push(work, after, Some(handle));
            lock(&new.get()?.attributes).clone_from(&lock(&node.attributes));
            copies.insert(handle.number(), new);
        }
        Ok(Handle::new(copy))
    }

    /// The copy of a node of another graph.
    fn copy_of(&self, original: CUgraphNode) -> Result<CUgraphNode> {
        let nodes = lock(&self.nodes);
        let is_copy = |node: &CUgraphNode| node.get().is_ok_and(|node| node.origin == Some(original));
        nodes.iter().copied().find(is_copy).ok_or(CUresult::INVALID_VALUE)
    }
}

impl ChildGraph {
    /// A copy of a graph, to be a node of another.
    pub(crate) fn new(graph: &Graph) -> Result<ChildGraph> {
        Ok(ChildGraph { graph: graph.copied()? })
    }

    /// Its work.
    pub(crate) fn chain(&self) -> Result<Chain> {
        self.graph.get()?.chain()
    }
}

impl Drop for ChildGraph {
    fn drop(&mut self) {
        // A program that knows the handle may have destroyed it.
        let _gone = self.graph.take();
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        for node in lock(&self.nodes).drain(..) {
            // A node that was destroyed before is gone already.
            let _gone = node.take();
        }
    }
}

impl Node {
    /// The graph that holds it.
    pub(crate) fn graph(&self) -> Result<Arc<Graph>> {
        self.graph.upgrade().ok_or(CUresult::INVALID_VALUE)
    }
}

impl Chain {
    /// The work that is not turned off.
    pub(crate) fn links(&self) -> impl Iterator<Item = &Work> {
        self.links.iter().filter(|link| link.enabled).map(|link| &link.work)
    }

    /// Fails for what is not in an allocation.
    fn check(&self) -> Result {
        self.links().try_for_each(|work| match work {
            Work::Copy(copy) => copy.check(),
            Work::Set(set) => set.check(),
            Work::Graph(chain) => chain.check(),
            _ => Ok(()),
        })
    }
}

impl Exec {
    fn make(graph: &Graph, flags: u64) -> Result<CUgraphExec> {
        // The others are: upload, and priorities of nodes.
        const AUTO_FREE: u64 = 1;
        const DEVICE_LAUNCH: u64 = 4;
        if flags & !0xf != 0 || flags & (AUTO_FREE | DEVICE_LAUNCH) == AUTO_FREE | DEVICE_LAUNCH {
            return Err(CUresult::INVALID_VALUE);
        }
        if flags & DEVICE_LAUNCH != 0 {
            return Err(CUresult::NOT_SUPPORTED);
        }
        let context = current()?;
        Ok(Handle::new(Exec { chain: Mutex::new(graph.chain()?), context, flags, last: Mutex::default() }))
    }

    /// Changes the piece that a node became.
    pub(crate) fn change_work(&self, node: CUgraphNode, work: Work) -> Result {
        self.change(node, |link| link.work.exchange(work))
    }

    fn change(&self, node: CUgraphNode, change: impl FnOnce(&mut Link) -> Result) -> Result {
        self.context.check()?;
        let mut chain = lock(&self.chain);
        change(chain.links.iter_mut().find(|link| link.node == node).ok_or(CUresult::INVALID_VALUE)?)
    }
}

/// Answers a list, or its length where there is no room for one. What is left of the room is set to null.
fn list(nodes: &[CUgraphNode], answer: Out<CUgraphNode>, count: Out<usize>) -> Result {
    if answer.is_null() {
        return count.set(nodes.len());
    }
    let room = count.read()?;
    answer.set_all(nodes.iter().copied().chain(std::iter::repeat(Handle::NULL)).take(room))?;
    count.set(nodes.len().min(room))
}

fn fill_edges(data: Out<EdgeData>, edges: usize, count: Out<usize>) -> Result {
    if data.is_null() {
        return Ok(());
    }
    data.set_all(std::iter::repeat_n(DEFAULT_EDGE, edges.min(count.read()?)))
}

fn dependents(node: CUgraphNode) -> Result<Vec<CUgraphNode>> {
    let graph = node.get()?.graph()?;
    let mut dependents = Vec::new();
    for &other in lock(&graph.nodes).iter() {
        if lock(&other.get()?.dependencies).contains(&node) {
            dependents.push(other);
        }
    }
    Ok(dependents)
}

fn edges(
    graph: &Graph,
    from: Out<CUgraphNode>,
    to: Out<CUgraphNode>,
    data: Option<Out<EdgeData>>,
    count: Out<usize>,
) -> Result {
    let mut pairs = Vec::new();
    for &node in lock(&graph.nodes).iter() {
        pairs.extend(graph.dependencies(node)?.into_iter().map(|before| (before, node)));
    }
    let (sources, targets): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    match (from.is_null(), to.is_null()) {
        (true, true) => count.set(sources.len()),
        (false, false) => {
            if let Some(data) = data {
                fill_edges(data, sources.len(), count)?;
            }
            let room = count.read()?;
            list(&sources, from, count)?;
            count.set(room)?;
            list(&targets, to, count)
        }
        _ => Err(CUresult::INVALID_VALUE),
    }
}

fn connect(graph: &Graph, from: &[CUgraphNode], to: &[CUgraphNode]) -> Result {
    for (&from, &to) in from.iter().zip(to) {
        graph.dependencies(from)?;
        if from == to || graph.dependencies(to)?.contains(&from) {
            return Err(CUresult::INVALID_VALUE);
        }
        lock(&to.get()?.dependencies).push(from);
    }
    Ok(())
}

fn disconnect(graph: &Graph, from: &[CUgraphNode], to: &[CUgraphNode]) -> Result {
    for (&from, &to) in from.iter().zip(to) {
        if !graph.dependencies(to)?.contains(&from) {
            return Err(CUresult::INVALID_VALUE);
        }
        lock(&to.get()?.dependencies).retain(|dependency| *dependency != from);
    }
    Ok(())
}

/// Takes over the work of a graph, or answers what stands against it and at which node.
fn update(exec: &Exec, graph: &Graph) -> Result<(u32, CUgraphNode)> {
    exec.context.check()?;
    let new = graph.chain()?;
    let mut chain = lock(&exec.chain);
    if new.links.len() != chain.links.len() {
        return Ok((UPDATE_TOPOLOGY_CHANGED, Handle::NULL));
    }
    let mut pairs = chain.links.iter().zip(&new.links);
    if let Some((_, new)) = pairs.find(|(old, new)| old.work.node_type() != new.work.node_type()) {
        return Ok((UPDATE_TYPE_CHANGED, new.node));
    }
    for (old, new) in chain.links.iter_mut().zip(new.links) {
        old.work = new.work;
    }
    Ok((0, Handle::NULL))
}

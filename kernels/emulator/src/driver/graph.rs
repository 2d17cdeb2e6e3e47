//! Graphs: work with dependencies, made once and launched often.

use std::{
    collections::HashMap,
    ffi::c_char,
    sync::{Arc, Mutex, Weak},
};

use super::{
    abi::{In, Out, Text, driver},
    allocations,
    error::{CUresult, Result},
    handle::{Handle, objects},
    log,
    state::{Context, current, lock},
    stream::{self, CUstream, Stream},
    work::{self, Work},
};
use crate::memory::Kind;

/// A graph, as C names it.
pub(crate) type CUgraph = Handle<Graph>;
/// A node, as C names it.
pub(crate) type CUgraphNode = Handle<Node>;
/// A graph that can be launched, as C names it.
pub(crate) type CUgraphExec = Handle<Exec>;

/// A graph.
pub(crate) struct Graph {
    nodes: Mutex<Vec<CUgraphNode>>,
}

/// A node.
pub(crate) struct Node {
    /// Its graph; a node of a destroyed graph is no node.
    graph: Weak<Graph>,
    /// What it does.
    pub(crate) work: Mutex<Work>,
    /// What comes before it.
    dependencies: Mutex<Vec<CUgraphNode>>,
}

/// A graph that can be launched.
pub(crate) struct Exec {
    chain: Mutex<Chain>,
    context: Arc<Context>,
    flags: u64,
}

/// Work in an order that its dependencies allow.
#[derive(Clone, Default)]
pub(crate) struct Chain {
    links: Vec<Link>,
}

/// A piece of it.
#[derive(Clone)]
struct Link {
    node: CUgraphNode,
    work: Work,
    enabled: bool,
}

/// Memory of a graph, which goes with the graph if nobody frees it.
pub(crate) struct GraphMemory {
    address: u64,
    number: Option<u64>,
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
        let copy = Graph::make();
        copy.get()?.copy_from(&*handle.get()?)?;
        answer.set(copy)
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
        let chain = Arc::new(lock(&exec.chain).clone());
        work::submit(&stream, Work::Graph(chain))
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
        Handle::new(Graph { nodes: Mutex::default() })
    }

    /// Adds a node.
    pub(crate) fn add(self: &Arc<Self>, work: Work, after: &[CUgraphNode]) -> Result<CUgraphNode> {
        for (index, dependency) in after.iter().enumerate() {
            self.dependencies(*dependency)?;
            if after[..index].contains(dependency) {
                return Err(CUresult::INVALID_VALUE);
            }
        }
        let node = Handle::new(Node {
            graph: Arc::downgrade(self),
            work: Mutex::new(work),
            dependencies: Mutex::new(after.to_vec()),
        });
        lock(&self.nodes).push(node);
        Ok(node)
    }

    /// What comes before a node of this graph.
    pub(crate) fn dependencies(&self, node: CUgraphNode) -> Result<Vec<CUgraphNode>> {
        let node = node.get()?;
        if !std::ptr::eq(node.graph.as_ptr(), self) {
            return Err(CUresult::INVALID_VALUE);
        }
        Ok(lock(&node.dependencies).clone())
    }

    /// The work in an order that the dependencies allow: that in which the nodes were made, where it is one.
    pub(crate) fn chain(&self) -> Result<Chain> {
        let nodes = lock(&self.nodes).clone();
        let mut chain = Chain::default();
        let mut done: Vec<CUgraphNode> = Vec::new();
        let mut left: Vec<(CUgraphNode, Arc<Node>)> = Vec::new();
        for node in nodes {
            left.push((node, node.get()?));
        }
        while !left.is_empty() {
            let before = left.len();
            left.retain(|(handle, node)| {
                if lock(&node.dependencies).iter().any(|dependency| !done.contains(dependency)) {
                    return true;
                }
                done.push(*handle);
                chain.links.push(Link { node: *handle, work: lock(&node.work).clone(), enabled: true });
                false
            });
            if left.len() == before {
                return Err(CUresult::INVALID_VALUE);
            }
        }
        Ok(chain)
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

    fn copy_from(self: &Arc<Self>, other: &Graph) -> Result {
        let mut copies: HashMap<usize, CUgraphNode> = HashMap::new();
        for link in other.chain()?.links {
            let after = other.dependencies(link.node)?;
            let after: Vec<_> = after.iter().filter_map(|node| copies.get(&node.number()).copied()).collect();
            copies.insert(link.node.number(), self.add(link.work, &after)?);
        }
        Ok(())
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
    /// Does the work.
    pub(crate) fn run(&self, stream: &Stream) -> Result {
        self.links.iter().filter(|link| link.enabled).try_for_each(|link| work::run(stream, &link.work))
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
        Ok(Handle::new(Exec { chain: Mutex::new(graph.chain()?), context, flags }))
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

impl GraphMemory {
    /// Memory that was allocated for a graph.
    pub(crate) fn new(address: u64) -> GraphMemory {
        GraphMemory { address, number: allocations::find(address).map(|allocation| allocation.number) }
    }
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        // The program may have freed it, and the address may be somebody else's by now.
        if allocations::find(self.address).map(|allocation| allocation.number) == self.number {
            let _freed = allocations::free(self.address, &[Kind::Device]);
        }
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

//! Parameters of nodes: as one structure for every type, asked for again, and changed.

use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::atomic::{AtomicU32, Ordering},
};

use crate::common::{Context, KERNELS, alloc, code, cu, download, function, load, ok, param};

/// `CUgraphNodeParams`
#[repr(C)]
struct Params<T> {
    kind: u32,
    reserved: [u32; 3],
    body: T,
    rest: [u64; 29],
}

impl<T> Params<T> {
    fn new(kind: u32, body: T) -> Params<T> {
        Params { kind, reserved: [0; 3], body, rest: [0; 29] }
    }
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`
#[repr(C)]
#[derive(Clone, Copy)]
struct Kernel {
    function: usize,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    params: *mut *mut u8,
    extra: *mut c_void,
    kernel: usize,
    context: usize,
}

/// `CUDA_MEMSET_NODE_PARAMS_v2`
#[repr(C)]
#[derive(Clone, Copy)]
struct Memset {
    address: u64,
    pitch: usize,
    value: u32,
    element: u32,
    width: usize,
    height: usize,
    context: usize,
}

/// `CUDA_HOST_NODE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
struct Host {
    function: Option<extern "C" fn(*mut c_void)>,
    data: *mut c_void,
}

/// `CUDA_MEMCPY3D`
#[repr(C)]
#[derive(Clone, Copy)]
struct Memcpy3D {
    src_x: usize,
    src_y: usize,
    src_z: usize,
    src_level: usize,
    src_type: u32,
    src_host: *const c_void,
    src_device: u64,
    src_array: usize,
    src_reserved: usize,
    src_pitch: usize,
    src_height: usize,
    dst_x: usize,
    dst_y: usize,
    dst_z: usize,
    dst_level: usize,
    dst_type: u32,
    dst_host: *mut c_void,
    dst_device: u64,
    dst_array: usize,
    dst_reserved: usize,
    dst_pitch: usize,
    dst_height: usize,
    width: usize,
    height: usize,
    depth: usize,
}

/// `CUDA_MEMCPY_NODE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
struct Memcpy {
    flags: u32,
    reserved: u32,
    context: usize,
    copy: Memcpy3D,
}

impl Memcpy3D {
    /// Bytes from one device address to another.
    fn between(from: u64, to: u64, bytes: usize) -> Memcpy3D {
        Memcpy3D {
            src_x: 0,
            src_y: 0,
            src_z: 0,
            src_level: 0,
            src_type: 2,
            src_host: null(),
            src_device: from,
            src_array: 0,
            src_reserved: 0,
            src_pitch: bytes,
            src_height: 1,
            dst_x: 0,
            dst_y: 0,
            dst_z: 0,
            dst_level: 0,
            dst_type: 2,
            dst_host: null_mut(),
            dst_device: to,
            dst_array: 0,
            dst_reserved: 0,
            dst_pitch: bytes,
            dst_height: 1,
            width: bytes,
            height: 1,
            depth: 1,
        }
    }
}

fn graph() -> usize {
    let mut graph = 0usize;
    ok!(cuGraphCreate(&mut graph as *mut usize, 0u32));
    graph
}

fn add<T>(graph: usize, after: &[usize], params: &mut Params<T>) -> usize {
    let mut node = 0usize;
    ok!(cuGraphAddNode(
        &mut node as *mut usize,
        graph,
        after.as_ptr(),
        after.len(),
        std::ptr::from_mut(params).cast::<c_void>(),
    ));
    node
}

fn instantiate(graph: usize) -> usize {
    let mut exec = 0usize;
    ok!(cuGraphInstantiateWithFlags(&mut exec as *mut usize, graph, 0u64));
    exec
}

fn kind(node: usize) -> u32 {
    let mut kind = 99u32;
    ok!(cuGraphNodeGetType(node, &mut kind as *mut u32));
    kind
}

#[test]
fn nodes_of_every_type_are_added_and_run() {
    static CALLED: AtomicU32 = AtomicU32::new(0);
    extern "C" fn called(_data: *mut c_void) {
        CALLED.fetch_add(1, Ordering::SeqCst);
    }
    let context = Context::new();
    let module = load(KERNELS);
    let (mut a, b) = (alloc(64), alloc(64));
    let graph = graph();
    let fill =
        Memset { address: a, pitch: 0, value: 1, element: 4, width: 16, height: 1, context: context.0 };
    let fill = add(graph, &[], &mut Params::new(2, fill));
    let (mut n, mut value) = (4u32, 9u32);
    let mut params = [param(&mut a), param(&mut n), param(&mut value)];
    let launch = Kernel {
        function: function(module, c"fill"),
        grid: [1, 1, 1],
        block: [32, 1, 1],
        shared: 0,
        params: params.as_mut_ptr(),
        extra: null_mut(),
        kernel: 0,
        context: 0,
    };
    let launch = add(graph, &[fill], &mut Params::new(0, launch));
    let copy = Memcpy { flags: 0, reserved: 0, context: context.0, copy: Memcpy3D::between(a, b, 64) };
    let copy = add(graph, &[launch], &mut Params::new(1, copy));
    let host = Host { function: Some(called), data: null_mut() };
    let host = add(graph, &[copy], &mut Params::new(3, host));
    let mut event = 0usize;
    ok!(cuEventCreate(&mut event as *mut usize, 0u32));
    let record = add(graph, &[host], &mut Params::new(7, event));
    let wait = add(graph, &[record], &mut Params::new(6, event));
    let empty = add(graph, &[wait], &mut Params::new(5, 0u64));
    assert_eq!([fill, launch, copy, host, record, wait, empty].map(kind), [2, 0, 1, 3, 7, 6, 5]);

    let mut node = 0usize;
    let mut unknown = Params::new(99, 0u64);
    assert_eq!(
        cu!(cuGraphAddNode(&mut node as *mut usize, graph, null::<usize>(), 0usize, &raw mut unknown)),
        code::INVALID_VALUE
    );
    let exec = instantiate(graph);
    ok!(cuGraphLaunch(exec, 0usize));
    ok!(cuCtxSynchronize());
    let mut expected = [1u32; 16];
    expected[..4].fill(9);
    assert_eq!((download::<u32>(b, 16), CALLED.load(Ordering::SeqCst)), (expected.to_vec(), 1));

    // One of them is changed, in the graph that can be launched alone.
    let mut other = Params::new(
        2,
        Memset { address: a, pitch: 0, value: 5, element: 4, width: 16, height: 1, context: context.0 },
    );
    ok!(cuGraphExecNodeSetParams(exec, fill, &raw mut other));
    ok!(cuGraphLaunch(exec, 0usize));
    ok!(cuCtxSynchronize());
    assert_eq!(download::<u32>(b, 16)[4..], [5; 12]);
    other.kind = 5;
    assert_eq!(cu!(cuGraphExecNodeSetParams(exec, fill, &raw mut other)), code::INVALID_VALUE);
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
}

#[test]
fn parameters_are_asked_for_and_given_back() {
    let context = Context::new();
    let module = load(KERNELS);
    let fill = function(module, c"fill");
    let (mut a, mut n, mut value) = (alloc(64), 16u32, 7u32);
    let graph = graph();
    let mut params = [param(&mut a), param(&mut n), param(&mut value)];
    let given = Kernel {
        function: fill,
        grid: [2, 1, 1],
        block: [8, 1, 1],
        shared: 64,
        params: params.as_mut_ptr(),
        extra: null_mut(),
        kernel: 0,
        context: 0,
    };
    let node = add(graph, &[], &mut Params::new(0, given));
    value += 1;
    assert_eq!(value, 8, "the node has what it was given");
    let mut found = Kernel { function: 0, grid: [0; 3], params: null_mut(), ..given };
    ok!(cuGraphKernelNodeGetParams_v2(node, &raw mut found));
    assert_eq!((found.function, found.grid, found.block, found.shared), (fill, [2, 1, 1], [8, 1, 1], 64));
    // SAFETY: The node has three parameters, of 8, 4 and 4 bytes.
    let (address, count, kept) = unsafe {
        let pointers = std::slice::from_raw_parts(found.params, 3);
        (pointers[0].cast::<u64>().read(), pointers[1].cast::<u32>().read(), pointers[2].cast::<u32>().read())
    };
    assert_eq!((address, count, kept), (a, 16, 7), "as they were when the node was added");
    // What was answered serves to change one thing.
    found.grid = [1, 1, 1];
    ok!(cuGraphKernelNodeSetParams_v2(node, &raw const found));
    let exec = instantiate(graph);
    ok!(cuMemsetD32_v2(a, 0u32, 16usize));
    ok!(cuGraphLaunch(exec, 0usize));
    ok!(cuCtxSynchronize());
    assert_eq!(download::<u32>(a, 16), [[7; 8], [0; 8]].concat());

    let b = alloc(64);
    let copy = Memcpy { flags: 0, reserved: 0, context: context.0, copy: Memcpy3D::between(a, b, 24) };
    let copied = add(graph, &[node], &mut Params::new(1, copy));
    let mut found = Memcpy3D::between(0, 0, 0);
    ok!(cuGraphMemcpyNodeGetParams(copied, &raw mut found));
    assert_eq!((found.src_device, found.dst_device, found.width), (a, b, 24));
    assert_eq!(cu!(cuGraphMemcpyNodeGetParams(node, &raw mut found)), code::INVALID_VALUE);
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
}

#[test]
fn a_graph_is_a_node_of_another() {
    let context = Context::new();
    let a = alloc(4);
    let child = graph();
    let set =
        |value| Memset { address: a, pitch: 0, value, element: 4, width: 1, height: 1, context: context.0 };
    let inner = add(child, &[], &mut Params::new(2, set(1)));
    let parent = graph();
    let node = add(parent, &[], &mut Params::new(4, [child, 0]));
    assert_eq!(kind(node), 4);
    let (mut embedded, mut count, mut copied) = (0usize, 0usize, 0usize);
    ok!(cuGraphChildGraphNodeGetGraph(node, &mut embedded as *mut usize));
    ok!(cuGraphGetNodes(embedded, null_mut::<usize>(), &mut count as *mut usize));
    assert!(embedded != child && count == 1, "the node has a graph of its own");
    let exec = instantiate(parent);
    ok!(cuGraphLaunch(exec, 0usize));
    assert_eq!(download::<u32>(a, 1), [1]);
    let other = graph();
    add(other, &[], &mut Params::new(2, set(2)));
    ok!(cuGraphExecChildGraphNodeSetParams(exec, node, other));
    ok!(cuGraphLaunch(exec, 0usize));
    assert_eq!(download::<u32>(a, 1), [2]);

    let mut clone = 0usize;
    ok!(cuGraphClone(&mut clone as *mut usize, child));
    ok!(cuGraphNodeFindInClone(&mut copied as *mut usize, inner, clone));
    assert!(copied != inner && kind(copied) == 2);
    assert_eq!(cu!(cuGraphNodeFindInClone(&mut copied as *mut usize, inner, other)), code::INVALID_VALUE);
    for graph in [child, parent, other, clone] {
        ok!(cuGraphDestroy(graph));
    }
    ok!(cuGraphExecDestroy(exec));
}

#[test]
fn attributes_of_a_kernels_launch() {
    let _context = Context::new();
    let module = load(KERNELS);
    let graph = graph();
    let launch = Kernel {
        function: function(module, c"count"),
        grid: [1; 3],
        block: [1; 3],
        shared: 0,
        params: null_mut(),
        extra: null_mut(),
        kernel: 0,
        context: 0,
    };
    let node = add(graph, &[], &mut Params::new(0, launch));
    let twin = add(graph, &[node], &mut Params::new(0, launch));
    let cooperative = |node: usize| {
        let mut value = [9u64; 8];
        ok!(cuGraphKernelNodeGetAttribute(node, 2u32, value.as_mut_ptr()));
        value[0] as u32
    };
    assert_eq!(cooperative(node), 0);
    ok!(cuGraphKernelNodeSetAttribute(node, 2u32, [1u64, 0, 0, 0, 0, 0, 0, 0].as_ptr()));
    ok!(cuGraphKernelNodeCopyAttributes(twin, node));
    assert_eq!((cooperative(node), cooperative(twin)), (1, 1));
    ok!(cuGraphDestroy(graph));
}

#[test]
fn memory_of_graphs() {
    /// `CUDA_MEM_ALLOC_NODE_PARAMS`
    #[repr(C)]
    struct Allocate {
        kind: u32,
        handles: u32,
        place: [u32; 2],
        security: usize,
        limit: usize,
        usage: u16,
        reserved: [u8; 54],
        access: usize,
        access_count: usize,
        bytes: usize,
        address: u64,
    }
    let context = Context::new();
    let graph = graph();
    let allocate = Allocate {
        kind: 1,
        handles: 0,
        place: [1, 0],
        security: 0,
        limit: 0,
        usage: 0,
        reserved: [0; 54],
        access: 0,
        access_count: 0,
        bytes: 64,
        address: 0,
    };
    let mut params = Params::new(10, allocate);
    let allocated = add(graph, &[], &mut params);
    let address = params.body.address;
    assert_ne!(address, 0);
    let out = alloc(64);
    let set = Memset { address, pitch: 0, value: 3, element: 4, width: 16, height: 1, context: context.0 };
    let set = add(graph, &[allocated], &mut Params::new(2, set));
    let copy =
        Memcpy { flags: 0, reserved: 0, context: context.0, copy: Memcpy3D::between(address, out, 64) };
    let copy = add(graph, &[set], &mut Params::new(1, copy));
    let free = add(graph, &[copy], &mut Params::new(11, address));
    assert_eq!([allocated, free].map(kind), [10, 11]);
    let mut freed = 0u64;
    ok!(cuGraphMemFreeNodeGetParams(free, &mut freed as *mut u64));
    assert_eq!(freed, address);
    let mut clone = 0usize;
    assert_eq!(cu!(cuGraphClone(&mut clone as *mut usize, graph)), code::NOT_SUPPORTED);
    let exec = instantiate(graph);
    ok!(cuGraphLaunch(exec, 0usize));
    ok!(cuGraphLaunch(exec, 0usize));
    assert_eq!(download::<u32>(out, 16), [3; 16]);
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
    ok!(cuDeviceGraphMemTrim(0i32));
    let mut used = 9u64;
    ok!(cuDeviceGetGraphMemAttribute(0i32, 0u32, &mut used as *mut u64));
    assert_eq!(used, 0);
}

#[test]
fn graphs_keep_things_of_the_program() {
    static DESTROYED: AtomicU32 = AtomicU32::new(0);
    extern "C" fn destroy(number: *mut c_void) {
        DESTROYED.fetch_add(number as u32, Ordering::SeqCst);
    }
    let _context = Context::new();
    let (graph, mut object, mut clone) = (graph(), 0usize, 0usize);
    let five = std::ptr::without_provenance_mut::<c_void>(5);
    let function = destroy as extern "C" fn(_);
    assert_eq!(
        cu!(cuUserObjectCreate(&mut object as *mut usize, five, function, 1u32, 0u32)),
        code::INVALID_VALUE
    );
    ok!(cuUserObjectCreate(&mut object as *mut usize, five, function, 1u32, 1u32));
    // The graph takes the one reference over.
    ok!(cuGraphRetainUserObject(graph, object, 1u32, 1u32));
    ok!(cuGraphClone(&mut clone as *mut usize, graph));
    ok!(cuGraphDestroy(graph));
    assert_eq!(DESTROYED.load(Ordering::SeqCst), 0, "the copy has it still");
    ok!(cuGraphDestroy(clone));
    // It may take a moment.
    for _ in 0..1000 {
        if DESTROYED.load(Ordering::SeqCst) == 5 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("it was never destroyed");
}

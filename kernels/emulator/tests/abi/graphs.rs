//! Graphs: captured and built by hand.

use std::ptr::{null, null_mut};

use crate::common::{Context, KERNELS, alloc, code, cu, download, function, launch, load, ok};

#[test]
fn graphs_are_captured_and_launched() {
    let _context = Context::new();
    let module = load(KERNELS);
    let count = function(module, c"count");
    let mut counter = 0u64;
    ok!(cuModuleGetGlobal_v2(&mut counter as *mut u64, null_mut::<usize>(), module, c"counter".as_ptr()));
    let (mut stream, mut other, mut fork, mut join) = (0usize, 0usize, 0usize, 0usize);
    ok!(cuStreamCreate(&mut stream as *mut usize, 1u32));
    ok!(cuStreamCreate(&mut other as *mut usize, 1u32));
    ok!(cuEventCreate(&mut fork as *mut usize, 2u32));
    ok!(cuEventCreate(&mut join as *mut usize, 2u32));

    assert_eq!(cu!(cuStreamBeginCapture_v2(0usize, 0u32)), code::STREAM_CAPTURE_UNSUPPORTED);
    ok!(cuStreamBeginCapture_v2(stream, 2u32));
    assert_eq!(cu!(cuStreamBeginCapture_v2(stream, 2u32)), code::ILLEGAL_STATE);
    ok!(cuMemsetD32Async(counter, 100u32, 1usize, stream));
    ok!(cuEventRecord(fork, stream));
    ok!(cuStreamWaitEvent(other, fork, 0u32));
    let mut status = 9u32;
    ok!(cuStreamIsCapturing(other, &mut status as *mut u32));
    assert_eq!(status, 1, "the other stream joined");
    assert_eq!(launch(count, 1, 32, 0, stream, &mut []), 0);
    assert_eq!(launch(count, 2, 32, 0, other, &mut []), 0);
    ok!(cuEventRecord(join, other));
    ok!(cuStreamWaitEvent(stream, join, 0u32));
    let mut graph = 0usize;
    ok!(cuStreamEndCapture(stream, &mut graph as *mut usize));
    assert_eq!(download::<u32>(counter, 1), [7], "nothing has run");

    let mut nodes = 0usize;
    ok!(cuGraphGetNodes(graph, null_mut::<usize>(), &mut nodes as *mut usize));
    assert_eq!(nodes, 3);
    let mut exec = 0usize;
    ok!(cuGraphInstantiateWithFlags(&mut exec as *mut usize, graph, 0u64));
    ok!(cuGraphLaunch(exec, stream));
    ok!(cuGraphLaunch(exec, stream));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(download::<u32>(counter, 1), [196]);
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
}

#[test]
fn captures_that_go_wrong_say_how() {
    let _context = Context::new();
    let (mut stream, mut other, mut event, mut graph) = (0usize, 0usize, 0usize, 1usize);
    ok!(cuStreamCreate(&mut stream as *mut usize, 1u32));
    ok!(cuStreamCreate(&mut other as *mut usize, 1u32));
    ok!(cuEventCreate(&mut event as *mut usize, 2u32));
    let a = alloc(64);

    ok!(cuStreamBeginCapture_v2(stream, 2u32));
    assert_eq!(cu!(cuStreamSynchronize(stream)), code::STREAM_CAPTURE_UNSUPPORTED);
    assert_eq!(cu!(cuMemsetD8Async(a, 0u8, 1usize, stream)), code::STREAM_CAPTURE_INVALIDATED);
    assert_eq!(cu!(cuStreamEndCapture(stream, &mut graph as *mut usize)), code::STREAM_CAPTURE_INVALIDATED);
    assert_eq!(graph, 0);

    ok!(cuStreamBeginCapture_v2(stream, 2u32));
    ok!(cuEventRecord(event, stream));
    assert_eq!(cu!(cuEventSynchronize(event)), code::CAPTURED_EVENT);
    cu!(cuStreamEndCapture(stream, &mut graph as *mut usize));

    ok!(cuEventRecord(event, other));
    ok!(cuStreamBeginCapture_v2(stream, 2u32));
    assert_eq!(cu!(cuStreamWaitEvent(stream, event, 0u32)), code::STREAM_CAPTURE_ISOLATION);
    assert_eq!(cu!(cuStreamEndCapture(stream, &mut graph as *mut usize)), code::STREAM_CAPTURE_INVALIDATED);

    ok!(cuStreamBeginCapture_v2(stream, 2u32));
    ok!(cuEventRecord(event, stream));
    ok!(cuStreamWaitEvent(other, event, 0u32));
    assert_eq!(cu!(cuStreamEndCapture(other, &mut graph as *mut usize)), code::STREAM_CAPTURE_UNMATCHED);
    assert_eq!(cu!(cuStreamEndCapture(stream, &mut graph as *mut usize)), code::STREAM_CAPTURE_INVALIDATED);
    assert_eq!(graph, 0, "another stream tried to end it");

    ok!(cuStreamBeginCapture_v2(stream, 2u32));
    ok!(cuEventRecord(event, stream));
    ok!(cuStreamWaitEvent(other, event, 0u32));
    ok!(cuMemsetD8Async(a, 0u8, 1usize, other));
    assert_eq!(cu!(cuStreamEndCapture(stream, &mut graph as *mut usize)), code::STREAM_CAPTURE_UNJOINED);
    ok!(cuMemsetD8Async(a, 0u8, 1usize, other));
    ok!(cuStreamSynchronize(other));
}

#[test]
fn graphs_are_built_by_hand() {
    let _context = Context::new();
    #[repr(C)]
    struct Memset {
        address: u64,
        pitch: usize,
        value: u32,
        element: u32,
        width: usize,
        height: usize,
    }
    let mut owner = 0usize;
    ok!(cuCtxGetCurrent(&mut owner as *mut usize));
    let a = alloc(64);
    let (mut graph, mut first, mut second, mut empty) = (0usize, 0usize, 0usize, 0usize);
    ok!(cuGraphCreate(&mut graph as *mut usize, 0u32));
    let mut params = Memset { address: a, pitch: 0, value: 1, element: 4, width: 16, height: 1 };
    let none = null::<usize>();
    ok!(cuGraphAddMemsetNode(&mut first as *mut usize, graph, none, 0usize, &params as *const Memset, owner));
    params.value = 2;
    params.width = 4;
    ok!(cuGraphAddMemsetNode(
        &mut second as *mut usize,
        graph,
        &first as *const usize,
        1usize,
        &params as *const Memset,
        owner
    ));
    ok!(cuGraphAddEmptyNode(&mut empty as *mut usize, graph, none, 0usize));
    let (mut kind, mut count) = (9u32, 8usize);
    ok!(cuGraphNodeGetType(second, &mut kind as *mut u32));
    let mut roots = [9usize; 8];
    ok!(cuGraphGetRootNodes(graph, roots.as_mut_ptr(), &mut count as *mut usize));
    assert_eq!((kind, count), (2, 2));
    assert!(roots[..2].contains(&first) && roots[..2].contains(&empty), "in any order");
    ok!(cuGraphAddDependencies(graph, &second as *const usize, &empty as *const usize, 1usize));

    let (mut exec, mut copy) = (0usize, 0usize);
    ok!(cuGraphInstantiateWithFlags(&mut exec as *mut usize, graph, 0u64));
    ok!(cuGraphLaunch(exec, 0usize));
    let mut expected = [1u32; 16];
    expected[..4].fill(2);
    assert_eq!(download::<u32>(a, 16), expected);
    params.value = 3;
    ok!(cuGraphExecMemsetNodeSetParams(exec, second, &params as *const Memset, owner));
    ok!(cuGraphLaunch(exec, 0usize));
    expected[..4].fill(3);
    assert_eq!(download::<u32>(a, 16), expected);
    ok!(cuGraphClone(&mut copy as *mut usize, graph));
    ok!(cuGraphDestroy(graph));
    ok!(cuGraphGetNodes(copy, null_mut::<usize>(), &mut count as *mut usize));
    assert_eq!(count, 3);
    ok!(cuGraphDestroy(copy));
    ok!(cuGraphExecDestroy(exec));
}

//! Calls with whatever there is: null, wild, freed and foreign handles, numbers as pointers, from several threads.

use std::{
    fs,
    path::Path,
    process::Command,
    sync::{Mutex, atomic::Ordering},
    thread,
    time::Instant,
};

use crate::{
    CASES,
    common::{DRIVER, KERNELS, cu, emulated_driver, random::Random},
    try_cases,
};

/// Functions that call what they are given, which no driver can do with a number, or end the process's use of the driver.
const CALLS_BACK: [&str; 9] = [
    "cuLaunchHostFunc",
    "cuStreamAddCallback",
    "cuUserObjectCreate",
    "cuOccupancyMaxPotentialBlockSize",
    "cuGraphAddHostNode",
    "HostNodeSetParams",
    "cuGraphAddNode",
    "NodeSetParams",
    "cuLogsRegisterCallback",
];

/// What every function is called as: more arguments than any has, which do no harm.
type Any = unsafe extern "C" fn(
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
) -> u32;

/// The functions of the driver, by the names in its file.
fn functions() -> Vec<(String, Any)> {
    let names = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(emulated_driver())
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    let names = names.lines().filter_map(|line| line.rsplit(' ').next());
    let functions = names.filter(|name| name.starts_with("cu")).map(|name| {
        // SAFETY: Every function of the driver takes up to twelve numbers or pointers.
        let function = unsafe { DRIVER.get::<Any>(name.as_bytes()) }.expect("it is there");
        (name.to_owned(), *function)
    });
    let all: Vec<_> = functions.collect();
    assert!(all.len() > 500, "{} functions; the C compiler's nm lists them", all.len());
    all.into_iter().filter(|(name, _)| !CALLS_BACK.iter().any(|part| name.contains(part))).collect()
}

/// Memory of the host with nothing behind it, so that a function that writes more than there is room for is stopped.
struct Arena(*mut u64);

const ARENA_BYTES: usize = 64 << 10;

// SAFETY: Each thread has its own.
unsafe impl Send for Arena {}

impl Arena {
    fn new() -> Arena {
        const READ_WRITE: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;
        const PRIVATE: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let guard = 1 << 20;
        // SAFETY: It is new memory, of which the last part is made inaccessible.
        let start = unsafe {
            let start = libc::mmap(std::ptr::null_mut(), ARENA_BYTES + guard, READ_WRITE, PRIVATE, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            libc::mprotect(start.byte_add(ARENA_BYTES), guard, libc::PROT_NONE);
            start
        };
        Arena(start.cast())
    }

    fn words(&mut self) -> &mut [u64] {
        // SAFETY: The memory is this arena's, and no call is under way.
        unsafe { std::slice::from_raw_parts_mut(self.0, ARENA_BYTES / 8) }
    }
}

/// Handles, device addresses and texts that some call answered or may take.
static KNOWN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

fn value(random: &mut Random, arena: usize) -> usize {
    const NUMBERS: [usize; 14] =
        [0, 1, 2, 3, 4, 7, 16, 64, 4096, 1 << 20, u32::MAX as usize, usize::MAX, 1 << 50, 1 << 63];
    const WILD: [usize; 5] = [0x10, 0xdead_0000, 0x7fff_ffff_f000, 0xffff_8000_0000_0000, 0x1234_5678];
    match random.index(12) {
        0..=2 => *random.pick(&NUMBERS),
        3 => *random.pick(&WILD),
        4..=6 => {
            let known = KNOWN.lock().unwrap();
            if known.is_empty() { 0 } else { *random.pick(&known) }
        }
        // A number that may be a handle some day.
        7 => 0x10_000 + 16 * random.index(4000),
        _ => arena + 8 * random.index(ARENA_BYTES / 8),
    }
}

/// A name, PTX or structure in the arena, where functions may find it.
fn furnish(random: &mut Random, arena: &mut Arena) {
    let start = arena.0 as usize;
    for _ in 0..16 {
        let place = random.index(ARENA_BYTES / 8 - 64);
        if random.index(8) == 0 {
            let text = *random.pick(&["fill", "count", "counter", "cuMemAlloc", "x", "0000:01:00.0"]);
            let mut bytes = [0; 16];
            bytes[..text.len()].copy_from_slice(text.as_bytes());
            for (index, word) in bytes.chunks(8).enumerate() {
                arena.words()[place + index] = u64::from_le_bytes(word.try_into().unwrap());
            }
        } else {
            let value = value(random, start) as u64;
            arena.words()[place] = value;
        }
    }
}

/// Makes one of everything, so that calls find something to go wrong with.
fn make_something(text: *const u64) -> Vec<usize> {
    let (mut stream, mut event, mut graph, mut node, mut exec) = (0usize, 0usize, 0usize, 0usize, 0usize);
    let (mut module, mut function, mut library, mut kernel, mut link) =
        (0usize, 0usize, 0usize, 0usize, 0usize);
    let (mut memory, mut pool) = (0u64, 0usize);
    let none = std::ptr::null::<u32>();
    cu!(cuStreamCreate(&mut stream as *mut usize, 1u32));
    cu!(cuEventCreate(&mut event as *mut usize, 0u32));
    cu!(cuGraphCreate(&mut graph as *mut usize, 0u32));
    cu!(cuGraphAddEmptyNode(&mut node as *mut usize, graph, none, 0usize));
    cu!(cuGraphInstantiateWithFlags(&mut exec as *mut usize, graph, 0u64));
    cu!(cuModuleLoadData(&mut module as *mut usize, text));
    cu!(cuModuleGetFunction(&mut function as *mut usize, module, c"count".as_ptr()));
    cu!(cuLibraryLoadData(&mut library as *mut usize, text, none, none, 0u32, none, none, 0u32));
    cu!(cuLibraryGetKernel(&mut kernel as *mut usize, library, c"count".as_ptr()));
    cu!(cuLinkCreate_v2(0u32, none, none, &mut link as *mut usize));
    cu!(cuMemAlloc_v2(&mut memory as *mut u64, 4096usize));
    cu!(cuDeviceGetDefaultMemPool(&mut pool as *mut usize, 0i32));
    let made = [stream, event, graph, node, exec, module, function, library, kernel, link, pool];
    made.into_iter().chain([memory as usize]).collect()
}

fn know(random: &mut Random, found: usize) {
    let mut known = KNOWN.lock().unwrap();
    if known.len() > 200 {
        let place = random.index(known.len());
        known.swap_remove(place);
    }
    known.push(found);
}

fn call_at_random(seed: u64, end: Instant) {
    let mut functions = functions();
    let mut random = Random(seed);
    let mut arena = Arena::new();
    let start = arena.0 as usize;
    // The text has an arena of its own, since calls write there too.
    let mut texts = Arena::new();
    let text = texts.0;
    let mut context = 0usize;
    cu!(cuCtxCreate_v2(&mut context as *mut usize, 0u32, 0i32));
    while Instant::now() < end {
        CASES.fetch_add(1, Ordering::Relaxed);
        furnish(&mut random, &mut arena);
        let place = random.index(functions.len());
        let function = functions[place].1;
        // Functions write their answers to the front more often than not.
        let a: [usize; 12] = std::array::from_fn(|index| match (index, random.index(3)) {
            (0, 0) => start,
            _ => value(&mut random, start),
        });
        arena.words()[..4].fill(0);
        // SAFETY: The driver says no to pointers where nothing is. What it can write to is the arena's, whose end stops it.
        let answer =
            unsafe { function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]) };
        const NOT_SUPPORTED: u32 = 801;
        // Those that answer this whatever they are given have been tried enough.
        if answer == NOT_SUPPORTED && functions.len() > 300 && random.index(10) == 0 {
            functions.swap_remove(place);
        }
        if answer == 0 {
            // Handles are small numbers here. What is larger may be the driver's own memory, where only it may write.
            let found = arena.words()[0] as usize;
            if (0x10_000..1 << 32).contains(&found) {
                know(&mut random, found);
            }
        }
        // A failed context says the same to everything.
        if random.index(100) == 0 {
            cu!(cuCtxDestroy_v2(context));
            cu!(cuCtxCreate_v2(&mut context as *mut usize, 0u32, random.index(2) as i32));
            know(&mut random, context);
            know(&mut random, text as usize);
            for (word, chunk) in texts.words().iter_mut().zip(KERNELS.as_bytes().chunks(8)) {
                let mut bytes = [0; 8];
                bytes[..chunk.len()].copy_from_slice(chunk);
                *word = u64::from_le_bytes(bytes);
            }
            texts.words()[KERNELS.len() / 8 + 1] = 0;
            make_something(text).into_iter().for_each(|made| know(&mut random, made));
        }
    }
    println!("{} calls", CASES.load(Ordering::Relaxed));
}

fn run(threads: u64, seed: u64, end: Instant, file: &Path) {
    cu!(cuInit(0u32));
    fs::write(file, format!("seed {seed}, {threads} threads\n")).expect("the seed is written down");
    thread::scope(|scope| {
        for number in 0..threads {
            scope.spawn(move || call_at_random(seed ^ number << 32, end));
        }
    });
}

const SETTINGS: [(&str, &str); 2] = [("EMULATED_GPU_BUDGET", "20000"), ("EMULATED_GPU_LOG", "0")];

#[test]
fn any_function_with_anything() {
    try_cases("calls::any_function_with_anything", &SETTINGS, |seed, end, file| run(1, seed, end, file));
}

#[test]
fn any_function_from_many_threads() {
    try_cases("calls::any_function_from_many_threads", &SETTINGS, |seed, end, file| run(4, seed, end, file));
}

/// Does one thing from many threads, and something that takes away what it uses.
#[test]
fn memory_goes_while_it_is_used() {
    try_cases("calls::memory_goes_while_it_is_used", &SETTINGS, |_, end, _| {
        cu!(cuInit(0u32));
        let mut context = 0usize;
        cu!(cuCtxCreate_v2(&mut context as *mut usize, 0u32, 0i32));
        let address = Mutex::new(0u64);
        thread::scope(|scope| {
            for number in 0..3 {
                let address = &address;
                scope.spawn(move || {
                    cu!(cuCtxSetCurrent(context));
                    let mut host = vec![1u8; 16 << 20];
                    while Instant::now() < end {
                        CASES.fetch_add(1, Ordering::Relaxed);
                        let known = *address.lock().unwrap();
                        match number {
                            0 => cu!(cuMemcpyHtoD_v2(known, host.as_ptr(), host.len())),
                            1 => cu!(cuMemcpyDtoH_v2(host.as_mut_ptr(), known, host.len())),
                            _ => cu!(cuMemsetD8_v2(known, 1u8, host.len())),
                        };
                    }
                });
            }
            scope.spawn(|| {
                cu!(cuCtxSetCurrent(context));
                while Instant::now() < end {
                    let mut new = 0u64;
                    cu!(cuMemAlloc_v2(&mut new as *mut u64, 16usize << 20));
                    let old = std::mem::replace(&mut *address.lock().unwrap(), new);
                    cu!(cuMemFree_v2(old));
                }
            });
        });
    });
}

//! Images with something wrong: PTX and fat binaries, changed at random, loaded, and launched where they load.

use std::{
    ffi::{c_char, c_void},
    fs,
    path::Path,
    ptr::{null, null_mut, without_provenance_mut},
    sync::atomic::Ordering,
    time::Instant,
};

use crate::{
    CASES,
    common::{cu, random::Random},
    files, try_cases,
};

/// Numbers at which something may break.
const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "-1",
    "3",
    "31",
    "32",
    "255",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "99999999999",
    "9223372036854775808",
    "18446744073709551615",
    "0xffffffffffffffffff",
];
/// Text that is put somewhere.
const PIECES: [&str; 24] = [
    ".shared .b8 big[99999999999];\n",
    ".global .align 1073741824 .b8 wide[4];\n",
    ".global .b8 vast[99999999999];\n",
    ".global .attribute(.managed) .b8 shared_vast[99999999999];\n",
    ".global .b32 list[4] = {1, 2, 3, 4, 5};\n",
    ".reg .b32 %many<4294967295>;\n",
    ".local .align 16 .b8 deep[4294967295];\n",
    ".extern .func nothing;\n",
    "bra.uni again;\nagain: bra again;\n",
    "@%p bra nowhere;\n",
    "call.uni (r), f, (a, b);\n",
    "{ { { {",
    "} } }",
    "bar.sync 0;\n",
    "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+-2147483648];\n",
    "st.local.u64 [%rd1+4294967295], %rd1;\n",
    "table: .branchtargets a<1000>, b<99999999>;\nbrx.idx %r1, table;\n",
    ".param .align 16 .b8 retval[2147483647];\n",
    "mov.u32 %r1, ((((((1+2)*3)<<63)>>64)/0)%0);\n",
    "// a comment\n/* another",
    "\"text\\\"",
    ".visible .entry again() { ret; }\n",
    ".func (.reg .b32 r) f (.param .b64 x) { ret; }\n",
    ".pragma \"nounroll\";\n",
];

/// What changes are made to.
struct Corpus {
    files: Vec<Vec<u8>>,
    /// Words of all texts.
    words: Vec<Vec<u8>>,
}

impl Corpus {
    fn new() -> Corpus {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        let wanted = |path: &Path| {
            path.extension().is_some_and(|end| ["ptx", "fatbin", "bin"].iter().any(|wanted| end == *wanted))
        };
        let paths = files(&tests).into_iter().filter(|path| wanted(path));
        let files: Vec<Vec<u8>> = paths.filter_map(|path| fs::read(path).ok()).collect();
        let mut words: Vec<Vec<u8>> = Vec::new();
        for file in files.iter().filter(|file| file.starts_with(b"/") || file.starts_with(b".")) {
            words.extend(
                split(file).into_iter().filter(|word| !word[0].is_ascii_whitespace()).map(<[u8]>::to_vec),
            );
        }
        words.sort();
        words.dedup();
        assert!(files.len() > 20 && words.len() > 300, "{} files, {} words", files.len(), words.len());
        Corpus { files, words }
    }
}

/// A text as words, spaces and marks.
fn split(text: &[u8]) -> Vec<&[u8]> {
    let in_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.' || byte == b'%';
    text.chunk_by(|a, b| in_word(*a) && in_word(*b)).collect()
}

fn mutate(random: &mut Random, corpus: &Corpus) -> Vec<u8> {
    let mut case = random.pick(&corpus.files).clone();
    for _ in 0..1 + random.index(4) {
        let at = random.index(case.len() + 1);
        match random.index(14) {
            0 => case.truncate(at),
            1 => {
                if let Some(byte) = case.get_mut(at) {
                    *byte ^= 1 << random.index(8);
                }
            }
            2 => {
                if let Some(byte) = case.get_mut(at) {
                    *byte = random.next() as u8;
                }
            }
            3 => {
                let end = at + random.index((case.len() - at).min(200) + 1);
                case.drain(at..end);
            }
            4 => {
                let end = at + random.index((case.len() - at).min(400) + 1);
                let copied = case[at..end].repeat(1 + random.index(3));
                case.splice(at..at, copied);
            }
            5 => {
                let other = random.pick(&corpus.files);
                let from = random.index(other.len() + 1);
                case.truncate(at);
                case.extend(&other[from..]);
            }
            6 => {
                let piece = random.pick(&PIECES).as_bytes();
                let line =
                    case[at..].iter().position(|&byte| byte == b'\n').map_or(case.len(), |end| at + end + 1);
                case.splice(line..line, piece.iter().copied());
            }
            7 => {
                let mark = *random.pick(b"{([<-~!,;+");
                let count = *random.pick(&[10, 1000, 100_000]);
                case.splice(at..at, std::iter::repeat_n(mark, count));
            }
            // Words are what a text is made of, so most changes concern them.
            _ => {
                let mut words: Vec<Vec<u8>> = split(&case).into_iter().map(<[u8]>::to_vec).collect();
                let places: Vec<usize> =
                    (0..words.len()).filter(|&place| !words[place][0].is_ascii_whitespace()).collect();
                if places.is_empty() {
                    continue;
                }
                let (one, two) = (*random.pick(&places), *random.pick(&places));
                match random.index(4) {
                    0 => words.swap(one, two),
                    1 => words[one] = random.pick(&corpus.words).clone(),
                    2 => words[one] = words[two].clone(),
                    _ => {
                        let numbers: Vec<usize> =
                            places.into_iter().filter(|&place| words[place][0].is_ascii_digit()).collect();
                        if !numbers.is_empty() {
                            words[*random.pick(&numbers)] = random.pick(&NUMBERS).as_bytes().to_vec();
                        }
                    }
                }
                case = words.concat();
            }
        }
        case.truncate(1 << 20);
    }
    case
}

/// Loads an image in one of the ways that there are, and launches what is in it.
fn try_image(image: &[u8], way: usize, random: &mut Random) {
    let mut ended = image.to_vec();
    ended.push(0);
    let mut log = vec![0u8; 2000];
    let options = [5u32, 6];
    let mut values = [log.as_mut_ptr().cast::<c_void>(), without_provenance_mut(log.len())];
    let (mut module, mut library, mut link) = (0usize, 0usize, 0usize);
    let (options, values) = (options.as_ptr(), values.as_mut_ptr());
    match way {
        0 => {
            cu!(cuLibraryLoadData(
                &mut library as *mut usize,
                ended.as_ptr(),
                options,
                values,
                2u32,
                options,
                values,
                0u32
            ));
            cu!(cuLibraryGetModule(&mut module as *mut usize, library));
        }
        1 => {
            cu!(cuLinkCreate_v2(2u32, options, values, &mut link as *mut usize));
            for kind in [1u32, 2, 3, 4] {
                let name = c"x".as_ptr();
                let added = cu!(cuLinkAddData_v2(
                    link,
                    kind,
                    image.as_ptr(),
                    image.len(),
                    name,
                    0u32,
                    null::<u32>(),
                    null_mut::<*mut c_void>()
                ));
                if added == 0 && kind == 1 {
                    break;
                }
            }
            let (mut linked, mut bytes) = (null::<c_void>(), 0usize);
            if cu!(cuLinkComplete(link, &mut linked as *mut _, &mut bytes as *mut usize)) == 0 {
                cu!(cuModuleLoadData(&mut module as *mut usize, linked));
            }
        }
        _ => {
            cu!(cuModuleLoadDataEx(&mut module as *mut usize, ended.as_ptr(), 2u32, options, values));
        }
    }
    let mut functions = [0usize; 3];
    let mut count = 0u32;
    cu!(cuModuleGetFunctionCount(&mut count as *mut u32, module));
    cu!(cuModuleEnumerateFunctions(functions.as_mut_ptr(), 3u32, module));
    for &function in functions.iter().take(count as usize) {
        launch(function, random);
    }
    cu!(cuModuleUnload(module));
    cu!(cuLibraryUnload(library));
    cu!(cuLinkDestroy(link));
}

fn launch(function: usize, random: &mut Random) {
    let mut memory = 0u64;
    cu!(cuMemAlloc_v2(&mut memory as *mut u64, 4096usize));
    let (mut bytes, mut pointers) = (Vec::<Vec<u64>>::new(), Vec::new());
    for index in 0..4400usize {
        let (mut offset, mut size) = (0usize, 0usize);
        if cu!(cuFuncGetParamInfo(function, index, &mut offset as *mut usize, &mut size as *mut usize)) != 0 {
            break;
        }
        let value = *random.pick(&[memory, memory, memory, memory + 4, 1, 1000, 0, u64::MAX]);
        bytes.push(vec![value; size / 8 + 1]);
    }
    pointers.extend(bytes.iter_mut().map(|bytes| bytes.as_mut_ptr()));
    let block = *random.pick(&[1u32, 32, 33, 64]);
    let none = null_mut::<*mut c_void>();
    cu!(cuLaunchKernel(
        function,
        1 + random.index(2) as u32,
        1u32,
        1u32,
        block,
        1u32,
        1u32,
        *random.pick(&[0u32, 1024]),
        0usize,
        pointers.as_mut_ptr(),
        none,
    ));
    cu!(cuCtxSynchronize());
    cu!(cuMemFree_v2(memory));
}

/// Tries an image in a context of its own.
fn with_context(image: &[u8], way: usize, random: &mut Random) {
    let mut context = 0usize;
    cu!(cuCtxCreate_v2(&mut context as *mut usize, 0u32, 0i32));
    try_image(image, way, random);
    cu!(cuCtxDestroy_v2(context));
}

fn run(seed: u64, end: Instant, file: &Path) {
    cu!(cuInit(0u32));
    let corpus = Corpus::new();
    let mut random = Random(seed);
    let mut name = [0 as c_char; 64];
    cu!(cuDeviceGetName(name.as_mut_ptr(), 64i32, 0i32));
    while Instant::now() < end {
        let case = mutate(&mut random, &corpus);
        fs::write(file, &case).expect("the case is written down");
        CASES.fetch_add(1, Ordering::Relaxed);
        let way = random.index(6);
        with_context(&case, way, &mut random);
    }
    println!("{} cases", CASES.load(Ordering::Relaxed));
}

const SETTINGS: [(&str, &str); 3] =
    [("EMULATED_GPU_BUDGET", "20000"), ("EMULATED_GPU_LOG", "0"), ("EMULATED_GPU_THREADS", "2")];

#[test]
fn mutated_images() {
    try_cases("images::mutated_images", &SETTINGS, run);
}

#[test]
fn mutated_images_with_all_checks() {
    let settings = [&SETTINGS[..], &[("EMULATED_GPU_CHECK", "all")]].concat();
    try_cases("images::mutated_images_with_all_checks", &settings, run);
}

#[test]
fn kept_images() {
    try_cases("images::kept_images", &SETTINGS, |seed, _, file| {
        cu!(cuInit(0u32));
        let mut random = Random(seed);
        for path in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/kept")) {
            let case = fs::read(&path).expect("it is a file");
            fs::write(file, &case).expect("the case is written down");
            CASES.fetch_add(1, Ordering::Relaxed);
            (0..3).for_each(|way| with_context(&case, way, &mut random));
        }
    });
}

#[test]
fn depth_and_size() {
    try_cases("images::depth_and_size", &SETTINGS, |seed, _, file| {
        cu!(cuInit(0u32));
        let mut random = Random(seed);
        let head = ".version 8.0\n.target sm_75\n.address_size 64\n";
        let entry = |body: &str| format!("{head}.visible .entry k() {{ {body} ret; }}\n");
        let many = 200_000;
        let mut cases = vec![
            entry(&"{".repeat(many)),
            entry(&format!("{}{}", "{ ".repeat(many), "} ".repeat(many))),
            entry(&format!(".reg .b32 %r; mov.u32 %r, {}1{};", "(".repeat(many), ")".repeat(many))),
            entry(&format!(".reg .b32 %r; mov.u32 %r, {}1;", "-".repeat(many))),
            entry(&format!(".reg .b32 %r; mov.u32 %r, 1{};", "+1".repeat(many))),
            entry(&format!(".reg .b32 %r; mov.u32 %r, {}1;", "1?1:".repeat(many))),
            format!("{head}.global .b32 x[1] = {}1{};", "{".repeat(many), "}".repeat(many)),
            format!("{head}.global .b32 x{} ;", "[1]".repeat(many)),
            entry(&(0..many).map(|label| format!("l{label}: ")).collect::<String>()),
            entry(
                &(0..many / 4)
                    .map(|label| format!("l{label}: bra l{};\n", (label * 7919) % (many / 4)))
                    .collect::<String>(),
            ),
            entry(&format!(
                ".reg .pred %p; {}",
                (0..many / 4).map(|label| format!("@%p bra e{label}; e{label}:\n")).collect::<String>()
            )),
            entry(
                &(0..many / 4)
                    .map(|register| format!(".reg .b32 %a{register}; mov.u32 %a{register}, 1;\n"))
                    .collect::<String>(),
            ),
            entry(".reg .b32 %r<4294967295>; mov.u32 %r4294967294, 1;"),
            entry(".local .b8 x[4294967295]; .local .b8 y[4294967295];"),
            entry(".shared .b8 x[99999999999];"),
            entry(".shared .align 1073741824 .b8 x[4];"),
            format!("{head}.global .b8 x[99999999999];\n.visible .entry k() {{ ret; }}"),
            format!("{head}.global .b8 x[18446744073709551615];"),
            format!("{head}.global .b8 x[4294967296][4294967296];"),
            format!("{head}.global .attribute(.managed) .b8 x[99999999999];"),
            format!("{head}.global .b8 x[99999999999] = {{1}};\n.visible .entry k() {{ ret; }}"),
            format!(
                "{head}.visible .entry k(.param .b8 x[4294967295], .param .b8 y[18446744073709551615]) {{ ret; }}"
            ),
            format!("{head}.func f() {{ call f; ret; }}\n.visible .entry k() {{ call f; ret; }}"),
            format!(
                "{head}{}.visible .entry k() {{ call f0; ret; }}",
                (0..5000)
                    .rev()
                    .map(|f| format!(
                        ".func f{f}() {{ {} ret; }}\n",
                        if f < 4999 { format!("call f{};", f + 1) } else { String::new() }
                    ))
                    .collect::<String>()
            ),
            format!("{head}//{}", "x".repeat(many)),
            format!("{head}/*{}", "*".repeat(many)),
            format!("{head}.file 1 \"{}\"", "\\".repeat(many)),
        ];
        cases.push("\u{feff}".to_owned() + &cases[0]);
        for case in &cases {
            fs::write(file, case).expect("the case is written down");
            (0..3).for_each(|way| {
                CASES.fetch_add(1, Ordering::Relaxed);
                let began = Instant::now();
                with_context(case.as_bytes(), way, &mut random);
                assert!(
                    began.elapsed().as_secs() < 20,
                    "{} took {:?}",
                    &case[..200.min(case.len())],
                    began.elapsed()
                );
            });
        }
    });
}

//! The linker, and what modules may be wrapped in.

use std::{
    ffi::{CStr, c_char, c_void},
    ptr::{null, null_mut, without_provenance_mut},
};

use crate::common::{Context, KERNELS, alloc, code, cu, download, function, launch, ok, param};

const PTX: u32 = 1;
const FAT_BINARY: u32 = 2;

/// `out[0] = scale(4) + bias`, with both names defined elsewhere.
const KERNEL: &str = r"
.version 7.0
.target sm_52
.address_size 64
.extern .func (.param .b32 result) scale(.param .b32 x);
.extern .global .align 4 .u32 bias;
.global .align 4 .u32 own = 1000;
.visible .entry apply(.param .u64 out)
{
	.reg .b32 %x, %y;
	.reg .b64 %out, %address;
	ld.param.u64 %out, [out];
	cvta.to.global.u64 %out, %out;
	mov.b32 %x, 4;
	{
		.param .b32 argument;
		.param .b32 answer;
		st.param.b32 [argument], %x;
		call.uni (answer), scale, (argument);
		ld.param.b32 %x, [answer];
	}
	mov.u64 %address, bias;
	ld.global.u32 %y, [%address];
	add.u32 %x, %x, %y;
	mov.u64 %address, own;
	ld.global.u32 %y, [%address];
	add.u32 %x, %x, %y;
	st.global.u32 [%out], %x;
	ret;
}
";

/// A function that multiplies by a number of its own module's, whose name is that of another's.
const SCALE: &str = r"
.version 7.0
.target sm_52
.address_size 64
.visible .global .align 4 .u32 bias = 70;
.global .align 4 .u32 own = 3;
.visible .func (.param .b32 result) scale(.param .b32 x)
{
	.reg .b32 %x, %y;
	.reg .b64 %address;
	ld.param.b32 %x, [x];
	mov.u64 %address, own;
	ld.global.u32 %y, [%address];
	mul.lo.u32 %x, %x, %y;
	st.param.b32 [result], %x;
	ret;
}
";

/// Another of that name, which steps back where there is a stronger one.
const WEAK: &str = r"
.version 7.0
.target sm_52
.address_size 64
.weak .global .align 4 .u32 bias = 1;
.weak .func (.param .b32 result) scale(.param .b32 x)
{
	.reg .b32 %x;
	mov.b32 %x, 0;
	st.param.b32 [result], %x;
	ret;
}
";

/// A link with a buffer for what goes wrong. The driver writes to the buffer and to the values of the options until the end.
struct Link {
    state: usize,
    log: Box<[u8; 4096]>,
    _values: Box<[*mut c_void; 2]>,
}

impl Link {
    fn new() -> Link {
        let mut log = Box::new([0u8; 4096]);
        let options = [5u32, 6];
        let mut values = Box::new([log.as_mut_ptr().cast::<c_void>(), without_provenance_mut(4096)]);
        let mut state = 0usize;
        ok!(cuLinkCreate_v2(2u32, options.as_ptr(), values.as_mut_ptr(), &mut state as *mut usize));
        Link { state, log, _values: values }
    }

    fn add(&self, kind: u32, data: &[u8]) -> u32 {
        let (name, options, values) = (c"a module".as_ptr(), null::<u32>(), null::<*mut c_void>());
        cu!(cuLinkAddData_v2(self.state, kind, data.as_ptr(), data.len(), name, 0u32, options, values))
    }

    fn add_text(&self, text: &str) -> u32 {
        self.add(PTX, &[text.as_bytes(), &[0]].concat())
    }

    fn complete(&self) -> Result<(*const c_void, usize), u32> {
        let (mut image, mut bytes) = (null::<c_void>(), 0usize);
        match cu!(cuLinkComplete(self.state, &mut image as *mut _, &mut bytes as *mut usize)) {
            0 => Ok((image, bytes)),
            error => Err(error),
        }
    }

    fn log(&self) -> &str {
        CStr::from_bytes_until_nul(&self.log[..]).unwrap().to_str().unwrap()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        ok!(cuLinkDestroy(self.state));
    }
}

/// What the kernel of a linked image writes.
fn run(image: *const c_void) -> u32 {
    let mut module = 0usize;
    ok!(cuModuleLoadData(&mut module as *mut usize, image));
    let mut out = alloc(4);
    assert_eq!(launch(function(module, c"apply"), 1, 1, 0, 0, &mut [param(&mut out)]), 0);
    let written = download::<u32>(out, 1)[0];
    ok!(cuModuleUnload(module));
    ok!(cuMemFree_v2(out));
    written
}

#[test]
fn modules_are_linked() {
    let _context = Context::new();
    let link = Link::new();
    assert_eq!((link.add_text(KERNEL), link.add_text(SCALE)), (0, 0));
    let (image, bytes) = link.complete().unwrap();
    assert!(bytes > 0);
    assert_eq!(run(image), 4 * 3 + 70 + 1000);

    // In any order, and the stronger definition wins.
    let link = Link::new();
    assert_eq!((link.add_text(WEAK), link.add_text(SCALE), link.add_text(KERNEL)), (0, 0, 0));
    let (image, bytes) = link.complete().unwrap();
    assert_eq!(run(image), 1082);
    // SAFETY: The image is the link's, which still is.
    let copied = unsafe { std::slice::from_raw_parts(image.cast::<u8>(), bytes) }.to_vec();
    drop(link);
    assert_eq!(run(copied.as_ptr().cast()), 1082, "a program may keep the image");

    let (mut library, mut kernels) = (0usize, 0u32);
    let (no_options, no_values) = (null::<u32>(), null::<*mut c_void>());
    ok!(cuLibraryLoadData(
        &mut library as *mut usize,
        copied.as_ptr(),
        no_options,
        no_values,
        0u32,
        no_options,
        no_values,
        0u32,
    ));
    ok!(cuLibraryGetKernelCount(&mut kernels as *mut u32, library));
    assert_eq!(kernels, 1);
    ok!(cuLibraryUnload(library));
}

#[test]
fn a_weak_definition_serves_alone() {
    let _context = Context::new();
    let link = Link::new();
    assert_eq!((link.add_text(KERNEL), link.add_text(WEAK)), (0, 0));
    assert_eq!(run(link.complete().unwrap().0), 1001);
}

#[test]
fn links_that_go_wrong_say_why() {
    let _context = Context::new();
    let link = Link::new();
    assert_eq!(link.add_text(".version 7.0\n.target sm_52\n.address_size 64\nnonsense\n"), code::INVALID_PTX);
    assert!(link.log().contains('4'), "the line is named: {}", link.log());

    // Which code it is, the manual does not say.
    let link = Link::new();
    assert_eq!(link.add_text(KERNEL), 0);
    assert!(link.complete().is_err());
    assert!(link.log().contains("scale") || link.log().contains("bias"), "{}", link.log());

    let link = Link::new();
    let wrong = link.add_text(KERNEL) != 0 || link.add_text(SCALE) != 0 || link.add_text(SCALE) != 0;
    assert!(wrong || link.complete().is_err());
    assert!(link.log().contains("scale") || link.log().contains("bias"), "{}", link.log());

    let link = Link::new();
    assert_eq!(link.add(77, b"x"), code::INVALID_VALUE);
}

const PLAIN: &[u8] = include_bytes!("../fatbin/plain.fatbin");
const LZ4: &[u8] = include_bytes!("../fatbin/speed.fatbin");
const ZSTD: &[u8] = include_bytes!("../fatbin/size.fatbin");

#[test]
fn fat_binaries_are_opened() {
    let _context = Context::new();
    let mut out = alloc(128);
    let mut check = |image: *const c_void| {
        let mut module = 0usize;
        ok!(cuModuleLoadData(&mut module as *mut usize, image));
        assert_eq!(launch(function(module, c"triple"), 1, 32, 0, 0, &mut [param(&mut out)]), 0);
        let expected: Vec<u32> = (0..32).map(|index| index * 5).collect();
        assert_eq!(download::<u32>(out, 32), expected, "the PTX for sm_75");
        ok!(cuModuleUnload(module));
    };
    for fat in [PLAIN, LZ4, ZSTD] {
        // A driver may want it on an address that is a multiple of 8.
        let aligned: Vec<u64> =
            fat.chunks(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap())).collect();
        check(aligned.as_ptr().cast());
    }
    ok!(cuMemFree_v2(out));
}

#[test]
fn fat_binaries_are_linked() {
    let _context = Context::new();
    let link = Link::new();
    assert_eq!((link.add(FAT_BINARY, LZ4), link.add_text(SCALE)), (0, 0));
    let image = link.complete().unwrap().0;
    let mut module = 0usize;
    ok!(cuModuleLoadData(&mut module as *mut usize, image));
    function(module, c"triple");
    let mut bias = 0u64;
    ok!(cuModuleGetGlobal_v2(&mut bias as *mut u64, null_mut::<usize>(), module, c"bias".as_ptr()));
    assert_eq!(download::<u32>(bias, 1), [70]);
    ok!(cuModuleUnload(module));
}

#[test]
fn options_of_the_compiler_are_answered() {
    let _context = Context::new();
    let text = std::ffi::CString::new(SCALE).unwrap();
    let (mut info, mut error) = ([1 as c_char; 512], [1 as c_char; 512]);
    // Registers at most, wall time, both logs, optimisation, target from the context, line numbers.
    let options = [0u32, 2, 3, 4, 5, 6, 7, 8, 13];
    let mut values = [
        without_provenance_mut::<c_void>(32),
        null_mut(),
        info.as_mut_ptr().cast(),
        without_provenance_mut(512),
        error.as_mut_ptr().cast(),
        without_provenance_mut(512),
        without_provenance_mut(4),
        null_mut(),
        without_provenance_mut(1),
    ];
    let mut module = 0usize;
    ok!(cuModuleLoadDataEx(
        &mut module as *mut usize,
        text.as_ptr(),
        9u32,
        options.as_ptr(),
        values.as_mut_ptr()
    ));
    let milliseconds = f32::from_bits(values[1].addr() as u32);
    assert!((0.0..10_000.0).contains(&milliseconds), "{milliseconds}");
    assert!(values[3].addr() < 512 && values[5].addr() < 512, "as many bytes as were written");
    assert_eq!(error[0], 0, "nothing went wrong");
    ok!(cuModuleUnload(module));
    let refused = cu!(cuModuleLoadDataEx(
        &mut module as *mut usize,
        text.as_ptr(),
        1u32,
        [999u32].as_ptr(),
        values.as_mut_ptr(),
    ));
    assert_eq!(refused, code::INVALID_VALUE, "there is no such option");

    // At most 16 registers.
    let text = std::ffi::CString::new(KERNELS).unwrap();
    let most = [without_provenance_mut::<c_void>(16)];
    ok!(cuModuleLoadDataEx(&mut module as *mut usize, text.as_ptr(), 1u32, [0u32].as_ptr(), most.as_ptr()));
    let mut registers = 0i32;
    ok!(cuFuncGetAttribute(&mut registers as *mut i32, 4u32, function(module, c"fill")));
    assert!((1..=16).contains(&registers));
    ok!(cuModuleUnload(module));
}

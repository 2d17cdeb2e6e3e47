//! Module images: which of the driver's formats it is, and the PTX in it.

use std::{borrow::Cow, ffi::c_void};

use super::{abi::In, error::CUresult, host, init::PTX_VERSION};

/// Why an image was refused, in a sentence, with the code for it.
pub(crate) struct Refusal {
    /// The code.
    pub(crate) code: CUresult,
    /// The sentence.
    pub(crate) reason: String,
}

impl Refusal {
    /// A refusal.
    pub(crate) fn new(code: CUresult, reason: impl Into<String>) -> Refusal {
        Refusal { code, reason: reason.into() }
    }
}

const ELF: [u8; 4] = *b"\x7fELF";
/// What nvcc puts around a fat binary: this, a version, and a pointer to it.
const FATBIN_WRAPPER: u32 = 0x4662_43b1;
const FATBIN: u32 = 0xba55_ed50;
const SASS_ONLY: &str = "the emulated GPU executes PTX; compile for a virtual \
                         architecture, such as nvcc -gencode arch=compute_75,code=compute_75, or nvcc -ptx";

/// The start of a fat binary.
#[repr(C)]
#[derive(Clone, Copy)]
struct FatHeader {
    magic: u32,
    version: u16,
    header_bytes: u16,
    /// Bytes behind this header.
    bytes: u64,
}

/// The start of each of its images.
#[repr(C)]
#[derive(Clone, Copy)]
struct FatEntry {
    kind: u16,
    version: u16,
    header_bytes: u32,
    /// Bytes behind this header, padded.
    bytes: u64,
    /// Bytes of these that are the compressed image.
    compressed_bytes: u32,
    options_offset: u32,
    minor: u16,
    major: u16,
    architecture: u32,
    name_offset: u32,
    name_bytes: u32,
    flags: u64,
    zero: u64,
    /// Bytes of the image when it is not compressed.
    image_bytes: u64,
}

/// Where objects of the host have fat binaries: those of whole programs, and those to be linked.
const FATBIN_SECTIONS: [&[u8]; 2] = [b".nv_fatbin", b"__nv_relfatbin"];
/// The largest text that is unpacked; nobody's PTX has as many bytes.
const MOST_UNPACKED: usize = 1 << 28;
const KIND_PTX: u16 = 1;
/// Several images, compressed as one.
const KIND_GROUP: u16 = 0x100;
/// Bytes of the header of each.
const GROUPED_HEADER: usize = 80;
const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;

/// Between the modules of a text that [`linked`] made.
const NEXT_MODULE: &str = "\n//@ emulated GPU: another module, linked to the one before\n";

/// The PTX of an image that a program passes by its address alone, for a card of this compute capability.
pub(crate) fn ptx_of(image: In<c_void>, capability: (u32, u32)) -> Result<String, Refusal> {
    let start = image.pointer() as usize;
    if start == 0 {
        return Err(Refusal::new(CUresult::INVALID_VALUE, "the image is a null pointer"));
    }
    match bytes_at::<4>(start)? {
        magic if magic == FATBIN_WRAPPER.to_le_bytes() => {
            // The first 4 bytes are the magic number, 4 more the version, then comes the pointer.
            let data = u64::from_le_bytes(bytes_at(start + 8)?);
            fat_ptx(fat_binary_at(data as usize)?, capability)
        }
        magic if magic == FATBIN.to_le_bytes() => fat_ptx(fat_binary_at(start)?, capability),
        // Nobody says how long it is, and no driver takes a host's object this way.
        ELF => Err(cubin()),
        _ => text_ptx(host::text(start).ok_or_else(|| nowhere("PTX"))?),
    }
}

/// The PTX of an image whose bytes are known.
pub(crate) fn ptx_in(bytes: &[u8], capability: (u32, u32)) -> Result<String, Refusal> {
    match bytes.first_chunk() {
        Some(&ELF) => elf_ptx(bytes, capability),
        Some(magic) if *magic == FATBIN.to_le_bytes() => fat_ptx(bytes, capability),
        _ if bytes.starts_with(b"!<arch>\n") => archive_ptx(bytes, capability),
        _ => text_ptx(up_to_zero(bytes)),
    }
}

/// One text that holds several modules, each the text of one or more.
pub(crate) fn linked(modules: &[String]) -> String {
    modules.join(NEXT_MODULE)
}

/// The modules of a text.
pub(crate) fn modules(text: &str) -> Vec<&str> {
    text.split(NEXT_MODULE).collect()
}

/// The version and architecture that PTX names: `.version 8.0` and `.target sm_75` are `(80, 75, false)`; the last says
/// that the code is for that architecture alone (`sm_90a`).
pub(crate) fn headline(ptx: &str) -> Option<(u32, u32, bool)> {
    let mut words = ptx
        .lines()
        .map(|line| line.split("//").next().unwrap_or(line))
        .flat_map(|line| line.split([' ', '\t', ',']))
        .filter(|word| !word.is_empty());
    words.by_ref().find(|&word| word == ".version")?;
    let (major, minor) = words.next()?.split_once('.')?;
    words.by_ref().find(|&word| word == ".target")?;
    let target = words.next()?.strip_prefix("sm_")?;
    let digits = target.trim_end_matches(char::is_alphabetic);
    let version = major.parse::<u32>().ok()? * 10 + minor.parse::<u32>().ok()?;
    Some((version, digits.parse().ok()?, digits.len() < target.len()))
}

/// Fails for PTX newer than the driver, or for other cards than this.
pub(crate) fn check_headline(
    (version, target, only): (u32, u32, bool),
    (major, minor): (u32, u32),
) -> Result<(), Refusal> {
    if version > PTX_VERSION {
        let reason = format!(
            "PTX ISA {}.{} is newer than {}.{}, the newest that this driver (CUDA 13.0) loads; compile with an older CUDA",
            version / 10,
            version % 10,
            PTX_VERSION / 10,
            PTX_VERSION % 10,
        );
        return Err(Refusal::new(CUresult::UNSUPPORTED_PTX_VERSION, reason));
    }
    let own = major * 10 + minor;
    if target > own || only && target != own {
        let reason = format!(
            "PTX for sm_{target}{} cannot run on sm_{own}; compile for compute_{own} or older, or choose another \
             EMULATED_GPU_MODEL",
            if only { "a" } else { "" },
        );
        // An H200's driver (580.159) calls PTX for sm_120 invalid; 209 is what it says of machine code.
        return Err(Refusal::new(CUresult::INVALID_PTX, reason));
    }
    Ok(())
}

fn text_ptx(bytes: &[u8]) -> Result<String, Refusal> {
    // A copy first: another thread of the program may be writing there.
    match String::from_utf8(bytes.to_vec()) {
        Ok(text) if text.contains(".version") => Ok(text),
        _ => Err(Refusal::new(
            CUresult::INVALID_IMAGE,
            "the image is neither PTX, which has a .version, nor a fat binary or cubin",
        )),
    }
}

/// An image of a fat binary.
struct Image<'a> {
    kind: u16,
    architecture: u32,
    flags: u64,
    /// Bytes when it is not compressed.
    bytes: u64,
    stored: Cow<'a, [u8]>,
}

impl Image<'_> {
    /// The bytes, without the compression.
    fn unpack(&self) -> Result<Vec<u8>, Refusal> {
        let room = usize::try_from(self.bytes).unwrap_or(usize::MAX);
        let unpacked = match self.flags & (FLAG_LZ4 | FLAG_ZSTD) {
            0 => Some(self.stored.to_vec()),
            FLAG_LZ4 => unpack_lz4(&self.stored, room),
            _ => unpack_zstd(&self.stored, room),
        };
        let reason = "the compressed PTX of the fat binary is damaged";
        unpacked.ok_or_else(|| Refusal::new(CUresult::INVALID_IMAGE, reason))
    }
}

/// The images of a fat binary.
fn images(fat: &[u8]) -> Result<Vec<Image<'_>>, Refusal> {
    let damaged =
        || Refusal::new(CUresult::INVALID_IMAGE, "an image of the fat binary is longer than the fat binary");
    let header: FatHeader = start_of(fat).ok_or_else(damaged)?;
    if header.magic != FATBIN {
        return Err(Refusal::new(CUresult::INVALID_IMAGE, "the fat binary does not start as one"));
    }
    let mut rest = fat.get(usize::from(header.header_bytes)..).ok_or_else(damaged)?;
    rest = usize::try_from(header.bytes).ok().and_then(|bytes| rest.get(..bytes)).ok_or_else(damaged)?;
    let mut images = Vec::new();
    while let Some(entry) = start_of::<FatEntry>(rest) {
        let (head, body) = rest.split_at_checked(entry.header_bytes as usize).ok_or_else(damaged)?;
        let bytes = usize::try_from(entry.bytes).ok().filter(|_| !head.is_empty()).ok_or_else(damaged)?;
        let (body, next) = body.split_at_checked(bytes).ok_or_else(damaged)?;
        rest = next;
        let stored = match entry.compressed_bytes {
            0 => body,
            bytes => body.get(..bytes as usize).ok_or_else(damaged)?,
        };
        let image = Image {
            kind: entry.kind,
            architecture: entry.architecture,
            flags: entry.flags,
            bytes: entry.image_bytes,
            stored: Cow::Borrowed(stored),
        };
        if entry.kind != KIND_GROUP {
            images.push(image);
            continue;
        }
        // Images that were compressed as one: their headers stand in front, with offsets in place of their own sizes.
        let all = image.unpack()?;
        let mut headers = head.get(size_of::<FatEntry>() + 8..).ok_or_else(damaged)?;
        while let Some(entry) = start_of::<FatEntry>(headers) {
            let from = all.get(entry.header_bytes as usize..).ok_or_else(damaged)?;
            let bytes =
                usize::try_from(entry.bytes).ok().and_then(|bytes| from.get(..bytes)).ok_or_else(damaged)?;
            images.push(Image {
                kind: entry.kind,
                architecture: entry.architecture,
                flags: 0,
                bytes: entry.bytes,
                stored: Cow::Owned(bytes.to_vec()),
            });
            headers = headers.get(GROUPED_HEADER..).unwrap_or_default();
        }
    }
    Ok(images)
}

/// The newest PTX of a fat binary that the card can run, or else the oldest, to say what is wrong with it.
fn fat_ptx(fat: &[u8], (major, minor): (u32, u32)) -> Result<String, Refusal> {
    let images = images(fat)?;
    let newest = images.iter().filter(|image| image.kind == KIND_PTX).max_by_key(|image| {
        let fits = image.architecture <= major * 10 + minor;
        (fits, if fits { i64::from(image.architecture) } else { -i64::from(image.architecture) })
    });
    let Some(newest) = newest else {
        let mut others: Vec<String> =
            images.iter().map(|image| format!("sm_{}", image.architecture)).collect();
        others.dedup();
        let what = if others.is_empty() { "nothing".to_owned() } else { others.join(", ") };
        let reason = format!("this fat binary holds machine code for {what}: {SASS_ONLY}");
        return Err(Refusal::new(CUresult::NO_BINARY_FOR_GPU, reason));
    };
    text_ptx(up_to_zero(&newest.unpack()?))
}

/// The PTX of a host's object, program or library, which holds fat binaries in a section. A cubin holds none.
fn elf_ptx(elf: &[u8], capability: (u32, u32)) -> Result<String, Refusal> {
    const CUDA: u16 = 190;
    if number::<2>(elf, 18) == Some(u64::from(CUDA)) {
        return Err(cubin());
    }
    let damaged = || Refusal::new(CUresult::INVALID_IMAGE, "the object's table of sections is damaged");
    let sections = elf_sections(elf).ok_or_else(damaged)?;
    let mut texts = Vec::new();
    for (_, section) in sections.iter().filter(|(name, _)| FATBIN_SECTIONS.contains(name)) {
        let mut rest = *section;
        // Each starts on a multiple of 8, behind whatever fills the space.
        while let Some(header) = start_of::<FatHeader>(rest) {
            let bytes = usize::try_from(header.bytes).ok();
            let whole = bytes.and_then(|bytes| bytes.checked_add(usize::from(header.header_bytes)));
            match whole {
                Some(whole) if header.magic == FATBIN && (8..=rest.len()).contains(&whole) => {
                    texts.push(fat_ptx(&rest[..whole], capability)?);
                    rest = &rest[whole..];
                }
                _ if header.magic == FATBIN => return Err(damaged()),
                _ => rest = &rest[8..],
            }
        }
    }
    if texts.is_empty() {
        return Err(Refusal::new(CUresult::INVALID_IMAGE, "the object holds no fat binary"));
    }
    Ok(linked(&texts))
}

/// The sections of a 64-bit ELF file: names and bytes.
fn elf_sections(elf: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let (table, entry, count, names) =
        (number::<8>(elf, 40)?, number::<2>(elf, 58)?, number::<2>(elf, 60)?, number::<2>(elf, 62)?);
    let header = |index: u64| elf.get(usize::try_from(table.checked_add(index * entry)?).ok()?..);
    let bytes = |index: u64| {
        let header = header(index)?;
        let (kind, start, bytes) =
            (number::<4>(header, 4)?, number::<8>(header, 24)?, number::<8>(header, 32)?);
        const NO_BITS: u64 = 8;
        if kind == NO_BITS {
            return Some(&[][..]);
        }
        elf.get(usize::try_from(start).ok()?..)?.get(..usize::try_from(bytes).ok()?)
    };
    let strings = bytes(names)?;
    (0..count)
        .map(|index| {
            let name = strings.get(number::<4>(header(index)?, 0)? as usize..)?;
            Some((up_to_zero(name), bytes(index)?))
        })
        .collect()
}

/// The PTX of the objects of a library of the host.
fn archive_ptx(archive: &[u8], capability: (u32, u32)) -> Result<String, Refusal> {
    const MEMBER_HEADER: usize = 60;
    let mut rest = &archive[8..];
    let mut texts = Vec::new();
    while rest.len() >= MEMBER_HEADER {
        let bytes =
            str::from_utf8(&rest[48..58]).ok().and_then(|digits| digits.trim_end().parse::<usize>().ok());
        let member = bytes.and_then(|bytes| rest[MEMBER_HEADER..].get(..bytes)).ok_or_else(|| {
            Refusal::new(CUresult::INVALID_IMAGE, "a member of the library is longer than the library")
        })?;
        if member.starts_with(&ELF) && elf_sections(member).is_some_and(|sections| has_fat_binary(&sections))
        {
            texts.push(elf_ptx(member, capability)?);
        }
        rest = rest.get(MEMBER_HEADER + member.len().next_multiple_of(2)..).unwrap_or_default();
    }
    if texts.is_empty() {
        return Err(Refusal::new(CUresult::INVALID_IMAGE, "no object of the library holds a fat binary"));
    }
    Ok(linked(&texts))
}

fn has_fat_binary(sections: &[(&[u8], &[u8])]) -> bool {
    sections.iter().any(|(name, _)| FATBIN_SECTIONS.contains(name))
}

/// The little-endian number of `N` bytes at an offset.
fn number<const N: usize>(bytes: &[u8], offset: usize) -> Option<u64> {
    let mut number = [0; 8];
    number[..N].copy_from_slice(bytes.get(offset..offset.checked_add(N)?)?);
    Some(u64::from_le_bytes(number))
}

/// What bytes start with. `T` is made of numbers alone.
fn start_of<T: Copy>(bytes: &[u8]) -> Option<T> {
    // SAFETY: There are as many bytes as a `T` has, and any are one, since it is made of numbers.
    (bytes.len() >= size_of::<T>()).then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

fn up_to_zero(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len())]
}

fn cubin() -> Refusal {
    Refusal::new(CUresult::NO_BINARY_FOR_GPU, format!("this is a cubin: {SASS_ONLY}"))
}

fn nowhere(what: &str) -> Refusal {
    Refusal::new(CUresult::INVALID_VALUE, format!("the {what} is not all in the memory of this process"))
}

/// Bytes of the caller's.
fn slice_at<'a>(start: usize, bytes: usize) -> Result<&'a [u8], Refusal> {
    if isize::try_from(bytes).is_err() || !host::is_readable(start, bytes.max(1)) {
        return Err(nowhere("image"));
    }
    // SAFETY: The memory was found readable, and the caller leaves an image alone while it is loaded.
    Ok(unsafe { std::slice::from_raw_parts(start as *const u8, bytes) })
}

fn bytes_at<const N: usize>(start: usize) -> Result<[u8; N], Refusal> {
    let bytes = slice_at(start, N)?;
    Ok(std::array::from_fn(|index| bytes[index]))
}

/// A fat binary of the caller's, as long as it says.
fn fat_binary_at<'a>(start: usize) -> Result<&'a [u8], Refusal> {
    let header: Option<FatHeader> = start_of(slice_at(start, size_of::<FatHeader>())?);
    let bytes = header
        .and_then(|header| usize::try_from(header.bytes).ok()?.checked_add(usize::from(header.header_bytes)));
    slice_at(start, bytes.unwrap_or(usize::MAX))
}

/// Unpacks a frame of zstd to so many bytes.
fn unpack_zstd(packed: &[u8], bytes: usize) -> Option<Vec<u8>> {
    let mut decoder = ruzstd::decoding::FrameDecoder::new();
    let mut out = vec![0; bytes.min(MOST_UNPACKED)];
    (decoder.decode_all(packed, &mut out).ok()? == bytes).then_some(out)
}

/// Unpacks an LZ4 block: runs of literals, each followed by a copy of what was unpacked before.
fn unpack_lz4(packed: &[u8], bytes: usize) -> Option<Vec<u8>> {
    let mut out: Vec<u8> = Vec::with_capacity(bytes.min(1 << 20));
    let mut input = packed.iter().copied();
    // A length of 15 goes on in further bytes while they are 255.
    let length = |short: u8, input: &mut dyn Iterator<Item = u8>| -> Option<usize> {
        let mut length = usize::from(short);
        if short == 15 {
            loop {
                let more = input.next()?;
                length += usize::from(more);
                if more < 255 {
                    break;
                }
            }
        }
        Some(length)
    };
    while let Some(token) = input.next() {
        let literals = length(token >> 4, &mut input)?;
        if literals > bytes.min(MOST_UNPACKED).saturating_sub(out.len()) {
            return None;
        }
        for _ in 0..literals {
            out.push(input.next()?);
        }
        let Some(low) = input.next() else { break };
        let distance = usize::from(u16::from_le_bytes([low, input.next()?]));
        let copied = length(token & 15, &mut input)? + 4;
        let from = out.len().checked_sub(distance).filter(|_| distance > 0)?;
        if copied > bytes.min(MOST_UNPACKED) - out.len() {
            return None;
        }
        for index in from..from + copied {
            out.push(out[index]);
        }
    }
    (out.len() == bytes).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headlines() {
        let ptx = "//\n// .version 1.0\n\n.version 8.0\n.target sm_75, debug\n.address_size 64\n";
        assert_eq!(headline(ptx), Some((80, 75, false)));
        assert_eq!(headline(".version 7.8\n.target sm_90a\n"), Some((78, 90, true)));
        assert_eq!(headline(".target sm_75"), None);
    }

    #[test]
    fn lz4_literals_and_copies() {
        // "abcd", then 8 bytes from 4 back, then "!".
        let packed = [0x44, b'a', b'b', b'c', b'd', 4, 0, 0x10, b'!'];
        assert_eq!(unpack_lz4(&packed, 13).as_deref(), Some(&b"abcdabcdabcd!"[..]));
        assert_eq!(unpack_lz4(&packed, 12), None);
        assert_eq!(unpack_lz4(&[0x10], 1), None);
    }

    /// What a fat binary's PTX multiplies by says which image was chosen.
    #[track_caller]
    fn check(fat: &[u8], capability: (u32, u32), factor: &str) {
        match ptx_in(fat, capability) {
            Ok(text) => assert!(text.contains(&format!("%i, {factor};")), "{text}"),
            Err(refusal) => panic!("{:?}: {}", refusal.code, refusal.reason),
        }
    }

    #[track_caller]
    fn refuse(fat: &[u8], code: CUresult, word: &str) {
        match ptx_in(fat, (9, 0)) {
            Ok(text) => panic!("{text}"),
            Err(refusal) => {
                assert_eq!(refusal.code, code, "{}", refusal.reason);
                assert!(refusal.reason.contains(word), "{}", refusal.reason);
            }
        }
    }

    const PLAIN: &[u8] = include_bytes!("../../tests/fatbin/plain.fatbin");
    const LZ4: &[u8] = include_bytes!("../../tests/fatbin/speed.fatbin");
    const ZSTD: &[u8] = include_bytes!("../../tests/fatbin/size.fatbin");
    const GROUP: &[u8] = include_bytes!("../../tests/fatbin/concat.fatbin");

    #[test]
    fn the_newest_ptx_that_the_card_can_run_is_chosen() {
        for fat in [PLAIN, LZ4, ZSTD, GROUP] {
            check(fat, (7, 0), "3");
            check(fat, (7, 5), "5");
            check(fat, (9, 0), "5");
            check(fat, (12, 0), "7");
            // None fits; the oldest says why.
            check(fat, (5, 0), "3");
        }
    }

    #[test]
    fn objects_and_libraries_of_the_host_are_opened() {
        let object = elf(0x3e, b".nv_fatbin", LZ4);
        check(&object, (9, 0), "5");
        let mut archive = b"!<arch>\n".to_vec();
        for member in [&b"odd"[..], &object] {
            archive.extend(format!("{:<48}{:<10}`\n", "name/", member.len()).bytes());
            archive.extend(member);
            archive.resize(archive.len().next_multiple_of(2), b'\n');
        }
        check(&archive, (9, 0), "5");
        refuse(&elf(0x3e, b".text", LZ4), CUresult::INVALID_IMAGE, "no fat binary");
        refuse(&elf(190, b".nv_fatbin", LZ4), CUresult::NO_BINARY_FOR_GPU, "-gencode");
        refuse(&archive[..20], CUresult::INVALID_IMAGE, "no object");
    }

    /// An ELF file of a machine with one section beside the names.
    fn elf(machine: u16, name: &[u8], content: &[u8]) -> Vec<u8> {
        let mut elf = vec![0; 64];
        elf[..4].copy_from_slice(&ELF);
        elf[18..20].copy_from_slice(&machine.to_le_bytes());
        let names = elf.len();
        elf.extend(name);
        elf.resize(elf.len().next_multiple_of(8), 0);
        elf.extend([0; 8]);
        let start = elf.len();
        elf.extend(content);
        let table = elf.len();
        elf[40..48].copy_from_slice(&(table as u64).to_le_bytes());
        elf[58..64].copy_from_slice(&[64, 0, 2, 0, 0, 0]);
        for (name, from, bytes) in [(name.len(), names, name.len() + 1), (0, start, content.len())] {
            let mut header = [0; 64];
            header[..4].copy_from_slice(&(name as u32).to_le_bytes());
            header[24..32].copy_from_slice(&(from as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(bytes as u64).to_le_bytes());
            elf.extend(header);
        }
        elf
    }

    #[test]
    fn damaged_fat_binaries_are_refused() {
        refuse(&PLAIN[..100], CUresult::INVALID_IMAGE, "longer");
        refuse(&PLAIN[..20], CUresult::INVALID_IMAGE, "longer");
        let changed = |fat: &[u8], at: usize, byte: u8| {
            let mut fat = fat.to_vec();
            fat[at] = byte;
            fat
        };
        // The size of the first image, and the start of the compressed one.
        refuse(&changed(PLAIN, 0x1a, 0xff), CUresult::INVALID_IMAGE, "longer");
        refuse(&changed(ZSTD, 0x189, 0), CUresult::INVALID_IMAGE, "damaged");
        let mut machine_code = PLAIN.to_vec();
        for entry in [0x10, 0x1b0, 0x350] {
            assert_eq!(machine_code[entry], 1, "an image starts at {entry:#x}");
            machine_code[entry] = 2;
        }
        refuse(
            &machine_code,
            CUresult::NO_BINARY_FOR_GPU,
            "sm_52, sm_75, sm_120: the emulated GPU executes PTX",
        );
    }
}

//! Module images: which of the driver's formats it is, and the PTX in it.

use std::ffi::{CStr, c_void};

use super::{abi::In, error::CUresult, init::PTX_VERSION};

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
const FATBIN_WRAPPER: u32 = 0x4662_43b1;
const FATBIN: u32 = 0xba55_ed50;
const SASS_ONLY: &str = "the emulated GPU executes PTX, and this image holds machine code only; compile it for a virtual \
                         architecture, such as nvcc -gencode arch=compute_75,code=compute_75, or nvcc -ptx";

/// What nvcc puts around a fat binary: `__fatBinC_Wrapper_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Wrapper {
    magic: u32,
    version: u32,
    data: *const u8,
    file: *const c_void,
}

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

const KIND_PTX: u16 = 1;
const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;

/// The PTX of an image that a program passes by its address alone.
pub(crate) fn ptx_of(image: In<c_void>) -> Result<String, Refusal> {
    let start = image.pointer().cast::<u8>();
    if start.is_null() {
        return Err(Refusal::new(CUresult::INVALID_VALUE, "the image is a null pointer"));
    }
    let magic = read::<[u8; 4]>(start);
    match u32::from_le_bytes(magic) {
        FATBIN_WRAPPER => fat_ptx(read::<Wrapper>(start).data),
        FATBIN => fat_ptx(start),
        _ if magic == ELF => {
            Err(Refusal::new(CUresult::NO_BINARY_FOR_GPU, format!("this is a cubin: {SASS_ONLY}")))
        }
        _ => {
            // SAFETY: The caller promises an image of one of the formats; this one is a text that ends with a zero byte.
            let text = unsafe { CStr::from_ptr(start.cast()) };
            text_ptx(text.to_bytes())
        }
    }
}

/// The PTX of an image whose bytes are known.
pub(crate) fn ptx_in(bytes: &[u8]) -> Result<String, Refusal> {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    match bytes.first_chunk() {
        Some(&ELF) => Err(Refusal::new(CUresult::NO_BINARY_FOR_GPU, format!("this is a cubin: {SASS_ONLY}"))),
        Some(&magic) if u32::from_le_bytes(magic) == FATBIN => fat_ptx(bytes.as_ptr()),
        _ => text_ptx(&bytes[..end]),
    }
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
    match std::str::from_utf8(bytes) {
        Ok(text) if text.contains(".version") => Ok(text.to_owned()),
        _ => Err(Refusal::new(
            CUresult::INVALID_IMAGE,
            "the image is neither PTX, which has a .version, nor a fat binary or cubin",
        )),
    }
}

/// The newest PTX of a fat binary.
fn fat_ptx(start: *const u8) -> Result<String, Refusal> {
    let header = read::<FatHeader>(start);
    if header.magic != FATBIN {
        return Err(Refusal::new(CUresult::INVALID_IMAGE, "the fat binary does not start as one"));
    }
    let mut offset = usize::from(header.header_bytes);
    let end = offset + header.bytes as usize;
    let mut best: Option<(u32, FatEntry, usize)> = None;
    while offset + size_of::<FatEntry>() <= end {
        let entry = read::<FatEntry>(start.wrapping_add(offset));
        let body = offset + entry.header_bytes as usize;
        let next = body + entry.bytes as usize;
        if next > end || next <= offset {
            return Err(Refusal::new(
                CUresult::INVALID_IMAGE,
                "an image of the fat binary is longer than the fat binary",
            ));
        }
        if entry.kind == KIND_PTX && best.is_none_or(|(architecture, ..)| entry.architecture > architecture) {
            best = Some((entry.architecture, entry, body));
        }
        offset = next;
    }
    let (_, entry, body) = best.ok_or_else(|| Refusal::new(CUresult::NO_BINARY_FOR_GPU, SASS_ONLY))?;
    let stored = if entry.compressed_bytes > 0 { u64::from(entry.compressed_bytes) } else { entry.bytes };
    // SAFETY: The image was found to end before the fat binary does, and the caller promises all of that.
    let stored =
        unsafe { std::slice::from_raw_parts(start.wrapping_add(body), stored.min(entry.bytes) as usize) };
    let text = match entry.flags & (FLAG_LZ4 | FLAG_ZSTD) {
        0 => stored.to_vec(),
        FLAG_LZ4 => unpack_lz4(stored, entry.image_bytes as usize).ok_or_else(|| {
            Refusal::new(CUresult::INVALID_IMAGE, "the compressed PTX of the fat binary is damaged")
        })?,
        _ => {
            return Err(Refusal::new(
                CUresult::NOT_SUPPORTED,
                "the PTX of the fat binary is compressed by zstd, which the emulated GPU does not unpack; compile with \
                 nvcc --no-compress or --compress-mode=speed",
            ));
        }
    };
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    text_ptx(&text[..end])
}

fn read<T: Copy>(from: *const u8) -> T {
    // SAFETY: The caller promises an image of one of the formats, each of which starts with the header that is read.
    unsafe { from.cast::<T>().read_unaligned() }
}

/// Unpacks an LZ4 block: runs of literals, each followed by a copy of what was unpacked before.
fn unpack_lz4(packed: &[u8], bytes: usize) -> Option<Vec<u8>> {
    let mut out: Vec<u8> = Vec::with_capacity(bytes.min(1 << 28));
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
        for _ in 0..length(token >> 4, &mut input)? {
            out.push(input.next()?);
        }
        let Some(low) = input.next() else { break };
        let distance = usize::from(u16::from_le_bytes([low, input.next()?]));
        let copied = length(token & 15, &mut input)? + 4;
        let from = out.len().checked_sub(distance).filter(|_| distance > 0)?;
        if out.len() + copied > bytes {
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

    #[test]
    fn fat_binaries() {
        let text = b".version 7.0\n.target sm_52\n\0\0\0\0";
        let entry_bytes = size_of::<FatEntry>() as u32;
        let mut fat = Vec::new();
        let mut put = |bytes: &[u8]| fat.extend_from_slice(bytes);
        put(&FATBIN.to_le_bytes());
        put(&1u16.to_le_bytes());
        put(&16u16.to_le_bytes());
        put(&(u64::from(entry_bytes) + text.len() as u64).to_le_bytes());
        put(&KIND_PTX.to_le_bytes());
        put(&0x101u16.to_le_bytes());
        put(&entry_bytes.to_le_bytes());
        put(&(text.len() as u64).to_le_bytes());
        put(&vec![0; entry_bytes as usize - 16]);
        put(text);
        assert_eq!(ptx_in(&fat).ok().as_deref(), Some(".version 7.0\n.target sm_52\n"));
        fat[16] = 2;
        assert_eq!(ptx_in(&fat).err().map(|refusal| refusal.code), Some(CUresult::NO_BINARY_FOR_GPU));
    }
}

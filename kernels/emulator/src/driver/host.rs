//! The host's own memory, as the caller of a function gives it.
//!
//! A pointer of the caller may be wild. Linux tells whether one can be read when it is asked to take a signal mask from
//! there, for a purpose that does not exist: it looks at the memory first, and then refuses the purpose.

use std::cell::Cell;

/// The smallest page of any machine that this runs on.
const PAGE: usize = 4096;

thread_local! {
    /// Pages that this call has found readable.
    static KNOWN: Cell<[usize; 4]> = const { Cell::new([0; 4]) };
}

/// Forgets what is known of the caller's memory, which may have changed since the last call.
pub(crate) fn forget() {
    KNOWN.set([0; 4]);
}

/// Whether `bytes` bytes of the host can be read.
pub(crate) fn is_readable(address: usize, bytes: usize) -> bool {
    if bytes == 0 {
        return true;
    }
    let Some(last) = address.checked_add(bytes - 1) else { return false };
    populate(address, last, libc::MADV_POPULATE_READ)
        || (address / PAGE..=last / PAGE).all(|page| is_page_readable(page * PAGE))
}

/// Whether `bytes` bytes of the host can be written. What is there is written again, at both ends: memory that can only be
/// read lies in whole mappings.
pub(crate) fn is_writable(address: usize, bytes: usize) -> bool {
    bytes == 0
        || populate(address, address.saturating_add(bytes - 1), libc::MADV_POPULATE_WRITE)
        || is_readable(address, bytes) && rewrite(address) && rewrite(address + (bytes - 1))
}

/// Has the kernel look at many pages at once, as if they were used. Where it finds something wrong, or is older than
/// Linux 5.14, they have to be looked at one by one.
fn populate(address: usize, last: usize, advice: libc::c_int) -> bool {
    const MANY: usize = 16 * PAGE;
    let start = address / PAGE * PAGE;
    if last.saturating_sub(start) < MANY {
        return false;
    }
    // SAFETY: Pages of the process are read or written as the caller is about to; their bytes stay as they are.
    unsafe { libc::madvise(start as *mut libc::c_void, last - start + 1, advice) == 0 }
}

/// The bytes of a string up to the zero at its end, or nothing where memory ends before.
pub(crate) fn text<'a>(address: usize) -> Option<&'a [u8]> {
    let mut bytes = 0;
    loop {
        let in_page = PAGE - (address.checked_add(bytes)?) % PAGE;
        if !is_readable(address + bytes, in_page) {
            return None;
        }
        // SAFETY: The page was found readable, and the caller of the driver leaves a string alone while it is read.
        let read = unsafe { std::slice::from_raw_parts((address + bytes) as *const u8, in_page) };
        if let Some(end) = read.iter().position(|&byte| byte == 0) {
            // SAFETY: Every page up to the zero was found readable.
            return Some(unsafe { std::slice::from_raw_parts(address as *const u8, bytes + end) });
        }
        bytes += in_page;
    }
}

fn is_page_readable(page: usize) -> bool {
    // Nothing is ever mapped there.
    if page == 0 {
        return false;
    }
    let mut known = KNOWN.get();
    if known.contains(&page) {
        return true;
    }
    const NO_PURPOSE: libc::c_long = -1;
    const MASK_BYTES: usize = 8;
    // SAFETY: The kernel reads a mask of 8 bytes, if it can, and changes nothing for a purpose that it does not know.
    let answer = unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, NO_PURPOSE, page, std::ptr::null_mut::<u8>(), MASK_BYTES)
    };
    let readable = answer == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::EFAULT);
    if readable {
        known.rotate_right(1);
        known[0] = page;
        KNOWN.set(known);
    }
    readable
}

/// Writes the byte that is there, through the kernel, which says whether it could.
fn rewrite(address: usize) -> bool {
    let place = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: 1 };
    // SAFETY: The byte is in a page that was found readable.
    let byte = unsafe { (address as *const u8).read() };
    let own = libc::iovec { iov_base: std::ptr::from_ref(&byte).cast_mut().cast(), iov_len: 1 };
    // SAFETY: The kernel writes one byte of this process, if it can; the driver may write it, as it is about to.
    let written = unsafe { libc::process_vm_writev(libc::getpid(), &own, 1, &place, 1, 0) };
    // Where the kernel does not allow the call, nobody knows better than the caller.
    written == 1 || std::io::Error::last_os_error().raw_os_error() != Some(libc::EFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maps two pages with a protection.
    fn pages(protection: libc::c_int) -> usize {
        pages_of(2, protection)
    }

    fn pages_of(count: usize, protection: libc::c_int) -> usize {
        // SAFETY: New memory of nobody's.
        let pages = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                count * PAGE,
                protection,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(pages, libc::MAP_FAILED);
        pages as usize
    }

    #[test]
    fn memory_is_told_by_what_may_be_done_with_it() {
        forget();
        let hole = pages(libc::PROT_NONE);
        let constant = pages(libc::PROT_READ);
        let usual = pages(libc::PROT_READ | libc::PROT_WRITE);
        assert!(is_readable(usual, 2 * PAGE) && is_writable(usual, 2 * PAGE));
        assert!(is_readable(constant + 5, PAGE) && !is_writable(constant + 5, 1));
        assert!(!is_readable(hole, 1) && !is_writable(hole + PAGE, 4));
        assert!(
            !is_readable(0, 1) && !is_readable(100, 1) && !is_readable(usize::MAX, 2) && is_readable(0, 0)
        );
        assert!(!is_readable(usize::MAX - 5, 3) && !is_readable(1 << 60, 8));
    }

    #[test]
    fn a_string_ends_or_its_memory_does() {
        forget();
        let start = pages(libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: Both pages are new, and the second one is given back.
        unsafe {
            (start as *mut u8).write_bytes(b'x', PAGE);
            libc::munmap((start + PAGE) as *mut libc::c_void, PAGE);
        }
        assert_eq!(text(start + PAGE - 3), None);
        // SAFETY: It is the last byte of the first page.
        unsafe { ((start + PAGE - 1) as *mut u8).write(0) };
        assert_eq!(text(start + PAGE - 3), Some(&b"xx"[..]));
    }
}

//! PTX, hashed as what the driver compiles: comments, line numbers and layout do not count.

/// The hash of a kernel's PTX without comments, `.file`, `.loc` and debug sections, with each run of spaces as one.
pub fn ptx(text: &str) -> String {
    super::sha256(essence(text).as_bytes())
}

/// Whether this PTX has a kernel of this name.
pub(super) fn has_entry(text: &str, name: &str) -> bool {
    let essence = essence(text);
    essence.split(".entry ").skip(1).any(|rest| {
        rest.strip_prefix(name)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || "_$".contains(c)))
    })
}

fn essence(text: &str) -> String {
    let mut essence = String::with_capacity(text.len());
    let mut in_section = false;
    for line in without_comments(text).lines() {
        let mut words = line.split_ascii_whitespace();
        let first = words.next();
        // A `.section .debug_…` block holds names and paths that `-lineinfo` leaves; it ends at its brace.
        in_section |= first == Some(".section");
        if in_section {
            in_section = !line.contains('}');
            continue;
        }
        if matches!(first, None | Some(".file" | ".loc")) {
            continue;
        }
        for word in first.into_iter().chain(words) {
            essence.push_str(word);
            essence.push(' ');
        }
    }
    essence
}

fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"']) {
        kept.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            kept.push(' ');
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            // A string, in which slashes are a path and no comment; or a lone slash.
            let end = match rest.strip_prefix('"') {
                Some(inside) => inside.find('"').map_or(rest.len(), |end| end + 2),
                None => 1,
            };
            kept.push_str(&rest[..end]);
            end
        };
        rest = &rest[length..];
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::{has_entry, ptx};

    const PTX: &str = r#"// compiler: NVRTC 12.0
.version 8.0
.target sm_75
.file	1 "kernels/cuda/add.cu"
.visible .entry add_01(.param .u64 a) {
	.local .b8 stack[8];
	.loc	1 7 3
	add.f32 	%f3, %f1, %f2; /* the
	point */ ret;
	// done
}
.section .debug_str {
$L__info_string0:
.b8 47,119
}
"#;

    #[test]
    fn comments_lines_and_layout_do_not_count() {
        for (from, to) in [
            ("NVRTC 12.0", "NVRTC 12.1"),
            ("kernels/cuda/add.cu", "kernels//cuda/sum.cu"),
            (".loc	1 7 3\n", ".loc	1 9 3, function_name $L__info_string0, inlined_at 1 2 3\n"),
            ("/* the\n\tpoint */", ""),
            ("// done\n", ""),
            ("add.f32 	%f3", "add.f32 %f3"),
            (".b8 47,119", ".b8 47,120"),
        ] {
            assert!(PTX.contains(from), "{from}");
            assert_eq!(ptx(PTX), ptx(&PTX.replacen(from, to, 1)), "{from} -> {to}");
        }
    }

    #[test]
    fn instructions_and_directives_count() {
        for (from, to) in [
            ("add.f32", "sub.f32"),
            (".version 8.0", ".version 8.1"),
            (".local .b8 stack[8];", ""),
            ("ret;", ""),
        ] {
            assert!(PTX.contains(from), "{from}");
            assert_ne!(ptx(PTX), ptx(&PTX.replacen(from, to, 1)), "{from} -> {to}");
        }
    }

    #[test]
    fn entries_are_found_by_their_whole_name() {
        assert!(has_entry(PTX, "add_01"));
        assert!(!has_entry(PTX, "add_0"));
        assert!(!has_entry(PTX, "add_01b"));
    }
}

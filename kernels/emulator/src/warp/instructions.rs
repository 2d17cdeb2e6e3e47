//! All instructions of PTX ISA 9.0, and what executes each. Decoding, and the scope that `--scope` prints, come from here.

use std::{collections::HashMap, sync::OnceLock};

use super::{
    async_copy, atomic, compare, convert, data, exchange, float, half, integer, last_type, logic, matrix,
    mbarrier, memory, stack, video,
};
use crate::{
    module::{Decoded, Decoder},
    ptx::ast::Instruction,
};

/// What decodes an instruction.
type Decode = fn(&mut Decoder<'_>, &Instruction) -> Decoded;

/// Who executes an instruction.
#[derive(Clone, Copy)]
pub(crate) enum How {
    /// `control`, for it ends a block.
    Control,
    /// The step that this chooses.
    Step(Decode),
    /// Nobody. Programs that have it are refused when they are loaded.
    Nobody,
}

use How::{Control, Nobody, Step};

/// Instructions that are executed, or not, by the same.
pub(crate) struct Entry {
    /// Their words, from the first on. What is longer comes before what is shorter: `cvt.pack` is no `cvt`.
    pub(crate) words: &'static [&'static str],
    pub(crate) how: How,
    /// Forms that are not executed, or why none is.
    pub(crate) missing: &'static str,
}

/// A chapter of the manual.
pub(crate) struct Chapter {
    pub(crate) title: &'static str,
    pub(crate) entries: &'static [Entry],
}

const fn all(words: &'static [&'static str], how: How) -> Entry {
    Entry { words, how, missing: "" }
}

const fn but(words: &'static [&'static str], how: How, missing: &'static str) -> Entry {
    Entry { words, how, missing }
}

const fn no(words: &'static [&'static str], why: &'static str) -> Entry {
    Entry { words, how: Nobody, missing: why }
}

const AFTER: &str = "needs a GPU after sm_90";
const CLUSTERS: &str = "needs clusters of several blocks";
const TEXTURES: &str = "needs textures or surfaces";
const TENSOR_COPIES: &str = "needs the tensor memory accelerator";

const VIDEO: &str =
    "an H200's results where they are not the manual's: some of `.sat`, of `vmad`, and of upper halves";

/// The instructions, chapter by chapter.
pub(crate) const CHAPTERS: &[Chapter] = &[
    Chapter {
        title: "Arithmetic",
        entries: &[
            but(&["add", "sub", "fma"], Step(arithmetic), "`.f32x2` and mixed types: sm_100"),
            but(&["mul"], Step(arithmetic), "`.f32x2`: sm_100"),
            but(&["min", "max"], Step(arithmetic), "three operands: sm_100"),
            all(&["mad", "div", "abs", "neg"], Step(arithmetic)),
            all(
                &["mul24", "mad24", "sad", "rem", "popc", "clz", "bfind", "fns", "brev"],
                Step(integer::decode),
            ),
            all(&["bfe", "bfi", "bmsk", "szext", "dp4a", "dp2a"], Step(integer::decode)),
            all(&["addc", "subc", "madc"], Step(integer::decode)),
            no(&["clmad"], AFTER),
            all(&["rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh"], Step(float::decode)),
            all(&["testp", "copysign"], Step(float::decode)),
        ],
    },
    Chapter {
        title: "Comparison and selection",
        entries: &[all(&["setp", "set", "selp", "slct"], Step(compare::decode))],
    },
    Chapter {
        title: "Logic and shifts",
        entries: &[
            all(&["and", "or", "xor", "not", "cnot", "shl", "shr", "shf", "prmt"], Step(integer::decode)),
            all(&["lop3"], Step(logic::decode)),
        ],
    },
    Chapter {
        title: "Data movement and conversion",
        entries: &[
            all(&["mov"], Step(data::decode)),
            but(&["ld", "st"], Step(memory::decode), "`.v8`, and `.v4` of 64 bits: sm_100"),
            all(&["ldu"], Step(memory::decode)),
            no(&["st.async", "red.async"], CLUSTERS),
            no(&["st.bulk"], AFTER),
            all(&["prefetchu", "discard", "applypriority"], Step(memory::decode)),
            but(&["prefetch"], Step(memory::decode), "`.tensormap`"),
            but(&["cvta"], Step(data::decode), "addresses of 32 bits"),
            but(&["isspacep"], Step(data::decode), "addresses of 32 bits"),
            no(&["istypep"], TEXTURES),
            but(&["mapa", "getctarank"], Step(data::decode), "clusters of several blocks"),
            all(&["createpolicy"], Step(data::decode)),
            all(&["cvt.pack"], Step(convert::decode)),
            but(&["cvt"], Step(convert::decode), "`.rs`, floats of 4 and 6 bits, `ue8m0`: sm_100"),
            no(&["multimem"], "needs several GPUs that share addresses"),
        ],
    },
    Chapter {
        title: "Asynchronous copies",
        entries: &[
            no(&["cp.async.bulk", "cp.reduce.async.bulk"], TENSOR_COPIES),
            no(&["tensormap"], TENSOR_COPIES),
            all(&["cp.async"], Step(async_copy::decode)),
        ],
    },
    Chapter {
        title: "Textures and surfaces",
        entries: &[no(&["tex", "tld4", "txq", "suld", "sust", "sured", "suq"], TEXTURES)],
    },
    Chapter {
        title: "Control flow",
        entries: &[
            all(&["bra", "brx", "ret", "exit"], Control),
            but(&["call"], Control, "arguments of no fixed number"),
        ],
    },
    Chapter {
        title: "Synchronization and communication",
        entries: &[
            no(&["barrier.cluster"], CLUSTERS),
            all(&["bar.warp"], Control),
            but(&["bar", "barrier"], Control, "a number that differs within a warp"),
            all(&["membar", "fence"], Step(memory::decode)),
            all(&["atom", "red"], Step(atomic::decode)),
            all(&["shfl", "vote", "match", "activemask", "elect"], Step(exchange::decode)),
            but(&["redux"], Step(exchange::decode), "floats: sm_100"),
            all(&["mbarrier"], Step(mbarrier::decode)),
            all(&["griddepcontrol"], Step(data::nothing)),
            no(&["clusterlaunchcontrol"], AFTER),
        ],
    },
    Chapter {
        title: "Matrices",
        entries: &[
            no(&["mma.sp"], "sparse matrices"),
            but(&["mma"], Step(matrix::decode), "m8n8k4 of `f16`, floats of 4 and 6 bits, `.block_scale`"),
            all(&["wmma", "movmatrix"], Step(matrix::decode)),
            but(&["ldmatrix", "stmatrix"], Step(matrix::decode), "elements of less than 16 bits: sm_100"),
            no(&["wgmma"], "needs the matrices of warpgroups"),
            no(&["tcgen05"], AFTER),
        ],
    },
    Chapter {
        title: "Stack",
        entries: &[all(&["alloca", "stacksave", "stackrestore"], Step(stack::decode))],
    },
    Chapter {
        title: "Video",
        entries: &[
            but(
                &["vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset"],
                Step(video::decode),
                VIDEO,
            ),
            all(&["vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2", "vset2"], Step(video::decode)),
            all(&["vadd4", "vsub4", "vavrg4", "vabsdiff4", "vmin4", "vmax4", "vset4"], Step(video::decode)),
        ],
    },
    Chapter {
        title: "Miscellaneous",
        entries: &[
            all(&["trap", "brkpt"], Control),
            all(&["nanosleep"], Step(exchange::decode)),
            all(&["pmevent", "setmaxnreg"], Step(data::nothing)),
        ],
    },
];

/// Arithmetic whose chapter only the type tells.
fn arithmetic(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded {
    match last_type(instruction) {
        "f32" | "f64" => float::decode(decoder, instruction),
        "f16" | "f16x2" | "bf16" | "bf16x2" => half::decode(decoder, instruction),
        _ => integer::decode(decoder, instruction),
    }
}

/// The entry of an instruction, or `None` if PTX has no such instruction.
pub(crate) fn find(instruction: &Instruction) -> Option<&'static Entry> {
    /// By the first word: the words after it, and the entry.
    type Entries = Vec<(Vec<&'static str>, &'static Entry)>;
    static ENTRIES: OnceLock<HashMap<&'static str, Entries>> = OnceLock::new();
    let entries = ENTRIES.get_or_init(|| {
        let mut entries: HashMap<_, Entries> = HashMap::new();
        for entry in CHAPTERS.iter().flat_map(|chapter| chapter.entries) {
            for word in entry.words {
                let mut words = word.split('.');
                let first = words.next().unwrap_or_default();
                entries.entry(first).or_default().push((words.collect(), entry));
            }
        }
        for known in entries.values_mut() {
            known.sort_by_key(|(words, _)| std::cmp::Reverse(words.len()));
        }
        entries
    });
    let known = entries.get(instruction.opcode.as_str())?;
    let starts = |words: &[&str]| {
        words.len() <= instruction.modifiers.len()
            && words.iter().zip(&instruction.modifiers).all(|(word, modifier)| word == modifier)
    };
    known.iter().find(|(words, _)| starts(words)).map(|(_, entry)| *entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(text: &str) -> Option<&'static str> {
        let mut words = text.split('.').map(str::to_owned);
        let opcode = words.next().unwrap_or_default();
        let instruction = Instruction {
            predicate: None,
            opcode,
            modifiers: words.collect(),
            operands: Vec::new(),
            line: 1,
        };
        find(&instruction).map(|entry| entry.missing)
    }

    #[test]
    fn the_longest_words_win() {
        assert_eq!(missing("cp.async.bulk.commit_group"), Some(TENSOR_COPIES));
        assert_ne!(missing("cp.async.ca.shared.global"), Some(TENSOR_COPIES));
        assert_eq!(missing("st.async.weak.shared::cluster.b32"), Some(CLUSTERS));
        assert_eq!(missing("ldu.global.f32"), Some(""));
        assert_eq!(missing("vadd8.u32"), None);
        assert_eq!(missing("cp"), None);
    }

    #[test]
    fn no_word_is_there_twice() {
        let mut words: Vec<&str> = CHAPTERS
            .iter()
            .flat_map(|chapter| chapter.entries)
            .flat_map(|entry| entry.words)
            .copied()
            .collect();
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
    }
}

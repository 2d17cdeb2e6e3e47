//! `ldmatrix`, `stmatrix`, `movmatrix`: matrices of 8 x 8 elements of 16 bits.
//!
//! Lanes 0 to 7 hold the addresses of the rows of the first matrix, lanes 8 to 15 those of the second, and so on. A row of
//! 16 bytes is spread over four lanes, as in the fragments of `mma`.

use super::{destinations, is_incomplete, sources};
use crate::{
    fault::Access,
    module::{
        Decoded, Decoder,
        program::{Flow, Ins, kept},
    },
    ptx::ast::Instruction,
    warp::{
        Context, has,
        memory::{self, Target, WINDOW, Window, addresses, place, repeat_active, window},
    },
};

/// What `ldmatrix` and `stmatrix` move.
struct Matrices {
    /// A register of each matrix.
    registers: Vec<u32>,
    transposed: bool,
    access: Access,
    address: Ins,
    long: bool,
}

/// Decodes an instruction of this file.
pub(super) fn decode(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    if i.opcode == "movmatrix" {
        let [dest, source] = d.operands(i)?;
        if !has(i, "m8n8") || !has(i, "trans") || !has(i, "b16") {
            return Err(d.not_implemented());
        }
        let (dest, source) = (d.dest::<u32>(dest)?, d.source::<u32>(source)?);
        return Ok(Ins { d: dest, a: source, ..d.plain(run_move) });
    }
    let count = ["x1", "x2", "x4"].iter().position(|count| has(i, count));
    let (Some(count), true, true) = (count, has(i, "m8n8"), has(i, "b16")) else {
        return Err(d.not_implemented());
    };
    let [first, second] = d.operands(i)?;
    let load = i.opcode == "ldmatrix";
    let (address, registers) = if load { (second, first) } else { (first, second) };
    let registers = if load {
        destinations(d, registers, 1 << count, false)?
    } else {
        sources(d, registers, 1 << count, false)?
    };
    let place = place(d, i, address)?;
    if !matches!(place.space, Target::Shared | Target::Generic) {
        return Err(d.not_implemented());
    }
    let access = if load { Access::Load } else { Access::Store };
    let address = Ins { a: place.row, x: place.offset, ..d.plain(run_matrices) };
    let matrices = Matrices { registers, transposed: has(i, "trans"), access, address, long: place.long };
    let x = d.keep(matrices);
    Ok(Ins { x, ..d.plain(run_matrices) })
}

unsafe fn run_matrices(context: &mut Context, ins: &Ins) -> Flow {
    if is_incomplete(context) {
        return Flow::Wait;
    }
    // SAFETY: the decoder keeps the description as long as the code, and chose its rows.
    let matrices = unsafe { kept::<Matrices>(ins.x) };
    let count = matrices.registers.len();
    let mask = context.mask;
    // Only the lanes that hold addresses make requests.
    let rows = mask & (u32::MAX >> (32 - 8 * count));
    context.set_mask(rows);
    // SAFETY: as above.
    let mut found = unsafe {
        if matrices.long {
            addresses::<u64>(context, &matrices.address)
        } else {
            addresses::<u32>(context, &matrices.address)
        }
    };
    repeat_active(&mut found, rows);
    if let Err(flow) = reach_rows(context, ins, &mut found, count, matrices.access) {
        return flow;
    }
    context.set_mask(mask);
    let spread = if matrices.transposed { transpose } else { |matrix: [u32; 32]| matrix };
    for (number, &register) in matrices.registers.iter().enumerate() {
        // SAFETY: `reach_rows` vouches for 16 bytes at each of these addresses, and that they are aligned.
        unsafe {
            let rows = &found[8 * number..8 * number + 8];
            let word = |lane: usize| {
                std::ptr::with_exposed_provenance_mut::<u32>(rows[lane / 4] as usize + lane % 4 * 4)
            };
            if matrices.access == Access::Load {
                let matrix = std::array::from_fn(|lane| word(lane).read());
                context.set_row(register, spread(matrix));
            } else {
                let matrix = spread(context.row(register));
                for (lane, value) in matrix.into_iter().enumerate() {
                    word(lane).write(value);
                }
            }
        }
    }
    Flow::Next
}

/// Checks and counts the rows of matrices: each matrix of 8 rows takes the passes that its banks need.
///
/// That matrices never share a pass, and that an access is one instruction whatever their number, has to be measured:
/// `smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld` of `ldmatrix.x1`, `.x2` and `.x4` with rows 16, 32 and 128
/// bytes apart, and with the same addresses in all lanes.
fn reach_rows(
    context: &mut Context,
    ins: &Ins,
    found: &mut [u64; 32],
    count: usize,
    access: Access,
) -> Result<(), Flow> {
    if window(found[0]) == Window::Shared {
        found.iter_mut().for_each(|address| *address &= WINDOW - 1);
    }
    let banks = *found;
    let counters = context.counters;
    memory::shared(context, ins, found, 16, access, false)?;
    let (counter, before) = if access == Access::Load {
        (&mut context.counters.shared_load, counters.shared_load)
    } else {
        (&mut context.counters.shared_store, counters.shared_store)
    };
    let wavefronts: u64 = banks[..8 * count].chunks(8).map(memory::row_passes).sum();
    counter.wavefronts = before.wavefronts + wavefronts;
    counter.bank_conflicts = before.bank_conflicts + wavefronts - count as u64;
    Ok(())
}

/// Lane `l` holds elements `2 * (l % 4)` and the next of row `l / 4`, and gets those of the transposed matrix.
pub(super) fn transpose(matrix: [u32; 32]) -> [u32; 32] {
    let element = |row: usize, column: usize| matrix[row * 4 + column / 2] >> (column % 2 * 16) & 0xFFFF;
    std::array::from_fn(|lane| {
        let (row, column) = (lane / 4, lane % 4 * 2);
        element(column, row) | element(column + 1, row) << 16
    })
}

unsafe fn run_move(context: &mut Context, ins: &Ins) -> Flow {
    if is_incomplete(context) {
        return Flow::Wait;
    }
    // SAFETY: the decoder chose rows of 32 bits.
    unsafe {
        let matrix = context.row(ins.a);
        context.set_row(ins.d, transpose(matrix));
    }
    Flow::Next
}

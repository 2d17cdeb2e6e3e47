// Threads exchange values through shared memory, and nothing says that they have all arrived.
//
// run: broken, block 64, check race
//   in u32 0..64
//   out u32 64*0
// run: right, block 64, fine
//   in u32 0..64
//   out u32 63..64 62..63 61..62 60..61 59..60 58..59 57..58 56..57 55..56 54..55 53..54 52..53 51..52 50..51 49..50 48..49 47..48 46..47 45..46 44..45 43..44 42..43 41..42 40..41 39..40 38..39 37..38 36..37 35..36 34..35 33..34 32..33 31..32 30..31 29..30 28..29 27..28 26..27 25..26 24..25 23..24 22..23 21..22 20..21 19..20 18..19 17..18 16..17 15..16 14..15 13..14 12..13 11..12 10..11 9..10 8..9 7..8 6..7 5..6 4..5 3..4 2..3 1..2 0..1
extern "C" __global__ void broken(const unsigned* x, unsigned* out) {
    __shared__ unsigned tile[64];
    unsigned i = threadIdx.x;
    tile[i] = x[i];
    out[i] = tile[63 - i];
}
extern "C" __global__ void right(const unsigned* x, unsigned* out) {
    __shared__ unsigned tile[64];
    unsigned i = threadIdx.x;
    tile[i] = x[i];
    __syncthreads();
    out[i] = tile[63 - i];
}

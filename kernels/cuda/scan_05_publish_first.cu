// Scan, step 5: the sum of the tile is published first, and then the tile is scanned.
//
// New: a plain sum is ready long before a scan is. Whoever waits for it waits less, and while this
// block scans its rows, those before it get ready: when it looks back, most of what it needs is
// there. Five blocks a multiprocessor are asked for, which costs registers and gains loads on their
// way.
// Launch: as step 4.
constexpr unsigned int THREADS = 128;
constexpr unsigned int WARPS = THREADS / 32;
constexpr unsigned int ROWS = 16;
constexpr unsigned int TILE = 4 * ROWS * THREADS;
constexpr unsigned int BLOCKS = 5; // on a multiprocessor at once
constexpr unsigned int WAIT = 200; // nanoseconds between two looks at a word

// What a tile's word says in its upper half. The lower half is a float.
constexpr unsigned int NOTHING = 0, SUM_OF_TILE = 1, SUM_UP_TO_HERE = 2;

// State and value travel in one word of 8 bytes, so that nobody can see one without the other, and
// no fence is needed.
__device__ void publish(unsigned long long* word, unsigned int what, float value) {
    unsigned long long both = (unsigned long long)what << 32 | __float_as_uint(value);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(both) : "memory");
}

__device__ unsigned long long look_at(const unsigned long long* word) {
    unsigned long long both;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(both) : "l"(word) : "memory");
    return both;
}

// The inclusive scan over the lanes of a warp.
__device__ float warp_scan(float x, unsigned int lane) {
#pragma unroll
    for (unsigned int offset = 1; offset < 32; offset *= 2) {
        float before = __shfl_up_sync(0xffffffff, x, offset);
        if (lane >= offset) {
            x += before;
        }
    }
    return x;
}

// The sum over the lanes of a warp, in every lane.
__device__ float warp_sum(float x) {
    for (int offset = 16; offset > 0; offset /= 2) {
        x += __shfl_xor_sync(0xffffffff, x, offset);
    }
    return x;
}

// The sum of all tiles before `tile`, found by one warp. `words[0]` is that of the first tile.
__device__ float look_back(const unsigned long long* words, unsigned int tile, unsigned int lane) {
    float before = 0.0f;
    for (long long last = (long long)tile - 1;; last -= 32) {
        // Lane 0 looks at the nearest tile. Before the first one, everything is known to be 0.
        long long mine = last - lane;
        unsigned long long word = (unsigned long long)SUM_UP_TO_HERE << 32;
        if (mine >= 0) {
            word = look_at(words + mine);
            while (word >> 32 == NOTHING) {
                __nanosleep(WAIT);
                word = look_at(words + mine);
            }
        }
        __syncwarp();
        // Whatever lies farther back than the nearest sum up to a tile is part of that sum.
        unsigned int ends = __ballot_sync(0xffffffff, word >> 32 == SUM_UP_TO_HERE);
        bool counts = ends == 0 || lane < __ffs(ends);
        before += counts ? __uint_as_float((unsigned int)word) : 0.0f;
        if (ends != 0) {
            return warp_sum(before);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    scan_05_publish_first(const float* __restrict__ a, float* __restrict__ c,
                          unsigned long long* state, size_t n) {
    __shared__ float warp_sums[WARPS];
    __shared__ float tiles_before;
    __shared__ unsigned int ticket;
    unsigned int t = threadIdx.x;
    unsigned int lane = t % 32, warp = t / 32;

    // Which tile is mine? The next that nobody has taken: so all tiles before it belong to blocks
    // that run already, and waiting for them ends. Block numbers do not promise that.
    if (t == 0) {
        ticket = atomicAdd(reinterpret_cast<unsigned int*>(state), 1u);
    }
    __syncthreads();
    unsigned int tile = ticket;
    unsigned long long* words = state + 1;

    // Load the warp's rows.
    size_t first = (size_t)tile * TILE + warp * (128 * ROWS) + 4 * lane;
    float4 v[ROWS];
#pragma unroll
    for (unsigned int row = 0; row < ROWS; ++row) {
        size_t i = first + 128 * row;
        if (i + 4 <= n) {
            v[row] = __ldcs(reinterpret_cast<const float4*>(a + i));
        } else {
            v[row] = make_float4(i < n ? a[i] : 0.0f, i + 1 < n ? a[i + 1] : 0.0f,
                                 i + 2 < n ? a[i + 2] : 0.0f, 0.0f);
        }
    }

    // ANCHOR: publish
    // The sum of the tile, before anything else.
    float sum = 0.0f;
#pragma unroll
    for (unsigned int row = 0; row < ROWS; ++row) {
        sum += (v[row].x + v[row].y) + (v[row].z + v[row].w);
    }
    sum = warp_sum(sum);
    if (lane == 0) {
        warp_sums[warp] = sum;
    }
    __syncthreads();
    if (warp == 0) {
        sum = warp_sum(lane < WARPS ? warp_sums[lane] : 0.0f);
        if (lane == 0) {
            publish(words + tile, tile > 0 ? SUM_OF_TILE : SUM_UP_TO_HERE, sum);
        }
    }
    // ANCHOR_END: publish

    // Scan them: the four elements of a thread, the lanes of a row, the rows of the warp.
    float carry = 0.0f;
#pragma unroll
    for (unsigned int row = 0; row < ROWS; ++row) {
        v[row].y += v[row].x;
        v[row].z += v[row].y;
        v[row].w += v[row].z;
        float scanned = warp_scan(v[row].w, lane);
        float before = __shfl_up_sync(0xffffffff, scanned, 1);
        before = lane > 0 ? carry + before : carry;
        carry += __shfl_sync(0xffffffff, scanned, 31);
        v[row].x += before;
        v[row].y += before;
        v[row].z += before;
        v[row].w += before;
    }

    if (warp == 0) {
        float before = 0.0f;
        if (tile > 0) {
            before = look_back(words, tile, lane);
            if (lane == 0) {
                publish(words + tile, SUM_UP_TO_HERE, before + sum);
            }
        }
        if (lane == 0) {
            tiles_before = before;
        }
    }
    __syncthreads();

    // What comes before this warp: the tiles before, then the warps before.
    float before = tiles_before;
#pragma unroll
    for (unsigned int other = 0; other < WARPS; ++other) {
        before += other < warp ? warp_sums[other] : 0.0f;
    }

    // Store.
#pragma unroll
    for (unsigned int row = 0; row < ROWS; ++row) {
        size_t i = first + 128 * row;
        float4 sum =
            make_float4(v[row].x + before, v[row].y + before, v[row].z + before, v[row].w + before);
        if (i + 4 <= n) {
            __stcs(reinterpret_cast<float4*>(c + i), sum);
        } else {
            if (i < n) {
                c[i] = sum.x;
            }
            if (i + 1 < n) {
                c[i + 1] = sum.y;
            }
            if (i + 2 < n) {
                c[i + 2] = sum.z;
            }
        }
    }
}

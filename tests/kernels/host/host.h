/* host.h: CUDA's execution model on a CPU, for testing kernels: one fiber per CUDA thread, one
 * block at a time, one OS thread. The lanes of a collective post their arguments; the last to
 * arrive computes the results for all. If a kernel does what it must not do (diverge in a
 * collective, wait for ever, access memory beyond its shared memory, misalign an address), that is
 * a failure, whose message names kernel, block and thread. A seed decides the order: which thread
 * runs next, which block, and whether asynchronous copies are done at once or as late as the
 * kernel's waits allow. Until then their destination is poisoned.
 *
 *     host::options.seed = 3;
 *     DEV_LAUNCH(kernel, grid, block, smem, 0, args...); // device.cuh; returns when done
 *
 * Streams are queues. What is put on one is done late, when something waits for it, and in any
 * order that events allow (streams.h).
 *
 * Race mode: kernels are compiled with -fsanitize=thread and linked with race.cpp in place of
 * libtsan. Every access to shared memory is then checked against the order that barriers give.
 * Nothing here is thread safe.
 *
 * It cannot show speed, bank conflicts, effects of the memory model other than barriers, or a wrong
 * PTX string. It does not detect races on global memory, which may show under different schedules.
 * Sums are added in another order than on the hardware, and exp2_fast is exact here. So floats are
 * compared within bounds, and integers exactly. */
#ifndef SGT_HOST_H
#define SGT_HOST_H

#include <stddef.h>
#include <stdint.h>

#include <functional>

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct uint3 {
    unsigned x, y, z;
};
typedef struct CUstream_st *cudaStream_t;

namespace host
{

constexpr int LANES = 32, GROUP = 128, MAX_THREADS = 1024, MAX_WARPS = MAX_THREADS / LANES;

struct Thread {
    void *sp; /* stack pointer of its fiber */
    uint3 id;
    int index, lane, warp;
    uint32_t proxy_fences; /* proxy fences executed so far */
};

extern Thread *current; /* NULL outside a kernel */
extern uint3 block_index;
extern dim3 block_size, grid_size;

struct Options {
    unsigned seed;
    bool race; /* check accesses to shared memory (needs -fsanitize=thread) */
};
extern Options options;
/* true if kernels are compiled with -fsanitize=thread, so that race mode is possible */
extern bool instrumented;

/* Counts for tests. launches: number of kernels put on a stream since the count was last set to 0.
 * A kernel in a captured graph counts once. */
struct Counts {
    long races, uninitialised, proxy_misses, launches;
};
extern Counts counts;

/* CUDA error codes that a test plants (fault.cpp). refused_launch: error of the last launch, until
 * it is reported. failed_device: permanent error of the device. */
extern int refused_launch, failed_device;

/* Put work on a stream. The work must hold copies of everything that it needs. On stream NULL, the
 * work is done before this function returns. If the stream is being captured, the work becomes part
 * of the graph and is done in each run of the graph. Profiles show `name`. */
void enqueue(cudaStream_t s, std::function<void()> work, const char *name = "library");
/* Run a kernel to its end now. */
void launch(dim3 grid, dim3 block, size_t smem, void (*body)(void *), void *arg, const char *name);
/* Report an error of the program, with the kernel's name if a kernel is running. Then exit. */
[[noreturn]] void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* reports only the first few */
void report(long *count, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- collectives: all lanes of a warp, or the 128 threads of a warpgroup, call the same op with
 * the same name. The op runs once, with the arguments of all callers ---- */
using Op = void (*)(void **args);
void warp_collective(Op op, void *arg, const char *name);
void group_collective(Op op, void *arg, const char *name);
void block_sync();
void warp_sync();
void named_barrier(int id, int threads, bool wait);
/* Let other threads run. If a thread calls this without end, that is a failure. */
void spin(const char *what);

/* ---- shared memory ---- */
unsigned char *dyn_smem();
void *static_smem(const void *key, size_t size);
/* Return the shared-memory address of p. It is a failure if the `size` bytes from p on are not all
 * in shared memory, or if p is not aligned. */
uint32_t smem_address(const void *p, size_t size, size_t align, const char *what);
unsigned char *smem_at(uint32_t address);

/* Report a wrapper's access to the race detector. collective: the whole warp makes the access.
 * async: the access goes through the async proxy. */
void note_read(const void *p, size_t size, bool collective, bool async);
void note_write(const void *p, size_t size);

/* ---- asynchronous copies ---- */
void cp_async(void *to, const void *from, bool present);
void cp_async_commit();
void cp_async_wait(int keep);

/* ---- operations on 16-bit elements ---- */
enum Kind { BF16, F16 };
float from_16(Kind kind, uint16_t bits);
uint16_t to_16(Kind kind, float x); /* nearest even; NaN as in CUDA */
void ldmatrix_x4(uint32_t *r, const void *row, bool transposed);
void mma(float *c, const uint32_t *a, uint32_t b0, uint32_t b1, Kind kind);
uint32_t to_tf32(float x);
void mma_tf32(float *c, const uint32_t *a, uint32_t b0, uint32_t b1);
/* Replace v by lane `from`'s v. `size` is 4 or 8 bytes. */
void shuffle(void *v, size_t size, int from);
uint32_t ballot(bool p);

/* ---- Hopper ---- */
int device_arch(); /* 90: sm_90, unless SGT_HOST_DEVICE says otherwise */
struct TensorMap {
    const uint16_t *base;
    long planes, rows, columns, stride; /* in elements */
    int box_rows;                       /* rows of a box, which is 64 columns wide */
};
/* Returns whether a tensor map of this address is allowed. NULL: every address is allowed. */
extern bool (*may_be_mapped)(const void *base);
void mbar_init(uint64_t *bar, int arrivals);
void mbar_init_fence();
void mbar_arrive(uint64_t *bar, int bytes);
void mbar_wait(uint64_t *bar, int parity);
void bulk_load(void *to, const TensorMap *map, uint64_t *bar, int column, int row, int plane);
/* `left` is the left operand, in registers. If `left` is NULL, descriptor `a` gives the left
 * operand's address in shared memory. */
void wgmma(float *d, int columns, const uint32_t *left, uint64_t a, uint64_t b, bool add,
           Kind kind);
void wgmma_fence();
void wgmma_commit();
void wgmma_wait(int keep);
/* Fail if wgmma still owns any of the `size` bytes of registers from `from` on. */
void wgmma_ours(const void *from, size_t size);
void set_registers(int wanted, bool more);

} /* namespace host */

#endif

/* peak.c: measures the speed of our own matrix products on operands that are in the caches, so that
 * memory does not limit the speed. */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/memory.h"
#include "loader/base/clock.h"
#include "kernels/kernels.h"
#include "kernels/cpu/product.h"

/* Minimum time in seconds for which each thread times matrix products. The first product of a
 * thread is not timed. */
#define SPEND 10e-3
#define SPEND_MOST 100e-3 /* maximum measuring time in seconds */
/* Maximum ratio of the second-shortest to the shortest time that a thread has measured. A higher
 * ratio is taken to mean that other programs have disturbed the thread. */
#define CLOSE 1.05

enum {
    MOST = 1000,        /* maximum number of matrix products that a thread times */
    ROUGHLY = 512 << 10 /* size in bytes assumed for an L2 cache of unknown size */
};

/* State of a measurement. Each thread multiplies two square matrices of its own, A and B. A, B,
 * their product and the packed copy of B fit in the thread's L2 cache. Only the fastest run of each
 * thread counts, because other programs can slow down a run. */
typedef struct peak {
    const sgt_product *own;
    sgt_gemm_shape s;
    /* Sizes in bytes. scratch: size of a thread's scratch memory; operand: size of A, which is also
     * that of B; each: size of all memory of a thread. */
    size_t scratch, operand, each;
    char *memory; /* (threads, each) */
    int done;     /* number of threads whose measurement is complete */
    double speed; /* sum of the speeds of all threads, in matrix products per second */
} peak;

/* Times in seconds that one thread has measured: the shortest (best), the second shortest (next),
 * and the sum of all (spent). */
typedef struct times {
    double best, next, spent;
    int count;
} times;

static void plan(peak *p, int bf16)
{
    const long known = sysconf(_SC_LEVEL2_CACHE_SIZE);
    const size_t number = bf16 ? 2 : 4, cache = known > 0 ? (size_t)known : ROUGHLY;
    const size_t most = (size_t)SGT_PRODUCT_PANELS * SGT_PRODUCT_COLUMNS; /* columns of a block */
    size_t side = 64;
    while (side < most && (side + 64) * (side + 64) * (3 * number + sizeof(float)) <= cache)
        side += 64;
    p->own = sgt_own_product(bf16);
    p->s = (sgt_gemm_shape){
        .m = side, .n = side, .k = side, .lda = side, .ldb = side, .ldc = side, .bf16 = bf16};
    p->scratch = (p->own->scratch + SGT_ARENA_ALIGN - 1) / SGT_ARENA_ALIGN * SGT_ARENA_ALIGN;
    p->operand = side * side * number;
    p->each = p->scratch + 2 * p->operand + side * side * sizeof(float);
}

/* Fill x with numbers from 1 to 2, read either as floats or as pairs of bfloat16. Zeros would not
 * do, because a CPU that multiplies zeros draws less power and can run faster. */
static void fill(char *x, size_t bytes)
{
    for (uint32_t i = 0; i < bytes / sizeof i; i++) {
        uint32_t half = 0x3f80u | (i * 2654435761u >> 25), bits = half << 16 | half;
        memcpy(x + i * sizeof bits, &bits, sizeof bits);
    }
}

static void multiply(const peak *p)
{
    char *own = p->memory + (size_t)omp_get_thread_num() * p->each, *a = own + p->scratch;
    float *c = (float *)(void *)(a + 2 * p->operand);
    p->own->run(&p->s, a, a + p->operand, NULL, c, 0, p->s.m, 0, p->s.n, NULL, NULL, 0, own);
}

/* Time one product. Ignore a time that is not positive, which occurs if the clock is set back. */
static void time_one(const peak *p, times *t)
{
    double from = sgt_now();
    multiply(p);
    double took = sgt_now() - from;
    t->count++;
    if (!(took > 0)) return;
    t->spent += took;
    if (took < t->best) t->next = t->best, t->best = took;
    else if (took < t->next) t->next = took;
}

/* Return whether a thread has measured enough: its two fastest times are close to each other, or it
 * has reached the maximum time or the maximum number of products. */
static int is_over(const times *t)
{
    if (t->count >= MOST || t->spent >= SPEND_MOST) return 1;
    return t->spent >= SPEND && t->next <= CLOSE * t->best;
}

static void measure(peak *p, int threads)
{
#pragma omp parallel num_threads(threads)
    {
        times own = {.best = HUGE_VAL, .next = HUGE_VAL};
        fill(p->memory + (size_t)omp_get_thread_num() * p->each + p->scratch, 2 * p->operand);
        multiply(p);
#pragma omp barrier
        while (!is_over(&own)) time_one(p, &own);
        __atomic_fetch_add(&p->done, 1, __ATOMIC_RELAXED);
        /* keep this core busy while other threads still measure: cores share caches and power, so
         * an idle core would make the others faster */
        while (__atomic_load_n(&p->done, __ATOMIC_RELAXED) < omp_get_num_threads()) multiply(p);
#pragma omp critical
        p->speed += 1 / own.best;
    }
}

double sgt_gemm_peak(int bf16, int threads)
{
    peak p = {0};
    sgt_arena memory = {0};
    if (bf16 && !sgt_gemm_has_bf16()) return 0;
    plan(&p, bf16);
    if (sgt_arena_map(&memory, (size_t)threads * p.each, 0, NULL) < 0) return 0;
    p.memory = memory.base;
    measure(&p, threads);
    sgt_arena_unmap(&memory);
    double side = (double)p.s.m;
    return 2 * side * side * side * p.speed;
}

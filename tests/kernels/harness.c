/* harness.c: implements harness.h and run.h: guarded buffers, comparisons, timing, options. */
#include "tests/kernels/harness.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/memory.h"
#include "loader/base/philox.h"
#include "tests/kernels/run.h"

enum { SHOWN = 4 }; /* maximum number of failures printed per case and level */

static const char *const placement_names[CHECK_PLACEMENTS] = {
    "flush with the end", "flush with the start", "one float in"};

typedef struct check_buffer {
    struct check_buffer *next;
    /* start of the memory: `mapped` bytes, of which the first and the last page are guard pages; or
     * memory from `device`; or plain memory */
    char *map;
    size_t mapped;
    const check_memory *device;
    int compared; /* 1: all runs must leave the same bits in it */
    /* [first, last): bytes of `map` that may be accessed. They are slack, except the data, which
     * has `size` bytes from offset `from` on. */
    size_t first, last;
    size_t from, size;
} check_buffer;

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static void give_up(const char *what)
{
    perror(what);
    exit(1);
}

static check_buffer *new_buffer(check *t)
{
    check_buffer *b = calloc(1, sizeof *b);
    if (!b) give_up("check-kernels");
    b->next = t->buffers;
    t->buffers = b;
    return b;
}

/* Value of the slack bytes around the data. Only a kernel that overruns its buffer changes them. */
enum { SLACK = 0xA5 };

/* Place `size` bytes of data in b. If the placement is CHECK_AT_END and from_start is 0, the data
 * ends where the slack ends. Otherwise, the data begins from_start bytes after the start of the
 * slack. */
static void *place(check *t, check_buffer *b, size_t size, size_t from_start)
{
    b->size = size;
    b->from = t->placement == CHECK_AT_END && !from_start ? b->last - size : b->first + from_start;
    memset(b->map + b->first, SLACK, b->last - b->first);
    return b->map + b->from;
}

static void *guarded(check *t, size_t size, size_t from_start)
{
    size_t page = page_size(), inside = (size + from_start + page - 1) / page * page;
    check_buffer *b = new_buffer(t);
    if (!inside) inside = page;
    b->mapped = inside + 2 * page;
    b->map = mmap(NULL, b->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b->map == MAP_FAILED) give_up("mmap");
    if (mprotect(b->map + page, inside, PROT_READ | PROT_WRITE) < 0) give_up("mprotect");
    b->first = page;
    b->last = page + inside;
    return place(t, b, size, from_start);
}

/* Allocate `size` bytes of device memory. Guard bytes around the data count as slack. The data ends
 * at a multiple of 16 bytes or starts at a multiple of 256, as with guard pages. */
static void *device_bytes(check *t, size_t size)
{
    size_t guard = t->device->exact ? 0 : CHECK_GUARD, inside = guard  ? (size + 255) / 256 * 256
                                                                : size ? size
                                                                       : 16;
    check_buffer *b = new_buffer(t);
    b->device = t->device;
    b->map = t->device->allocate(inside + 2 * guard);
    if (!b->map) give_up("memory that the device reaches");
    memset(b->map, SLACK, inside + 2 * guard);
    b->first = guard;
    b->last = guard + inside;
    void *data = place(t, b, size, 0);
    b->first = 0;
    b->last += guard;
    return data;
}

static float *floats(check *t, size_t n)
{
    return guarded(t, n * sizeof(float), t->placement == CHECK_ONE_IN ? sizeof(float) : 0);
}

/* Return a signaling NaN whose bits no operation produces. It distinguishes an element that was not
 * written from a computed NaN. */
static float untouched(void)
{
    const uint32_t bits = 0x7fc5a5a5;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

float *check_output(check *t, size_t n)
{
    float *x = floats(t, n);
    for (size_t i = 0; i < n; i++) x[i] = untouched();
    return x;
}

float *check_random(check *t, size_t n, float scale)
{
    float *x = floats(t, n);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)sgt_philox_u64(t->seed, t->counter++, 0);
        x[i] = scale * ((float)(bits >> 8) * 0x1p-23f - 1 + 0x1p-24f);
    }
    return x;
}

float *check_copy(check *t, const float *x, size_t n)
{
    float *copy = floats(t, n);
    if (n) memcpy(copy, x, n * sizeof *x);
    return copy;
}

uint64_t check_number(check *t, uint64_t below)
{
    return sgt_philox_u64(t->seed, t->counter++, 1) % below;
}

int32_t *check_ids(check *t, size_t n, int32_t below)
{
    int32_t *ids = guarded(t, n * sizeof *ids, 0);
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)check_number(t, (uint64_t)below);
    return ids;
}

float *check_scratch(check *t, size_t n)
{
    size_t whole = (n * sizeof(float) + SGT_ARENA_ALIGN - 1) / SGT_ARENA_ALIGN * SGT_ARENA_ALIGN;
    float *x = guarded(t, whole, 0);
    for (size_t i = 0; i < n; i++) x[i] = untouched();
    return x;
}

void *check_bytes(check *t, size_t size)
{
    size_t whole = (size + 15) / 16 * 16;
    char *p = t->device ? device_bytes(t, whole)
                        : guarded(t, whole, t->placement == CHECK_ONE_IN ? 16 : 0);
    /* The bytes that rounding up adds are slack, so that writes to these bytes are found. */
    t->buffers->size = size;
    t->buffers->compared = t->same_buffers;
    memset(p + size, SLACK, whole - size);
    return memset(p, 0xff, size);
}

const void *check_as_bf16(check *t, float *x, size_t n)
{
    uint16_t *out = check_bytes(t, n * sizeof *out);
    t->ref->round_to(x, x, n, SGT_FORMAT_BF16);
    t->ref->to_bf16(out, x, n);
    return out;
}

double *check_doubles(check *t, size_t n)
{
    check_buffer *b = new_buffer(t);
    b->map = calloc(n ? n : 1, sizeof(double));
    if (!b->map) give_up("check-kernels");
    return (double *)(void *)b->map;
}

/* ---- the same bits again ---- */

/* Return the FNV-1a hash of `size` bytes. */
static uint64_t hash_of(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash;
}

/* Return whether the hash equals that of the same output in the first run of the first
 * placement. */
static int same_again(check *t, uint64_t hash)
{
    if (t->placement > 0 || t->turn > 0)
        return t->hash_next >= t->hash_count || t->hashes[t->hash_next++] == hash;
    t->hashes = realloc(t->hashes, (t->hash_count + 1) * sizeof *t->hashes);
    if (!t->hashes) give_up("check-kernels");
    t->hashes[t->hash_count++] = hash;
    return 1;
}

/* ---- release ---- */

static void check_slack(check *t, const check_buffer *b)
{
    for (size_t i = b->first; i < b->last; i++)
        if ((i < b->from || i >= b->from + b->size) && (unsigned char)b->map[i] != SLACK) {
            check_fail(t, "wrote %td bytes from the start of a buffer of %zu bytes",
                       (ptrdiff_t)(i - b->from), b->size);
            return;
        }
}

/* Release all buffers. The case fails if a slack byte has changed, or if a buffer that is compared
 * does not have the same bits as in the first run. */
void check_release(check *t)
{
    while (t->buffers) {
        check_buffer *b = t->buffers;
        t->buffers = b->next;
        check_slack(t, b);
        if (b->compared && !same_again(t, hash_of(b->map + b->from, b->size)))
            check_fail(t, "a buffer of %zu bytes has other bits than in the first run", b->size);
        if (b->device) b->device->release(b->map);
        else if (b->mapped) munmap(b->map, b->mapped);
        else free(b->map);
        free(b);
    }
}

/* ---- verdicts ---- */

void check_at(check *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(t->at, sizeof t->at, fmt, args);
    va_end(args);
}

void check_fail(check *t, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (t->failures++ < SHOWN)
        printf("  %s %s, %s, %s: %s\n", t->which->name, t->level, t->at,
               placement_names[t->placement], text);
}

void check_skip(check *t, const char *why)
{
    t->skipped = 1;
    snprintf(t->why, sizeof t->why, "%s", why);
}

static int left_alone(float x)
{
    float u = untouched();
    return memcmp(&x, &u, sizeof x) == 0;
}

void check_close(check *t, const char *name, const float *got, const float *want,
                 const double *bound, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double error = fabs((double)got[i] - want[i]);
        /* written so that a NaN fails for any bound */
        if (left_alone(want[i]) ? left_alone(got[i]) : error <= bound[i]) continue;
        check_fail(t, "%s[%zu of %zu] is %.9g, not %.9g: off by %.3g, allowed %.3g", name, i, n,
                   got[i], want[i], error, bound[i]);
        return;
    }
}

void check_equal(check *t, const char *name, const float *got, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&got[i], &want[i], sizeof *got) != 0) {
            check_fail(t, "%s[%zu of %zu] is %.9g, not exactly %.9g", name, i, n, got[i], want[i]);
            return;
        }
}

void check_near(check *t, const char *name, double got, double want, double bound)
{
    if (!(fabs(got - want) <= bound))
        check_fail(t, "%s is %.9g, not %.9g: off by %.3g, allowed %.3g", name, got, want,
                   fabs(got - want), bound);
}

void check_same_bits(check *t, const char *name, const float *got, size_t n)
{
    if (!same_again(t, hash_of(got, n * sizeof *got)))
        check_fail(t, "%s has other bits than at first", name);
}

/* ---- benchmarks ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void bench_start(check *t)
{
    t->best = INFINITY;
    t->rounds = 0;
    t->started = now();
}

/* Start or end a call of the benchmarked kernel: called before the first call and after each call.
 * Keep the time of the fastest call. Return 0 after 0.2 seconds and at least 3 calls, else 1. */
int bench_next(check *t)
{
    double time = now();
    if (t->rounds && time - t->began < t->best) t->best = time - t->began;
    if (t->rounds >= 3 && time - t->started > 0.2) return 0;
    t->rounds++;
    t->began = now();
    return 1;
}

void bench_report(check *t, const char *shape, double bytes, double flops)
{
    printf("%-20s %-8s %-26s %12.0f ns", t->which->name, t->level, shape, t->best * 1e9);
    if (bytes > 0) printf(" %8.1f GB/s", bytes / t->best * 1e-9);
    if (flops > 0) printf(" %8.1f GFLOP/s", flops / t->best * 1e-9);
    printf("\n");
    fflush(stdout);
}

/* ---- options of the programs ---- */

int check_usage(const char *usage, const char *what, const char *arg)
{
    fprintf(stderr, "%.*s: %s: %s (%s)\n", (int)strcspn(usage, " "), usage, arg, what, usage);
    return 2;
}

int check_parse(const check_option *options, const char *usage, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const check_option *o = options;
        while (o->name && strcmp(o->name, argv[i])) o++;
        if (!o->name) return check_usage(usage, "unknown option", argv[i]);
        if (o->flag) {
            *o->flag = 1;
            continue;
        }
        if (++i == argc) return check_usage(usage, "needs a value", o->name);
        if (o->word) {
            *o->word = argv[i];
            continue;
        }
        char *end;
        errno = 0;
        *o->number = strtoull(argv[i], &end, 10);
        if (errno || *end || end == argv[i] || argv[i][0] == '-')
            return check_usage(usage, "not a number", argv[i]);
    }
    return 0;
}

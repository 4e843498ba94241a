/* bench.c: what the subcommands share: their skeleton, which parses options, measures, and prints the
 * JSON document or a table; defaults of options; work on threads; the page cache. */
#include "tools/bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/cpu.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"
#include "train/log/metrics.h"

static int print_results(const bench_subcommand *s, void *bench, sgt_error *err)
{
    const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(s->digits ? s->digits : 6);
    if (s->output->json) return sgt_print_json(s->json(bench), flags, err);
    if (!s->output->quiet) s->show(bench);
    return SGT_OK;
}

int bench_subcommand_run(const bench_subcommand *s, int argc, char **argv)
{
    sgt_error err, why;
    int first = sgt_options_parse(s->program, argc, argv), rc;
    if (first < argc && !s->operands)
        sgt_usage(s->program, "%s: no operands here, only options", argv[first]);
    sgt_talk talk = {s->program->name, s->output->quiet};
    void *bench = calloc(1, s->size);
    if (bench) {
        bench_call call = {argv + first, (size_t)(argc - first), sgt_talk_notice(&talk),
                           sgt_catch_signals()};
        rc = s->measure(bench, &call, &err);
        if (s->worth ? s->worth(bench, rc) : rc == SGT_OK) {
            int printed = print_results(s, bench, &why);
            if (printed < 0) rc = printed, err = why;
        }
        if (s->release) s->release(bench);
        free(bench);
    } else rc = sgt_fail_memory(&err, NULL);
    return sgt_end_program(s->program, rc, &err);
}

char *bench_machine(char *buf, size_t n)
{
    char cpu[64], memory[32];
    int cores = sgt_cpu_count();
    snprintf(buf, n, "%s, %d core%s, %s, %s of memory",
             sgt_printable(cpu, sizeof cpu, sgt_cpu_model()), cores, cores == 1 ? "" : "s",
             sgt_cpu_name(), sgt_format_bytes(memory, sizeof memory, sgt_memory_total()));
    return buf;
}

char *bench_name(char *buf, size_t n, const char *name)
{
    char all[1024];
    const char *s = sgt_printable(all, sizeof all, name);
    size_t length = 0, skip = 0;
    while (s[length]) length++;
    if (length < n) snprintf(buf, n, "%s", s);
    else {
        skip = length - (n - 4);
        while (((unsigned char)s[skip] & 0xc0) == 0x80) skip++; /* cut between characters */
        snprintf(buf, n, "...%s", s + skip);
    }
    return buf;
}

/* ---- tables ---- */

void bench_put(json_t *object, const char *key, double x)
{
    if (x != 0) json_object_set_new(object, key, json_real(x));
}

enum { CELL = 33 }; /* bytes of a cell's text */

/* Return the cell of a row as text, written into buf; the heading if there is no row. */
static const char *format_cell(char buf[CELL], const json_t *row, const bench_column *c)
{
    const json_t *v = json_object_get(row, c->key);
    double x = json_number_value(v) * (c->scale > 0 ? c->scale : 1);
    if (!row) return c->head;
    if (json_is_string(v)) return sgt_printable(buf, CELL, json_string_value(v));
    if (!json_is_number(v)) return "-";
    if (c->kind == BENCH_BYTES) return sgt_format_bytes(buf, CELL, (uint64_t)x);
    snprintf(buf, CELL, c->kind == BENCH_PERCENT ? "%.*f %%" : "%.*f", c->decimals, x);
    return buf;
}

/* Return the width of a column, or 0 if no row has its field. */
static int column_width(const json_t *rows, const bench_column *c)
{
    char buf[CELL];
    size_t width = strlen(c->head), found = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        size_t n = strlen(format_cell(buf, row, c));
        if (n > width) width = n;
        found += json_object_get(row, c->key) != NULL;
    }
    return found ? (int)width : 0;
}

static void print_row(const json_t *rows, const json_t *row, const bench_column *columns, char mark)
{
    char buf[CELL], why[64];
    const char *reason = json_string_value(json_object_get(row, "why_not"));
    if (!reason) reason = json_string_value(json_object_get(row, "why"));
    putchar(mark);
    for (const bench_column *c = columns; c->key; c++) {
        int width = column_width(rows, c), text = c->kind == BENCH_TEXT;
        if (!text && reason && !json_is_number(json_object_get(row, c->key))) {
            printf("  %s", sgt_printable(why, sizeof why, reason));
            break;
        }
        if (width)
            printf(c == columns ? " %*s" : "  %*s", text ? -width : width,
                   format_cell(buf, row, c));
    }
    putchar('\n');
}

void bench_table(const json_t *rows, const bench_column *columns, const char *best)
{
    double highest = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        double x = json_number_value(json_object_get(json_array_get(rows, i), best));
        if (x > highest) highest = x;
    }
    print_row(rows, NULL, columns, ' ');
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const json_t *mark = json_object_get(row, best);
        int marked = json_is_true(mark) || (highest > 0 && json_number_value(mark) >= highest);
        print_row(rows, row, columns, marked ? '*' : ' ');
    }
}

/* ---- options that subcommands share ---- */

uint32_t bench_batch(const bench_shape *o, int cuda)
{
    return o->batch ? (uint32_t)o->batch : cuda ? 64 : 4;
}

uint32_t bench_seq(const bench_shape *o, int cuda)
{
    return o->seq ? (uint32_t)o->seq : cuda ? 1024 : 64;
}

sgt_precision bench_precision(const bench_shape *o, int cuda)
{
    if (cuda && !o->precision_given) return SGT_PRECISION_BF16;
    return (sgt_precision)o->precision;
}

int bench_threads(const bench_shape *o) { return o->threads ? (int)o->threads : sgt_cpu_count(); }

/* ---- work on several threads ---- */

/* seconds between queries of the clock, at least: a query takes 25 ns */
#define CLOCK_EVERY 20e-6

/* A gate at which all threads wait. It opens for all of them at once, or not at all if one could
 * not be started. */
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    enum { GATE_SHUT, GATE_OPEN, GATE_GIVEN_UP } state;
} gate;

static int wait_at(gate *g)
{
    pthread_mutex_lock(&g->lock);
    while (g->state == GATE_SHUT) pthread_cond_wait(&g->moved, &g->lock);
    int open = g->state == GATE_OPEN;
    pthread_mutex_unlock(&g->lock);
    return open;
}

static void move(gate *g, int open)
{
    pthread_mutex_lock(&g->lock);
    g->state = open ? GATE_OPEN : GATE_GIVEN_UP;
    pthread_cond_broadcast(&g->moved);
    pthread_mutex_unlock(&g->lock);
}

typedef struct worker {
    const bench_slice *slice;
    bench_work *work;
    void *ctx;
    gate *gate;
    pthread_t id;
    int thread, rc;
    uint64_t units;
    double from, to;
    sgt_error err;
} worker;

static void *work_on(void *arg)
{
    worker *w = arg;
    const bench_slice *s = w->slice;
    uint64_t stride = 1, next = 1;
    if (!wait_at(w->gate)) return NULL;
    double last = w->from = w->to = sgt_now();
    while (s->most == 0 || w->units < s->most) {
        w->rc = w->work(w->ctx, w->thread,
                        s->first + (uint64_t)w->thread + w->units * (uint64_t)s->threads, &w->err);
        w->units++;
        if (w->rc < 0) return NULL;
        if (w->units < next && w->units != s->most) continue;
        w->to = sgt_now();
        if (w->to - w->from >= s->seconds) break;
        if (w->to - last < CLOCK_EVERY) stride *= 2;
        last = w->to;
        next = w->units + stride;
    }
    return NULL;
}

static int collect(const worker *w, int threads, uint64_t *units, double *seconds, sgt_error *err)
{
    double from = w[0].from, to = w[0].to;
    *units = 0;
    for (int t = 0; t < threads; t++) {
        if (w[t].rc < 0) return sgt_fail(err, w[t].rc, "%s", w[t].err.text);
        if (w[t].from < from) from = w[t].from;
        if (w[t].to > to) to = w[t].to;
        *units += w[t].units;
    }
    *seconds = to - from;
    return SGT_OK;
}

int bench_run(const bench_slice *s, bench_work *work, void *ctx, uint64_t *units, double *seconds,
              sgt_error *err)
{
    gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, GATE_SHUT};
    worker *w = calloc((size_t)s->threads, sizeof *w);
    if (!w) return sgt_fail(err, SGT_ENOMEM, "out of memory for %d threads", s->threads);
    for (int t = 0; t < s->threads; t++)
        w[t] = (worker){.slice = s, .work = work, .ctx = ctx, .gate = &g, .thread = t};
    int made = 1, rc = SGT_OK;
    while (made < s->threads && !pthread_create(&w[made].id, NULL, work_on, &w[made])) made++;
    move(&g, made == s->threads);
    if (made < s->threads)
        rc = sgt_fail(err, SGT_EIO, "thread %d of %d cannot be started (fewer --threads)", made + 1,
                      s->threads);
    else work_on(&w[0]);
    for (int t = 1; t < made; t++) pthread_join(w[t].id, NULL);
    if (rc == SGT_OK) rc = collect(w, s->threads, units, seconds, err);
    free(w);
    return rc;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *x, size_t n)
{
    if (!n) return 0;
    qsort(x, n, sizeof *x, by_value);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* ---- the page cache ---- */

/* Queries, empties and fills the page cache, file by file. mincore is right only about files
 * that the caller owns or may write (since Linux 5.2; for others every page counts as present).
 * So other files cannot be evicted. */

#define TRIES 5 /* attempts to evict: pages in a CPU's local list are dropped only by a later one */
#define READ_BYTES ((size_t)1 << 20)

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

typedef struct residence {
    uint64_t pages, resident;
} residence;

/* Count the pages of the file, and those in the page cache. */
static int count_pages(residence *r, int fd, uint64_t size, const char *path, sgt_error *err)
{
    *r = (residence){.pages = (size + page_bytes() - 1) / page_bytes()};
    if (!r->pages) return SGT_OK;
    unsigned char *there =
        malloc((size_t)r->pages); /* of each page, the lowest bit: it is cached */
    if (!there) return sgt_fail_memory(err, path);
    void *map = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
    int rc = map == MAP_FAILED || mincore(map, (size_t)size, there) < 0
                 ? sgt_fail_errno(err, "%s: mincore", path)
                 : SGT_OK;
    for (uint64_t i = 0; i < r->pages && rc == SGT_OK; i++) r->resident += there[i] & 1;
    if (map != MAP_FAILED) munmap(map, (size_t)size);
    free(there);
    return rc;
}

static int evict(int fd, uint64_t size, const char *path, sgt_error *err)
{
    residence r;
    for (int i = 0; i < TRIES; i++) {
        if (i) nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        fdatasync(fd); /* dirty pages cannot be dropped */
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        int rc = count_pages(&r, fd, size, path, err);
        if (rc < 0 || !r.resident) return rc;
    }
    return sgt_fail(err, SGT_EUNSUPPORTED,
                    "%s: %" PRIu64 " of %" PRIu64
                    " pages stay in memory, so --cold would not be cold (a file system in memory, "
                    "a program that maps it, or not your file)",
                    path, r.resident, r.pages);
}

/* Read the file, to cache it, if it lacks a page. */
static int fill(int fd, uint64_t size, const char *path, sgt_error *err)
{
    residence r;
    int rc = count_pages(&r, fd, size, path, err);
    if (rc < 0 || r.resident == r.pages) return rc;
    char *buffer = malloc(READ_BYTES);
    if (!buffer) return sgt_fail_memory(err, path);
    for (uint64_t at = 0; at < size && rc == SGT_OK;) {
        ssize_t n = pread(fd, buffer, READ_BYTES, (off_t)at);
        if (n < 0 && errno != EINTR) rc = sgt_fail_errno(err, "%s", path);
        if (n == 0) break; /* the file was cut short: the loader will report it */
        if (n > 0) at += (uint64_t)n;
    }
    free(buffer);
    return rc;
}

static int with_file(const char *path,
                     int (*act)(int fd, uint64_t size, const char *path, sgt_error *err),
                     sgt_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return sgt_fail_errno(err, "%s", path);
    int rc = fstat(fd, &st) < 0 ? sgt_fail_errno(err, "%s", path)
                                : act(fd, (uint64_t)st.st_size, path, err);
    close(fd);
    return rc;
}

int bench_cache_evict(const char *path, sgt_error *err) { return with_file(path, evict, err); }

int bench_cache_fill(const char *path, sgt_error *err) { return with_file(path, fill, err); }

/* bench.c: functions that the subcommands of sgt-bench share. They run a subcommand (parse its
 * options, measure, and print a JSON document or a table), choose the device, run timed work on
 * several threads, and read files into the page cache or evict them from it. */
#include "tools/bench/bench.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/cpu.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"
#include "train/device.h"
#include "train/log/metrics.h"

struct bench bench;
sgt_config bench_config;

/* Print a line about this machine, such as "AMD EPYC 9R14, 2 cores, avx512, 23.5 GiB of memory". */
static void print_machine(void)
{
    char cpu[64], memory[32];
    int cores = sgt_cpu_count();
    printf("%s, %d core%s, %s, %s of memory\n", sgt_printable(cpu, sizeof cpu, sgt_cpu_model()),
           cores, cores == 1 ? "" : "s", sgt_cpu_name(),
           sgt_format_bytes(memory, sizeof memory, sgt_memory_total()));
}

static void print_results(const bench_subcommand *s, int *rc, sgt_error *err)
{
    const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(9);
    json_t *top = json_pack("{s:s}", "cpu", sgt_cpu_model());
    sgt_error why;
    s->json(top);
    if (*rc == SGT_ESTOPPED) json_object_set_new(top, "interrupted", json_true());
    if (bench.json) {
        int printed = sgt_print_json(json_incref(top), flags, &why);
        if (printed < 0) *rc = printed, *err = why;
    } else if (!bench.quiet) {
        print_machine();
        s->show(top);
    }
    json_decref(top);
}

static void release_rows(void)
{
    for (bench_row *r = bench.rows; r < bench.rows + bench.count; r++) {
        json_decref(r->result);
        json_decref(r->turns);
    }
}

int bench_run_subcommand(const sgt_command *c, int argc, char **argv)
{
    /* valid because `command` is the first member of bench_subcommand */
    const bench_subcommand *s = (const bench_subcommand *)(const void *)c;
    sgt_error err;
    int first = sgt_options_parse(c->program, argc, argv);
    bench.operands = argv + first;
    bench.operand_count = (size_t)(argc - first);
    bench.notice = sgt_talk_notice(c->program->name, bench.quiet);
    bench.stop = sgt_catch_signals();
    bench.cache = sgt_cache_folder();
    int rc = s->measure(&err);
    if (rc == SGT_OK || (s->partial && rc == SGT_ESTOPPED && bench.measured))
        print_results(s, &rc, &err);
    if (s->release) s->release();
    release_rows();
    free(bench.cache);
    return sgt_end_program(c->program, rc, &err);
}

/* ---- rows ---- */

bench_row *bench_add(json_t *about)
{
    assert(bench.count < BENCH_ROWS);
    bench_row *r = &bench.rows[bench.count++];
    r->result = about ? about : json_object();
    r->turns = json_array();
    return r;
}

/* Add the values that were measured for a row to the row's result: the median of all measurements
 * if a value is a real number, otherwise the value in the last measurement. */
static void take_medians(bench_row *r)
{
    double x[BENCH_TURNS];
    size_t turns = r->why[0] ? 0 : json_array_size(r->turns);
    if (!turns) return;
    json_t *value, *figures = json_deep_copy(json_array_get(r->turns, turns - 1));
    const char *key;
    json_object_foreach(figures, key, value)
    {
        if (!json_is_real(value)) continue;
        for (size_t i = 0; i < turns; i++) x[i] = bench_get(json_array_get(r->turns, i), key);
        json_real_set(value, bench_median(x, turns));
    }
    bench_put_all(r->result, figures);
}

int bench_take_turns(size_t first, size_t count, size_t turns, bench_take *take, sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t turn = 0; turn < turns; turn++)
        for (size_t i = first; i < first + count && rc == SGT_OK; i++) {
            json_t *figures = NULL;
            if (bench.rows[i].why[0]) continue;
            rc = sgt_stopped(bench.stop) ? sgt_fail(err, SGT_ESTOPPED, "interrupted")
                                         : take(i, &figures, err);
            if (!figures) continue;
            json_array_append_new(bench.rows[i].turns, figures);
            bench.measured = 1;
        }
    for (size_t i = first; i < first + count; i++) take_medians(&bench.rows[i]);
    return rc;
}

int bench_leave_out(bench_row *r, int rc, const char *name, const sgt_error *err)
{
    if (rc != SGT_EUNSUPPORTED) return rc;
    sgt_printable(r->why, sizeof r->why, err->text);
    if (name) sgt_say(&bench.notice, "skipping %s: %s", name, r->why);
    return SGT_OK;
}

json_t *bench_results(size_t first, int left_out)
{
    json_t *all = json_array();
    for (const bench_row *r = bench.rows + first; r < bench.rows + bench.count; r++) {
        if (left_out ? !r->why[0] : r->why[0] || !json_array_size(r->turns)) continue;
        if (left_out) bench_put_text(r->result, "why", r->why);
        json_array_append(all, r->result);
    }
    return all;
}

double bench_get(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

const char *bench_get_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

void bench_put(json_t *object, const char *key, double x)
{
    if (x != 0) json_object_set_new(object, key, json_real(x));
}

void bench_put_text(json_t *object, const char *key, const char *text)
{
    json_object_set_new(object, key, json_string(text));
}

void bench_put_all(json_t *object, json_t *fields)
{
    json_object_update(object, fields);
    json_decref(fields);
}

int bench_words(uint32_t *chosen, const char *option, const char *list, const char *const *names,
                sgt_error *err)
{
    const sgt_option o = {.kind = SGT_OPT_WORD, .choices = names};
    char buf[SGT_OPTION_VALUE];
    size_t n = 0;
    *chosen = 0;
    for (int k = 0; names[k] && !list; k++) *chosen |= 1U << k;
    for (const char *at = list; at; at = at[n] ? at + n + 1 : NULL) {
        n = strcspn(at, ",");
        int k = sgt_option_word(&o, at, n);
        if (k < 0)
            return sgt_fail(err, SGT_EUSAGE, "--%s %.*s: unknown value (expected %s)", option,
                            (int)(n ? n : strlen(list)), n ? at : list, sgt_option_value(&o, buf));
        *chosen |= 1U << k;
    }
    return SGT_OK;
}

/* ---- tables ---- */

enum { CELL = 33 }; /* size in bytes of a buffer for the text of a cell */

/* Return the text of a row's cell in column c, or the heading of the column if `row` is NULL. The
 * text can be in buf. */
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

/* Return the width of a column in characters, or 0 if no row has the member that the column
 * shows. */
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
    const char *reason = bench_get_text(row, "why_not");
    if (!reason) reason = bench_get_text(row, "why");
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

/* ---- the model and its step ---- */

int bench_choose_device(sgt_error *err)
{
    static const char *const words[] = {"auto", "cpu", "cuda"};
    sgt_config *s = &bench_config;
    const char *device = words[s->device];
    int rc = sgt_device_choose(&device, &bench.notice, err), cuda = strcmp(device, "cuda") == 0;
    if (rc < 0) return rc;
    s->device = cuda ? SGT_DEVICE_CUDA : SGT_DEVICE_CPU;
    if (s->batch == SGT_DEFAULT_COUNT) s->batch = cuda ? 64 : 4;
    if (!s->seq) s->seq = cuda ? 1024 : 64;
    if (s->threads == SGT_DEFAULT_COUNT) s->threads = (uint64_t)sgt_threads(0, 1);
    rc = sgt_config_check(s, err);
    if (rc == SGT_OK) rc = sgt_config_take_device(s, cuda, cuda, err);
    return rc == SGT_OK ? sgt_config_step(s, err) : rc;
}

/* ---- work on several threads ---- */

/* Minimum time in seconds between two readings of the clock. A reading takes about 25 ns, so
 * reading the clock after every short unit of work would distort the measurement. */
#define CLOCK_EVERY 20e-6

/* State of one thread of bench_run. thread: number of the thread. rc, err: result of its last unit
 * of work. units: number of units that it has done. from: time at which it started. to: time at
 * which it last read the clock. */
typedef struct worker {
    int thread, rc;
    uint64_t units;
    double from, to;
    sgt_error err;
} worker;

static void work_on(worker *w, const bench_slice *s, bench_work *work, void *ctx)
{
    uint64_t stride = 1, next = 1;
    double last = w->from = w->to = sgt_now();
    while (s->most == 0 || w->units < s->most) {
        w->rc = work(ctx, w->thread,
                     s->first + (uint64_t)w->thread + w->units * (uint64_t)s->threads, &w->err);
        w->units++;
        if (w->rc < 0) return;
        if (w->units < next && w->units != s->most) continue;
        w->to = sgt_now();
        if (w->to - w->from >= s->seconds) break;
        if (w->to - last < CLOCK_EVERY) stride *= 2;
        last = w->to;
        next = w->units + stride;
    }
}

int bench_run(const bench_slice *s, bench_work *work, void *ctx, uint64_t *units, double *seconds,
              sgt_error *err)
{
    double from = HUGE_VAL, to = 0;
    uint64_t done = 0;
    int rc = SGT_OK;
#pragma omp parallel num_threads(s->threads)
    {
        worker w = {.thread = omp_get_thread_num()};
        if (omp_get_num_threads() < s->threads)
            w.rc = sgt_fail(&w.err, SGT_EIO, "only %d of %d threads (raise OMP_THREAD_LIMIT)",
                            omp_get_num_threads(), s->threads);
#pragma omp barrier /* all threads begin at the same time */
        if (w.rc == SGT_OK) work_on(&w, s, work, ctx);
#pragma omp critical
        {
            if (w.rc < 0 && rc == SGT_OK) rc = sgt_fail(err, w.rc, "%s", w.err.text);
            if (w.from < from) from = w.from;
            if (w.to > to) to = w.to;
            done += w.units;
        }
    }
    *units = done;
    *seconds = to - from;
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

/* Maximum number of attempts to evict the pages of a file. More than one can be necessary, because
 * each CPU keeps a list of recently used pages, and pages in these lists are not evicted. */
#define TRIES 5

/* Evict the pages of a file from the page cache. map: mapping of the file's `bytes` bytes. Return
 * SGT_EUNSUPPORTED if mincore still reports some pages as cached. (Since Linux 5.2, mincore reports
 * all pages as cached if the process neither owns the file nor has write permission.) */
static int evict_pages(int fd, void *map, size_t bytes, const char *path, sgt_error *err)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page;
    size_t cached = pages;
    /* array with one byte per page of the file, whose lowest bit is 1 if the page is cached */
    unsigned char *there = malloc(pages + 1);
    int rc = there ? SGT_OK : sgt_fail_memory(err, path);
    for (int i = 0; cached && i < TRIES && rc == SGT_OK; i++) {
        if (i) nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        fdatasync(fd); /* dirty pages cannot be dropped */
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        if (mincore(map, bytes, there) < 0) rc = sgt_fail_errno(err, "%s: mincore", path);
        cached = 0;
        for (size_t p = 0; p < pages && rc == SGT_OK; p++) cached += there[p] & 1;
    }
    if (cached && rc == SGT_OK)
        rc = sgt_fail(err, SGT_EUNSUPPORTED,
                      "%s: %zu of %zu pages cannot be dropped from the page cache (because of "
                      "a file system in memory, a program that maps it, or another owner)",
                      path, cached, pages);
    free(there);
    return rc;
}

static int cache_file(const char *path, int cached, sgt_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), flags = MAP_SHARED | (cached ? MAP_POPULATE : 0);
    off_t end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    void *map = end > 0 ? mmap(NULL, (size_t)end, PROT_READ, flags, fd, 0) : NULL;
    int failed = end < 0 || map == MAP_FAILED, rc = failed ? sgt_fail_errno(err, "%s", path) : 0;
    if (map && !failed && !cached) rc = evict_pages(fd, map, (size_t)end, path, err);
    if (map && !failed) munmap(map, (size_t)end);
    if (fd >= 0) close(fd);
    return rc;
}

int bench_cache(const sgt_loader *l, int cached, sgt_error *err)
{
    int rc = SGT_OK;
    for (uint32_t i = 0; i < sgt_loader_get_info(l)->shards && rc == SGT_OK; i++)
        rc = cache_file(sgt_loader_shard_path(l, i), cached, err);
    return rc;
}

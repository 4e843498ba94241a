/* step_measure.c: data and its rows; and steps, timed as the training loop runs them: if the backend
 * allows it, a step is queued before the metrics of the previous one are read. For --parts it adds
 * up the times of a step's kernels from what CUPTI records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cuda/cupti.h"
#include "loader/base/clock.h"
#include "loader/base/memory.h"
#include "loader/base/philox.h"
#include "loader/rows/rows.h"
#include "tokenize/sgt_tokenize.h"
#include "tools/bench/bench.h"
#include "train/data/feed.h"
#include "train/device.h"
#include "train/log/metrics.h"

enum { RECORDED = 5 }; /* steps that CUPTI records for --parts */

/* The text of a batch. */
typedef struct batch_text {
    char *text;
    size_t bytes;
} batch_text;

typedef struct measurement {
    const step_run *run;
    sgt_backend_options *o;
    sgt_loader *loader;
    sgt_backend *b;
    uint32_t accum;
    double *ms, *wait; /* (warmup + steps + recorded) */
    double open_s, first_s, loss;
    unsigned recorded; /* steps after the measured ones, which CUPTI records */
    const sgt_cupti_calls *calls;
    sgt_cupti *cupti;
    json_t *figures;
    /* rows */
    sgt_feed *feed;
    batch_text *texts; /* (text_count), if batches are encoded */
    uint64_t text_count, encoded;
    sgt_vocab *vocab;
    sgt_encoder *encoder;
    uint16_t *ids; /* room for those of the longest text */
} measurement;

/* ---- rows ---- */

enum { RANDOM_TOKENS = 1 << 20 }; /* beside those of a row */

/* Write random tokens to a file in memory, and return its descriptor. */
static int write_random(const sgt_backend_options *o, sgt_error *err)
{
    size_t count = (size_t)RANDOM_TOKENS + o->seq + 1;
    uint16_t *tokens = malloc(count * sizeof *tokens);
    if (!tokens) return sgt_fail_memory(err, "random tokens");
    for (size_t i = 0; i < count; i++)
        tokens[i] = (uint16_t)(sgt_philox(1, i, 0).x[0] % o->model.vocab);
    int fd = bench_memory_file("tokens", (const char *)tokens, count * sizeof *tokens, err);
    free(tokens);
    return fd;
}

/* Open the data, or a shard of random tokens, in its state of the page cache. */
static int open_data(measurement *m, sgt_error *err)
{
    const step_run *run = m->run;
    const sgt_loader_options options = {.reader = run->reader,
                                        .batch = m->o->batch,
                                        .seq = m->o->seq,
                                        .seed = 1,
                                        .raw = !run->data,
                                        .notice = m->o->notice};
    sgt_loader_info info;
    char random[32];
    int fd = run->data ? 0 : write_random(m->o, err);
    if (fd < 0) return fd;
    snprintf(random, sizeof random, "/proc/self/fd/%d", fd);
    int rc = sgt_loader_open(&m->loader, run->data ? run->data : random, &options, err);
    if (!run->data) close(fd);
    if (rc < 0) return rc;
    if (run->plain_rows) sgt_loader_set_rows(m->loader, &sgt_rows_plain);
    sgt_loader_get_info(m->loader, &info);
    m->o->model.vocab = info.vocab;
    if (run->cache == STEP_COLD) return bench_cache_evict(m->loader, err);
    return run->cache == STEP_CACHED ? bench_cache_fill(m->loader, err) : SGT_OK;
}

/* Decode `count` batches of the loader into their texts. */
static int open_texts(measurement *m, uint64_t count, sgt_error *err)
{
    sgt_cursor *c = NULL;
    size_t longest = 0, tokens = m->o->batch * ((size_t)m->o->seq + 1);
    uint16_t *rows = malloc(tokens * sizeof *rows);
    m->texts = calloc(count, sizeof *m->texts);
    int rc = rows && m->texts ? SGT_OK : sgt_fail_memory(err, "the text of the rows");
    if (rc == SGT_OK) rc = sgt_vocab_gpt2(&m->vocab, err);
    if (rc == SGT_OK) rc = sgt_encoder_new(&m->encoder, m->vocab, err);
    if (rc == SGT_OK) rc = sgt_cursor_open(&c, m->loader, err);
    while (m->text_count < count && rc == SGT_OK) {
        batch_text *t = &m->texts[m->text_count];
        rc = sgt_loader_batch(m->loader, c, m->text_count++, rows, err);
        if (rc == SGT_OK) rc = sgt_decode(m->vocab, rows, tokens, &t->text, &t->bytes, err);
        if (t->bytes > longest) longest = t->bytes;
    }
    /* there are never more ids than bytes */
    if (rc == SGT_OK && !(m->ids = malloc((longest + 1) * sizeof *m->ids)))
        rc = sgt_fail_memory(err, "the text of the rows");
    sgt_cursor_close(c);
    free(rows);
    return rc;
}

/* Prepare rows for `count` micro-steps, as a run does before its first step. */
static int open_rows(measurement *m, uint64_t count, sgt_error *err)
{
    const sgt_backend *b = m->b;
    const sgt_feed_options o = {.count = count,
                                .threads = 1,
                                .now = m->run->source != STEP_LOADER,
                                .hold = b->hold,
                                .alloc = b->pinned_alloc,
                                .free = b->pinned_free,
                                .ctx = b->pinned_ctx};
    int rc = m->run->source == STEP_TEXT ? open_texts(m, count, err) : SGT_OK;
    return rc == SGT_OK ? sgt_feed_open(&m->feed, m->loader, &o, err) : rc;
}

static int next_rows(measurement *m, sgt_batch *rows, sgt_error *err)
{
    if (m->encoder) {
        const batch_text *t = &m->texts[m->encoded++];
        sgt_encode(m->encoder, t->text, t->bytes, m->ids);
    }
    return sgt_feed_next(m->feed, rows, err);
}

/* Close the rows; the backend is still open. */
static void close_rows(measurement *m)
{
    sgt_feed_close(m->feed);
    for (uint64_t i = 0; i < m->text_count; i++) free(m->texts[i].text);
    free(m->texts);
    free(m->ids);
    sgt_encoder_free(m->encoder);
    sgt_vocab_free(m->vocab);
}

/* ---- steps ---- */

static int one_step(measurement *m, uint64_t s, sgt_error *err)
{
    int rc = SGT_OK;
    double waited = 0;
    for (uint32_t a = 0; a < m->accum && rc == SGT_OK; a++) {
        sgt_batch batch;
        double before = sgt_now();
        if ((rc = next_rows(m, &batch, err)) != SGT_OK) break;
        waited += sgt_now() - before;
        rc = m->b->micro_step(m->b, s, a, &batch,
                              1.0 / ((double)m->o->batch * m->o->seq * m->accum), err);
    }
    m->wait[s] = waited * 1e3;
    return rc == SGT_OK ? m->b->update(m->b, s, 1e-4, err) : rc;
}

/* Run steps from .. to - 1, and set ms[i] to the time from the end of step i - 1 to the end of step
 * i, as the host sees them. */
static int run_steps(measurement *m, uint64_t from, uint64_t to, sgt_error *err)
{
    unsigned lag = m->run->sync_metrics ? 0 : m->b->lag;
    double began = sgt_now(), last = began;
    for (uint64_t s = from; s < to + lag; s++) {
        sgt_step_metrics got;
        int rc = SGT_OK;
        if (sgt_stopped(m->run->stop)) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
        if (s < to) rc = one_step(m, s, err);
        if (rc == SGT_OK && s >= from + lag) {
            rc = m->b->metrics(m->b, s - lag, &got, err);
            m->ms[s - lag] = (sgt_now() - last) * 1e3;
            last = sgt_now();
            if (s == lag) m->first_s = last - began;
            if (s - lag < m->run->warmup + m->run->steps) m->loss = got.loss;
        }
        if (rc < 0) return rc;
    }
    return SGT_OK;
}

/* ---- the kernels of a step ---- */

/* What CUPTI recorded of some steps. Copies and fills count too. */
typedef struct spans {
    json_t *kernels; /* by name: sums over the steps */
    struct interval {
        uint64_t start, end; /* nanoseconds */
    } * of;
    size_t count, room;
    int lost; /* 1: memory ran out */
} spans;

static void add_to(json_t *kernel, const char *key, double x)
{
    bench_put(kernel, key, bench_get(kernel, key) + x);
}

static void add_span(void *ctx, const sgt_cupti_span *s)
{
    spans *x = ctx;
    const char *name = s->label ? s->label : s->name;
    if (!s->on_device || strcmp(s->category, "range") == 0) return;
    x->lost |= sgt_reserve(&x->of, &x->room, x->count + 1, sizeof *x->of, "kernels", NULL) < 0;
    if (x->lost) return;
    x->of[x->count++] = (struct interval){s->start, s->end};
    json_t *kernel = json_object_get(x->kernels, name);
    if (!kernel) {
        kernel = json_pack("{s:s}", "name", name);
        json_object_set_new(x->kernels, name, kernel);
    }
    add_to(kernel, "launches", 1);
    add_to(kernel, "ms", (double)(s->end - s->start) * 1e-6);
    add_to(kernel, "bytes", s->bytes);
    add_to(kernel, "flops", s->flops);
}

static int by_start(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* Set *whole to the time from the first start to the last end, and return how much of it is in no
 * interval; both in milliseconds. */
static double sum_gaps(const spans *x, double *whole)
{
    uint64_t first = x->count ? x->of[0].start : 0, end = first, gaps = 0;
    for (size_t i = 0; i < x->count; i++) {
        if (x->of[i].start > end) gaps += x->of[i].start - end;
        if (x->of[i].end > end) end = x->of[i].end;
    }
    *whole = (double)(end - first) * 1e-6;
    return (double)gaps * 1e-6;
}

/* Add the table of kernels to the figures, the longest first, with their speeds where bytes or
 * operations are known. Its rows and the idle time add up to the step, less the time in which two
 * kernels ran at once. */
static void add_kernels(json_t *figures, spans *x, unsigned steps)
{
    json_t *kernel, *all = json_array();
    const char *name;
    double whole;
    if (x->count) qsort(x->of, x->count, sizeof *x->of, by_start);
    json_object_set_new(figures, "idle_ms", json_real(sum_gaps(x, &whole) / steps));
    json_object_set_new(figures, "step_ms", json_real(whole / steps));
    json_object_foreach(x->kernels, name, kernel)
    {
        double ms = bench_get(kernel, "ms"), bytes = bench_get(kernel, "bytes"),
               flops = bench_get(kernel, "flops");
        size_t at = 0;
        json_object_set_new(kernel, "launches", json_real(bench_get(kernel, "launches") / steps));
        json_object_set_new(kernel, "ms", json_real(ms / steps));
        bench_put(kernel, "gb_per_s", ms > 0 ? bytes / ms * 1e-6 : 0);
        bench_put(kernel, "tflops", ms > 0 ? flops / ms * 1e-9 : 0);
        json_object_del(kernel, "bytes");
        json_object_del(kernel, "flops");
        while (bench_get(json_array_get(all, at), "ms") > ms / steps) at++;
        json_array_insert(all, at, kernel);
    }
    json_object_set_new(figures, "kernels", all);
}

/* Run more steps while CUPTI records them, and add what it saw to the figures. */
static int record(measurement *m, sgt_error *err)
{
    sgt_cupti_counts counts = {0};
    spans x = {.kernels = json_object()};
    uint64_t from = m->run->warmup + m->run->steps;
    int rc = m->calls->begin(m->cupti, err), ran = rc == SGT_OK;
    if (ran) rc = run_steps(m, from, from + m->recorded, err);
    int ended = ran ? m->calls->end(m->cupti, add_span, &x, &counts, rc == SGT_OK ? err : NULL) : 0;
    if (rc == SGT_OK) rc = ended;
    if (rc == SGT_OK && x.lost) rc = sgt_fail(err, SGT_ENOMEM, "no room for a step's kernels");
    if (rc == SGT_OK && counts.lost)
        rc = sgt_fail(err, SGT_EIO, "CUPTI lost %llu records", (unsigned long long)counts.lost);
    if (rc == SGT_OK)
        json_object_set_new(m->figures, "cupti_kernels_step",
                            json_integer((json_int_t)(counts.kernels / m->recorded)));
    if (rc == SGT_OK && m->run->parts) add_kernels(m->figures, &x, m->recorded);
    json_decref(x.kernels);
    free(x.of);
    return rc;
}

static int open_cupti(measurement *m, sgt_error *err)
{
    const sgt_cuda_library *lib;
    int rc = sgt_device_open(&lib, err);
    if (rc < 0) return rc;
    m->calls = lib->cupti;
    return m->calls->open(&m->cupti, err);
}

/* Record the kernels, or without --parts only count them: then a machine without CUPTI has no such
 * count, and if recording fails, a notice says so, because the measurement is complete by now. */
static int record_kernels(measurement *m, sgt_error *err)
{
    sgt_error why;
    if (m->run->parts) return record(m, err);
    if (open_cupti(m, NULL) < 0) return SGT_OK;
    int rc = record(m, &why);
    if (rc == SGT_ESTOPPED) return sgt_fail(err, rc, "%s", why.text);
    if (rc < 0) sgt_say(&m->o->notice, "kernels of a step were not counted: %s", why.text);
    return SGT_OK;
}

/* Return the figures of the measured steps; what is unknown is left out. */
static json_t *make_figures(const measurement *m)
{
    const sgt_backend *b = m->b;
    const sgt_backend_options *o = m->o;
    sgt_memory_kind kinds[SGT_MEMORY_KINDS];
    uint64_t bytes = 0;
    for (size_t i = 0, n = b->memory(b, kinds); i < n; i++) bytes += kinds[i].bytes;
    double ms = bench_median(m->ms + m->run->warmup, m->run->steps);
    double tokens_per_s = (double)o->batch * o->seq * m->accum / ms * 1e3;
    double flops = tokens_per_s * sgt_flops_per_token(&o->model, o->seq);
    /* as in training, a step that is faster than the measured peak raises the peak */
    double peak = b->peak_flops > 0 && flops > b->peak_flops ? flops : b->peak_flops;
    json_t *j = json_pack(
        "{s:s, s:s, s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I}", "device", b->name,
        "level", b->level, "library", b->library, "steps", (int)m->run->steps, "ms_per_step", ms,
        "tokens_per_s", tokens_per_s, "tflops", flops * 1e-12, "data_wait_ms",
        bench_median(m->wait + m->run->warmup, m->run->steps), "open_s", m->open_s, "first_step_s",
        m->first_s, "backend_bytes", (json_int_t)bytes, "peak_bytes",
        (json_int_t)(b->memory_total ? bytes : sgt_memory_peak()), "total_bytes",
        (json_int_t)(b->memory_total ? b->memory_total : sgt_memory_total()));
    json_object_set_new(j, "loss", json_real(m->loss)); /* not if it is no number */
    if (peak > 0) bench_put(j, "mfu", flops / peak);
    bench_put(j, "peak_tflops", peak * 1e-12);
    if (b->datasheet_flops > 0) bench_put(j, "mfu_datasheet", flops / b->datasheet_flops);
    if (b->launches_step)
        bench_put_all(j, json_pack("{s:i, s:i}", "launches_forward", (int)b->launches_forward,
                                   "launches_step", (int)b->launches_step));
    return j;
}

/* Open the data, the backend and the rows; and for --parts CUPTI, which must be open before the
 * backend captures a graph. */
static int open_all(measurement *m, sgt_error *err)
{
    uint64_t micro_steps = (uint64_t)m->accum * (m->run->warmup + m->run->steps + m->recorded);
    int rc = open_data(m, err);
    double began = sgt_now();
    if (rc == SGT_OK && m->run->parts) rc = open_cupti(m, err);
    if (rc == SGT_OK) rc = sgt_device_backend(&m->b, m->run->device, m->o, err);
    if (rc == SGT_OK) rc = sgt_init_parameters(m->b, &m->o->model, 1, m->o->threads, err);
    m->open_s = sgt_now() - began;
    return rc == SGT_OK ? open_rows(m, micro_steps, err) : rc;
}

int bench_step_measure(json_t **figures, const step_run *run, sgt_error *err)
{
    unsigned steps = run->warmup + run->steps;
    int cuda = strcmp(run->device, "cuda") == 0;
    sgt_backend_options options = *run->backend;
    measurement m = {.run = run,
                     .o = &options,
                     .recorded = cuda ? run->parts ? RECORDED : 1 : 0,
                     .accum = run->backend->accum ? run->backend->accum : 1};
    m.ms = calloc(steps + m.recorded, sizeof *m.ms);
    m.wait = calloc(steps + m.recorded, sizeof *m.wait);
    int rc = m.ms && m.wait ? open_all(&m, err) : sgt_fail_memory(err, NULL);
    if (rc == SGT_OK) rc = run_steps(&m, 0, steps, err);
    if (rc == SGT_OK) m.figures = make_figures(&m);
    if (rc == SGT_OK && m.recorded) rc = record_kernels(&m, err);
    if (m.b) close_rows(&m);
    if (m.b) m.b->close(m.b);
    if (m.cupti) m.calls->close(m.cupti);
    sgt_loader_close(m.loader);
    free(m.ms);
    free(m.wait);
    if (rc == SGT_OK) *figures = m.figures;
    else json_decref(m.figures);
    return rc;
}

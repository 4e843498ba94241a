/* step_measure.c: sources of rows; and steps, timed as the training loop runs them: if the backend
 * allows it, a step is queued before the metrics of the previous one are read. For --parts it adds
 * up the times of a step's parts: on a CPU from a trace, on CUDA from what CUPTI records. */
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cuda/cupti.h"
#include "loader/base/clock.h"
#include "loader/base/philox.h"
#include "tokenize/sgt_tokenize.h"
#include "tools/bench/bench.h"
#include "tools/bench/step.h"
#include "train/data/feed.h"
#include "train/device.h"
#include "train/log/metrics.h"
#include "train/log/trace.h"

/* ---- sources of rows ---- */

enum { RANDOM_BATCHES = 8 }; /* number of different batches, which are given out in turn */

struct step_rows {
    const sgt_loader *loader; /* NULL: random tokens */
    int now;                  /* of a loader: make each batch when it is asked for */
    uint32_t vocab_size;
    size_t batch, row; /* rows per batch; tokens per row */
    const sgt_backend *backend;
    sgt_feed *feed; /* a loader's batches */
    /* (slots, batch, row): memory for random and for encoded rows. The backend may still read the
     * batches before the last one. */
    uint16_t *tokens;
    size_t slots;
    uint64_t given; /* number of batches given out so far */
    /* of text: the vocabulary (NULL for other rows); the text of each row; its ids before they are
     * cut */
    sgt_vocab *vocab;
    sgt_encoder *encoder;
    char **texts; /* (count) */
    size_t *bytes;
    uint64_t count;
    uint16_t *ids;
};

static int open_tokens(step_rows *r, size_t slots, sgt_error *err)
{
    const sgt_backend *b = r->backend;
    size_t bytes = slots * r->batch * r->row * sizeof *r->tokens;
    r->slots = slots;
    r->given = 0;
    r->tokens = b->pinned_alloc ? b->pinned_alloc(b->pinned_ctx, bytes) : malloc(bytes);
    return r->tokens ? SGT_OK
                     : sgt_fail(err, SGT_ENOMEM, "out of memory for %zu bytes of rows", bytes);
}

static int open_random(step_rows *r, sgt_error *err)
{
    int rc = open_tokens(r, RANDOM_BATCHES, err);
    for (size_t i = 0; rc == SGT_OK && i < r->slots * r->batch * r->row; i++)
        r->tokens[i] = (uint16_t)(sgt_philox(1, i, 0).x[0] % r->vocab_size);
    return rc;
}

static int open_loader(step_rows *r, uint64_t count, sgt_error *err)
{
    const sgt_backend *b = r->backend;
    sgt_feed_options o = {.count = count,
                          .threads = 1,
                          .now = r->now,
                          .hold = b->hold,
                          .alloc = b->pinned_alloc,
                          .free = b->pinned_free,
                          .ctx = b->pinned_ctx};
    return sgt_feed_open(&r->feed, r->loader, &o, err);
}

/* ---- text ---- */

/* Decode batch k of the loader into the texts of its rows; `tokens` is memory for it. */
static int decode_batch(step_rows *r, sgt_cursor *c, uint64_t k, uint16_t *tokens, sgt_error *err)
{
    int rc = sgt_loader_batch(r->loader, c, k, tokens, err);
    for (size_t b = 0; b < r->batch && rc == SGT_OK; b++)
        rc = sgt_decode(r->vocab, tokens + b * r->row, r->row, &r->texts[k * r->batch + b],
                        &r->bytes[k * r->batch + b], err);
    return rc;
}

static int open_text(step_rows *r, uint64_t batches, sgt_error *err)
{
    sgt_cursor *c = NULL;
    size_t longest = 0;
    int rc = open_tokens(r, r->backend->hold + 1, err);
    if (rc == SGT_OK) rc = sgt_encoder_new(&r->encoder, r->vocab, err);
    if (rc < 0) return rc;
    r->count = batches * r->batch;
    r->texts = calloc(r->count, sizeof *r->texts);
    r->bytes = calloc(r->count, sizeof *r->bytes);
    rc = r->texts && r->bytes ? sgt_cursor_open(&c, r->loader, err)
                              : sgt_fail(err, SGT_ENOMEM, "out of memory for the text of the rows");
    for (uint64_t k = 0; k < batches && rc == SGT_OK; k++)
        rc = decode_batch(r, c, k, r->tokens, err);
    for (uint64_t i = 0; i < r->count && rc == SGT_OK; i++)
        if (r->bytes[i] > longest) longest = r->bytes[i];
    /* there are never more ids than bytes */
    if (rc == SGT_OK && !(r->ids = malloc((longest + 1) * sizeof *r->ids)))
        rc = sgt_fail(err, SGT_ENOMEM, "out of memory for the text of the rows");
    sgt_cursor_close(c);
    return rc;
}

/* Encode the text of one row after the other, cut its ids to the row's length or fill it up with
 * end-of-text ids, and copy them one by one. */
static void encode_batch(const step_rows *r, uint16_t *to)
{
    for (size_t b = 0; b < r->batch; b++) {
        uint64_t sample = r->given * r->batch + b;
        size_t n = sgt_encode(r->encoder, r->texts[sample], r->bytes[sample], r->ids);
        for (size_t t = 0; t < r->row; t++)
            to[b * r->row + t] = t < n ? r->ids[t] : (uint16_t)sgt_vocab_eot(r->vocab);
    }
}

/* ---- all sources ---- */

int bench_rows_random(step_rows **out, uint32_t vocab, uint32_t batch, uint32_t seq, sgt_error *err)
{
    step_rows *r = calloc(1, sizeof *r);
    if (!r) return sgt_fail_memory(err, NULL);
    *r = (step_rows){.vocab_size = vocab, .batch = batch, .row = (size_t)seq + 1};
    *out = r;
    return SGT_OK;
}

int bench_rows_loader(step_rows **out, const sgt_loader *l, int now, sgt_error *err)
{
    sgt_loader_info info;
    sgt_loader_get_info(l, &info);
    int rc = bench_rows_random(out, info.vocab, info.local_batch, info.seq, err);
    if (rc < 0) return rc;
    (*out)->loader = l;
    (*out)->now = now;
    return SGT_OK;
}

int bench_rows_text(step_rows **out, const sgt_loader *l, sgt_error *err)
{
    step_rows *r = NULL;
    int rc = bench_rows_loader(&r, l, 1, err);
    if (rc == SGT_OK) rc = sgt_vocab_gpt2(&r->vocab, err);
    if (rc == SGT_OK && r->vocab_size != sgt_vocab_size(r->vocab))
        rc = sgt_fail(err, SGT_EUNSUPPORTED, "the data has %u ids, and is not GPT-2's tokens",
                      r->vocab_size);
    if (rc < 0) bench_rows_free(r);
    else *out = r;
    return rc;
}

int bench_rows_open(step_rows *r, const sgt_backend *b, uint64_t count, sgt_error *err)
{
    r->backend = b;
    if (r->vocab) return open_text(r, count, err);
    return r->loader ? open_loader(r, count, err) : open_random(r, err);
}

int bench_rows_next(step_rows *r, const uint16_t **tokens, sgt_error *err)
{
    sgt_batch next;
    if (r->feed) {
        int rc = sgt_feed_next(r->feed, &next, err);
        if (rc == SGT_OK) *tokens = next.tokens;
        return rc;
    }
    uint16_t *to = r->tokens + r->given % r->slots * r->batch * r->row;
    if (r->vocab) encode_batch(r, to);
    r->given++;
    *tokens = to;
    return SGT_OK;
}

void bench_rows_close(step_rows *r)
{
    sgt_feed_close(r->feed);
    if (r->tokens && r->backend->pinned_alloc)
        r->backend->pinned_free(r->backend->pinned_ctx, r->tokens);
    else free(r->tokens);
    for (uint64_t i = 0; r->texts && i < r->count; i++) free(r->texts[i]);
    free(r->texts);
    free(r->bytes);
    free(r->ids);
    sgt_encoder_free(r->encoder);
    r->feed = NULL;
    r->tokens = r->ids = NULL;
    r->texts = NULL;
    r->bytes = NULL;
    r->encoder = NULL;
}

void bench_rows_free(step_rows *r)
{
    if (!r) return;
    sgt_vocab_free(r->vocab);
    free(r);
}

/* ---- a measured step ---- */

#define RECORDED 5 /* steps that CUPTI records for --parts */

typedef struct measurement {
    const step_run *run;
    const sgt_backend_options *o;
    sgt_backend *b;
    uint32_t accum;
    double *ms, *wait; /* (warmup + steps + recorded) */
    sgt_trace *trace;
    char path[64];     /* path of the trace file */
    unsigned recorded; /* steps after the measured ones, which CUPTI records */
    const sgt_cupti_calls *calls;
    sgt_cupti *cupti;
    step_result *r;
} measurement;

static int one_step(measurement *m, uint64_t s, sgt_error *err)
{
    int rc = SGT_OK;
    double waited = 0;
    uint64_t from = sgt_trace_begin(m->trace);
    for (uint32_t a = 0; a < m->accum && rc == SGT_OK; a++) {
        sgt_batch batch = {0};
        double before = sgt_now();
        if ((rc = bench_rows_next(m->run->rows, &batch.tokens, err)) != SGT_OK) break;
        waited += sgt_now() - before;
        rc = m->b->micro_step(m->b, s, a, &batch,
                              1.0 / ((double)m->o->batch * m->o->seq * m->accum), err);
    }
    m->wait[s] = waited * 1e3;
    uint64_t update = sgt_trace_begin(m->trace);
    if (rc == SGT_OK) rc = m->b->update(m->b, s, 1e-4, err);
    sgt_trace_end(m->trace, update, SGT_TRACE_LOOP, "optimizer", "update");
    sgt_trace_end(m->trace, from, SGT_TRACE_LOOP, "step", "step");
    return rc;
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
        if (s < to) rc = sgt_trace_step(m->trace, s, err);
        if (rc == SGT_OK && s < to) rc = one_step(m, s, err);
        if (rc == SGT_OK && s >= from + lag) {
            rc = m->b->metrics(m->b, s - lag, &got, err);
            m->ms[s - lag] = (sgt_now() - last) * 1e3;
            last = sgt_now();
            if (s == lag) m->r->first_s = last - began;
            if (s - lag < m->run->warmup + m->run->steps) m->r->loss = got.loss;
        }
        if (rc < 0) return rc;
    }
    return SGT_OK;
}

/* ---- the parts of a step ---- */

/* Return the part of this name, which is added if it is new; NULL if there is no room for it. */
static step_part *find_part(step_result *r, const char *name)
{
    size_t i = 0;
    while (i < r->part_count && strncmp(r->parts[i].name, name, sizeof r->parts[i].name - 1) != 0)
        i++;
    if (i == STEP_PARTS) return NULL;
    if (i == r->part_count)
        snprintf(r->parts[r->part_count++].name, sizeof r->parts->name, "%s", name);
    return &r->parts[i];
}

/* Divide the sums of all parts by the number of steps. */
static void divide_parts(step_result *r, unsigned steps)
{
    for (size_t i = 0; i < r->part_count; i++) {
        step_part *p = &r->parts[i];
        p->ms /= steps;
        p->launches /= steps;
        p->bytes /= steps;
        p->flops /= steps;
    }
}

/* Return whether events of this category are parts of a step. */
static int is_part(const char *category)
{
    static const char *const names[] = {"forward",  "head",      "recompute",
                                        "backward", "optimizer", NULL};
    int i = 0;
    while (names[i] && strcmp(names[i], category) != 0) i++;
    return names[i] != NULL;
}

static const char *text_of(json_t *event, const char *key)
{
    const char *s = json_string_value(json_object_get(event, key));
    return s ? s : "";
}

/* Add an event of the trace to its part: for "h.11 forward" it is "blocks forward". Return 1 if it
 * is an update, the last part of a step. */
static unsigned add_event(step_result *r, json_t *event)
{
    char part[sizeof r->parts->name];
    const char *name = text_of(event, "name");
    size_t at = 2;
    if (!is_part(text_of(event, "cat"))) return 0;
    while (strncmp(name, "h.", 2) == 0 && isdigit((unsigned char)name[at])) at++;
    int block = at > 2 && name[at] == ' ';
    snprintf(part, sizeof part, "%s%s", block ? "blocks" : "", block ? name + at : name);
    step_part *p = find_part(r, part);
    if (p) p->ms += json_number_value(json_object_get(event, "dur")) / 1e3;
    return strcmp(part, "update") == 0;
}

/* Set the parts from a trace file of some steps on a CPU. */
static int read_parts(step_result *r, const char *path, sgt_error *err)
{
    json_error_t why;
    json_t *top = json_load_file(path, 0, &why), *events = json_object_get(top, "traceEvents"), *e;
    size_t i;
    unsigned steps = 0;
    json_array_foreach(events, i, e) steps += add_event(r, e);
    json_decref(top);
    if (!steps) return sgt_fail(err, SGT_EIO, "%s: not a trace of steps: %s", path, why.text);
    divide_parts(r, steps);
    return SGT_OK;
}

/* ---- the kernels of a step ---- */

/* What CUPTI recorded of some steps. Copies and fills are parts too. */
typedef struct spans {
    step_result *r;
    struct interval {
        uint64_t start, end; /* nanoseconds */
    } * of;
    size_t count, room;
    int lost; /* 1: memory or room for names ran out */
} spans;

static void add_span(void *ctx, const sgt_cupti_span *s)
{
    spans *x = ctx;
    if (!s->on_device || strcmp(s->category, "range") == 0) return;
    step_part *part = find_part(x->r, s->label ? s->label : s->name);
    if (x->count == x->room) {
        size_t room = x->room ? 2 * x->room : 1024;
        struct interval *more = realloc(x->of, room * sizeof *more);
        if (more) x->of = more, x->room = room;
    }
    if (!part || x->count == x->room) {
        x->lost = 1;
        return;
    }
    x->of[x->count++] = (struct interval){s->start, s->end};
    part->ms += (double)(s->end - s->start) * 1e-6;
    part->launches++;
    part->bytes += s->bytes;
    part->flops += s->flops;
}

static int by_start(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static int by_ms(const void *a, const void *b)
{
    const step_part *x = a, *y = b;
    return x->ms > y->ms ? -1 : x->ms < y->ms;
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

/* Make the table of kernels. Its parts and the idle time add up to the step, less the time in which
 * two kernels ran at once. */
static int finish_kernels(spans *x, unsigned steps, sgt_error *err)
{
    step_result *r = x->r;
    if (x->count) qsort(x->of, x->count, sizeof *x->of, by_start);
    r->idle_ms = sum_gaps(x, &r->parts_ms) / steps;
    r->parts_ms /= steps;
    divide_parts(r, steps);
    qsort(r->parts, r->part_count, sizeof *r->parts, by_ms);
    free(x->of);
    return x->lost ? sgt_fail(err, SGT_ENOMEM, "no room for a step's kernels") : SGT_OK;
}

/* Run more steps while CUPTI records them, and make the table of their kernels. */
static int record(measurement *m, uint64_t from, sgt_error *err)
{
    sgt_cupti_counts counts = {0};
    spans x = {.r = m->r};
    unsigned steps = m->recorded;
    int rc = m->calls->begin(m->cupti, err);
    if (rc < 0) return rc;
    rc = run_steps(m, from, from + steps, err);
    int ended = m->calls->end(m->cupti, add_span, &x, &counts, rc == SGT_OK ? err : NULL);
    if (rc == SGT_OK) rc = ended;
    int filled = finish_kernels(&x, steps, rc == SGT_OK ? err : NULL);
    if (rc == SGT_OK) rc = filled;
    if (rc == SGT_OK && counts.lost)
        rc = sgt_fail(err, SGT_EIO, "CUPTI lost %llu records", (unsigned long long)counts.lost);
    if (rc == SGT_OK) m->r->seen_step = (unsigned)(counts.kernels / steps);
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
    uint64_t from = m->run->warmup + m->run->steps;
    if (m->run->parts) return record(m, from, err);
    if (open_cupti(m, NULL) < 0) return SGT_OK;
    int rc = record(m, from, &why);
    if (rc == SGT_ESTOPPED) return sgt_fail(err, rc, "%s", why.text);
    if (rc < 0) sgt_say(&m->o->notice, "kernels of a step were not counted: %s", why.text);
    return SGT_OK;
}

static void describe(const measurement *m)
{
    step_result *r = m->r;
    const sgt_backend *b = m->b;
    sgt_memory_kind kinds[SGT_MEMORY_KINDS];
    size_t n = b->memory(b, kinds);
    snprintf(r->device, sizeof r->device, "%s", b->name);
    snprintf(r->level, sizeof r->level, "%s", b->level);
    snprintf(r->library, sizeof r->library, "%s", b->library);
    for (size_t i = 0; i < n; i++) r->bytes += kinds[i].bytes;
    r->peak_bytes = b->memory_total ? r->bytes : sgt_memory_peak();
    r->total_bytes = b->memory_total ? b->memory_total : sgt_memory_total();
    r->ms = bench_median(m->ms + m->run->warmup, m->run->steps);
    r->wait_ms = bench_median(m->wait + m->run->warmup, m->run->steps);
    r->tokens_per_s = (double)m->o->batch * m->o->seq * m->accum / r->ms * 1e3;
    r->flops = r->tokens_per_s * sgt_flops_per_token(&m->o->model, m->o->seq);
    /* as in training, a step that is faster than the measured peak raises the peak */
    r->peak_flops = b->peak_flops > 0 && r->flops > b->peak_flops ? r->flops : b->peak_flops;
    r->datasheet_flops = b->datasheet_flops;
    r->launches_forward = b->launches_forward;
    r->launches_step = b->launches_step;
}

/* Open what --parts needs: with CUDA, CUPTI, before any graph is captured; on a CPU, a trace file,
 * which is read and removed when the steps have ended. */
static int open_parts(measurement *m, sgt_error *err)
{
    if (!m->run->parts) return SGT_OK;
    if (m->recorded) return open_cupti(m, err);
    snprintf(m->path, sizeof m->path, "/tmp/sgt-bench.%ld.json", (long)getpid());
    sgt_trace_options o = {.steps = m->run->warmup + m->run->steps};
    return sgt_trace_open(&m->trace, m->path, &o, err);
}

static int open_all(measurement *m, sgt_error *err)
{
    double began = sgt_now();
    uint64_t micro_steps = (uint64_t)m->accum * (m->run->warmup + m->run->steps + m->recorded);
    int rc = open_parts(m, err);
    sgt_backend_options o = *m->o;
    o.trace = m->trace;
    if (rc == SGT_OK) rc = sgt_device_backend(&m->b, m->run->device, &o, err);
    if (rc == SGT_OK) rc = sgt_init_parameters(m->b, &m->o->model, 1, m->o->threads, err);
    m->r->open_s = sgt_now() - began;
    return rc == SGT_OK ? bench_rows_open(m->run->rows, m->b, micro_steps, err) : rc;
}

int bench_step_measure(step_result *r, const step_run *run, sgt_error *err)
{
    unsigned steps = run->warmup + run->steps;
    int cuda = strcmp(run->device, "cuda") == 0;
    measurement m = {.run = run,
                     .o = run->backend,
                     .r = r,
                     .recorded = cuda ? run->parts ? RECORDED : 1 : 0,
                     .accum = run->backend->accum ? run->backend->accum : 1};
    *r = (step_result){.steps = run->steps};
    m.ms = calloc(steps + m.recorded, sizeof *m.ms);
    m.wait = calloc(steps + m.recorded, sizeof *m.wait);
    int rc = m.ms && m.wait ? open_all(&m, err) : sgt_fail_memory(err, NULL);
    if (rc == SGT_OK) rc = run_steps(&m, 0, steps, err);
    if (rc == SGT_OK) rc = sgt_trace_finish(m.trace, err);
    if (rc == SGT_OK) describe(&m);
    if (rc == SGT_OK && m.recorded) rc = record_kernels(&m, err);
    if (m.b) bench_rows_close(run->rows);
    if (m.b) m.b->close(m.b);
    if (m.cupti) m.calls->close(m.cupti);
    sgt_trace_close(m.trace);
    if (rc == SGT_OK && m.trace) rc = read_parts(r, m.path, err);
    if (m.trace) unlink(m.path);
    free(m.ms);
    free(m.wait);
    return rc;
}

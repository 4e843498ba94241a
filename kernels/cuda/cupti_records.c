/* cupti_records.c: converts CUPTI's records to spans in three passes. The first counts the records
 * of each sort, the second collects references to them, and the third interprets them, once all
 * calls and ranges are known. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cupti_parts.h"

#define NAME 256 /* bytes of a name or a track */
/* most host threads that get their own track; further ones share the last track */
#define THREADS 64

typedef struct pair {
    uint64_t key, value;
} pair;

/* A kernel, copy or fill. */
typedef struct work {
    const sgt_cupti_record *record;
    uint64_t start, end, node;
    uint32_t device, stream, correlation;
    sgt_cupti_mark mark;
} work;

typedef struct reader {
    const sgt_cupti_records *r;
    void (*show)(void *ctx, const sgt_cupti_span *s);
    void *ctx;
    sgt_cupti_counts *counts;
    work *works;
    const sgt_cupti_call **calls;
    const sgt_cupti_marker **markers;
    pair *ranges;     /* correlation → number of the range, and that of the label times 2^32 */
    uint64_t *called; /* correlations of runtime calls, sorted */
    uint64_t *worked; /* correlations of kernels, copies and fills, sorted */
    size_t work_count, call_count, marker_count, range_count, called_count;
    size_t work_room, call_room, marker_room, range_room; /* counted by the first pass */
    uint32_t threads[THREADS];
    size_t thread_count;
} reader;

/* ---- names ---- */

/* Read the next <length><identifier> of a mangled name into *part and *n. Return the position after
 * it, or NULL if there is none. */
static const char *source_name(const char *s, const char **part, size_t *n)
{
    size_t length = 0;
    if (*s < '1' || *s > '9') return NULL;
    while (*s >= '0' && *s <= '9' && length < 4096) length = 10 * length + (size_t)(*s++ - '0');
    if (strnlen(s, length) < length) return NULL;
    *part = s;
    *n = length;
    return s + length;
}

char *sgt_cupti_short_name(char *out, size_t size, const char *name)
{
    size_t at = 0, n;
    const char *part, *s = name;
    if (strncmp(s, "_Z", 2) == 0) {
        s += 2;
        if (*s == 'L') s++; /* static */
        if (*s == 'N') s++; /* nested: the enclosing names come first */
        while ((s = source_name(s, &part, &n))) {
            if (n >= 10 && strncmp(part, "_GLOBAL__N", 10) == 0) continue;
            int got = snprintf(out + at, size - at, "%s%.*s", at ? "::" : "", (int)n, part);
            if (got < 0 || (size_t)got >= size - at) break;
            at += (size_t)got;
        }
    }
    if (!at) snprintf(out, size, "%s", name);
    return out;
}

/* Write the name of a host call, without a version like the one of "cudaStreamSynchronize_v3020"
 * and without "_ptsz". */
static void call_name(char *out, const reader *d, const sgt_cupti_call *c)
{
    const char *name = NULL;
    sgt_cupti_domain domain =
        c->kind == SGT_CUPTI_RUNTIME ? SGT_CUPTI_DOMAIN_RUNTIME : SGT_CUPTI_DOMAIN_DRIVER;
    if (d->r->api->callback_name(domain, c->callback, &name) != SGT_CUPTI_SUCCESS || !name)
        name = "call";
    snprintf(out, NAME, "%s", name);
    char *end = strstr(out, "_ptsz");
    if (end) *end = 0;
    end = strrchr(out, '_');
    if (end && end[1] == 'v' && end[2] && strspn(end + 2, "0123456789") == strlen(end + 2))
        *end = 0;
}

static int waits(const char *name)
{
    return strstr(name, "Synchronize") || strcmp(name, "cudaMemcpy") == 0;
}

/* ---- reading ---- */

static void add_work(reader *d, const sgt_cupti_record *record, uint64_t start, uint64_t end,
                     uint32_t device, uint32_t stream, uint32_t correlation, uint64_t node)
{
    if (start && end >= start && d->work_count < d->work_room)
        d->works[d->work_count++] =
            (work){record, start, end, node, device, stream, correlation, {0}};
    else d->counts->lost++;
}

static void count_record(reader *d, const sgt_cupti_record *record)
{
    switch (record->kind) {
    case SGT_CUPTI_KERNEL: d->counts->kernels++, d->work_room++; break;
    case SGT_CUPTI_MEMCPY:
    case SGT_CUPTI_MEMSET: d->work_room++; break;
    case SGT_CUPTI_RUNTIME:
    case SGT_CUPTI_DRIVER: d->call_room++; break;
    case SGT_CUPTI_MARKER: d->marker_room++; break;
    case SGT_CUPTI_EXTERNAL_CORRELATION: d->range_room++; break;
    default: break;
    }
}

static void read_record(reader *d, const sgt_cupti_record *record)
{
    const sgt_cupti_kernel *k = (const void *)record;
    const sgt_cupti_copy *c = (const void *)record;
    const sgt_cupti_fill *f = (const void *)record;
    const sgt_cupti_correlation *e = (const void *)record;
    switch (record->kind) {
    case SGT_CUPTI_KERNEL:
        add_work(d, record, k->start, k->end, k->device, k->stream, k->correlation, k->node);
        break;
    case SGT_CUPTI_MEMCPY:
        add_work(d, record, c->start, c->end, c->device, c->stream, c->correlation, c->node);
        break;
    case SGT_CUPTI_MEMSET:
        add_work(d, record, f->start, f->end, f->device, f->stream, f->correlation, f->node);
        break;
    case SGT_CUPTI_RUNTIME:
        d->called[d->called_count++] = ((const sgt_cupti_call *)(const void *)record)->correlation;
        /* fall through */
    case SGT_CUPTI_DRIVER: d->calls[d->call_count++] = (const void *)record; break;
    case SGT_CUPTI_MARKER: d->markers[d->marker_count++] = (const void *)record; break;
    case SGT_CUPTI_EXTERNAL_CORRELATION:
        if (e->external_kind == SGT_CUPTI_CUSTOM0 && (uint32_t)e->external <= d->r->name_count &&
            e->external >> 32 <= d->r->name_count)
            d->ranges[d->range_count++] = (pair){e->correlation, e->external};
        break;
    default: break;
    }
}

static void for_each(reader *d, void (*f)(reader *d, const sgt_cupti_record *record))
{
    for (sgt_cupti_buffer *b = d->r->first; b; b = b->next) {
        sgt_cupti_record *record = NULL;
        while (d->r->api->next_record(b->data, b->valid, &record) == SGT_CUPTI_SUCCESS && record)
            f(d, record);
    }
}

/* ---- looking up ---- */

static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int by_place(const void *a, const void *b)
{
    const work *x = a, *y = b;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    if (x->stream != y->stream) return x->stream < y->stream ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

static int has(const uint64_t *keys, size_t n, uint64_t key)
{
    return n && bsearch(&key, keys, n, sizeof *keys, by_key) != NULL;
}

/* Sort n structures by their first field, a uint64_t key. */
static void sort_keys(void *p, size_t n, size_t size)
{
    if (n) qsort(p, n, size, by_key);
}

/* Return the mark of a kernel, copy or fill. Those of a graph are found by their node, because they
 * all have the correlation of the call that launched the graph. */
static sgt_cupti_mark mark_of(const reader *d, const work *w)
{
    const sgt_cupti_records *r = d->r;
    if (w->node) {
        const sgt_cupti_marked_node *n =
            r->node_count ? bsearch(&w->node, r->nodes, r->node_count, sizeof *r->nodes, by_key)
                          : NULL;
        return n ? n->mark : (sgt_cupti_mark){0};
    }
    uint64_t key = w->correlation;
    const pair *p =
        d->range_count ? bsearch(&key, d->ranges, d->range_count, sizeof *d->ranges, by_key) : NULL;
    uint64_t value = p ? p->value : 0;
    return (sgt_cupti_mark){.range = (uint32_t)value, .label = (uint32_t)(value >> 32)};
}

static void prepare(reader *d)
{
    sort_keys(d->ranges, d->range_count, sizeof *d->ranges);
    sort_keys(d->r->nodes, d->r->node_count, sizeof *d->r->nodes);
    sort_keys(d->called, d->called_count, sizeof *d->called);
    for (size_t i = 0; i < d->work_count; i++) {
        d->worked[i] = d->works[i].correlation;
        d->works[i].mark = mark_of(d, &d->works[i]);
    }
    sort_keys(d->worked, d->work_count, sizeof *d->worked);
    if (d->work_count) qsort(d->works, d->work_count, sizeof *d->works, by_place);
}

/* ---- reporting spans ---- */

static void describe_kernel(sgt_cupti_span *s, char *name, const sgt_cupti_kernel *k)
{
    s->name = sgt_cupti_short_name(name, NAME, k->name ? k->name : "kernel");
    s->category = "kernel";
    s->args[0] = (sgt_cupti_arg){"blocks", (uint64_t)k->grid[0] * (uint64_t)k->grid[1] *
                                               (uint64_t)k->grid[2]};
    s->args[1] = (sgt_cupti_arg){"threads", (uint64_t)k->block[0] * (uint64_t)k->block[1] *
                                                (uint64_t)k->block[2]};
    s->args[2] = (sgt_cupti_arg){"registers", k->registers};
    s->args[3] =
        (sgt_cupti_arg){"shared_bytes", (uint64_t)k->static_shared + (uint64_t)k->dynamic_shared};
}

static const char *copy_name(const sgt_cupti_copy *c)
{
    switch (c->copied) {
    case SGT_CUPTI_HOST_TO_DEVICE: return "copy to device";
    case SGT_CUPTI_DEVICE_TO_HOST: return "copy to host";
    case SGT_CUPTI_DEVICE_TO_DEVICE: return "copy on device";
    default: return "copy";
    }
}

static void show_work(const reader *d, const work *w)
{
    char name[NAME], track[NAME];
    const sgt_cupti_copy *c = (const void *)w->record;
    snprintf(track, sizeof track, "GPU %u, stream %u", w->device, w->stream);
    sgt_cupti_span s = {.track = track,
                        .on_device = 1,
                        .start = w->start,
                        .end = w->end,
                        .flow = w->correlation,
                        .label = w->mark.label ? d->r->names[w->mark.label - 1] : NULL,
                        .flops = (double)w->mark.flops,
                        .bytes = (double)w->mark.bytes};
    if (w->record->kind == SGT_CUPTI_KERNEL) {
        describe_kernel(&s, name, (const void *)w->record);
    } else {
        int copy = w->record->kind == SGT_CUPTI_MEMCPY;
        s.name = copy ? copy_name(c) : "fill";
        s.category = copy ? "copy" : "fill";
        /* a field at the same offset in the records of copies and fills */
        s.args[0] = (sgt_cupti_arg){"bytes", c->bytes};
        s.bytes = (double)c->bytes;
    }
    d->show(d->ctx, &s);
}

/* Report consecutive work of one range on a stream as one span, on a track beside the stream's.
 * Kernels of a stream may overlap, if one is launched before its predecessor has ended. */
static void show_ranges(const reader *d)
{
    char track[NAME];
    for (size_t i = 0, next; i < d->work_count; i = next) {
        const work *w = &d->works[i];
        uint64_t end = w->end;
        for (next = i + 1; next < d->work_count; next++) {
            const work *n = &d->works[next];
            if (n->device != w->device || n->stream != w->stream) break;
            if (n->mark.range != w->mark.range) {
                if (n->start < end) end = n->start;
                break;
            }
            if (n->end > end) end = n->end;
        }
        if (!w->mark.range) continue;
        snprintf(track, sizeof track, "GPU %u, stream %u, by range", w->device, w->stream);
        sgt_cupti_span s = {.name = d->r->names[w->mark.range - 1],
                            .category = "range",
                            .track = track,
                            .on_device = 1,
                            .start = w->start,
                            .end = end};
        d->show(d->ctx, &s);
    }
}

static size_t thread_number(reader *d, uint32_t thread)
{
    for (size_t i = 0; i < d->thread_count; i++)
        if (d->threads[i] == thread) return i + 1;
    if (d->thread_count == THREADS) return THREADS;
    d->threads[d->thread_count] = thread;
    return ++d->thread_count;
}

/* Report host calls, except driver calls that were made by a runtime call. */
static void show_calls(reader *d)
{
    char name[NAME], track[NAME];
    for (size_t i = 0; i < d->call_count; i++) {
        const sgt_cupti_call *c = d->calls[i];
        if (c->kind == SGT_CUPTI_DRIVER && has(d->called, d->called_count, c->correlation))
            continue;
        if (!c->start || c->end < c->start) {
            d->counts->lost++;
            continue;
        }
        call_name(name, d, c);
        int waiting = waits(name), starts = has(d->worked, d->work_count, c->correlation);
        snprintf(track, sizeof track, "CUDA calls, thread %zu", thread_number(d, c->thread));
        sgt_cupti_span s = {.name = name,
                            .category = waiting ? "wait" : "call",
                            .track = track,
                            .start = c->start,
                            .end = c->end,
                            .flow = starts ? c->correlation : 0,
                            .starts_flow = starts};
        d->show(d->ctx, &s);
    }
}

static void show_marker(reader *d, const sgt_cupti_marker *from, const sgt_cupti_marker *to)
{
    char name[NAME], track[NAME];
    snprintf(name, sizeof name, "%s", from->name ? from->name : "marker");
    snprintf(track, sizeof track, "NVTX, thread %zu",
             thread_number(d, from->object_kind == SGT_CUPTI_OBJECT_THREAD ? from->thread : 0));
    sgt_cupti_span s = {
        .name = name, .category = "marker", .track = track, .start = from->time, .end = to->time};
    d->show(d->ctx, &s);
}

/* Report markers. The record of an end gives the number of the record of its beginning. The few
 * markers still open are kept at the front of the array. */
static void show_markers(reader *d)
{
    size_t open = 0;
    for (size_t i = 0; i < d->marker_count; i++) {
        const sgt_cupti_marker *m = d->markers[i];
        if (!m->time) continue;
        if (m->flags & SGT_CUPTI_MARKER_START) {
            d->markers[open++] = m;
        } else if (m->flags & SGT_CUPTI_MARKER_END) {
            size_t at = open;
            while (at && d->markers[at - 1]->id != m->id) at--;
            if (!at || m->time < d->markers[at - 1]->time) continue;
            show_marker(d, d->markers[at - 1], m);
            memmove(d->markers + at - 1, d->markers + at, (open - at) * sizeof *d->markers);
            open--;
        }
    }
}

/* ---- all passes ---- */

static int make_room(reader *d, sgt_error *err)
{
    d->works = malloc((d->work_room + 1) * sizeof *d->works);
    d->worked = malloc((d->work_room + 1) * sizeof *d->worked);
    d->calls = malloc((d->call_room + 1) * sizeof *d->calls);
    d->called = malloc((d->call_room + 1) * sizeof *d->called);
    d->markers = malloc((d->marker_room + 1) * sizeof *d->markers);
    d->ranges = malloc((d->range_room + 1) * sizeof *d->ranges);
    if (d->works && d->worked && d->calls && d->called && d->markers && d->ranges) return SGT_OK;
    return sgt_fail_memory(err, "CUPTI");
}

int sgt_cupti_convert(const sgt_cupti_records *r, void (*show)(void *ctx, const sgt_cupti_span *s),
                      void *ctx, sgt_cupti_counts *counts, sgt_error *err)
{
    reader d = {.r = r, .show = show, .ctx = ctx, .counts = counts};
    for_each(&d, count_record);
    int rc = make_room(&d, err);
    if (rc == SGT_OK) {
        for_each(&d, read_record);
        prepare(&d);
        if (show) show_calls(&d);
        for (size_t i = 0; show && i < d.work_count; i++) show_work(&d, &d.works[i]);
        if (show) show_ranges(&d);
        if (show) show_markers(&d);
    }
    free(d.works);
    free(d.worked);
    free(d.calls);
    free(d.called);
    free(d.markers);
    free(d.ranges);
    return rc;
}

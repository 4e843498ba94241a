/* cupti.c: manages CUPTI: its buffers, which kinds of records it makes, and which range is open.
 * Records stay in their buffers until the end, because the record that gives a kernel's range may
 * come in a later buffer than the kernel's own. */
#include "kernels/cuda/cupti.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/cuda/cupti_parts.h"
#include "kernels/cuda/nvtx.h"

#define NAMES 2048 /* most names of ranges and labels; a GPT-2 has 2 per layer and a few more */
#define DEPTH 16

struct sgt_cupti {
    const sgt_cupti_api *api;
    sgt_cupti_subscriber subscriber;
    int subscribed, active; /* active: between sgt_cupti_begin and sgt_cupti_end */
    char *names[NAMES];
    size_t name_count;
    struct {
        sgt_cupti_mark mark;
        int told; /* 1: CUPTI was told of the mark too */
    } stack[DEPTH];
    size_t depth;
    float flops, bytes; /* of the work that is launched next */
    sgt_cupti_marked_node *nodes;
    size_t node_count, node_room;
    sgt_cupti_buffer *full, *spare;
};

/* CUPTI's callbacks for buffers have no context argument, so the open sgt_cupti is kept here. The
 * lock protects it, its lists of buffers and its nodes, because CUPTI has its own thread. */
static struct {
    pthread_mutex_t lock;
    sgt_cupti *open;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int check(const sgt_cupti_api *api, sgt_cupti_result rc, const char *what, sgt_error *err)
{
    const char *text = NULL, *hint = "";
    if (rc == SGT_CUPTI_SUCCESS) return SGT_OK;
    if (rc == SGT_CUPTI_MULTIPLE_SUBSCRIBERS)
        hint = " (another profiler is at work: Nsight, or a debugger)";
    if (rc == SGT_CUPTI_INSUFFICIENT_PRIVILEGES)
        hint = " (the driver lets only root profile on this machine)";
    if (api->result_string(rc, &text) != SGT_CUPTI_SUCCESS || !text) text = "unknown error";
    return sgt_fail(err, SGT_EUNSUPPORTED, "CUPTI: %s: %s%s", what, text, hint);
}

static uint64_t monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- buffers ---- */

static void request(uint8_t **data, size_t *size, size_t *most_records)
{
    pthread_mutex_lock(&process.lock);
    sgt_cupti *p = process.open;
    sgt_cupti_buffer *b = p ? p->spare : NULL;
    if (b) p->spare = b->next;
    else b = malloc(sizeof *b);
    pthread_mutex_unlock(&process.lock);
    *data = b ? b->data : NULL;
    *size = b ? sizeof b->data : 0;
    *most_records = 0; /* 0: as many as fit the buffer */
}

static void complete(sgt_cupti_context context, uint32_t stream, uint8_t *data, size_t size,
                     size_t valid)
{
    (void)context;
    (void)stream;
    (void)size;
    if (!data) return;
    sgt_cupti_buffer *b = (sgt_cupti_buffer *)(void *)data;
    pthread_mutex_lock(&process.lock);
    sgt_cupti *p = process.open;
    if (p) {
        sgt_cupti_buffer **list = valid ? &p->full : &p->spare;
        while (valid && *list) list = &(*list)->next;
        b->valid = valid;
        b->next = valid ? NULL : p->spare;
        *list = b;
    }
    pthread_mutex_unlock(&process.lock);
    if (!p) free(b);
}

static void free_buffers(sgt_cupti_buffer *b)
{
    while (b) {
        sgt_cupti_buffer *next = b->next;
        free(b);
        b = next;
    }
}

/* Make spare buffers, and prefault them, so that the first buffers cost nothing while CUPTI
 * records. */
static int make_spares(sgt_cupti *p, int count, sgt_error *err)
{
    for (int i = 0; i < count; i++) {
        sgt_cupti_buffer *b = malloc(sizeof *b);
        if (!b) return sgt_fail_memory(err, "CUPTI");
        memset(b, 0, sizeof *b);
        b->next = p->spare;
        p->spare = b;
    }
    return SGT_OK;
}

/* ---- ranges ---- */

static uint32_t number_of(sgt_cupti *p, const char *name)
{
    for (size_t i = 0; i < p->name_count; i++)
        if (strcmp(p->names[i], name) == 0) return (uint32_t)i + 1;
    if (p->name_count == NAMES || !(p->names[p->name_count] = strdup(name))) return 0;
    return (uint32_t)++p->name_count;
}

/* Return the mark of the innermost range or label. */
static sgt_cupti_mark innermost(const sgt_cupti *p)
{
    size_t depth = p->depth < DEPTH ? p->depth : DEPTH;
    return depth ? p->stack[depth - 1].mark : (sgt_cupti_mark){0};
}

/* Put a range, or a label within the range around it, on the stack. */
static void push(const char *name, int is_label)
{
    sgt_cupti *p = process.open;
    sgt_nvtx_push(name);
    if (!p) return;
    sgt_cupti_mark mark = innermost(p);
    if (p->depth++ >= DEPTH) return;
    mark.label = is_label ? number_of(p, name) : 0;
    if (!is_label) mark.range = number_of(p, name);
    p->flops = p->bytes = 0;
    p->stack[p->depth - 1].mark = mark;
    p->stack[p->depth - 1].told =
        p->active && p->api->push(SGT_CUPTI_CUSTOM0, mark.range | (uint64_t)mark.label << 32) ==
                         SGT_CUPTI_SUCCESS;
}

void sgt_cupti_push(const char *name) { push(name, 0); }

void sgt_cupti_push_label(const char *name) { push(name, 1); }

void sgt_cupti_pop(void)
{
    sgt_cupti *p = process.open;
    sgt_nvtx_pop();
    if (!p || p->depth == 0 || --p->depth >= DEPTH) return;
    uint64_t last;
    if (p->stack[p->depth].told) p->api->pop(SGT_CUPTI_CUSTOM0, &last);
}

void sgt_cupti_work(double flops, double bytes)
{
    if (!process.open) return;
    process.open->flops = (float)flops;
    process.open->bytes = (float)bytes;
}

static void keep_node(sgt_cupti *p, uint64_t node, sgt_cupti_mark mark)
{
    if (p->node_count == p->node_room) {
        size_t room = p->node_room ? 2 * p->node_room : 1024;
        sgt_cupti_marked_node *more = realloc(p->nodes, room * sizeof *more);
        if (!more) return; /* out of memory: the node's kernels are shown without their mark */
        p->nodes = more;
        p->node_room = room;
    }
    p->nodes[p->node_count++] = (sgt_cupti_marked_node){node, mark};
}

static sgt_cupti_mark mark_of_node(const sgt_cupti *p, uint64_t node)
{
    for (size_t i = p->node_count; i-- > 0;)
        if (p->nodes[i].node == node) return p->nodes[i].mark;
    return (sgt_cupti_mark){0};
}

/* Return the mark of the node that is being made. */
static sgt_cupti_mark take_mark(sgt_cupti *p)
{
    sgt_cupti_mark mark = innermost(p);
    mark.flops = p->flops;
    mark.bytes = p->bytes;
    p->flops = p->bytes = 0;
    return mark;
}

/* Mark a node made by capturing. Making a graph executable copies its nodes. */
static void on_node(void *ctx, sgt_cupti_domain domain, sgt_cupti_callback_id which,
                    const void *data)
{
    sgt_cupti *p = ctx;
    const sgt_cupti_resource *resource = data;
    const sgt_cupti_graph_data *graph = resource->descriptor;
    uint64_t node, original;
    int cloned = which == SGT_CUPTI_NODE_CLONED;
    if (domain != SGT_CUPTI_DOMAIN_RESOURCE || (!cloned && which != SGT_CUPTI_NODE_CREATED) ||
        !graph)
        return;
    if (p->api->node_id(graph->node, &node) != SGT_CUPTI_SUCCESS) return;
    if (cloned && p->api->node_id(graph->original_node, &original) != SGT_CUPTI_SUCCESS) return;
    pthread_mutex_lock(&process.lock);
    keep_node(p, node, cloned ? mark_of_node(p, original) : take_mark(p));
    pthread_mutex_unlock(&process.lock);
}

/* ---- open and close ---- */

static int subscribe(sgt_cupti *p, sgt_error *err)
{
    const sgt_cupti_api *api = p->api;
    int rc = check(api, api->subscribe(&p->subscriber, on_node, p), "subscribing", err);
    if (rc < 0) return rc;
    p->subscribed = 1;
    const sgt_cupti_domain graphs = SGT_CUPTI_DOMAIN_RESOURCE;
    if ((rc = check(api, api->enable_callback(1, p->subscriber, graphs, SGT_CUPTI_NODE_CREATED),
                    "graphs", err)) < 0 ||
        (rc = check(api, api->enable_callback(1, p->subscriber, graphs, SGT_CUPTI_NODE_CLONED),
                    "graphs", err)) < 0 ||
        (rc = check(api, api->set_clock(monotonic), "clock", err)) < 0)
        return rc;
    return check(api, api->set_buffers(request, complete), "buffers", err);
}

int sgt_cupti_open_with(sgt_cupti **out, const sgt_cupti_api *api, sgt_error *err)
{
    sgt_cupti *p = calloc(1, sizeof *p);
    if (!p) return sgt_fail_memory(err, "CUPTI");
    p->api = api;
    pthread_mutex_lock(&process.lock);
    int busy = process.open != NULL;
    if (!busy) process.open = p;
    pthread_mutex_unlock(&process.lock);
    if (busy) {
        free(p);
        return sgt_fail(err, SGT_EUSAGE, "CUPTI: it is open in this process already");
    }
    int rc = make_spares(p, 2, err);
    if (rc == SGT_OK) rc = subscribe(p, err);
    if (rc < 0) {
        sgt_cupti_close(p);
        return rc;
    }
    *out = p;
    return SGT_OK;
}

int sgt_cupti_open(sgt_cupti **out, sgt_error *err)
{
    const sgt_cupti_api *api = sgt_cupti_load(err);
    return api ? sgt_cupti_open_with(out, api, err) : SGT_EUNSUPPORTED;
}

/* ---- begin and end ---- */

/* The kinds of records. Markers, the last kind, need NVTX, so the recording goes ahead if they cannot
 * be switched on. */
static const sgt_cupti_kind kinds[] = {SGT_CUPTI_KERNEL, SGT_CUPTI_MEMCPY,
                                       SGT_CUPTI_MEMSET, SGT_CUPTI_RUNTIME,
                                       SGT_CUPTI_DRIVER, SGT_CUPTI_EXTERNAL_CORRELATION,
                                       SGT_CUPTI_MARKER};
enum { NEEDED = 6, KINDS = sizeof kinds / sizeof *kinds };

static int disable(const sgt_cupti *p, size_t count, sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t i = count; i-- > 0;) {
        int got = check(p->api, p->api->disable(kinds[i]), "switching off",
                        rc == SGT_OK && i < NEEDED ? err : NULL);
        if (rc == SGT_OK && i < NEEDED) rc = got;
    }
    return rc;
}

int sgt_cupti_begin(sgt_cupti *p, sgt_error *err)
{
    size_t dropped;
    if (p->active) return sgt_fail(err, SGT_EUSAGE, "CUPTI: begun twice");
    p->api->dropped(NULL, 0, &dropped); /* this call resets the count to 0 */
    for (size_t i = 0; i < KINDS; i++) {
        int rc = check(p->api, p->api->enable(kinds[i]), "switching on", err);
        if (rc < 0 && i < NEEDED) {
            disable(p, i, NULL);
            return rc;
        }
    }
    p->active = 1;
    return SGT_OK;
}

static sgt_cupti_buffer *take_full(sgt_cupti *p)
{
    pthread_mutex_lock(&process.lock);
    sgt_cupti_buffer *first = p->full;
    p->full = NULL;
    pthread_mutex_unlock(&process.lock);
    return first;
}

int sgt_cupti_end(sgt_cupti *p, void (*show)(void *ctx, const sgt_cupti_span *s), void *ctx,
                  sgt_cupti_counts *counts, sgt_error *err)
{
    sgt_cupti_counts c = {0};
    size_t dropped = 0;
    if (!p->active) return sgt_fail(err, SGT_EUSAGE, "CUPTI: ended before it began");
    p->active = 0;
    int rc = disable(p, KINDS, err);
    int flushed = check(p->api, p->api->flush(SGT_CUPTI_FLUSH_FORCED), "collecting",
                        rc == SGT_OK ? err : NULL);
    if (rc == SGT_OK) rc = flushed;
    if (p->api->dropped(NULL, 0, &dropped) == SGT_CUPTI_SUCCESS) c.lost = dropped;
    sgt_cupti_buffer *first = take_full(p);
    sgt_cupti_records r = {p->api, first, p->names, p->name_count, p->nodes, p->node_count};
    if (rc == SGT_OK) rc = sgt_cupti_convert(&r, show, ctx, &c, err);
    free_buffers(first);
    if (counts) *counts = c;
    return rc;
}

/* A buffer that CUPTI still holds is freed when CUPTI returns it later. */
void sgt_cupti_close(sgt_cupti *p)
{
    if (!p) return;
    if (p->active) sgt_cupti_end(p, NULL, NULL, NULL, NULL);
    if (p->subscribed) p->api->unsubscribe(p->subscriber);
    pthread_mutex_lock(&process.lock);
    process.open = NULL;
    pthread_mutex_unlock(&process.lock);
    free_buffers(p->full);
    free_buffers(p->spare);
    for (size_t i = 0; i < p->name_count; i++) free(p->names[i]);
    free(p->nodes);
    free(p);
}

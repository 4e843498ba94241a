/* cupti.c: loads CUPTI, selects which activities it records, and shows the records. A range is a
 * named part of a step. For each node of a CUDA graph, cupti.c remembers the range in which the
 * node was created. When the recording ends, it adds these ranges to the records of the nodes'
 * kernels. */
#include "kernels/cuda/cupti.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/clock.h"
#include "loader/base/library.h"
#include "loader/base/memory.h"

/* size of a record buffer in bytes, enough for about 10,000 kernels */
#define BUFFER ((size_t)2 << 20)
#define DEPTH 8
#define NAME 256 /* maximum size of a kernel's name in bytes */

/* Description of the work that the program launches next: the range and the label in which the work
 * is launched, and its cost. */
typedef struct mark {
    char range[32];      /* "": none */
    const char *label;   /* NULL: none */
    double flops, bytes; /* 0: unknown */
} mark;

/* A node of a CUDA graph, with the mark (range, label and cost) that applied when it was created.
 * When the graph runs, CUPTI records only the node's id. This id is used to find the mark. */
typedef struct node {
    uint64_t id;
    mark mark;
} node;

/* A kernel, copy or fill as CUPTI recorded it. `node`: id of the CUDA graph node that launched it,
 * or 0 if no graph launched it. When the recording ends, the mark (range, label and cost) of the
 * node is added to k. */
typedef struct record {
    sgt_cupti_kernel k;
    uint64_t node;
} record;

struct sgt_cupti {
    sgt_cupti_subscriber subscriber;
    /* Stack of the open ranges and labels. stack[i] is the mark at depth i, and stack[depth] is the
     * mark that applies now. Only stack[depth] has a cost (flops and bytes): the cost of the work
     * that is launched next. */
    mark stack[DEPTH];
    size_t depth;
    node *nodes;
    size_t node_count, node_room;
    record *records;
    /* count: number of elements of `records`; room: number of elements that it has room for; lost:
     * number of kernels, copies and fills that are missing from it, because their times are not
     * valid or memory ran out */
    size_t count, room, lost;
};

/* CUPTI's buffer callbacks have no context argument, so they find the open sgt_cupti here. CUPTI
 * calls these callbacks from a thread of its own. Therefore a lock protects `open` and the records
 * of the open sgt_cupti. */
static struct {
    pthread_mutex_t lock;
    sgt_cupti *open;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the library ---- */

/* Names of the library, newest version first. sgt uses only functions that both versions have. The
 * full paths lead to the CUDA toolkit's folders, which the dynamic linker does not search. */
static const char *const names[] = {"libcupti.so.13",
                                    "libcupti.so.12",
                                    "/usr/local/cuda/lib64/libcupti.so.13",
                                    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
                                    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12",
                                    NULL};

static sgt_cupti_api api;

static const sgt_symbol symbols[] = {{"cuptiGetVersion", &api.version},
                                     {"cuptiGetResultString", &api.result_string},
                                     {"cuptiSubscribe", &api.subscribe},
                                     {"cuptiUnsubscribe", &api.unsubscribe},
                                     {"cuptiEnableCallback", &api.enable_callback},
                                     {"cuptiGetGraphNodeId", &api.node_id},
                                     {"cuptiActivityRegisterTimestampCallback", &api.set_clock},
                                     {"cuptiActivityRegisterCallbacks", &api.set_buffers},
                                     {"cuptiActivityEnable", &api.enable},
                                     {"cuptiActivityDisable", &api.disable},
                                     {"cuptiActivityFlushAll", &api.flush},
                                     {"cuptiActivityGetNextRecord", &api.next_record},
                                     {"cuptiActivityGetNumDroppedRecords", &api.dropped},
                                     {NULL, NULL}};
_Static_assert(sizeof symbols / sizeof *symbols == sizeof api / sizeof(void *) + 1,
               "a function a member");

static sgt_library library = {
    .what = "CUPTI",
    .names = names,
    .symbols = symbols,
    .install = "it comes with CUDA 12.8 or newer; name its folder in LD_LIBRARY_PATH",
    .version = "install CUPTI of CUDA 12.8 or newer",
    .lock = PTHREAD_MUTEX_INITIALIZER};

uint32_t sgt_cupti_version(void)
{
    uint32_t version = 0;
    if (sgt_library_load(&library, NULL) == SGT_OK) api.version(&version);
    return version;
}

static int check(sgt_cupti_result rc, const char *what, sgt_error *err)
{
    const char *text = NULL, *hint = "";
    if (rc == SGT_CUPTI_SUCCESS) return SGT_OK;
    if (rc == SGT_CUPTI_MULTIPLE_SUBSCRIBERS)
        hint = " (end the other profiler or debugger that uses the GPU, such as Nsight)";
    if (rc == SGT_CUPTI_INSUFFICIENT_PRIVILEGES)
        hint = " (the driver lets only root profile: run as root)";
    if (api.result_string(rc, &text) != SGT_CUPTI_SUCCESS || !text) text = "unknown error";
    return sgt_fail(err, SGT_EUNSUPPORTED, "CUPTI: %s: %s%s", what, text, hint);
}

static uint64_t monotonic(void) { return (uint64_t)(1e9 * sgt_now()); }

/* ---- records, which CUPTI writes to buffers ---- */

static void request(uint8_t **data, size_t *size, size_t *most_records)
{
    *data = malloc(BUFFER);
    *size = *data ? BUFFER : 0;
    *most_records = 0; /* no limit: as many records as fit in the buffer */
}

static record read_record(const sgt_cupti_record *from)
{
    static const char *const copies[] = {[SGT_CUPTI_HOST_TO_DEVICE] = "copy to device",
                                         [SGT_CUPTI_DEVICE_TO_HOST] = "copy to host",
                                         [SGT_CUPTI_DEVICE_TO_DEVICE] = "copy on device"};
    const sgt_cupti_launch *l = (const void *)from;
    const sgt_cupti_move *m = (const void *)from;
    if (from->kind == SGT_CUPTI_KERNEL)
        return (record){.k = {.name = l->name ? l->name : "kernel",
                              .category = "kernel",
                              .device = l->device,
                              .stream = l->stream,
                              .start = l->start,
                              .end = l->end},
                        .node = l->node};
    int copy = from->kind == SGT_CUPTI_MEMCPY;
    const char *name = m->direction < sizeof copies / sizeof *copies ? copies[m->direction] : NULL;
    return (record){.k = {.name = !copy  ? "fill"
                                  : name ? name
                                         : "copy",
                          .category = copy ? "copy" : "fill",
                          .device = m->device,
                          .stream = m->stream,
                          .start = m->start,
                          .end = m->end,
                          .bytes = (double)m->bytes},
                    .node = m->node};
}

static void add_record(const record *r)
{
    pthread_mutex_lock(&process.lock);
    sgt_cupti *p = process.open;
    int valid = r->k.start && r->k.end >= r->k.start;
    if (p && valid &&
        sgt_reserve(&p->records, &p->room, p->count + 1, sizeof *p->records, "", NULL) == SGT_OK)
        p->records[p->count++] = *r;
    else if (p) p->lost++;
    pthread_mutex_unlock(&process.lock);
}

/* Read the records in a buffer, and free the buffer. Do not call CUPTI while holding our lock:
 * CUPTI can call this function while it holds a lock of its own, so that both threads would wait
 * forever. */
static void complete(sgt_cupti_context context, uint32_t stream, uint8_t *data, size_t size,
                     size_t valid)
{
    (void)context, (void)stream, (void)size;
    sgt_cupti_record *from = NULL;
    while (data && api.next_record(data, valid, &from) == SGT_CUPTI_SUCCESS && from) {
        if (from->kind != SGT_CUPTI_KERNEL && from->kind != SGT_CUPTI_MEMCPY &&
            from->kind != SGT_CUPTI_MEMSET)
            continue;
        record r = read_record(from);
        add_record(&r);
    }
    free(data);
}

/* ---- ranges ---- */

/* Begin a range. If `range` is NULL, begin a label within the enclosing range instead. */
static void push(const char *range, const char *label)
{
    sgt_cupti *p = process.open;
    if (!p) return;
    assert(p->depth + 1 < DEPTH);
    mark *outer = &p->stack[p->depth++], *m = outer + 1;
    outer->flops = outer->bytes = 0;
    *m = *outer;
    m->label = label;
    if (range) snprintf(m->range, sizeof m->range, "%s", range);
}

void sgt_cupti_push(const char *name) { push(name, NULL); }

void sgt_cupti_push_label(const char *name) { push(NULL, name); }

void sgt_cupti_pop(void)
{
    sgt_cupti *p = process.open;
    if (p && p->depth) p->depth--;
}

void sgt_cupti_work(double flops, double bytes)
{
    sgt_cupti *p = process.open;
    if (!p) return;
    p->stack[p->depth].flops = flops;
    p->stack[p->depth].bytes = bytes;
}

/* Return the mark of the graph node with this id, or NULL if there is no such node. Search the
 * newest nodes first, because CUPTI can give a new node the id of a destroyed one. */
static const mark *find_mark(const sgt_cupti *p, uint64_t id)
{
    for (size_t i = p->node_count; i-- > 0;)
        if (p->nodes[i].id == id) return &p->nodes[i].mark;
    return NULL;
}

/* Remember the mark of a new graph node. CUPTI calls this function, in the thread that uses the
 * device, when a node is created during a capture, and when a node is copied because its graph is
 * made executable. If memory runs out, the node's kernels are shown without a mark. */
static void on_node(void *ctx, sgt_cupti_domain domain, sgt_cupti_callback_id which,
                    const void *data)
{
    sgt_cupti *p = ctx;
    const sgt_cupti_graph_data *graph = ((const sgt_cupti_resource *)data)->descriptor;
    int created = which == SGT_CUPTI_NODE_CREATED;
    uint64_t original;
    node n = {0};
    if (domain != SGT_CUPTI_DOMAIN_RESOURCE || !graph ||
        api.node_id(graph->node, &n.id) != SGT_CUPTI_SUCCESS ||
        (!created && api.node_id(graph->original_node, &original) != SGT_CUPTI_SUCCESS))
        return;
    const mark *m = created ? &p->stack[p->depth] : find_mark(p, original);
    if (m) n.mark = *m;
    if (created) sgt_cupti_work(0, 0);
    if (sgt_reserve(&p->nodes, &p->node_room, p->node_count + 1, sizeof *p->nodes, "", NULL) == 0)
        p->nodes[p->node_count++] = n;
}

/* ---- open and close ---- */

static const sgt_cupti_kind kinds[] = {SGT_CUPTI_KERNEL, SGT_CUPTI_MEMCPY, SGT_CUPTI_MEMSET};
enum { KINDS = sizeof kinds / sizeof *kinds };

static int subscribe(sgt_cupti *p, sgt_error *err)
{
    const sgt_cupti_domain graphs = SGT_CUPTI_DOMAIN_RESOURCE;
    int rc = check(api.subscribe(&p->subscriber, on_node, p), "subscribing", err);
    if (rc < 0) p->subscriber = NULL;
    if (rc < 0 ||
        (rc = check(api.enable_callback(1, p->subscriber, graphs, SGT_CUPTI_NODE_CREATED), "graphs",
                    err)) < 0 ||
        (rc = check(api.enable_callback(1, p->subscriber, graphs, SGT_CUPTI_NODE_CLONED), "graphs",
                    err)) < 0 ||
        (rc = check(api.set_clock(monotonic), "clock", err)) < 0)
        return rc;
    return check(api.set_buffers(request, complete), "buffers", err);
}

int sgt_cupti_open(sgt_cupti **out, sgt_error *err)
{
    int rc = sgt_library_load(&library, err);
    if (rc < 0) return rc;
    if (process.open) return sgt_fail(err, SGT_EUSAGE, "CUPTI: already open in this process");
    sgt_cupti *p = calloc(1, sizeof *p);
    if (!p) return sgt_fail_memory(err, "CUPTI");
    process.open = p;
    rc = subscribe(p, err);
    if (rc < 0) sgt_cupti_close(p);
    else *out = p;
    return rc;
}

/* Stop recording, and collect the buffers that CUPTI still holds. If several calls fail, return the
 * error of the last one. */
static int stop(sgt_error *err)
{
    sgt_cupti_result rc = SGT_CUPTI_SUCCESS, got;
    for (size_t i = 0; i < KINDS; i++)
        if ((got = api.disable(kinds[i])) != SGT_CUPTI_SUCCESS) rc = got;
    if ((got = api.flush(SGT_CUPTI_FLUSH_FORCED)) != SGT_CUPTI_SUCCESS) rc = got;
    return check(rc, "ending the recording", err);
}

/* Close p. If CUPTI returns a buffer after this call, the function `complete` frees the buffer. */
void sgt_cupti_close(sgt_cupti *p)
{
    if (!p) return;
    if (p->subscriber) {
        stop(NULL);
        api.unsubscribe(p->subscriber);
    }
    pthread_mutex_lock(&process.lock);
    process.open = NULL;
    pthread_mutex_unlock(&process.lock);
    free(p->records);
    free(p->nodes);
    free(p);
}

int sgt_cupti_begin(sgt_cupti *p, sgt_error *err)
{
    int rc = SGT_OK;
    /* reading CUPTI's count of lost records resets it to 0 */
    size_t earlier;
    api.dropped(NULL, 0, &earlier);
    pthread_mutex_lock(&process.lock);
    p->count = p->lost = 0;
    pthread_mutex_unlock(&process.lock);
    for (size_t i = 0; i < KINDS && rc == SGT_OK; i++)
        rc = check(api.enable(kinds[i]), "switching on", err);
    if (rc < 0) stop(NULL);
    return rc;
}

/* ---- what is shown ---- */

/* Write the short form of a kernel's name to out. If the name is a mangled C++ name, the short form
 * is the qualified name without template arguments and anonymous namespaces, for example
 * "cutlass::device_kernel". Any other name is copied unchanged. */
static void shorten(char out[NAME], const char *name)
{
    size_t at = 0, n;
    if (strncmp(name, "_Z", 2) == 0) {
        const char *s = name + 2;
        char *part;
        if (*s == 'L') s++; /* static */
        /* 'N' begins a nested name, which lists the enclosing namespaces or classes first */
        if (*s == 'N') s++;
        /* a mangled name is a sequence of <length><identifier>, such as 7cutlass */
        for (; at < NAME && (n = strtoul(s, &part, 10)) && strnlen(part, n) == n; s = part + n)
            if (n < 10 || strncmp(part, "_GLOBAL__N", 10) != 0)
                at += (size_t)snprintf(out + at, NAME - at, "%s%.*s", at ? "::" : "", (int)n, part);
    }
    if (!at) snprintf(out, NAME, "%s", name);
}

static int by_place(const void *a, const void *b)
{
    const sgt_cupti_kernel *x = &((const record *)a)->k, *y = &((const record *)b)->k;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    if (x->stream != y->stream) return x->stream < y->stream ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

static void show_record(const sgt_cupti *p, const record *r,
                        void (*show)(void *ctx, const sgt_cupti_kernel *k), void *ctx)
{
    char name[NAME];
    sgt_cupti_kernel k = r->k;
    const mark *m = find_mark(p, r->node);
    shorten(name, k.name);
    k.name = name;
    if (m) {
        k.range = *m->range ? m->range : NULL;
        k.label = m->label;
        k.flops = m->flops;
        if (!k.bytes) k.bytes = m->bytes;
    }
    show(ctx, &k);
}

int sgt_cupti_end(sgt_cupti *p, void (*show)(void *ctx, const sgt_cupti_kernel *k), void *ctx,
                  sgt_error *err)
{
    size_t dropped = 0;
    int rc = stop(err);
    api.dropped(NULL, 0, &dropped);
    if (p->count) qsort(p->records, p->count, sizeof *p->records, by_place);
    for (size_t i = 0; rc == SGT_OK && show && i < p->count; i++)
        show_record(p, &p->records[i], show, ctx);
    if (rc == SGT_OK && p->lost + dropped)
        return sgt_fail(err, SGT_EIO, "CUPTI: %zu records were lost", p->lost + dropped);
    return rc;
}

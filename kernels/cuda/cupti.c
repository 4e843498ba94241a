/* cupti.c: loads CUPTI, and selects which activities it records. It remembers for each node of a
 * CUDA graph the range in which the node was created. At the end, it converts CUPTI's records to
 * sgt_cupti_kernel structs. */
#include "kernels/cuda/cupti.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "loader/base/library.h"
#include "loader/base/memory.h"

/* size of a record buffer in bytes, enough for about 10,000 kernels */
#define BUFFER ((size_t)2 << 20)
#define DEPTH 8
#define NAME 256 /* maximum size of a kernel's name in bytes */

typedef struct buffer {
    uint8_t data[BUFFER]; /* first member, so that a buffer and its data have the same address */
    struct buffer *next;
    size_t valid;
} buffer;

/* What the program has declared about the work that it launches next: the range and the label in
 * which it is, and its cost. */
typedef struct mark {
    char range[32];      /* "": none */
    const char *label;   /* NULL: none */
    double flops, bytes; /* 0: unknown */
} mark;

/* A node of a CUDA graph, with the mark that applied when the node was created. When the graph
 * runs, CUPTI's records contain only the node's id, by which the mark is found. */
typedef struct node {
    uint64_t id;
    mark mark;
} node;

struct sgt_cupti {
    sgt_cupti_subscriber subscriber;
    /* Stack of the open ranges and labels: stack[i] is the mark that applies at depth i, and
     * stack[depth] applies now. Only stack[depth] has flops and bytes: the cost of the work that is
     * launched next. */
    mark stack[DEPTH + 1];
    size_t depth;
    node *nodes;
    size_t node_count, node_room;
    buffer *full;
};

/* CUPTI's buffer callbacks have no context argument, so they find the open sgt_cupti here. CUPTI
 * calls them from a thread of its own. Therefore a lock protects `open` as well as the lists `full`
 * and `nodes` of the open sgt_cupti. */
static struct {
    pthread_mutex_t lock;
    sgt_cupti *open;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the library ---- */

/* Names of the library, newest version first. sgt uses only functions that both versions have. The
 * full paths are in the toolkit's folders, which the dynamic linker does not search. */
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

static uint64_t monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- buffers, which CUPTI fills with records ---- */

static void request(uint8_t **data, size_t *size, size_t *most_records)
{
    buffer *b = malloc(sizeof *b);
    *data = b ? b->data : NULL;
    *size = b ? sizeof b->data : 0;
    *most_records = 0; /* no limit: as many records as fit in the buffer */
}

static void complete(sgt_cupti_context context, uint32_t stream, uint8_t *data, size_t size,
                     size_t valid)
{
    (void)context;
    (void)stream;
    (void)size;
    buffer *b = (buffer *)(void *)data;
    pthread_mutex_lock(&process.lock);
    sgt_cupti *p = process.open;
    if (p && b) {
        b->valid = valid;
        b->next = p->full;
        p->full = b;
    }
    pthread_mutex_unlock(&process.lock);
    if (!p) free(b);
}

/* Remove from p the list of buffers that CUPTI has filled and returned. Return the list, which the
 * caller must free. */
static buffer *detach_full(sgt_cupti *p)
{
    pthread_mutex_lock(&process.lock);
    buffer *full = p->full;
    p->full = NULL;
    pthread_mutex_unlock(&process.lock);
    return full;
}

static void free_buffers(buffer *b)
{
    for (buffer *next; b; b = next) {
        next = b->next;
        free(b);
    }
}

/* ---- ranges ---- */

static mark *innermost(sgt_cupti *p) { return &p->stack[p->depth < DEPTH ? p->depth : DEPTH]; }

/* Begin a range. If `range` is NULL, begin a label within the enclosing range instead. */
static void push(const char *range, const char *label)
{
    sgt_cupti *p = process.open;
    if (!p) return;
    mark *outer = innermost(p);
    outer->flops = outer->bytes = 0;
    if (p->depth++ >= DEPTH) return;
    mark *m = innermost(p);
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
    if (!process.open) return;
    innermost(process.open)->flops = flops;
    innermost(process.open)->bytes = bytes;
}

/* Return the mark of the node with this id, or NULL if there is none. Search the newest nodes
 * first, because CUPTI may reuse the id of a destroyed node. */
static const mark *find_mark(const sgt_cupti *p, uint64_t id)
{
    for (size_t i = p->node_count; i-- > 0;)
        if (p->nodes[i].id == id) return &p->nodes[i].mark;
    return NULL;
}

/* Remember a node and its mark. If memory runs out, the node's kernels are shown without a mark. */
static void keep_node(sgt_cupti *p, uint64_t id, const mark *m)
{
    node n = {.id = id};
    if (m) n.mark = *m;
    if (sgt_reserve(&p->nodes, &p->node_room, p->node_count + 1, sizeof *p->nodes, "", NULL) == 0)
        p->nodes[p->node_count++] = n;
}

/* Remember the mark of a new graph node. CUPTI calls this when a node is created during a capture.
 * It also calls this when a graph is made executable, because that copies the graph's nodes. */
static void on_node(void *ctx, sgt_cupti_domain domain, sgt_cupti_callback_id which,
                    const void *data)
{
    sgt_cupti *p = ctx;
    const sgt_cupti_graph_data *graph = ((const sgt_cupti_resource *)data)->descriptor;
    uint64_t id, original;
    if (domain != SGT_CUPTI_DOMAIN_RESOURCE || !graph) return;
    /* Do not call CUPTI while holding our lock. `complete` takes the same lock, and CUPTI may call
     * `complete` while holding a lock of its own. */
    if (api.node_id(graph->node, &id) != SGT_CUPTI_SUCCESS) return;
    if (which != SGT_CUPTI_NODE_CREATED &&
        api.node_id(graph->original_node, &original) != SGT_CUPTI_SUCCESS)
        return;
    pthread_mutex_lock(&process.lock);
    if (which == SGT_CUPTI_NODE_CREATED) {
        mark *m = innermost(p);
        keep_node(p, id, m);
        m->flops = m->bytes = 0;
    } else keep_node(p, id, find_mark(p, original));
    pthread_mutex_unlock(&process.lock);
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

/* Stop recording, and collect the buffers that CUPTI still holds. Return the first error. */
static int stop(sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t i = 0; i < KINDS; i++) {
        int got = check(api.disable(kinds[i]), "switching off", rc == SGT_OK ? err : NULL);
        if (rc == SGT_OK) rc = got;
    }
    int got = check(api.flush(SGT_CUPTI_FLUSH_FORCED), "collecting", rc == SGT_OK ? err : NULL);
    return rc == SGT_OK ? got : rc;
}

/* Close p. If CUPTI returns a buffer after this, `complete` frees the buffer. */
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
    free_buffers(detach_full(p));
    free(p->nodes);
    free(p);
}

int sgt_cupti_begin(sgt_cupti *p, sgt_error *err)
{
    size_t dropped;
    int rc = SGT_OK;
    free_buffers(detach_full(p)); /* buffers of an earlier recording that was not ended */
    /* reading CUPTI's count of dropped records resets it to 0 */
    api.dropped(NULL, 0, &dropped);
    for (size_t i = 0; i < KINDS && rc == SGT_OK; i++)
        rc = check(api.enable(kinds[i]), "switching on", err);
    if (rc < 0) stop(NULL);
    return rc;
}

/* ---- records ---- */

/* Read the next <length><identifier> of a mangled name. Set *part and *n to the identifier. Return
 * the position after it, or NULL if there is no identifier. */
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

/* Write the short form of a kernel's name to out. For a mangled name, it is the qualified name
 * without template arguments and anonymous namespaces, for example "cutlass::device_kernel". Any
 * other name is copied unchanged. */
static void shorten(char out[NAME], const char *name)
{
    size_t at = 0, n;
    const char *part, *s = name;
    if (strncmp(s, "_Z", 2) == 0) {
        s += 2;
        if (*s == 'L') s++; /* static */
        /* 'N' begins a nested name, which lists the enclosing namespaces or classes first */
        if (*s == 'N') s++;
        while ((s = source_name(s, &part, &n))) {
            if (n >= 10 && strncmp(part, "_GLOBAL__N", 10) == 0) continue;
            int got = snprintf(out + at, NAME - at, "%s%.*s", at ? "::" : "", (int)n, part);
            if (got < 0 || (size_t)got >= NAME - at) break;
            at += (size_t)got;
        }
    }
    if (!at) snprintf(out, NAME, "%s", name);
}

static const char *copy_name(const sgt_cupti_move *m)
{
    switch (m->direction) {
    case SGT_CUPTI_HOST_TO_DEVICE: return "copy to device";
    case SGT_CUPTI_DEVICE_TO_HOST: return "copy to host";
    case SGT_CUPTI_DEVICE_TO_DEVICE: return "copy on device";
    default: return "copy";
    }
}

static sgt_cupti_kernel read_record(const sgt_cupti *p, const sgt_cupti_record *record)
{
    const sgt_cupti_launch *l = (const void *)record;
    const sgt_cupti_move *m = (const void *)record;
    int launch = record->kind == SGT_CUPTI_KERNEL, copy = record->kind == SGT_CUPTI_MEMCPY;
    const mark none = {0}, *found = find_mark(p, launch ? l->node : m->node);
    if (!found) found = &none;
    sgt_cupti_kernel k = {
        .range = *found->range ? found->range : NULL, .label = found->label, .flops = found->flops};
    if (launch) {
        k.name = l->name ? l->name : "kernel";
        k.category = "kernel";
        k.device = l->device;
        k.stream = l->stream;
        k.start = l->start;
        k.end = l->end;
        k.bytes = found->bytes;
    } else {
        k.name = copy ? copy_name(m) : "fill";
        k.category = copy ? "copy" : "fill";
        k.device = m->device;
        k.stream = m->stream;
        k.start = m->start;
        k.end = m->end;
        k.bytes = (double)m->bytes;
    }
    return k;
}

typedef struct kernels {
    sgt_cupti_kernel *of;
    /* lost: number of kernels, copies and fills that are not passed to the caller, because their
     * recorded times are not valid */
    size_t count, room, lost;
} kernels;

static int read_all(const sgt_cupti *p, buffer *b, kernels *x, sgt_error *err)
{
    for (; b; b = b->next) {
        sgt_cupti_record *record = NULL;
        while (api.next_record(b->data, b->valid, &record) == SGT_CUPTI_SUCCESS && record) {
            if (record->kind != SGT_CUPTI_KERNEL && record->kind != SGT_CUPTI_MEMCPY &&
                record->kind != SGT_CUPTI_MEMSET)
                continue;
            int rc = sgt_reserve(&x->of, &x->room, x->count + 1, sizeof *x->of, "CUPTI", err);
            if (rc < 0) return rc;
            sgt_cupti_kernel k = read_record(p, record);
            if (k.start && k.end >= k.start) x->of[x->count++] = k;
            else x->lost++;
        }
    }
    return SGT_OK;
}

static int by_place(const void *a, const void *b)
{
    const sgt_cupti_kernel *x = a, *y = b;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    if (x->stream != y->stream) return x->stream < y->stream ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

int sgt_cupti_end(sgt_cupti *p, void (*show)(void *ctx, const sgt_cupti_kernel *k), void *ctx,
                  sgt_error *err)
{
    char name[NAME];
    size_t dropped = 0;
    kernels x = {0};
    int rc = stop(err);
    buffer *full = detach_full(p);
    api.dropped(NULL, 0, &dropped);
    if (rc == SGT_OK) rc = read_all(p, full, &x, err);
    if (x.count) qsort(x.of, x.count, sizeof *x.of, by_place);
    for (size_t i = 0; rc == SGT_OK && show && i < x.count; i++) {
        shorten(name, x.of[i].name);
        x.of[i].name = name;
        show(ctx, &x.of[i]);
    }
    free_buffers(full);
    free(x.of);
    if (rc == SGT_OK && x.lost + dropped)
        return sgt_fail(err, SGT_EIO, "CUPTI: %zu records were lost", x.lost + dropped);
    return rc;
}

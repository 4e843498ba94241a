/* trace.c: holds the events of the traced steps, and writes the file. One lock protects everything.
 * It adds about 20 ns to each of a few hundred spans per step, too little to be seen in the
 * trace. */
#include "train/log/trace.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "loader/base/file.h"

#define EVENTS 65536 /* events for which there is room when tracing starts */
#define TRACKS 256
#define NAMES 4096   /* slots of the hash table, of which 3/4 may be used */
#define BUFFER 65536 /* bytes buffered before each write */
/* longest text in the file, in bytes; only mangled kernel names are longer */
#define NAME_SIZE 512

typedef struct event {
    sgt_trace_event e;
    double counter; /* value of a counter; used if e.category is NULL */
} event;

typedef struct row {
    char *name;
    sgt_trace_process process;
} row;

struct sgt_trace {
    char *path;
    sgt_trace_options o;
    sgt_trace_watcher watcher;
    uint64_t from, to; /* traced steps: from .. to - 1 */
    int recording;     /* atomic, because sgt_trace_now reads it without the lock */
    int done;          /* tracing has ended */
    pthread_mutex_t lock;
    event *events;
    size_t count, capacity, before; /* before: count when this step began */
    uint64_t dropped;
    row tracks[TRACKS];
    int track_count;
    char **names; /* hash table of names, with open addressing */
    size_t name_count;
};

/* ---- open and close ---- */

/* Choose the steps to trace: SGT_TRACE_STEPS steps after the first SGT_TRACE_WAIT, like
 * torch.profiler's schedule. A short run waits less, and a very short one traces fewer. */
static void decide_window(sgt_trace *t)
{
    uint64_t steps = t->o.steps > t->o.first ? t->o.steps - t->o.first : 0;
    uint64_t traced = steps < SGT_TRACE_STEPS ? steps : SGT_TRACE_STEPS;
    uint64_t wait = steps - traced < SGT_TRACE_WAIT ? steps - traced : SGT_TRACE_WAIT;
    t->from = t->o.first + wait;
    t->to = t->from + traced;
}

int sgt_trace_open(sgt_trace **out, const char *path, const sgt_trace_options *o, sgt_error *err)
{
    sgt_file *f;
    struct stat st;
    int rc = sgt_file_begin(&f, path, err);
    if (rc < 0) return rc;
    sgt_file_abandon(f);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) /* else found when the file is renamed */
        return sgt_fail(err, SGT_EIO, "%s: is a folder, not a file", path);
    sgt_trace *t = calloc(1, sizeof *t);
    if (t) {
        pthread_mutex_init(&t->lock, NULL);
        t->o = *o;
        t->path = strdup(path);
        t->names = calloc(NAMES, sizeof *t->names);
    }
    if (!t || !t->path || !t->names ||
        sgt_trace_track(t, SGT_TRACE_HOST, "training loop") != SGT_TRACE_LOOP ||
        t->track_count != 1) {
        sgt_trace_close(t);
        return sgt_fail_memory(err, path);
    }
    decide_window(t);
    *out = t;
    return SGT_OK;
}

static void forget_events(sgt_trace *t)
{
    free(t->events);
    t->events = NULL;
    t->count = t->capacity = 0;
}

void sgt_trace_close(sgt_trace *t)
{
    if (!t) return;
    forget_events(t);
    for (int i = 0; i < t->track_count; i++) free(t->tracks[i].name);
    for (size_t i = 0; t->names && i < NAMES; i++) free(t->names[i]);
    free(t->names);
    free(t->path);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

void sgt_trace_watch(sgt_trace *t, const sgt_trace_watcher *w)
{
    if (t) t->watcher = *w;
}

/* ---- recording ---- */

uint64_t sgt_trace_now(const sgt_trace *t)
{
    struct timespec s;
    if (!t || !__atomic_load_n(&t->recording, __ATOMIC_RELAXED)) return 0;
    clock_gettime(CLOCK_MONOTONIC, &s);
    return (uint64_t)s.tv_sec * 1000000000u + (uint64_t)s.tv_nsec;
}

/* Make room for more events, and prefault it, so that no traced step pays for that. */
static void reserve(sgt_trace *t, size_t events)
{
    if (t->capacity - t->count >= events) return;
    size_t wanted = t->count + events;
    /* grow geometrically, so that many small requests stay cheap */
    if (wanted < t->capacity / 2 * 3) wanted = t->capacity / 2 * 3;
    event *p = reallocarray(t->events, wanted, sizeof *p);
    if (!p) return; /* events without room are counted as dropped */
    t->events = p;
    memset(p + t->count, 0, (wanted - t->count) * sizeof *p);
    t->capacity = wanted;
}

static void add(sgt_trace *t, const event *e)
{
    pthread_mutex_lock(&t->lock);
    if (t->recording) {
        reserve(t, 1);
        if (t->count < t->capacity) t->events[t->count++] = *e;
        else t->dropped++;
    }
    pthread_mutex_unlock(&t->lock);
}

void sgt_trace_span(sgt_trace *t, const sgt_trace_event *e)
{
    event copy = {.e = *e};
    uint64_t now = sgt_trace_now(t);
    if (!now) return;
    if (!copy.e.end) copy.e.end = now;
    if (!copy.e.category) copy.e.category = "other";
    if (!copy.e.name) copy.e.name = "";
    if (copy.e.start <= copy.e.end) add(t, &copy);
}

void sgt_trace_counter(sgt_trace *t, const char *name, double value)
{
    event e = {.e = {.name = name}, .counter = value};
    e.e.start = e.e.end = sgt_trace_now(t);
    if (e.e.start && isfinite(value)) add(t, &e);
}

/* ---- names and tracks ---- */

/* Return the slot of `name` in the table, or the free slot where it belongs. */
static char **find_name(const sgt_trace *t, const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (const char *c = name; *c; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    size_t at = hash % NAMES;
    while (t->names[at] && strcmp(t->names[at], name) != 0) at = (at + 1) % NAMES;
    return &t->names[at];
}

const char *sgt_trace_name(sgt_trace *t, const char *name)
{
    if (!t) return "";
    pthread_mutex_lock(&t->lock);
    char **at = find_name(t, name);
    if (!*at && t->name_count < (size_t)NAMES / 4 * 3 && (*at = strdup(name))) t->name_count++;
    const char *found = *at ? *at : "";
    pthread_mutex_unlock(&t->lock);
    return found;
}

static int make_track(sgt_trace *t, sgt_trace_process process, const char *name)
{
    if (t->track_count == TRACKS || !(t->tracks[t->track_count].name = strdup(name)))
        return SGT_TRACE_LOOP;
    t->tracks[t->track_count].process = process;
    return t->track_count++;
}

int sgt_trace_track(sgt_trace *t, sgt_trace_process process, const char *name)
{
    int at = 0;
    if (!t) return SGT_TRACE_LOOP;
    pthread_mutex_lock(&t->lock);
    while (at < t->track_count &&
           (t->tracks[at].process != process || strcmp(t->tracks[at].name, name) != 0))
        at++;
    if (at == t->track_count) at = make_track(t, process, name);
    pthread_mutex_unlock(&t->lock);
    return at;
}

/* ---- the file ---- */

typedef struct writer {
    sgt_file *f;
    sgt_error *err;
    int rc;
    int any; /* 1: an event was written, so the next one needs a comma before it */
    size_t at;
    char buffer[BUFFER];
} writer;

static void flush(writer *w)
{
    if (w->rc == SGT_OK) w->rc = sgt_file_write(w->f, w->buffer, w->at, w->err);
    w->at = 0;
}

static void put(writer *w, const char *fmt, ...) SGT_PRINTF(2, 3);
static void put(writer *w, const char *fmt, ...)
{
    va_list args;
    if (BUFFER - w->at < (size_t)4 * NAME_SIZE) flush(w);
    va_start(args, fmt);
    w->at += (size_t)vsnprintf(w->buffer + w->at, BUFFER - w->at, fmt, args);
    va_end(args);
}

/* Write a JSON string: `before`, then `text`. Control characters and invalid UTF-8 become \xNN; in
 * JSON, that backslash is doubled. */
static void put_text(writer *w, const char *before, const char *text)
{
    char plain[NAME_SIZE];
    sgt_printable(plain, sizeof plain, text);
    put(w, "\"%s", before);
    if (BUFFER - w->at < 2 * sizeof plain) flush(w);
    for (const char *c = plain; *c; c++) {
        if (*c == '"' || *c == '\\') w->buffer[w->at++] = '\\';
        w->buffer[w->at++] = *c;
    }
    put(w, "\"");
}

static uint32_t pid_of(const sgt_trace *t, sgt_trace_process p)
{
    return t->o.rank * SGT_TRACE_PROCESSES + p + 1;
}

static void put_track(writer *w, const sgt_trace *t, int track)
{
    put(w, ",\"pid\":%" PRIu32 ",\"tid\":%d", pid_of(t, t->tracks[track].process), track);
}

/* Write a time in nanoseconds as microseconds, with all digits. */
static void put_time(writer *w, const char *key, uint64_t ns)
{
    put(w, ",\"%s\":%" PRIu64 ".%03" PRIu64, key, ns / 1000, ns % 1000);
}

/* Write the beginning of an event, up to the value of its name. */
static void put_head(writer *w, const char *phase)
{
    put(w, "%s{\"ph\":\"%s\",\"name\":", w->any ? ",\n" : "", phase);
    w->any = 1;
}

static void put_process(writer *w, const sgt_trace *t, sgt_trace_process p)
{
    uint32_t pid = pid_of(t, p);
    put_head(w, "M");
    put(w,
        "\"process_name\",\"pid\":%" PRIu32 ",\"tid\":0,\"args\":{\"name\":\"rank %" PRIu32
        " %s\"}}",
        pid, t->o.rank, p == SGT_TRACE_HOST ? "host" : "device");
    put_head(w, "M");
    put(w,
        "\"process_sort_index\",\"pid\":%" PRIu32 ",\"tid\":0,\"args\":{\"sort_index\":%" PRIu32
        "}}",
        pid, pid);
}

static void put_tracks(writer *w, const sgt_trace *t)
{
    int said[SGT_TRACE_PROCESSES] = {0};
    for (int i = 0; i < t->track_count; i++) {
        if (!said[t->tracks[i].process]++) put_process(w, t, t->tracks[i].process);
        put_head(w, "M");
        put(w, "\"thread_name\"");
        put_track(w, t, i);
        put(w, ",\"args\":{\"name\":");
        put_text(w, "", t->tracks[i].name);
        put(w, "}}");
        put_head(w, "M");
        put(w, "\"thread_sort_index\"");
        put_track(w, t, i);
        put(w, ",\"args\":{\"sort_index\":%d}}", i);
    }
}

static void put_flow(writer *w, const sgt_trace *t, const sgt_trace_event *e, uint64_t base)
{
    put_head(w, e->starts_flow ? "s" : "f");
    put(w, "\"launch\",\"cat\":\"launch\",\"id\":%" PRIu64 "%s", e->flow,
        e->starts_flow ? "" : ",\"bp\":\"e\"");
    put_track(w, t, e->track);
    put_time(w, "ts", e->start - base);
    put(w, "}");
}

static void put_args(writer *w, const sgt_trace_arg *args)
{
    if (!args->key) return;
    put(w, ",\"args\":");
    for (int i = 0; i < SGT_TRACE_ARGS && args[i].key; i++) {
        put(w, i ? "," : "{");
        put_text(w, "", args[i].key);
        put(w, ":%" PRIu64, args[i].value);
    }
    put(w, "}");
}

static void put_span(writer *w, const sgt_trace *t, const sgt_trace_event *e, uint64_t base)
{
    char block[32] = "";
    if (e->layer) snprintf(block, sizeof block, "h.%" PRIu32 " ", e->layer - 1);
    put_head(w, "X");
    put_text(w, block, e->name);
    put(w, ",\"cat\":");
    put_text(w, "", e->category);
    put_track(w, t, e->track);
    put_time(w, "ts", e->start - base);
    put_time(w, "dur", e->end - e->start);
    put_args(w, e->args);
    put(w, "}");
    if (e->flow) put_flow(w, t, e, base);
}

static void put_counter(writer *w, const sgt_trace *t, const event *e, uint64_t base)
{
    put_head(w, "C");
    put_text(w, "", e->e.name);
    put_track(w, t, SGT_TRACE_LOOP);
    put_time(w, "ts", e->e.start - base);
    put(w, ",\"args\":{\"value\":%.9g}}", e->counter);
}

/* Sort events by start. Of events with the same start, the longest comes first, because it contains
 * the others. */
static int by_time(const void *a, const void *b)
{
    const sgt_trace_event *x = &((const event *)a)->e, *y = &((const event *)b)->e;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    if (x->end != y->end) return x->end > y->end ? -1 : 1;
    return x->track - y->track;
}

static void put_all(writer *w, sgt_trace *t)
{
    qsort(t->events, t->count, sizeof *t->events, by_time);
    uint64_t base = t->count ? t->events[0].e.start : 0;
    put(w, "{\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"program\":\"sgt\",\"clock\":\"CLOCK_"
           "MONOTONIC\"");
    put(w,
        ",\"base_ns\":%" PRIu64 ",\"rank\":%" PRIu32 ",\"first_step\":%" PRIu64
        ",\"last_step\":%" PRIu64,
        base, t->o.rank, t->from, t->to - 1);
    put(w, ",\"events\":%zu,\"left_out\":%" PRIu64 "},\n\"traceEvents\":[\n", t->count, t->dropped);
    put_tracks(w, t);
    for (size_t i = 0; i < t->count; i++) {
        const event *e = &t->events[i];
        if (e->e.category) put_span(w, t, &e->e, base);
        else put_counter(w, t, e, base);
    }
    put(w, "\n]}\n");
    flush(w);
}

static int write_file(sgt_trace *t, sgt_error *err)
{
    writer *w = calloc(1, sizeof *w);
    if (!w) return sgt_fail_memory(err, t->path);
    w->err = err;
    int rc = w->rc = sgt_file_begin(&w->f, t->path, err);
    if (rc == SGT_OK) {
        put_all(w, t);
        rc = w->rc;
        if (rc == SGT_OK) rc = sgt_file_commit(w->f, err);
        else sgt_file_abandon(w->f);
    }
    free(w);
    return rc;
}

/* ---- start and end of tracing ---- */

static void record(sgt_trace *t, int on)
{
    pthread_mutex_lock(&t->lock);
    __atomic_store_n(&t->recording, on, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&t->lock);
}

/* Start tracing. Reserve room, so that few steps need more. */
static int open_window(sgt_trace *t, sgt_error *err)
{
    reserve(t, EVENTS);
    record(t, 1);
    int rc = t->watcher.begin ? t->watcher.begin(t->watcher.ctx, err) : SGT_OK;
    if (rc < 0) record(t, 0);
    t->done = rc < 0;
    return rc;
}

/* End tracing and write the file. Once `recording` is 0, no call adds events. */
static int close_window(sgt_trace *t, sgt_error *err)
{
    t->done = 1;
    int rc = t->watcher.end ? t->watcher.end(t->watcher.ctx, err) : SGT_OK;
    record(t, 0);
    if (rc == SGT_OK) rc = write_file(t, err);
    if (rc == SGT_OK)
        sgt_say(&t->o.notice,
                "trace of steps %" PRIu64 " to %" PRIu64
                ": %s (https://ui.perfetto.dev and chrome://tracing open it)",
                t->from, t->to - 1, t->path);
    if (rc == SGT_OK && t->dropped)
        sgt_say(&t->o.notice, "%s: %" PRIu64 " events found no memory and are left out", t->path,
                t->dropped);
    forget_events(t);
    return rc;
}

/* Reserve room for twice as many events as the last step had, because the next step may include an
 * evaluation. */
static void grow(sgt_trace *t)
{
    pthread_mutex_lock(&t->lock);
    reserve(t, 2 * (t->count - t->before));
    t->before = t->count;
    pthread_mutex_unlock(&t->lock);
}

int sgt_trace_step(sgt_trace *t, uint64_t step, sgt_error *err)
{
    if (!t || t->done || step < t->from) return SGT_OK;
    if (step >= t->to) return t->recording ? close_window(t, err) : SGT_OK;
    if (!t->recording) return open_window(t, err);
    grow(t);
    return SGT_OK;
}

int sgt_trace_finish(sgt_trace *t, sgt_error *err)
{
    return t && t->recording ? close_window(t, err) : SGT_OK;
}

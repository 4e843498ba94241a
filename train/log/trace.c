/* trace.c: stores the events of the traced steps, and writes the trace file. A lock protects the
 * trace. Locking adds about 20 ns to each of the few hundred spans of a step, which is too little
 * to be seen in the trace. */
#include "train/log/trace.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "loader/base/file.h"

#define EVENTS 65536 /* number of events for which memory is reserved when tracing starts */
#define TRACKS 256
/* number of slots in the hash table of names; at most 3/4 of the slots are used */
#define NAMES 4096
/* maximum length in bytes of a string in the trace file; longer strings, which in practice are
 * mangled names of kernels, are truncated */
#define NAME_SIZE 512

typedef struct row {
    char *name;
    sgt_trace_process process;
} row;

struct sgt_trace {
    char *path;
    sgt_trace_options o;
    sgt_trace_watcher watcher;
    uint64_t from, to; /* traced steps: from .. to - 1 */
    /* 1: a step is being traced; 0: no step is. Atomic, because sgt_trace_now reads `recording`
     * without holding the lock. */
    int recording;
    int done; /* tracing has ended */
    pthread_mutex_t lock;
    sgt_trace_event *events;
    /* count: number of stored events; capacity: number of events for which memory is allocated;
     * before: value of `count` at the start of the current step, used to compute the number of
     * events in the step */
    size_t count, capacity, before;
    uint64_t dropped;
    row tracks[TRACKS];
    int track_count;
    /* hash table of sgt_trace_name, with open addressing and NAMES slots; a free slot is NULL */
    char **names;
    size_t name_count;
};

/* ---- open and close ---- */

/* Decide which steps to trace. As with the schedule of torch.profiler, skip the first
 * SGT_TRACE_WAIT steps, and trace the next SGT_TRACE_STEPS steps. If the run is shorter, skip fewer
 * steps. If it has fewer than SGT_TRACE_STEPS steps, trace all of them. */
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
    sgt_file f;
    struct stat st;
    int rc = sgt_file_begin(&f, path, err);
    if (rc < 0) return rc;
    sgt_file_abandon(&f);
    /* If `path` is a folder, fail before training starts. Otherwise the error would occur only when
     * the finished trace file is renamed to `path`. */
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
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

/* Reserve and prefault memory for `events` further events, so that no memory needs to be allocated
 * during a traced step. */
static void reserve(sgt_trace *t, size_t events)
{
    if (t->capacity - t->count >= events) return;
    size_t wanted = t->count + events;
    /* grow by at least half of the capacity, so that many small requests do not cause many
     * copies */
    if (wanted < t->capacity / 2 * 3) wanted = t->capacity / 2 * 3;
    sgt_trace_event *p = reallocarray(t->events, wanted, sizeof *p);
    if (!p) return; /* out of memory: t->dropped counts the events that will not fit */
    t->events = p;
    memset(p + t->count, 0, (wanted - t->count) * sizeof *p);
    t->capacity = wanted;
}

static void add(sgt_trace *t, const sgt_trace_event *e)
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
    sgt_trace_event copy = *e;
    uint64_t now = sgt_trace_now(t);
    if (!now) return;
    if (!copy.end) copy.end = now;
    if (!copy.category) copy.category = "other";
    if (!copy.name) copy.name = "";
    if (copy.start <= copy.end) add(t, &copy);
}

/* ---- names and tracks ---- */

/* Return the slot of the hash table that contains `name`, or, if no slot does, the free slot for
 * it. */
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

/* Write the concatenation of `before` and `text` as a JSON string. Control characters and invalid
 * UTF-8 bytes are written as \xNN; JSON requires that this backslash be doubled. */
static void put_text(FILE *f, const char *before, const char *text)
{
    char plain[NAME_SIZE];
    sgt_printable(plain, sizeof plain, text);
    fprintf(f, "\"%s", before);
    for (const char *c = plain; *c; c++) {
        if (*c == '"' || *c == '\\') putc('\\', f);
        putc(*c, f);
    }
    putc('"', f);
}

static void put_track(FILE *f, const sgt_trace *t, int track)
{
    fprintf(f, ",\"pid\":%d,\"tid\":%d", t->tracks[track].process + 1, track);
}

/* Write a JSON member with name `key`. Its value is a time of `ns` nanoseconds, written in
 * microseconds with three decimals. */
static void put_time(FILE *f, const char *key, uint64_t ns)
{
    fprintf(f, ",\"%s\":%" PRIu64 ".%03" PRIu64, key, ns / 1000, ns % 1000);
}

/* Write the beginning of an event, up to the value of its "name", with a comma before the event.
 * Therefore do not use this function for the first event of the file. */
static void put_head(FILE *f, const char *phase)
{
    fprintf(f, ",\n{\"ph\":\"%s\",\"name\":", phase);
}

/* Write the event that names process p. SGT_TRACE_HOST must be the first event of the file, because
 * no comma is written before it. */
static void put_process(FILE *f, sgt_trace_process p)
{
    const int host = p == SGT_TRACE_HOST, pid = (int)p + 1;
    fprintf(f,
            "%s{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"tid\":0,\"args\":{\"name\":\"%"
            "s\"}}",
            host ? "" : ",\n", pid, host ? "host" : "device");
    put_head(f, "M");
    fprintf(f, "\"process_sort_index\",\"pid\":%d,\"tid\":0,\"args\":{\"sort_index\":%d}}", pid,
            pid);
}

static void put_tracks(FILE *f, const sgt_trace *t)
{
    int said[SGT_TRACE_PROCESSES] = {0};
    for (int i = 0; i < t->track_count; i++) {
        if (!said[t->tracks[i].process]++) put_process(f, t->tracks[i].process);
        put_head(f, "M");
        fprintf(f, "\"thread_name\"");
        put_track(f, t, i);
        fprintf(f, ",\"args\":{\"name\":");
        put_text(f, "", t->tracks[i].name);
        fprintf(f, "}}");
        put_head(f, "M");
        fprintf(f, "\"thread_sort_index\"");
        put_track(f, t, i);
        fprintf(f, ",\"args\":{\"sort_index\":%d}}", i);
    }
}

static void put_span(FILE *f, const sgt_trace *t, const sgt_trace_event *e, uint64_t base)
{
    char block[32] = "";
    if (e->layer) snprintf(block, sizeof block, "h.%" PRIu32 " ", e->layer - 1);
    put_head(f, "X");
    put_text(f, block, e->name);
    fprintf(f, ",\"cat\":");
    put_text(f, "", e->category);
    put_track(f, t, e->track);
    put_time(f, "ts", e->start - base);
    put_time(f, "dur", e->end - e->start);
    if (e->key) fprintf(f, ",\"args\":{\"%s\":%" PRIu64 "}", e->key, e->value);
    fprintf(f, "}");
}

/* Compare two events by start time. If two events start at the same time, the longer event comes
 * first, because it contains the shorter one. */
static int by_time(const void *a, const void *b)
{
    const sgt_trace_event *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    if (x->end != y->end) return x->end > y->end ? -1 : 1;
    return x->track - y->track;
}

static void put_all(FILE *f, sgt_trace *t)
{
    qsort(t->events, t->count, sizeof *t->events, by_time);
    uint64_t base = t->count ? t->events[0].start : 0;
    fprintf(f, "{\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"program\":\"sgt\",\"clock\":\"CLOCK_"
               "MONOTONIC\"");
    fprintf(f, ",\"base_ns\":%" PRIu64 ",\"first_step\":%" PRIu64 ",\"last_step\":%" PRIu64, base,
            t->from, t->to - 1);
    fprintf(f, ",\"events\":%zu,\"left_out\":%" PRIu64 "},\n\"traceEvents\":[\n", t->count,
            t->dropped);
    put_tracks(f, t);
    for (size_t i = 0; i < t->count; i++) put_span(f, t, &t->events[i], base);
    fprintf(f, "\n]}\n");
}

static int write_file(sgt_trace *t, sgt_error *err)
{
    sgt_file file;
    int rc = sgt_file_begin(&file, t->path, err);
    if (rc < 0) return rc;
    put_all(file.stream, t);
    return sgt_file_commit(&file, err);
}

/* ---- start and end of tracing ---- */

static void record(sgt_trace *t, int on)
{
    pthread_mutex_lock(&t->lock);
    __atomic_store_n(&t->recording, on, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&t->lock);
}

/* Start tracing. Reserve enough memory for events that later steps rarely need more. */
static int open_window(sgt_trace *t, sgt_error *err)
{
    reserve(t, EVENTS);
    record(t, 1);
    int rc = t->watcher.begin ? t->watcher.begin(t->watcher.ctx, err) : SGT_OK;
    if (rc < 0) record(t, 0);
    t->done = rc < 0;
    return rc;
}

/* End tracing and write the file. After `recording` has been set to 0, no thread adds events. */
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
        sgt_say(&t->o.notice, "%s: %" PRIu64 " events are missing because memory ran out", t->path,
                t->dropped);
    forget_events(t);
    return rc;
}

/* Reserve memory for twice as many events as the previous step had. The factor leaves room for an
 * evaluation, which adds further events. */
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

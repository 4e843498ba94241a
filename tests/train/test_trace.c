/* test_trace.c: what the file of a trace has for each span. It must be valid JSON for any names and
 * any number of threads. train-profile.sh tests which steps are traced, and that the file is whole
 * or absent. */
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/expect.h"
#include "tests/train/folder.h"
#include "tests/train/run_fixture.h"
#include "train/log/trace.h"

TestSuite(trace, .init = make_folder, .fini = remove_folder);

/* ---- write t.json in the test's folder, and read it ---- */

SCOPED_POINTER(sgt_trace, sgt_trace_close)

static sgt_trace *start(uint64_t steps)
{
    sgt_trace *t = NULL;
    sgt_trace_options o = {.steps = steps, .notice = {hear, said}};
    said[0] = '\0';
    must(sgt_trace_open(&t, in_folder("t.json"), &o, why));
    return t;
}

static void step(sgt_trace *t, uint64_t s) { must(sgt_trace_step(t, s, why)); }

static json_t *end(sgt_trace *t)
{
    json_error_t wrong;
    must(sgt_trace_finish(t, why));
    sgt_trace_close(t);
    json_t *all = json_load_file(in_folder("t.json"), JSON_REJECT_DUPLICATES, &wrong);
    cr_assert(all, "%s, line %d", wrong.text, wrong.line);
    return all;
}

static const char *text(const json_t *e, const char *key)
{
    return json_string_value(json_object_get(e, key));
}
static int64_t whole(const json_t *e, const char *key)
{
    return json_integer_value(json_object_get(e, key));
}
static int64_t ns(const json_t *e, const char *key)
{
    return llround(json_real_value(json_object_get(e, key)) * 1e3);
}
static int64_t other(const json_t *all, const char *key)
{
    return whole(json_object_get(all, "otherData"), key);
}

static int is_span(const json_t *e) { return strcmp(text(e, "ph"), "X") == 0; }

/* Return span number n of the trace, or NULL if there is none. */
static json_t *span_of(const json_t *all, size_t n)
{
    size_t i;
    json_t *e;
    json_array_foreach(json_object_get(all, "traceEvents"), i,
                       e) if (is_span(e) && n-- == 0) return e;
    return NULL;
}

static size_t spans(const json_t *all)
{
    size_t i, n = 0;
    json_t *e;
    json_array_foreach(json_object_get(all, "traceEvents"), i, e) n += (size_t)is_span(e);
    return n;
}

/* ---- what the file says ---- */

static void span(sgt_trace *t, int track, uint64_t from, uint64_t to, const char *name)
{
    sgt_trace_span(t, &(sgt_trace_event){
                          .name = name, .category = "c", .start = from, .end = to, .track = track});
}

static void expect_span(const json_t *e, const char *name, int64_t from, int64_t duration)
{
    cr_assert(e, "%s is missing", name);
    cr_expect_str_eq(text(e, "name"), name);
    cr_expect_eq(ns(e, "ts"), from, "%s begins at %lld", name, (long long)ns(e, "ts"));
    cr_expect_eq(ns(e, "dur"), duration, "%s takes %lld", name, (long long)ns(e, "dur"));
}

Test(trace, spans_come_in_order_and_to_the_nanosecond)
{
    sgt_trace *t = start(1);
    step(t, 0);
    uint64_t base = sgt_trace_begin(t);
    /* spans are recorded when they end, so inner spans come first */
    span(t, SGT_TRACE_LOOP, base + 1000, base + 1999, "data wait");
    sgt_trace_span(t, &(sgt_trace_event){.name = "forward",
                                         .category = "forward",
                                         .start = base + 2000,
                                         .end = base + 1002003,
                                         .layer = 12,
                                         .key = "big",
                                         .value = UINT32_MAX});
    span(t, SGT_TRACE_LOOP, base + 1000, base + 2000000, "micro-step");
    span(t, SGT_TRACE_LOOP, base, base + 3000000, "step");
    span(t, SGT_TRACE_LOOP, base - 700, base - 100, "batch"); /* it began before the first step */
    span(t, SGT_TRACE_LOOP, base + 9, base + 8, "backwards");
    scoped(json_t) *all = end(t);
    cr_expect_str_eq(text(all, "displayTimeUnit"), "ms");
    cr_expect_eq(other(all, "base_ns"), (int64_t)base - 700);
    cr_expect_eq(other(all, "left_out"), 0);
    cr_expect_eq(spans(all), 5);
    expect_span(span_of(all, 0), "batch", 0, 600);
    expect_span(span_of(all, 1), "step", 700, 3000000);
    expect_span(span_of(all, 2), "micro-step", 1700, 1999000);
    expect_span(span_of(all, 3), "data wait", 1700, 999);
    expect_span(span_of(all, 4), "h.11 forward", 2700, 1000003);
    cr_expect_str_eq(text(span_of(all, 4), "cat"), "forward");
    json_t *args = json_object_get(span_of(all, 4), "args");
    cr_expect(json_object_size(args) == 1 && whole(args, "big") == UINT32_MAX);
    cr_expect(strstr(said, "steps 0 to 0") && strstr(said, "t.json"), "%s", said);
}

Test(trace, processes_and_tracks_have_names)
{
    sgt_trace *t = NULL;
    sgt_trace_options o = {.steps = 1};
    cr_assert_eq(sgt_trace_open(&t, in_folder("t.json"), &o, NULL), 0);
    int loader = sgt_trace_track(t, SGT_TRACE_HOST, "loader \"0\"");
    cr_expect_neq(loader, SGT_TRACE_LOOP);
    cr_expect_eq(sgt_trace_track(t, SGT_TRACE_HOST, "loader \"0\""), loader);
    cr_expect_neq(sgt_trace_track(t, SGT_TRACE_DEVICE, "loader \"0\""), loader);
    step(t, 0);
    json_t *all = end(t), *e;
    size_t i;
    int tracks = 0, processes = 0;
    json_array_foreach(json_object_get(all, "traceEvents"), i, e)
    {
        const char *name = text(json_object_get(e, "args"), "name");
        if (strcmp(text(e, "name"), "process_name") == 0) {
            cr_expect_eq(whole(e, "pid"), processes ? 2 : 1);
            cr_expect_str_eq(name, processes++ ? "device" : "host");
        }
        if (strcmp(text(e, "name"), "thread_name") == 0) {
            cr_expect_eq(whole(e, "tid"), tracks);
            cr_expect_str_eq(name, tracks++ ? "loader \"0\"" : "training loop");
        }
    }
    cr_expect_eq(tracks, 3);
    cr_expect_eq(processes, 2);
    json_decref(all);
}

Test(trace, any_text_is_json)
{
    static char longest[5000];
    memset(longest, 'k', sizeof longest - 1);
    sgt_trace *t = start(1);
    step(t, 0);
    uint64_t at = sgt_trace_begin(t);
    span(t, 0, at, at + 9, "say \"hi\" \\ {}[],:");
    span(t, 0, at, at + 8, "new\nline, tab\t and \x01\x7f");
    span(t, 0, at, at + 7, "caf\xc3\xa9, \xff\xfe, cut \xe2\x82");
    span(t, 0, at, at + 6, longest);
    span(t, 0, at, at + 5, "%s%n");
    scoped(json_t) *all = end(t);
    cr_expect_str_eq(text(span_of(all, 0), "name"), "say \"hi\" \\ {}[],:");
    cr_expect_str_eq(text(span_of(all, 1), "name"), "new\\x0aline, tab\\x09 and \\x01\\x7f");
    cr_expect_str_eq(text(span_of(all, 2), "name"), "caf\xc3\xa9, \\xff\\xfe, cut \\xe2\\x82");
    size_t n = strlen(text(span_of(all, 3), "name"));
    cr_expect(n > 100 && n < sizeof longest && strspn(text(span_of(all, 3), "name"), "k") == n);
    cr_expect_str_eq(text(span_of(all, 4), "name"), "%s%n");
}

Test(trace, names_are_kept_once)
{
    char name[32] = "kernel";
    scoped(sgt_trace) *t = start(1);
    const char *kept = sgt_trace_name(t, name);
    int full = 0;
    strcpy(name, "gone");
    cr_expect_str_eq(kept, "kernel");
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "kernel %d", i);
        const char *got = sgt_trace_name(t, name);
        cr_expect(strcmp(got, name) == 0 || *got == 0);
        full += *got == 0;
    }
    cr_expect(full > 0 && full < 5000); /* the table of names is full: a search must still end */
    cr_expect_eq(sgt_trace_name(t, "kernel"), kept);
}

/* ---- room ---- */

Test(trace, there_is_room_for_any_number_of_events)
{
    enum { MANY = 200000 };
    sgt_trace *t = start(2);
    step(t, 0);
    for (int i = 0; i < MANY; i++) sgt_trace_end(t, sgt_trace_begin(t), 0, "c", "first");
    step(t, 1);
    for (int i = 0; i < MANY; i++) sgt_trace_end(t, sgt_trace_begin(t), 0, "c", "second");
    scoped(json_t) *all = end(t);
    cr_expect_eq(spans(all), 2 * MANY);
    cr_expect_eq(other(all, "left_out"), 0);
}

/* ---- threads ---- */

enum { THREADS = 8, SPANS = 2000 };

typedef struct drawer {
    sgt_trace *t;
    pthread_t thread;
    uint64_t number, base;
} drawer;

static void *draw(void *ctx)
{
    drawer *d = ctx;
    char name[32];
    snprintf(name, sizeof name, "thread %d", (int)d->number);
    int track = sgt_trace_track(d->t, SGT_TRACE_HOST, name);
    const char *kept = sgt_trace_name(d->t, name);
    for (uint64_t i = 0; i < SPANS; i++)
        sgt_trace_span(d->t, &(sgt_trace_event){.name = kept,
                                                .category = "c",
                                                .track = track,
                                                .start = d->base + i * 10,
                                                .end = d->base + i * 10 + d->number + 1,
                                                .key = "i",
                                                .value = i});
    return NULL;
}

Test(trace, threads_write_at_once)
{
    drawer d[THREADS];
    int64_t next[THREADS] = {0};
    sgt_trace *t = start(3);
    step(t, 0);
    uint64_t base = sgt_trace_begin(t);
    for (uint64_t i = 0; i < THREADS; i++) {
        d[i] = (drawer){.t = t, .number = i, .base = base};
        cr_assert_eq(pthread_create(&d[i].thread, NULL, draw, &d[i]), 0);
    }
    step(t, 1); /* the trace's memory grows and moves during this */
    step(t, 2);
    for (int i = 0; i < THREADS; i++) pthread_join(d[i].thread, NULL);
    json_t *all = end(t), *e;
    size_t at;
    cr_expect_eq(other(all, "left_out"), 0);
    cr_expect_eq(spans(all), THREADS * SPANS);
    json_array_foreach(json_object_get(all, "traceEvents"), at, e)
    {
        if (!is_span(e)) continue;
        char name[32];
        int64_t thread = ns(e, "dur") - 1;
        cr_assert(thread >= 0 && thread < THREADS);
        snprintf(name, sizeof name, "thread %d", (int)thread);
        cr_expect_str_eq(text(e, "name"), name);
        cr_expect_eq(whole(json_object_get(e, "args"), "i"), next[thread]++);
    }
    json_decref(all);
}

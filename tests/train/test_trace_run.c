/* test_trace_run.c: the trace of a whole run, of threads that write at the same time, and of a
 * process that is killed. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/train/trace.h"
#include "train/sgt_train.h"

TestSuite(trace_run, .init = make_data, .fini = remove_folder);

/* ---- a run ---- */

static int count(const json_t *all, const char *name)
{
    int n = 0;
    size_t i;
    json_t *e;
    json_array_foreach(json_object_get(all, "traceEvents"), i, e) n +=
        strcmp(text(e, "ph"), "X") == 0 && strcmp(text(e, "name"), name) == 0;
    return n;
}

/* Check that each span of a track lies within the spans that are open when it begins. */
static void expect_nested(const json_t *all, int track)
{
    int64_t open[16];
    size_t i;
    int depth = 0;
    json_t *e;
    json_array_foreach(json_object_get(all, "traceEvents"), i, e)
    {
        if (strcmp(text(e, "ph"), "X") != 0 || whole(e, "tid") != track) continue;
        int64_t begin = ns(e, "ts"), over = begin + ns(e, "dur");
        while (depth && open[depth - 1] <= begin) depth--;
        cr_expect(!depth || over <= open[depth - 1], "%s ends after what it lies in",
                  text(e, "name"));
        cr_assert(depth < 16);
        open[depth++] = over;
    }
}

static int whole_run(const char *profile, uint64_t steps, char *last, size_t n)
{
    sgt_error err;
    scoped(sgt_config) s = tiny(steps);
    sgt_training_result r;
    sgt_train_options o = {.run = in_folder("r"), .force = 1, .profile = profile};
    s.accum = 3;
    s.threads = 2;
    s.workers = 2;
    s.save_every = 4;
    s.recompute = SGT_RECOMPUTE_GELU;
    int rc = sgt_train(&s, &o, &r, &err);
    if (rc < 0) snprintf(last, n, "%s", err.text);
    else
        snprintf(last, n, "%.*s", (int)(strstr(r.last, "\"tokens\"") - r.last),
                 r.last); /* the part of the metrics that is not measured */
    sgt_training_result_free(&r);
    return rc;
}

Test(trace_run, a_run)
{
    char traced[1024], plain[1024];
    json_error_t why;
    cr_assert_eq(whole_run(in_folder("t.json"), 13, traced, sizeof traced), 0, "%s", traced);
    json_t *all = json_load_file(in_folder("t.json"), 0, &why);
    cr_assert(all, "%s", why.text);
    cr_expect_eq(other(all, "first_step"), 3);
    cr_expect_eq(other(all, "left_out"), 0);
    cr_expect_eq(count(all, "step"), 10);
    cr_expect_eq(count(all, "micro-step"), 30);
    cr_expect_eq(count(all, "data wait"), 30);
    cr_expect_eq(count(all, "update"), 10);
    cr_expect_eq(count(all, "h.0 forward"), 30);
    cr_expect_eq(count(all, "h.1 forward"), 30);
    cr_expect_eq(count(all, "h.1 backward"), 30);
    /* only h.0: the last layer's outputs are still there */
    cr_expect_eq(count(all, "h.0 recompute"), 30);
    cr_expect_eq(count(all, "h.1 recompute"), 0);
    cr_expect_eq(count(all, "head and loss"), 30);
    cr_expect_eq(count(all, "embeddings forward"), 30);
    cr_expect_eq(count(all, "embeddings backward"), 30);
    cr_expect_eq(count(all, "metrics wait"), 10);
    cr_expect_eq(count(all, "checkpoint"), 4, "after steps 4, 8, 12 and 13");
    /* batches of the first traced step may have been made before tracing began */
    cr_expect_geq(count(all, "make batch"), 24);
    for (int track = 0; track < 3; track++) expect_nested(all, track);
    json_decref(all);
    cr_assert_eq(whole_run(NULL, 13, plain, sizeof plain), 0, "%s", plain);
    cr_expect_str_eq(traced, plain, "a trace changes nothing");
    cr_expect_eq(whole_run(in_folder("none/t.json"), 13, plain, sizeof plain), SGT_EIO);
    cr_expect(strstr(plain, "none/t.json"), "%s", plain);
}

/* ---- threads and kills ---- */

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

Test(trace_run, threads_write_at_once)
{
    drawer d[THREADS];
    int64_t next[THREADS] = {0};
    sgt_trace *t = start(0, 3);
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
    cr_expect_eq(events(all, "X"), THREADS * SPANS);
    json_array_foreach(json_object_get(all, "traceEvents"), at, e)
    {
        if (strcmp(text(e, "ph"), "X") != 0) continue;
        char name[32];
        int64_t thread = ns(e, "dur") - 1;
        cr_assert(thread >= 0 && thread < THREADS);
        snprintf(name, sizeof name, "thread %d", (int)thread);
        cr_expect_str_eq(text(e, "name"), name);
        cr_expect_eq(whole(json_object_get(e, "args"), "i"), next[thread]++);
    }
    json_decref(all);
}

/* Write traces to the same file, one after another, for ever. The test kills the child process that
 * runs this while it writes the first ones. */
static void write_without_end(void)
{
    for (;;) {
        scoped(sgt_trace) *t = NULL;
        sgt_trace_options o = {.steps = 1};
        if (sgt_trace_open(&t, in_folder("t.json"), &o, NULL) < 0 || sgt_trace_step(t, 0, NULL) < 0)
            _exit(1);
        for (int i = 0; i < 3000; i++) sgt_trace_end(t, sgt_trace_begin(t), 0, "c", "span");
        if (sgt_trace_finish(t, NULL) < 0) _exit(1);
    }
}

Test(trace_run, killed_at_any_moment_it_is_whole_or_not_there)
{
    int whole_ones = 0;
    for (int i = 0; i < 60; i++) {
        int status;
        unlink(in_folder("t.json"));
        pid_t child = fork();
        cr_assert_geq(child, 0);
        if (child == 0) write_without_end();
        while (i % 2 && !exists("t.json") && waitpid(child, &status, WNOHANG) == 0) usleep(100);
        /* kill it 0 to 18 ms after it started, or after it wrote its first file */
        usleep((useconds_t)(i * i * 5));
        kill(child, SIGKILL);
        cr_assert(waitpid(child, &status, 0) == child && WIFSIGNALED(status),
                  "the child gave up by itself");
        if (!exists("t.json")) continue;
        json_t *all = json_load_file(in_folder("t.json"), 0, NULL);
        cr_assert(all);
        cr_expect_eq(events(all, "X"), 3000);
        json_decref(all);
        whole_ones++;
    }
    cr_expect_geq(whole_ones, 30);
}

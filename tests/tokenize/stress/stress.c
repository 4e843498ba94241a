/* stress.c: stress the pipeline: several runs at the same time, with many threads and tiny units of
 * input, stopped and resumed at random. Every OUT must have the same bytes as the one that a single
 * thread writes without interruption. A plain program without Criterion, so that it runs under the
 * thread sanitizer:
 *
 *     make SAN=thread build/thread/tests/stress-pipeline && build/thread/tests/stress-pipeline [RUNS] [SEED]
 *
 * It writes RUNS folders OUT (default 60). Exit 0: each was right, and no thread and no descriptor
 * was leaked. */
#include <string.h>
#include <sys/stat.h>

#include "loader/base/philox.h"
#include "tests/scoped.h"
#include "tests/stress.h"
#include "tokenize/sgt_tokenize.h"

enum { TEXTS = 12, LINES = 200, AT_ONCE = 3, WAYS = 5, MOST_BYTES = 1 << 24 };

typedef struct job {
    uint64_t seed, first, runs, stops;
    int way;
} job;

/* Write texts of words, white space, characters beyond ASCII, end-of-text literals and bytes that are
 * not UTF-8, one of them empty, and lines of JSON, of which every third repeats an earlier one. */
static void make_corpus(uint64_t seed)
{
    static const char *const words[] = {" the",           "  1234",         "\n\n\t",
                                        "\xe4\xbd\xa0",   " Gr\xc3\xbc n",  "\xff\xc3",
                                        " <|endoftext|>", "aaaaaaaaaaaaaaa"};
    static char text[1 << 17];
    char path[64];
    sgt_error err;
    for (uint64_t f = 0; f < TEXTS; f++) {
        uint64_t count = f == 3 ? 0 : sgt_philox_u64(seed, f, 1) % (f % 4 == 0 ? 6000 : 300);
        char *at = text;
        for (uint64_t i = 0; i < count; i++)
            at = stpcpy(at, words[sgt_philox_u64(seed, f, 2 + i) % 8]);
        snprintf(path, sizeof path, "in/%02d.txt", (int)f);
        if (sgt_file_put(path, text, (size_t)(at - text), &err) < 0) fail("the corpus", err.text);
    }
    char *at = text;
    for (int i = 0; i < LINES; i++)
        at += sprintf(at, "{\"id\": %d, \"text\": \"line %d \\u00fc\"}\n", i, i % 3 ? i : i / 9);
    if (sgt_file_put("in/lines.jsonl", text, (size_t)(at - text), &err) < 0)
        fail("the corpus", err.text);
}

/* ---- the expected sets ---- */

/* Return options number `way`, from 0 to WAYS - 1. Each gives a different output. */
static sgt_tokenize_options way_options(int way)
{
    static const char *const inputs[] = {"in"};
    sgt_tokenize_options o = {
        .size = sizeof o, .inputs = inputs, .input_count = 1, .shard_tokens = 1000};
    if (way == 1) o.val_fraction = .3, o.shard_tokens = 777;
    if (way == 2) o.shuffle = 1, o.shuffle_seed = 7;
    if (way == 3) o.dedup = 1, o.special_eot = 1;
    if (way == 4)
        o.invalid_utf8 = SGT_INVALID_REPLACE, o.shuffle = 1, o.dedup = 1,
        o.normalize = SGT_NORMALIZE_NFC;
    return o;
}

static void want_name(char *to, size_t size, int way) { snprintf(to, size, "want%d", way); }

static void compare(const char *out, const char *want, const char *name)
{
    sgt_error err;
    char *a = NULL, *b = NULL, path[2][512];
    size_t n = 0, m = 0;
    snprintf(path[0], sizeof path[0], "%s/%s", out, name);
    snprintf(path[1], sizeof path[1], "%s/%s", want, name);
    if (sgt_file_get(&a, &n, path[0], MOST_BYTES, &err) < 0 ||
        sgt_file_get(&b, &m, path[1], MOST_BYTES, &err) < 0)
        fail(path[0], err.text);
    if (n != m || memcmp(a, b, n)) fail(path[0], "other bytes than one thread's");
    free(a);
    free(b);
}

static void compare_folders(const char *out, const char *want)
{
    scoped(DIR) *d = opendir(want);
    if (!d) fail(want, "cannot open it");
    if (count_names(out) != count_names(want)) fail(out, "other files than one thread's");
    for (const struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') compare(out, want, e->d_name);
}

/* ---- runs ---- */

typedef struct stopper {
    sgt_stop stop;
    uint64_t left; /* calls of stop_after until it requests a stop; 0: never */
} stopper;

static void stop_after(void *ctx, uint64_t done, uint64_t total, uint64_t tokens)
{
    stopper *s = ctx;
    (void)done;
    (void)total;
    (void)tokens;
    if (s->left && !--s->left) sgt_stop_request(&s->stop);
}

extern _Thread_local size_t piece_bytes; /* bytes per unit of work (tests/tokenize/piece.c) */

/* Write one set. Stop the run up to three times, and resume it each time with another number of
 * threads. */
static void fill(job *j, uint64_t k, const char *out)
{
    sgt_error err;
    for (uint64_t again = 0;; again++) {
        uint64_t r = sgt_philox_u64(j->seed, k, again);
        stopper s = {.left = again < 3 && r >> 20 & 1 ? 1 + (r >> 24) % 40 : 0};
        sgt_tokenize_options o = way_options(j->way);
        o.out = out;
        o.threads = 1 + (int)(r % 8);
        piece_bytes = (size_t)64 << (r >> 8) % 7;
        o.stop = &s.stop;
        o.progress = stop_after;
        o.progress_ctx = &s;
        int rc = sgt_tokenize(&o, NULL, &err);
        if (rc == 0) return;
        if (rc != SGT_ESTOPPED || !s.stop.requested) fail(out, err.text);
        j->stops++;
    }
}

static void *work(void *arg)
{
    job *j = arg;
    char out[32], want[32];
    sgt_error err;
    want_name(want, sizeof want, j->way);
    for (uint64_t k = j->first; k < j->first + j->runs; k++) {
        snprintf(out, sizeof out, "out%d", (int)k);
        fill(j, k, out);
        compare_folders(out, want);
        if (sgt_remove_tree(out, &err) < 0) fail(out, err.text);
    }
    return NULL;
}

static void run_way(int way, uint64_t runs, uint64_t seed)
{
    resources before = count_resources();
    pthread_t threads[AT_ONCE];
    job jobs[AT_ONCE];
    char want[32];
    sgt_error err;
    sgt_tokenize_options o = way_options(way);
    want_name(want, sizeof want, way);
    o.out = want;
    o.threads = 1;
    if (sgt_tokenize(&o, NULL, &err) < 0) fail(want, err.text);
    for (int i = 0; i < AT_ONCE; i++) {
        jobs[i] = (job){seed * 100 + (uint64_t)way, (uint64_t)i * runs,
                        (runs + AT_ONCE - 1) / AT_ONCE, 0, way};
        start_thread(&threads[i], work, &jobs[i]);
    }
    uint64_t stops = 0;
    for (int i = 0; i < AT_ONCE; i++) {
        pthread_join(threads[i], NULL);
        stops += jobs[i].stops;
    }
    expect_resources(want, before);
    printf("way %d: %d runs, stopped %d times on their way\n", way, (int)(AT_ONCE * jobs[0].runs),
           (int)stops);
}

int main(int argc, char **argv)
{
    uint64_t runs = argument(argc, argv, 1, 1, 60), seed = argument(argc, argv, 2, 0, 1);
    char folder[SCRATCH_SIZE];
    /* use memory if possible: on a disk, a run waits for fsync more than for its threads */
    enter_scratch(folder, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdir("in", 0777) < 0) fail("in", "cannot make it");
    make_corpus(seed);
    for (int way = 0; way < WAYS; way++) run_way(way, (runs + WAYS - 1) / WAYS, seed);
    remove_scratch(folder);
    return 0;
}

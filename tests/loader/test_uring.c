/* test_uring.c: io_uring and its fallbacks. For each feature that a machine may lack, an injected
 * fault makes it unavailable. Also reads in flight: short reads, failures, and cursors that move
 * between threads, are closed early, or are used after a fork. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/loader/batches.h"

TestSuite(uring, .init = enter_scratch, .fini = leave_scratch, .timeout = 170);
TestSuite(uring_reads, .init = enter_scratch, .fini = leave_scratch, .timeout = 170);

static const sgt_loader_options uring = {.reader = SGT_READER_URING, .batch = 6, .seq = 16};

/* Draw with three cursors in turn, and close them while reads are in flight; then draw with one
 * cursor. Check the reader's detail and the notice. */
static void check_fallback(const reader_fault *fault, const char *detail, const char *notice)
{
    notices said;
    sgt_loader_options o = uring;
    o.notice = collect(&said);
    scoped(sgt_loader) *l = open_loader("d", &o, fault);
    sgt_cursor *c[3];
    for (int i = 0; i < 3; i++) c[i] = open_cursor(l);
    for (uint64_t k = 0; k < 60; k++) check_run(l, c[k % 3], k, 1, NULL);
    for (int i = 0; i < 3; i++) sgt_cursor_close(c[i]);
    c[0] = open_cursor(l);
    check_run(l, c[0], 1000, 200, NULL);
    check_batch(l, c[0], 3, NULL);
    sgt_cursor_close(c[0]);
    cr_assert_str_eq(sgt_loader_get_info(l)->reader_detail, detail);
    cr_assert_eq(said.count, notice != NULL, "%d notices, the last %s", said.count, said.last);
    if (notice) cr_assert_str_eq(said.last, notice);
}

Test(uring, ring_refused)
{
    static const struct {
        int error;
        const char *why;
    } cases[] = {{EPERM, "io_uring is forbidden"},
                 {EACCES, "io_uring is forbidden"},
                 {ENOSYS, "this kernel has no io_uring, or its io_uring is too old"},
                 {ENOMEM, "io_uring may not lock enough memory (ulimit -l)"},
                 {EMFILE, "io_uring needs more file descriptors than allowed (ulimit -n)"},
                 {EINVAL, "io_uring is unavailable"}};
    put_folder();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char detail[128], notice[256];
        snprintf(detail, sizeof detail, "uring (mmap: %s)", cases[i].why);
        snprintf(notice, sizeof notice, "%s: reading with mmap instead", cases[i].why);
        check_fallback(&(reader_fault){.ring_error = cases[i].error}, detail, notice);
    }
}

/* Only two rings can be created: the trial at open, and the first cursor's. */
Test(uring, ring_refused_to_some)
{
    reader_fault fault = {.ring_error = ENOMEM, .rings_first = 2};
    put_folder();
    scoped(sgt_loader) *l = open_loader("d", &uring, &fault);
    scoped(sgt_cursor) *c = open_cursor(l);
    sgt_cursor *other;
    expect_failure(sgt_cursor_open(&other, l, why), SGT_EUNSUPPORTED,
                   "io_uring may not lock enough memory (ulimit -l): use the reader mmap, which "
                   "does not need it");
    check_run(l, c, 7, 100, NULL);
}

/* If nothing is refused, on a machine that allows io_uring, no fallback is reported. */
Test(uring, direct_reads_refused)
{
    put_folder();
    check_fallback(NULL, "uring", NULL);
    check_fallback(&(reader_fault){.direct_error = EINVAL}, "uring (through the page cache)",
                   "d/train_000000.bin: the file system refuses direct reads (Invalid argument): "
                   "reading through the page cache instead");
}

/* The ring fails at its first use, or while reads are in flight. Those may still write to memory
 * that later reads would use, so every later read of this cursor must fail. */
Test(uring, ring_that_fails)
{
    put_folder();
    unsigned before = open_descriptors();
    for (unsigned after = 0; after < 20; after++) {
        reader_fault fault = {.enter_error = EIO, .enters_first = after};
        scoped(sgt_loader) *l = open_loader("d", &uring, &fault);
        sgt_cursor *c = open_cursor(l);
        int failed = 0;
        for (uint64_t k = 0; k < 60; k++) {
            static uint16_t rows[6 * 17];
            sgt_error err;
            int rc = read_rows(l, c, k, rows, &err);
            cr_assert(!failed || rc < 0, "batch %lu, after one that failed", k);
            if ((failed = rc < 0))
                cr_assert(rc == SGT_EIO &&
                              strstr(err.text, ".bin: io_uring failed: Input/output error"),
                          "%s", err.text);
        }
        cr_assert(failed);
        sgt_cursor_close(c);
        c = open_cursor(l);
        sgt_cursor_close(c); /* a cursor that has requested nothing can be closed */
    }
    cr_assert_eq(open_descriptors(), before);
}

/* ---- reads that end early ---- */

static const reader_fault buffered = {.direct_error = EINVAL};

/* Read everything, with at most `most` bytes per read. */
static void check_short(const reader_fault *fault, size_t most, uint32_t seq, const uint32_t *map)
{
    reader_fault f = *fault;
    sgt_loader_options o = uring;
    o.seq = seq;
    f.most_bytes = most;
    scoped(sgt_loader) *l = open_loader("d", &o, &f);
    scoped(sgt_cursor) *c = open_cursor(l);
    check_run(l, c, 5, 40, map);
    check_batch(l, c, 3, map);
}

/* Windows of 34 bytes; and windows of 1,802 bytes, which cover four or five sectors of 512. */
Test(uring_reads, short_reads_are_continued)
{
    static const uint32_t map[] = {0, 2, 4};
    put_folder();
    for (size_t most = 1; most <= 35; most += 17) check_short(&buffered, most, 16, NULL);
    check_short(&buffered, 100, 900, map);
    check_short(&(reader_fault){0}, 1, 16, NULL);
    for (size_t most = 1; most <= 1025; most += 512)
        check_short(&(reader_fault){0}, most, 900, map);
}

Test(uring_reads, interrupted_reads_are_asked_for_again)
{
    static const int errors[] = {EINTR, EAGAIN, ECANCELED};
    put_folder();
    for (int i = 0; i < 3; i++) {
        reader_fault fault = {.first_error = errors[i]};
        scoped(sgt_loader) *l = open_loader("d", &uring, &fault);
        scoped(sgt_cursor) *c = open_cursor(l);
        check_run(l, c, 0, 200, NULL);
    }
}

/* Windows that end at the end of a file of 5,002 bytes (not near a multiple of 512), 5,120 (a
 * multiple) or 5,122 bytes. */
Test(uring_reads, ends_of_files)
{
    static const uint64_t tokens[] = {(5002 - 1024) / 2, (5120 - 1024) / 2, (5122 - 1024) / 2};
    for (size_t i = 0; i < 3; i++)
        for (int direct = 0; direct < 2; direct++) {
            reader_fault fault = {.direct_error = direct ? 0 : EINVAL};
            put_shard("one.bin", 0, tokens[i]);
            sgt_loader_options o = {.reader = SGT_READER_URING,
                                    .batch = 1,
                                    .seq = (uint32_t)tokens[i] - 1,
                                    .sampling = SGT_SAMPLING_SEQUENTIAL};
            scoped(sgt_loader) *l = open_loader("one.bin", &o, &fault);
            scoped(sgt_cursor) *c = open_cursor(l);
            check_run(l, c, 0, 20, NULL); /* reads the whole shard several times */
            sgt_cursor_close(c);
            sgt_loader_close(l);
            o = uring;
            l = open_loader("one.bin", &o, &fault);
            c = open_cursor(l);
            check_run(l, c, 0, 60, NULL);
        }
}

/* ---- failures ---- */

static int draw_one(const sgt_loader *l, sgt_cursor *c, uint64_t k, sgt_error *err)
{
    static uint16_t rows[300 * 17];
    return read_rows(l, c, k, rows, err);
}

/* A read fails in the batch that is fetched, or in one that was announced. The error names the
 * first window that failed. Only the batch with this window fails, and every later call for it
 * fails again. */
Test(uring_reads, disk_errors_name_shard_and_offset)
{
    put_folder();
    for (int i = 0; i < 2; i++) {
        sgt_loader_options o = {
            .reader = SGT_READER_URING, .batch = 1, .seq = 16, .sampling = SGT_SAMPLING_SEQUENTIAL};
        reader_fault fault = {.read_error = EIO,
                              .reads_first = 310, /* shard 0 has 312 rows */
                              .direct_error = i ? EINVAL : 0};
        scoped(sgt_loader) *l = open_loader("d", &o, &fault);
        scoped(sgt_cursor) *c = open_cursor(l);
        check_run(l, c, 0, 100, NULL); /* up to 160 more windows are in flight */
        for (uint64_t k = 100; k < 320; k++) {
            sgt_error err;
            char want[256];
            if (draw_one(l, c, k, &err) == 0) continue;
            sgt_window w = sgt_mix_window(&l->mix, k);
            snprintf(want, sizeof want, "%s: at byte %lu: cannot read: Input/output error",
                     sgt_loader_shard_path(l, w.shard), 1024 + 2 * w.offset);
            cr_assert_str_eq(err.text, want);
            cr_assert_eq(err.code, SGT_EIO);
            cr_assert_geq(k, 100);
        }
        for (int again = 0; again < 2; again++)
            expect_failure(draw_one(l, c, 312, why), SGT_EIO,
                           "d/train_000001.bin: at byte 1024: cannot read: Input/output error");
    }
}

/* ---- descriptors ---- */

/* Two loaders have 100 shards open at once, and the process may have 120 descriptors. If the
 * system allows it, the limit is raised; otherwise mmap is used. No descriptor may be left open at
 * the end. */
Test(uring_reads, more_shards_than_descriptors)
{
    enum { SHARDS = 100 };
    for (uint32_t i = 0; i < SHARDS; i++) put_shard(shard_path("d", i, "bin"), i, 200 + i);
    unsigned before = open_descriptors();
    for (int raised = 1; raised >= 0; raised--) {
        struct rlimit few = {120, raised ? 500 : 120};
        notices said;
        sgt_loader_options o = uring;
        o.notice = collect(&said);
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
        sgt_loader *a = open_loader("d", &o, NULL), *b = open_loader("d", &o, NULL);
        sgt_cursor *c = open_cursor(a), *d = open_cursor(b);
        check_run(a, c, 0, 100, NULL);
        check_run(b, d, 50, 100, NULL);
        cr_assert_eq(said.count, raised ? 0 : 2);
        if (said.count)
            cr_assert_str_eq(said.last, "io_uring needs more file descriptors than allowed (ulimit "
                                        "-n): reading with mmap instead");
        cr_assert_eq(getrlimit(RLIMIT_NOFILE, &few), 0);
        cr_assert(raised ? few.rlim_cur > 240 && few.rlim_cur < 500 : few.rlim_cur == 120);
        sgt_cursor_close(c);
        sgt_cursor_close(d);
        sgt_loader_close(a);
        sgt_loader_close(b);
        cr_assert_eq(open_descriptors(), before);
    }
}

/* ---- cursors that are closed early, move between threads, or meet a fork ---- */

typedef struct turn {
    const sgt_loader *l;
    sgt_cursor *c;
    uint64_t first;
} turn;

/* Draw ten batches. Close the cursor after batch 39. */
static void *take_turn(void *arg)
{
    const turn *t = arg;
    check_run(t->l, t->c, t->first, 10, NULL);
    if (t->first == 30) sgt_cursor_close(t->c);
    return NULL;
}

/* A thread waits for reads that another thread has started. */
Test(uring_reads, cursors_move_between_threads)
{
    put_folder();
    unsigned before = open_descriptors();
    for (int i = 0; i < 2; i++) {
        reader_fault fault = {.direct_error = i ? EINVAL : 0};
        scoped(sgt_loader) *l = open_loader("d", &uring, &fault);
        turn t = {l, open_cursor(l), 0};
        for (; t.first < 40; t.first += 20) {
            pthread_t thread;
            take_turn(&t);
            turn next = {l, t.c, t.first + 10};
            cr_assert_eq(pthread_create(&thread, NULL, take_turn, &next), 0);
            pthread_join(thread, NULL);
        }
    }
    cr_assert_eq(open_descriptors(), before);
}

/* In a child after fork, the parent's cursor is refused, and a cursor opened by the child gives the
 * same batches. want: the rows of batch 29. */
static int in_child(const sgt_loader *l, sgt_cursor *parents, const uint16_t want[6 * 17])
{
    static const char why[] =
        "the cursor belongs to the parent process: io_uring does not survive a "
        "fork (open a cursor in the child)";
    sgt_error err;
    scoped(sgt_cursor) *own = NULL;
    uint16_t rows[6 * 17];
    for (int again = 0; again < 2; again++)
        if (draw_one(l, parents, 3, &err) != SGT_EUSAGE || strcmp(err.text, why)) return 1;
    sgt_cursor_close(parents);
    if (sgt_cursor_open(&own, l, &err) < 0) return 2;
    for (uint64_t k = 0; k < 30; k++)
        if (read_rows(l, own, k, rows, &err) < 0) return 3;
    return memcmp(rows, want, sizeof rows) ? 4 : 0;
}

Test(uring_reads, forks)
{
    put_folder();
    for (int i = 0; i < 2; i++) {
        sgt_loader_options o = uring;
        o.sampling = i ? SGT_SAMPLING_BLOCK : SGT_SAMPLING_SHUFFLE;
        scoped(sgt_loader) *l = open_loader("d", &o, NULL);
        scoped(sgt_cursor) *c = open_cursor(l);
        uint16_t rows[6 * 17];
        must(read_rows(l, c, 29, rows, why));
        check_run(l, c, 0, 3, NULL); /* more reads are in flight */
        pid_t child = fork();
        if (!child) _exit(in_child(l, c, rows));
        int status;
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
        check_run(l, c, 3, 50, NULL);
    }
}

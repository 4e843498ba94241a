/* test_guard.c: files that are cut short while mapped. Checks which batches fail, with which
 * message, and which still succeed. */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/handle.h"
#include "tests/expect.h"
#include "tests/loader/guard.h"

TestSuite(guard, .init = enter_scratch, .fini = leave_scratch);

static int touches(const sgt_loader *l, uint64_t k, uint32_t of) { return past(l, k, of, 0); }

/* ---- cut short ---- */

typedef struct drawer {
    const sgt_loader *l;
    sgt_cursor *cursor;
    uint64_t first, size; /* first: first batch to draw; size: bytes left of shard 1 */
    int behind;
    unsigned failed, good;
    pthread_t id;
} drawer;

#define ENDS \
    "d/train_000001.bin: ends at byte %d, in the middle of a window: cut short while in use"

/* Check the message of a cut. One that only SIGBUS reveals (`behind`) names the start of the first
 * page that faulted, not the file's end. */
static void check_message(const drawer *d, const char *text)
{
    char ends[128];
    int page = 0;
    snprintf(ends, sizeof ends, ENDS, (int)d->size);
    if (!d->behind) cr_assert_str_eq(text, ends);
    else
        cr_assert(sscanf(text, "d/train_000001.bin: at byte %d: cannot read: the disk failed, or",
                         &page) == 1 &&
                      page % PAGE == 0 && page >= (int)d->size,
                  "%s", text);
}

static void *draw_all(void *arg)
{
    drawer *d = arg;
    int32_t rows[B * (T + 1)];
    sgt_error err;
    for (uint64_t k = d->first; k < d->first + 60; k++) {
        if (read_i32_rows(d->l, d->cursor, k, rows, &err) == 0) {
            cr_assert_eq(past(d->l, k, 1, d->size), 0, "batch %lu has windows that are gone", k);
            check_ids(d->l, sgt_cursor_batch(d->cursor), k, NULL);
            d->good++;
        } else {
            cr_assert(touches(d->l, k, 1), "batch %lu: %s", k, err.text);
            check_message(d, err.text);
            d->failed++;
        }
    }
    return NULL;
}

/* With 1 to 8 threads: batches with windows beyond the cut fail, and all others are right. */
static void cut_under(uint64_t size, int behind)
{
    guard();
    cr_assert_eq(mkdir("d", 0777), 0);
    for (unsigned threads = 1; threads <= 8; threads++) {
        drawer d[8];
        put_three();
        scoped(sgt_loader) *l = open_mapped("d", SGT_SAMPLING_SHUFFLE);
        for (unsigned i = 0; i < threads; i++) {
            d[i] = (drawer){.l = l, .first = 100 * i, .size = size, .behind = behind};
            must(sgt_cursor_open(&d[i].cursor, l, why));
        }
        cut(size, behind);
        for (unsigned i = 0; i < threads; i++)
            cr_assert_eq(pthread_create(&d[i].id, NULL, draw_all, &d[i]), 0);
        for (unsigned i = 0; i < threads; i++) {
            pthread_join(d[i].id, NULL);
            cr_assert(d[i].failed && d[i].good, "%u threads: %u failed, %u were good", threads,
                      d[i].failed, d[i].good);
            sgt_cursor_close(d[i].cursor);
        }
    }
}

Test(guard, cut_while_mapped) { cut_under(20500, 0); } /* not the end of a page */
Test(guard, cut_behind_its_back) { cut_under(5 * PAGE, 1); }

Test(guard, cut_with_wide_ids)
{
    id_width = 4;
    cut_under(10 * PAGE, 1);
    must(sgt_remove_tree("d", why));
    cut_under(40500, 0);
}

/* A stream's threads block most signals, but must not block SIGBUS. */
Test(guard, streams)
{
    guard();
    cr_assert_eq(mkdir("d", 0777), 0);
    for (uint32_t threads = 1; threads <= 4; threads++) {
        const sgt_loader_batch *b;
        sgt_error err;
        sgt_stream_options so = {
            .size = sizeof so, .threads = threads, .slots = 4, .output = SGT_OUTPUT_I32_ROWS};
        int rc;
        unsigned good = 0;
        put_three();
        scoped(sgt_loader) *l = open_mapped("d", SGT_SAMPLING_SEQUENTIAL);
        scoped(sgt_stream) *s = NULL;
        cut(5 * PAGE, 1); /* shard 0, which is drawn before shard 1, stays complete */
        must(sgt_stream_open(&s, l, &so, why));
        while ((rc = sgt_stream_next(s, &b, &err)) == 0) {
            check_ids(l, b, b->index, NULL);
            sgt_stream_release(s, b, NULL);
            good++;
        }
        cr_assert(rc == SGT_EIO && past(l, good, 1, 5 * PAGE) && !past(l, good - 1, 1, 5 * PAGE),
                  "%u: %s", good, err.text);
    }
}

/* ---- without the guard ---- */

/* After a cut within a page, the rest of the page reads as zeros without a signal. So the loader
 * checks a window that ends in id 0 again: it succeeds if the file really has that id, and fails if
 * the file was cut. */
static void check_zeros(void)
{
    int32_t rows[T + 1];
    cr_assert_eq(mkdir("d", 0777), 0);
    put_shard("d/train_000000.bin", 0, LEN);
    sgt_loader_options o = {
        .reader = SGT_READER_MMAP, .sampling = SGT_SAMPLING_SEQUENTIAL, .batch = 1, .seq = T};
    scoped(sgt_loader) *l = open_loader("d", &o, NULL);
    scoped(sgt_cursor) *c = open_cursor(l);
    uint64_t last = (LEN - 1) / T - 1, end = SGT_SHARD_HEADER + id_width * (last + 1) * T;
    cr_assert_eq(end / PAGE, (end - 100) / PAGE);
    patch("d/train_000000.bin", end, "\0\0\0", id_width);
    must(read_i32_rows(l, c, last, rows, why));
    cr_assert(rows[T] == 0 && rows[0] == (int32_t)token_at(0, last * T));
    resize("d/train_000000.bin", end - 100);
    expect_failure(
        read_i32_rows(l, c, last, rows, why), SGT_EFORMAT,
        "d/train_000000.bin: ends at byte %lu, in the middle of a window: cut short while in use",
        end - 100);
}

Test(guard, zeros_are_not_believed)
{
    check_zeros();
    must(sgt_remove_tree("d", why));
    id_width = 4;
    check_zeros();
}

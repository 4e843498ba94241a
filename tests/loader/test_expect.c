/* test_expect.c: the batches that a cursor announces to its reader. They are exactly the batches
 * that are then drawn, in the same order, and never more than the reader asked for. A wrong guess
 * is cancelled. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/loader/batches.h"

TestSuite(expect, .init = enter_scratch, .fini = leave_scratch);

/* the reader wants 10 windows ahead, so three batches of four windows are announced */
enum { B = 4, T = 16, AHEAD = 10 };

/* A reader for this test: preload, with `expect` and `fetch` replaced. They record the announced
 * windows and compare them with those that are fetched. */
static struct {
    sgt_window told[64];
    /* waiting: announced windows that were not fetched yet; most: the largest number of these;
     * forgotten: number of cancellations; met: fetches that were announced; missed: fetches that
     * were not; room: maximum windows that are accepted, 0: any number */
    uint32_t waiting, most, forgotten, met, missed, room;
} heard;

static int same_window(const sgt_window *a, const sgt_window *b)
{
    return a->shard == b->shard && a->offset == b->offset && a->tokens == b->tokens;
}

static int fetch_and_compare(void *cursor, const sgt_window *w, uint32_t n, const void **tokens,
                             sgt_error *err)
{
    uint32_t same = 0;
    while (same < n && same < heard.waiting && same_window(&heard.told[same], &w[same])) same++;
    if (same == n) {
        heard.met++;
        heard.waiting -= n;
        memmove(heard.told, heard.told + n, heard.waiting * sizeof *w);
    } else {
        heard.missed++;
    }
    return sgt_read_preload.fetch(cursor, w, n, tokens, err);
}

static int write_down(void *cursor, const sgt_window *w, uint32_t n)
{
    (void)cursor;
    if (!n) {
        heard.forgotten += heard.waiting > 0;
        heard.waiting = 0;
    }
    if (heard.room && heard.waiting + n > heard.room) return 0;
    cr_assert_leq(heard.waiting + n, 64);
    for (uint32_t i = 0; i < n; i++) heard.told[heard.waiting++] = w[i];
    if (heard.waiting > heard.most) heard.most = heard.waiting;
    return 1;
}

static sgt_reader_ops ops;

static sgt_loader *open_listening(sgt_sampling sampling)
{
    sgt_loader *l =
        open_loader("d", &(sgt_loader_options){.batch = B, .seq = T, .sampling = sampling}, NULL);
    ops = *l->ops;
    ops.fetch = fetch_and_compare;
    ops.expect = write_down;
    ops.ahead = AHEAD;
    l->ops = &ops;
    memset(&heard, 0, sizeof heard);
    return l;
}

/* Draw 40 batches from `first` on, `stride` apart. The cursor guesses a stride of 1 after one step,
 * and any other stride after two. */
static void check_stride(const sgt_loader *l, uint64_t first, uint64_t stride)
{
    scoped(sgt_cursor) *c = open_cursor(l);
    memset(&heard, 0, sizeof heard);
    uint32_t learning = stride == 1 ? 2 : 3, drawn = 40;
    /* a new cursor assumes that batch 0 was the last batch drawn, so one step is enough */
    if (first == stride) learning--;
    for (uint64_t k = 0; k < drawn; k++) check_run(l, c, first + k * stride, 1, NULL);
    cr_assert_eq(heard.missed, learning, "from %lu by %lu: missed %u", first, stride, heard.missed);
    cr_assert_eq(heard.met, drawn - learning);
    cr_assert(heard.most == 3 * B && heard.waiting == 3 * B && !heard.forgotten);
}

Test(expect, steady_strides)
{
    put_folder();
    for (int sampling = 0; sampling < SGT_SAMPLING_DOCUMENTS; sampling++) {
        scoped(sgt_loader) *l = open_listening((sgt_sampling)sampling);
        check_stride(l, 0, 1);
        check_stride(l, 1, 1);
        /* goes past the end of an epoch of 574 windows (shuffle, block) */
        check_stride(l, 77, 1);
        check_stride(l, 5, 8);
        check_stride(l, 123456789, 2);
    }
}

/* Draw batches in any order: the rows are right, and a wrong guess is cancelled. */
Test(expect, no_order)
{
    static const uint64_t order[] = {0, 1, 2, 9, 9, 8,  7,  6,  5,  4, 3, 2,
                                     1, 0, 3, 6, 9, 12, 12, 13, 14, 0, 1};
    put_folder();
    scoped(sgt_loader) *l = open_listening(SGT_SAMPLING_SHUFFLE);
    scoped(sgt_cursor) *c = open_cursor(l);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) check_run(l, c, order[i], 1, NULL);
    /* met: batch 2; batches 6 to 0; batches 9 and 12; batch 14 */
    cr_assert_eq(heard.met, 1 + 7 + 2 + 1);
    /* cancelled at the first 9, at the second 12, and at the second 0 */
    cr_assert_eq(heard.forgotten, 3);
    cr_assert_leq(heard.most, 3 * B);
}

/* With packed rows, all pieces are announced, as many at a time as the reader accepts. */
Test(expect, pieces_of_packed_rows)
{
    put_folder();
    for (uint64_t t = 10; t < 3000; t += 5 + t % 7) {
        patch("d/train_000004.bin", 1024 + 2 * t, "\x50\xc4", 2);
        patch("d/train_000000.bin", 1024 + 2 * (t + 1500), "\x50\xc4", 2);
    }
    uint16_t rows[B * (T + 1)];
    scoped(sgt_loader) *l = open_listening(SGT_SAMPLING_PACKED);
    scoped(sgt_cursor) *c = open_cursor(l);
    heard.room = 3 * B;
    for (uint64_t k = 0; k < 60; k++) must(read_rows(l, c, k, rows, why));
    cr_assert_gt(heard.met, 100);
    cr_assert_eq(heard.missed, 0);
    cr_assert(heard.forgotten == 0 && heard.waiting > B);
    must(read_rows(l, c, 1000, rows, why));
    cr_assert(heard.missed == 0 && heard.forgotten == 1);
}

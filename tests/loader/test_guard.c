/* test_guard.c: files that are cut short while mapped. Checks which batches fail, with which
 * message, and which still succeed. Also SIGBUS at addresses outside the loader's maps: handlers
 * that were installed before the guard, and default actions. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/handle.h"
#include "tests/loader/batches.h"

TestSuite(guard, .init = enter_scratch, .fini = leave_scratch);
TestSuite(guard_handlers, .init = enter_scratch, .fini = leave_scratch, .timeout = 120);

/* Three shards, opened with the mmap reader and the guard against SIGBUS. */
enum { T = 512, B = 4, LEN = 40000, PAGE = 4096 };

static void guard(void) { must(sgt_loader_guard_sigbus(why)); }

static sgt_loader *open_mapped(const char *path)
{
    sgt_loader_options o = {.reader = SGT_READER_MMAP, .batch = B, .seq = T, .seed = 5};
    return open_loader(path, &o, NULL);
}

static void put_three(void)
{
    for (uint32_t i = 0; i < 3; i++) put_shard(shard_path("d", i, "bin"), i, LEN);
}

/* Return how many windows of batch k extend past byte `size` of shard `of`. */
static int past(const sgt_loader *l, uint64_t k, uint32_t of, uint64_t size)
{
    int n = 0;
    for (uint64_t r = 0; r < B; r++) {
        sgt_window w = sgt_mix_window(&l->mix, k * B + r);
        n += w.shard == of && SGT_SHARD_HEADER + id_width * (w.offset + T + 1) > size;
    }
    return n;
}

/* Cut shard 1 to `size` bytes while it is mapped. If `behind` is set, rename it first, so that
 * checks by its path cannot find the cut: only SIGBUS reveals it. */
static void cut(uint64_t size, int behind)
{
    if (behind) cr_assert_eq(rename("d/train_000001.bin", "d/other"), 0);
    resize(behind ? "d/other" : "d/train_000001.bin", size);
}

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
    sgt_loader_batch b;
    sgt_error err;
    for (uint64_t k = d->first; k < d->first + 60; k++) {
        if (read_batch(d->l, d->cursor, k, SGT_OUTPUT_I32_ROWS, rows, &b, &err) == 0) {
            cr_assert_eq(past(d->l, k, 1, d->size), 0, "batch %lu has windows that are gone", k);
            check_ids(d->l, &b, k, NULL);
            d->good++;
        } else {
            cr_assert(past(d->l, k, 1, 0), "batch %lu: %s", k, err.text);
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
    for (unsigned threads = 1; threads <= 8; threads++) {
        drawer d[8];
        put_three();
        scoped(sgt_loader) *l = open_mapped("d");
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

/* A stream's threads must not block SIGBUS: the error arrives in its turn. */
Test(guard, streams)
{
    const sgt_loader_batch *b;
    sgt_error err;
    sgt_loader_options o = {
        .reader = SGT_READER_MMAP, .batch = B, .seq = T, .sampling = SGT_SAMPLING_SEQUENTIAL};
    sgt_stream_options so = {
        .size = sizeof so, .threads = 2, .slots = 4, .output = SGT_OUTPUT_I32_ROWS};
    int rc;
    unsigned good = 0;
    guard();
    cr_assert_eq(mkdir("d", 0777), 0);
    put_three();
    scoped(sgt_loader) *l = open_loader("d", &o, NULL);
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

/* ---- without the guard ---- */

/* After a cut within a page, the rest of the page reads as zeros without a signal. So the loader
 * checks a window that ends in id 0 again: it succeeds if the file really has that id, and fails if
 * the file was cut. */
static void check_zeros(void)
{
    int32_t rows[T + 1];
    sgt_loader_batch b;
    put_shard("d/train_000000.bin", 0, LEN);
    sgt_loader_options o = {
        .reader = SGT_READER_MMAP, .sampling = SGT_SAMPLING_SEQUENTIAL, .batch = 1, .seq = T};
    scoped(sgt_loader) *l = open_loader("d", &o, NULL);
    scoped(sgt_cursor) *c = open_cursor(l);
    uint64_t last = (LEN - 1) / T - 1, end = SGT_SHARD_HEADER + id_width * (last + 1) * T;
    cr_assert_eq(end / PAGE, (end - 100) / PAGE);
    patch("d/train_000000.bin", end, "\0\0\0", id_width);
    must(read_batch(l, c, last, SGT_OUTPUT_I32_ROWS, rows, &b, why));
    cr_assert(rows[T] == 0 && rows[0] == (int32_t)token_at(0, last * T));
    resize("d/train_000000.bin", end - 100);
    expect_failure(
        read_batch(l, c, last, SGT_OUTPUT_I32_ROWS, rows, &b, why), SGT_EFORMAT,
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

/* ---- addresses outside the loader's maps ---- */

/* Map a file of the test's own and cut it to 0 bytes, so that every access to the map raises
 * SIGBUS. Return the map. */
static volatile char *own_map(void)
{
    put_bytes("own", "x", 1);
    int fd = open("own", O_RDONLY);
    volatile char *p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    cr_assert(fd >= 0 && p != MAP_FAILED);
    close(fd);
    resize("own", 0);
    return p;
}

static __thread sigjmp_buf escape;
static void *volatile caught;
static volatile int times;

static void with_info(int number, siginfo_t *info, void *context)
{
    (void)context;
    caught = info->si_addr;
    times += number == SIGBUS;
    siglongjmp(escape, 1);
}

static void without_info(int number)
{
    times += number == SIGBUS;
    siglongjmp(escape, 1);
}

static void handle(void (*info)(int, siginfo_t *, void *), void (*plain)(int), int flags)
{
    struct sigaction a = {.sa_flags = flags};
    if (info) a.sa_sigaction = info;
    else a.sa_handler = plain;
    cr_assert_eq(sigaction(SIGBUS, &a, NULL), 0);
}

static int touch(volatile char *p)
{
    if (sigsetjmp(escape, 1)) return 1;
    (void)*p;
    return 0;
}

/* A fault in a loader's map becomes an error. A fault elsewhere reaches the handler installed before
 * the guard, with its address, repeatedly and also after the loader is closed. */
Test(guard_handlers, the_handler_before)
{
    volatile char *theirs = own_map();
    uint16_t rows[B * (T + 1)];
    sgt_cursor *c;
    sgt_error err;
    uint64_t k = 0;
    handle(with_info, NULL, SA_SIGINFO);
    guard();
    guard(); /* a second call does nothing */
    put_three();
    sgt_loader *l = open_mapped("d");
    must(sgt_cursor_open(&c, l, why));
    cut(5 * PAGE, 1);
    while (!past(l, k, 1, 5 * PAGE)) k++;
    for (int again = 1; again <= 3; again++) {
        cr_assert_eq(touch(theirs + again), 1);
        cr_assert_eq(times, again);
        cr_assert_eq(caught, (void *)(theirs + again));
        cr_assert_eq(read_rows(l, c, k, rows, &err), SGT_EIO);
        cr_assert_eq(times, again);
    }
    sgt_cursor_close(c);
    sgt_loader_close(l);
    cr_assert_eq(touch(theirs), 1);
    cr_assert_eq(times, 4);
}

/* A handler that gets no siginfo_t is called, too. */
Test(guard_handlers, the_plain_handler_before)
{
    volatile char *theirs = own_map();
    handle(NULL, without_info, 0);
    guard();
    for (int again = 1; again <= 3; again++) cr_assert(touch(theirs) == 1 && times == again);
}

/* In a child process, set `before` as the handler of SIGBUS, install the guard, and then access
 * memory that faults (`fault`), or send the signal twice. Return the signal that ended the child,
 * or 0. */
static int ended_by(void (*before)(int), int flags, int fault)
{
    int status;
    pid_t child = fork();
    cr_assert(child >= 0);
    if (child == 0) {
        volatile char *p = own_map();
        handle(NULL, before, flags);
        if (sgt_loader_guard_sigbus(NULL) < 0) _exit(1);
        /* a handler with SA_RESETHAND receives one signal, and the next one ends the process */
        if (flags && (!touch(p) || times != 1)) _exit(1);
        if (fault) (void)*p;
        for (int i = 0; i < 2 && !fault; i++) kill(getpid(), SIGBUS);
        _exit(0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

Test(guard_handlers, what_the_system_does_by_itself)
{
    cr_assert_eq(ended_by(SIG_DFL, 0, 1), SIGBUS);
    cr_assert_eq(ended_by(SIG_DFL, 0, 0), SIGBUS);
    cr_assert_eq(ended_by(SIG_IGN, 0, 1), SIGBUS);
    cr_assert_eq(ended_by(SIG_IGN, 0, 0), 0);
    cr_assert_eq(ended_by(without_info, (int)SA_RESETHAND, 1), SIGBUS);
}

/* test_uring.c: io_uring and its fallbacks. For each feature that a machine may lack, an injected
 * fault makes it unavailable. test_uring_reads.c tests reads that fail. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tests/loader/batches.h"

TestSuite(uring, .init = enter_scratch, .fini = leave_scratch, .timeout = 170);

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
                 {ENOSYS, "this kernel has no io_uring, or an old one"},
                 {ENOMEM, "io_uring is short of memory it may lock"},
                 {EMFILE, "io_uring is short of file descriptors (ulimit -n)"},
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
                   "io_uring is short of memory it may lock (the reader mmap needs none)");
    check_run(l, c, 7, 100, NULL);
}

/* If nothing is refused, on a machine that allows io_uring, no fallback is reported. */
Test(uring, direct_reads_refused)
{
    put_folder();
    check_fallback(NULL, "uring", NULL);
    check_fallback(&(reader_fault){.direct_error = EINVAL}, "uring (through the page cache)",
                   "d/train_000000.bin: direct reads are refused (Invalid argument): reading "
                   "through the page cache");
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

/* The reader must also work on tmpfs, where reads are copies from memory. */
Test(uring, file_system_in_memory)
{
    char folder[] = "/dev/shm/sgt-test-XXXXXX", name[64];
    struct statfs fs;
    if (statfs("/dev/shm", &fs) < 0 || fs.f_type != 0x01021994 || !mkdtemp(folder))
        cr_skip_test("no tmpfs at /dev/shm");
    snprintf(name, sizeof name, "%s/train_000000.bin", folder);
    put_shard(name, 0, 5001);
    check_loader(folder, &uring, NULL, NULL);
    cr_assert(unlink(name) == 0 && rmdir(folder) == 0);
}

/* test_preload.c: the reader `preload`. Every token must be at its place in memory, whether it was
 * read from the disk or from the page cache, for shards of any size. Also without io_uring or
 * O_DIRECT, and errors. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/read/pages.h"
#include "tests/loader/batches.h"

TestSuite(preload, .init = enter_scratch, .fini = leave_scratch);

/* Tokens of each shard. They are chosen so that files end before, at and after the end of a read (1
 * MiB) or of a page. */
static const uint64_t sizes[] = {524288 - 512 - 1,    524288 - 512, 524288 - 512 + 1,
                                 1572864 - 512 + 256, 2048 - 512,   18};
enum { SHARDS = sizeof sizes / sizeof *sizes, T = 17 };

static void put_shards(void)
{
    for (uint32_t i = 0; i < SHARDS; i++)
        (i & 1 ? put_foreign : put_shard)(shard_path("d", i, "bin"), i, sizes[i]);
}

/* Drop the file from the page cache, if the file system can do that. */
static void evict(const char *path)
{
    int fd = open(path, O_RDONLY);
    cr_assert(fd >= 0 && fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
    close(fd);
}

static void evict_shards(void)
{
    for (uint32_t i = 0; i < SHARDS; i++) evict(shard_path("d", i, "bin"));
}

static void check_all_tokens(const sgt_loader *l)
{
    const void *ids;
    for (uint32_t i = 0; i < SHARDS; i++) {
        sgt_window w = {.shard = i, .tokens = 1};
        /* preload's reader and cursor are the same object */
        must(l->ops->fetch(l->reader, &w, 1, &ids, why));
        for (uint64_t t = 0; t < sizes[i]; t++)
            cr_assert_eq(sgt_id_at(ids, 2, t), token_at(i, t), "shard %u, token %lu", i, t);
    }
}

static void check_with(const reader_fault *fault)
{
    notices said;
    sgt_loader_options o = {.seq = T, .batch = 4, .notice = collect(&said)};
    scoped(sgt_loader) *l = open_loader("d", &o, fault);
    cr_assert_str_eq(loader_info(l).reader_detail, "preload");
    cr_assert_eq(said.count, 0, "%s", said.last);
    check_all_tokens(l);
}

/* Load the pages from ... to - 1 of the file into the page cache, and no others. */
static void see_pages(const char *path, off_t from, off_t to)
{
    char byte;
    int fd = open(path, O_RDONLY);
    cr_assert(fd >= 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM) == 0);
    for (off_t at = from; at < to; at += 4096) cr_assert_eq(pread(fd, &byte, 1, at), 1);
    close(fd);
}

Test(preload, every_token_from_the_disk_and_from_the_page_cache)
{
    put_shards();
    check_with(NULL);
    evict_shards();
    check_with(NULL);
    /* this shard is read from the disk, the others from the page cache */
    evict("d/train_000003.bin");
    check_with(NULL);
    /* of this shard's three reads, the second finds its pages in the page cache */
    evict("d/train_000003.bin");
    see_pages("d/train_000003.bin", 1 << 20, 2 << 20);
    check_with(NULL);
    evict("d/train_000003.bin");
    see_pages("d/train_000003.bin", 1 << 20, 2 << 20);
    check_with(&(reader_fault){.no_cachestat = 1});
}

Test(preload, without_io_uring_or_direct_reads)
{
    put_shards();
    evict_shards();
    check_with(&(reader_fault){.ring_error = EPERM, .direct_error = EINVAL});
    evict_shards();
    /* as on file systems that accept O_DIRECT and then refuse direct reads */
    check_with(&(reader_fault){.first_error = EINVAL});
    evict_shards();
    check_with(&(reader_fault){.first_error = EINTR});
    for (size_t most = 1000; most < 3000000; most *= 40) {
        evict_shards();
        check_with(&(reader_fault){.most_bytes = most});
    }
}

static int open_with(const reader_fault *fault, sgt_error *err)
{
    sgt_loader_options o = {.seq = T, .batch = 4};
    set_faults(fault);
    return open_only("d", &o, err);
}

/* Reads fail while others are in flight. */
Test(preload, reads_that_fail)
{
    put_shards();
    reader_fault fault = {.read_error = EIO};
    evict_shards();
    expect_failure(open_with(&fault, why), SGT_EIO,
                   "d/train_000000.bin: at byte 0: cannot read: %s", strerror(EIO));
    /* which shard's read fails depends on the order in which reads end */
    fault.reads_first = 3;
    expect_failure_about(open_with(&fault, why), SGT_EIO, ": cannot read: Input/output error");
}

/* If several ids are outside the vocabulary, the error names the first in the order of shards,
 * whichever read ends first. */
Test(preload, the_first_bad_id_is_named)
{
    put_shards();
    patch("d/train_000003.bin", 1024 + 2 * 1572000, "\xff\xff", 2);
    for (int warm = 0; warm < 2; warm++) {
        if (!warm) evict_shards();
        expect_failure(
            open_with(NULL, why), SGT_EFORMAT,
            "d/train_000003.bin: token 1572000 (byte 3145024): id 65535, expected below 50257");
    }
    patch("d/train_000005.bin", 1024, "\xff\xff", 2);
    /* this is the first token of the second read */
    patch("d/train_000003.bin", 1024 + 2 * 523776, "\x51\xc4", 2);
    for (int warm = 0; warm < 2; warm++) {
        if (!warm) evict_shards();
        expect_failure(
            open_with(NULL, why), SGT_EFORMAT,
            "d/train_000003.bin: token 523776 (byte 1048576): id 50257, expected below 50257");
    }
}

/* ---- a shard that is cut while it is read ---- */

/* LONG: tokens of the shard, which has 40 MiB; LEFT: bytes of the file after the cut */
enum { LONG = 20 << 20, LEFT = (36 << 20) + 1001 };

/* Cut the shard after the third of forty reads. Reads in flight reach the new end of the file;
 * reads that begin later notice that the file has changed. */
Test(preload, cut_while_it_is_read)
{
    for (int cached = 0; cached < 2; cached++) {
        sgt_loader_options o = {.seq = T, .batch = 4};
        reader_fault f = {.cut = "d/train_000000.bin", .left = LEFT, .reads_first = 2};
        set_faults(&f);
        put_shard("d/train_000000.bin", 0, LONG);
        evict("d/train_000000.bin");
        if (cached) see_pages("d/train_000000.bin", 20 << 20, 32 << 20);
        expect_failure_about(open_only("d", &o, why), SGT_EFORMAT, "cut short");
    }
}

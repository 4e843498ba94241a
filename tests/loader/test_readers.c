/* test_readers.c: all three readers give the same batches, which match the shards' content, for
 * four samplings, both widths of ids and every output format. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/handle.h"
#include "tests/loader/batches.h"

TestSuite(readers, .init = enter_scratch, .fini = leave_scratch);

Test(readers, all_samplings_and_outputs)
{
    for (; id_width <= 4; id_width += 2) {
        put_folder();
        for (int reader = 0; reader < SGT_READERS; reader++)
            for (int sampling = 0; sampling < SGT_SAMPLING_DOCUMENTS; sampling++)
                for (uint32_t T = 1; T <= 16; T += 15) {
                    sgt_loader_options o = {.reader = (sgt_reader)reader,
                                            .sampling = (sgt_sampling)sampling,
                                            .batch = 6,
                                            .seq = T};
                    for (scalar = 0; scalar < 2; scalar++) check_loader("d", &o, NULL, NULL);
                }
        must(sgt_remove_tree("d", why));
    }
}

/* Ids of 4 bytes do not fit rows of u16. */
Test(readers, wide_ids)
{
    uint16_t rows[6 * 17];
    sgt_stream *s;
    id_width = 4;
    put_folder();
    scoped(sgt_loader) *l = open_loader("d", &(sgt_loader_options){.batch = 6, .seq = 16}, NULL);
    scoped(sgt_cursor) *c = open_cursor(l);
    sgt_loader_info info = loader_info(l);
    cr_assert(info.vocab == 128256 && info.eot == 128255);
    expect_failure(read_rows(l, c, 0, rows, why), SGT_EUSAGE,
                   "d: 4-byte ids do not fit into u16 rows (use i32 or i64)");
    expect_failure(sgt_stream_open(&s, l, NULL, why), SGT_EUSAGE,
                   "d: 4-byte ids do not fit into u16 rows (use i32 or i64)");
}

/* If a call's batches do not fit in the buffer, nothing is written. */
Test(readers, no_room)
{
    enum { B = 4, T = 16 };
    static const size_t want[SGT_OUTPUTS] = {B * (T + 1) * 2, 2 * B * T * 4, 2 * B * T * 8,
                                             B * (T + 1) * 4};
    put_folder();
    scoped(sgt_loader) *l = open_loader("d", &(sgt_loader_options){.batch = B, .seq = T}, NULL);
    scoped(sgt_cursor) *c = open_cursor(l);
    for (int output = 0; output < SGT_OUTPUTS; output++)
        for (uint64_t count = 1; count < 4; count++) {
            int64_t out[3 * 2 * B * T] = {-7};
            size_t one = want[output], bytes = count * one;
            expect_failure(sgt_loader_read(l, c, 0, count, (sgt_output)output, out, bytes - 1, why),
                           SGT_EUSAGE,
                           "%lu batches of %zu bytes do not fit into a buffer of %zu bytes", count,
                           one, bytes - 1);
            cr_assert_eq(out[0], -7);
            expect_failure(
                sgt_loader_read(l, c, 0, count, (sgt_output)output, NULL, bytes, why), SGT_EUSAGE,
                "%lu batches of %zu bytes do not fit into a buffer of 0 bytes", count, one);
            must(sgt_loader_read(l, c, 0, count, (sgt_output)output, out, bytes, why));
        }
    must(sgt_loader_read(l, c, 3, 0, SGT_OUTPUT_I32, NULL, 0, why));
    expect_failure(sgt_loader_read(l, c, 3, 1, SGT_OUTPUTS, &l, 0, why), SGT_EUSAGE,
                   "unknown output %d", SGT_OUTPUTS);
}

/* One call for several batches writes the batches that single calls write: one after the other, and
 * all targets after all inputs. */
Test(readers, several_batches_a_call)
{
    enum { B = 6, T = 16, MANY = 7, FIRST = 3 };
    static char all[MANY * 2 * B * T * 8 + 1], one[2 * B * T * 8];
    put_folder();
    for (int i = 0; i < SGT_READERS * SGT_OUTPUTS; i++) {
        const sgt_output output = (sgt_output)(i / SGT_READERS);
        sgt_loader_options o = {.reader = (sgt_reader)(i % SGT_READERS), .batch = B, .seq = T};
        scoped(sgt_loader) *l = open_loader("d", &o, NULL);
        scoped(sgt_cursor) *c = open_cursor(l);
        const size_t bytes = sgt_stream_bytes(l, output), pairs = (size_t)sgt_output_pairs(output),
                     half = bytes / (1 + pairs); /* bytes of a batch's inputs */
        all[MANY * bytes] = 7;
        must(sgt_loader_read(l, c, FIRST, MANY, output, all, sizeof all, why));
        const sgt_loader_batch *last = sgt_cursor_batch(c);
        cr_assert_eq(last->index, FIRST + MANY - 1);
        cr_assert_eq(last->targets, pairs ? all + MANY * bytes - half : NULL);
        for (uint64_t k = 0; k < MANY; k++) {
            must(sgt_loader_read(l, c, FIRST + k, 1, output, one, sizeof one, why));
            cr_assert_arr_eq(all + k * half, one, half);
            if (pairs) cr_assert_arr_eq(all + (MANY + k) * half, one + half, half);
        }
        cr_assert_eq(all[MANY * bytes], 7);
    }
}

/* The documents of a shard that is too large for one read are found. */
Test(readers, wide_ids_of_a_large_shard)
{
    enum { TOKENS = 600000 };
    sgt_loader_options o = {.seq = 16, .sampling = SGT_SAMPLING_DOCUMENTS};
    id_width = 4;
    const uint32_t eot = VOCAB - 1;
    put_shard("big.bin", 1, TOKENS);
    patch("big.bin", 1024 + 4 * 598000, &eot, 4);
    scoped(sgt_loader) *l = open_loader("big.bin", &o, NULL);
    size_t n = 0;
    for (uint32_t t = 0; t < TOKENS; t++)
        if (t == 598000 || token_at(1, t) == eot) cr_assert_eq(l->documents.starts[n++], t);
    cr_assert_eq(n, l->documents.count);
}

/* Batches of more windows than an io_uring has entries, and rows longer than a page. */
Test(readers, large_batches)
{
    id_width = 4;
    put_folder();
    for (int reader = 0; reader < SGT_READERS; reader++) {
        sgt_loader_options o = {.reader = (sgt_reader)reader, .batch = 300, .seq = 16};
        scoped(sgt_loader) *l = open_loader("d", &o, NULL);
        scoped(sgt_cursor) *c = open_cursor(l);
        for (uint64_t k = 0; k < 10; k++) check_batch(l, c, k, NULL);
        sgt_loader_options wide = {.reader = (sgt_reader)reader, .batch = 3, .seq = 2999};
        static const uint32_t map[] = {0, 4};
        check_loader("d", &wide, NULL, map);
    }
}

/* Rank i of n gets rows i, i + n, ... of each batch that a single rank gets. */
Test(readers, ranks_share_a_batch)
{
    put_folder();
    enum { B = 12, T = 16 };
    uint16_t whole[B * (T + 1)], part[B * (T + 1)];
    for (int sampling = 0; sampling < SGT_SAMPLING_DOCUMENTS; sampling++) {
        sgt_loader_options o = {
            .sampling = (sgt_sampling)sampling, .batch = B, .seq = T, .seed = 4};
        scoped(sgt_loader) *one = open_loader("d", &o, NULL);
        scoped(sgt_cursor) *c1 = open_cursor(one);
        for (o.ranks = 2; o.ranks <= B; o.ranks++) {
            if (B % o.ranks) continue;
            for (o.rank = 0; o.rank < o.ranks; o.rank++) {
                scoped(sgt_loader) *l = open_loader("d", &o, NULL);
                scoped(sgt_cursor) *c = open_cursor(l);
                sgt_loader_info info = loader_info(l);
                cr_assert(info.batch == B && info.local_batch == B / o.ranks);
                for (uint64_t k = 0; k < 60; k += 7) {
                    must(read_rows(one, c1, k, whole, why));
                    must(read_rows(l, c, k, part, why));
                    for (uint32_t i = 0; i < info.local_batch; i++)
                        cr_assert_arr_eq(part + i * (T + 1),
                                         whole + (o.rank + i * o.ranks) * (T + 1), 2 * (T + 1));
                }
            }
        }
    }
}

Test(readers, one_file_and_raw_files)
{
    static const uint32_t second[] = {1}, both[] = {7, 8};
    for (; id_width <= 4; id_width += 2) {
        put_shard("one.bin", 1, 900);
        put_raw("raw.bin", 1, 901);
        put_raw("r/train_a.bin", 7, 500);
        put_raw("r/train_b.bin", 8, 600);
        put_raw("n/train.bin", 7, 500);
        put_raw("n/val.bin", 8, 600);
        for (int reader = 0; reader < SGT_READERS; reader++) {
            sgt_loader_options o = {.reader = (sgt_reader)reader, .seq = 16, .batch = 4};
            check_loader("one.bin", &o, NULL, second);
            if (id_width == 2) check_loader("raw.bin", &o, NULL, second);
            o.raw = 8 * (int)id_width;
            check_loader("raw.bin", &o, NULL, second);
            check_loader("r", &o, NULL, both);
            check_loader("n", &o, NULL, both);
            o.split = "val";
            check_loader("n", &o, NULL, both + 1);
            scoped(sgt_loader) *l = open_loader("raw.bin", &o, NULL);
            cr_assert_eq(loader_info(l).tokens, 901);
            cr_assert_eq(loader_info(l).vocab, id_width == 2 ? 50257 : SGT_MOST_IDS);
        }
    }
    sgt_loader_options o = {.raw = 32, .seq = 16};
    put_bytes("odd.bin", "123456", 6);
    expect_failure(open_only("odd.bin", &o, why), SGT_EFORMAT,
                   "odd.bin: 6 bytes: the size of a file of 32-bit tokens must be a multiple of 4");
    id_width = 2;
    put_raw("raw.bin", 1, 900);
    expect_failure_about(open_only("raw.bin", &o, why), SGT_EUNSUPPORTED,
                         "which no vocabulary has (read 16-bit ids with --raw 16");
    o.raw = 1;
    expect_failure(open_only("raw.bin", &o, why), SGT_EUSAGE,
                   "raw 1: must be 16 or 32, the bits of an id in files without a header");
}

static const sgt_loader_options uring = {.reader = SGT_READER_URING, .batch = 6, .seq = 16};

/* ---- errors ---- */

/* Read n batches of 6 rows and T = 16 from k on. */
static int try_batches(const sgt_loader *l, sgt_cursor *c, uint64_t k, uint64_t n, int output,
                       sgt_error *err)
{
    static int32_t ids[2 * 2 * 6 * 16];
    return sgt_loader_read(l, c, k, n, (sgt_output)output, ids, sizeof ids, err);
}

/* An id outside the vocabulary: preload reports it at open, the other readers in the first batch
 * that holds it, all with the same position. The last id of a window, which is only a target,
 * counts too. */
Test(readers, id_past_the_vocabulary)
{
    for (; id_width <= 4; id_width += 2) {
        char want[128];
        const uint32_t high = VOCAB;
        snprintf(want, sizeof want,
                 "d/train_000004.bin: token 2016 (byte %zu): id %u, expected below %u",
                 1024 + 2016 * id_width, high, high);
        put_folder();
        patch("d/train_000004.bin", 1024 + 2016 * id_width, &high, id_width);
        sgt_loader_options o = {.batch = 6, .seq = 16, .sampling = SGT_SAMPLING_SEQUENTIAL};
        expect_failure(open_only("d", &o, why), SGT_EFORMAT, "%s", want);
        for (int i = 0; i < 4; i++) {
            o.reader = i & 1 ? SGT_READER_MMAP : SGT_READER_URING;
            scalar = i >> 1;
            scoped(sgt_loader) *l = open_loader("d", &o, NULL);
            scoped(sgt_cursor) *c = open_cursor(l);
            for (int output = id_width == 4; output < 2; output++) {
                int failed = 0;
                for (uint64_t row = 0; row < l->mix.windows; row++) {
                    sgt_window w = sgt_mix_window(&l->mix, row);
                    if (w.shard != 4 || w.offset > 2016 || w.offset + 16 < 2016) continue;
                    failed++;
                    expect_failure(try_batches(l, c, row / 6, 1, output, why), SGT_EFORMAT, "%s",
                                   want);
                }
                cr_assert_eq(failed,
                             2); /* windows 2000 ... 2016 and 2016 ... 2032 both hold the id */
            }
        }
        must(sgt_remove_tree("d", why));
    }
}

/* The caller may set a vocabulary, which bounds ids too. The largest is 2^20. */
Test(readers, vocabulary_of_the_caller)
{
    put_folder();
    sgt_loader_options o = {.batch = 6, .seq = 16, .vocab = 100};
    expect_failure_about(open_only("d", &o, why), SGT_EFORMAT, "expected below 100");
    o.vocab = 50304;
    scoped(sgt_loader) *l = open_loader("d", &o, NULL);
    cr_assert_eq(loader_info(l).vocab, 50257);
    put_raw("any.bin", 0, 100);
    patch("any.bin", 20, "\xff\xff", 2);
    o = (sgt_loader_options){.batch = 6, .seq = 16, .vocab = 65536};
    must(open_only("any.bin", &o, why));
    o.vocab = SGT_MOST_IDS;
    must(open_only("any.bin", &o, why));
    o.vocab++;
    expect_failure(open_only("any.bin", &o, why), SGT_EUSAGE,
                   "a vocabulary of 1048577 ids: at most 1048576 are supported");
}

/* If a shard is replaced by another file or removed, the loader still reads the file that it has
 * opened or mapped. */
Test(readers, replaced_files_stay_open)
{
    for (int reader = 0; reader < SGT_READERS; reader++) {
        sgt_loader_options o = {.reader = (sgt_reader)reader, .batch = 6, .seq = 16};
        put_folder();
        scoped(sgt_loader) *l = open_loader("d", &o, NULL);
        scoped(sgt_cursor) *c = open_cursor(l);
        put_shard("new", 9, 3000);
        cr_assert_eq(rename("new", "d/train_000004.bin"), 0);
        cr_assert_eq(unlink("d/train_000002.bin"), 0);
        check_run(l, c, 0, 200, NULL);
        must(sgt_remove_tree("d", why));
    }
}

Test(readers, file_cut_while_in_use)
{
    put_folder();
    sgt_loader_options o = uring;
    o.sampling = SGT_SAMPLING_SEQUENTIAL;
    scoped(sgt_loader) *l = open_loader("d", &o, NULL);
    scoped(sgt_cursor) *c = open_cursor(l);
    check_batch(l, c, 0, NULL);
    /* the cut is within row 4, so row 5 and all later rows lie beyond it */
    resize("d/train_000000.bin", 1024 + 2 * 80);
    for (uint64_t k = 0; k < 30; k += 10)
        expect_failure(try_batches(l, c, k, 1, SGT_OUTPUT_U16, why), SGT_EFORMAT,
                       "d/train_000000.bin: ends at byte 1184, in the middle of a window: cut "
                       "short while in use");
}

Test(readers, rows_past_64_bits)
{
    put_folder();
    scoped(sgt_loader) *l = open_loader("d", &uring, NULL);
    scoped(sgt_cursor) *c = open_cursor(l);
    check_batch(l, c, UINT64_MAX / 6 - 1, NULL);
    for (uint64_t n = 1; n <= 2; n++)
        expect_failure(
            try_batches(l, c, UINT64_MAX / 6 + 1 - n, n, SGT_OUTPUT_I32, why), SGT_EUSAGE,
            "batch 3074457345618258602: too large: with 6 rows per batch, its row numbers "
            "need more than 64 bits");
}

/* Write to `root` the files of a container with a memory limit of `most` bytes, of which `used` are
 * in use. Both are texts of 7 digits. */
static void put_container(const char *root, const char *most, const char *used)
{
    char path[SGT_PATH];
    put_bytes(sgt_path(path, root, "proc/self/cgroup"), "0::/\n", 5);
    put_bytes(sgt_path(path, root, "sys/fs/cgroup/memory.max"), most, 7);
    put_bytes(sgt_path(path, root, "sys/fs/cgroup/memory.current"), used, 7);
}

/* Expect that preload is refused: the set takes `takes`, and the container has `has`. If `may_map` is
 * set, mmap replaces it. */
static void refused(const reader_fault *fault, sgt_loader_options o, const char *takes,
                    const char *has)
{
    notices said;
    char needs[256], want[300];
    snprintf(needs, sizeof needs,
             "the set needs %s, but this process's control group (container) has only %s", takes,
             has);
    set_faults(fault);
    expect_failure(open_only("d", &o, why), SGT_ENOMEM,
                   "%s (use the reader mmap or uring, which need no memory for the set)", needs);
    o.may_map = 1;
    o.notice = collect(&said);
    scoped(sgt_loader) *l = open_loader("d", &o, fault);
    cr_assert_eq(said.count, 1);
    snprintf(want, sizeof want, "%s: reading with mmap instead", needs);
    cr_assert_str_eq(said.last, want);
    snprintf(want, sizeof want, "preload (mmap: %s)", needs);
    cr_assert_str_eq(loader_info(l).reader_detail, want);
}

/* The set takes 3 MiB. There must be room for the copies of all processes, even if some of them have
 * filled theirs. `available`, the memory that was free before any copy, bounds all copies, whatever
 * is free now. */
Test(readers, copies_of_several_processes)
{
    static const struct {
        const char *most, *used;
        uint32_t copies;
        uint64_t available;
        const char *takes, *has; /* NULL: it fits */
    } cases[] = {{"3145728", "1048576", 0, 0, "3 MiB", "2 MiB of free memory for data"},
                 {"8388608", "1048576", 0, 0, NULL, NULL},
                 {"8388608", "1048576", 1, 0, NULL, NULL},
                 {"8388608", "1048576", 2, 0, NULL, NULL},
                 {"8388608", "1048576", 3, 0, "3 MiB in each of 3 processes", "8 MiB of memory"},
                 {"8388608", "4194304", 2, 0, NULL, NULL},
                 {"8388608", "4194304", 2, 6 << 20, NULL, NULL},
                 {"8388608", "4194304", 2, (6 << 20) - 1, "3 MiB in each of 2 processes",
                  "5 MiB of free memory for data"},
                 {"8388608", "6291456", 2, 0, "3 MiB in each of 2 processes",
                  "2 MiB of free memory for data"}};
    const reader_fault fault = {.memory = "root"};
    put_raw("d/train_a.bin", 0, 1 << 20);
    put_raw("d/train_b.bin", 1, 1 << 19);
    set_faults(&fault);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const sgt_loader_options o = {
            .raw = 16, .seq = 16, .copies = cases[i].copies, .available = cases[i].available};
        put_container("root", cases[i].most, cases[i].used);
        if (cases[i].takes) refused(&fault, o, cases[i].takes, cases[i].has);
        else must(open_only("d", &o, why));
    }
}

/* Write to `root` the /proc files of process `number`: its parent, and `kib` KiB of anonymous
 * memory. */
static void put_process(const char *root, int number, int parent, int kib)
{
    char path[64], text[64];
    snprintf(path, sizeof path, "%s/proc/%d/status", root, number);
    snprintf(text, sizeof text, "Name:\tx\nPPid:\t%d\nRssAnon:\t%8d kB\n", parent, kib);
    put_bytes(path, text, strlen(text));
}

/* 4 MiB are free, and two processes of one parent have filled 2 MiB of their copies, so two copies
 * of 3 MiB fit. The other 2 MiB in use belong to processes without a copy. */
Test(readers, copies_beside_other_programs)
{
    put_container("root", "8388608", "4194304");
    put_raw("d/train_a.bin", 0, 3 << 19);
    reader_fault fault = {.memory = "root"};
    const sgt_loader_options o = {.raw = 16, .seq = 16, .copies = 2};
    set_faults(&fault);
    put_process("root", 1, getppid(), 1023);
    cr_assert(symlink("../1/status", "root/proc/self/status") == 0);
    put_process("root", 2, getppid() + 1, 1 << 20);
    must(open_only("d", &o, why)); /* only one process of this parent: process 2 has another */
    put_process("root", 3, getppid(), 1024);
    refused(&fault, o, "3 MiB in each of 2 processes", "5 MiB of free memory for data");
    put_process("root", 1, getppid(), 1024);
    must(open_only("d", &o, why));
}

/* Other processes take the memory while a copy is filled. Preload must give up before the kernel
 * has to kill a process. */
Test(readers, memory_that_goes_while_a_copy_is_filled)
{
    put_container("root", "8388608", "1048576");
    put_container("later", "8388608", "7340032");
    put_raw("d/train_a.bin", 0, 3 << 19);
    const reader_fault fault = {.memory = "root", .looks = 1, .later = "later"};
    refused(&fault, (sgt_loader_options){.raw = 16, .seq = 16}, "3 MiB",
            "1 MiB of free memory for data");
}

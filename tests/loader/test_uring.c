/* io_uring and what takes its place: each thing that may be refused, forced; what goes wrong while reads are in flight;
 * cursors that move between threads, are closed early, or meet a fork. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/loader/batches.h"

TestSuite(uring, .init = enter_scratch, .fini = leave_scratch, .timeout = 170);

static const sgt_loader_options uring = {.reader = SGT_READER_URING, .batch = 6, .seq = 16};

static int open_descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

/* Three cursors that take turns and are closed with reads in flight; then one alone. */
static void check_fallback(const sgt_reader_fault *fault, const char *detail, const char *notice)
{
    notices said;
    sgt_loader_info info;
    sgt_loader_options o = uring;
    o.notice = collect(&said);
    sgt_loader *l = open_loader("d", &o, fault);
    sgt_cursor *c[3];
    for (int i = 0; i < 3; i++) c[i] = open_cursor(l);
    for (uint64_t k = 0; k < 60; k++) check_run(l, c[k % 3], k, 1, NULL);
    for (int i = 0; i < 3; i++) sgt_cursor_close(c[i]);
    c[0] = open_cursor(l);
    check_run(l, c[0], 1000, 200, NULL);
    check_batch(l, c[0], 3, NULL);
    sgt_cursor_close(c[0]);
    sgt_loader_get_info(l, &info);
    cr_assert_str_eq(info.reader_detail, detail);
    cr_assert_eq(said.count, notice != NULL, "%d notices, the last %s", said.count, said.last);
    if (notice) cr_assert_str_eq(said.last, notice);
    sgt_loader_close(l);
}

/* Everything granted, where the machine grants it. */
Test(uring, nothing_refused)
{
    put_folder();
    check_fallback(NULL, "uring", NULL);
}

Test(uring, ring_refused)
{
    static const struct {
        int error;
        const char *why, *text;
    } cases[] = {{EPERM, "io_uring is forbidden", "Operation not permitted"},
                 {EACCES, "io_uring is forbidden", "Permission denied"},
                 {ENOSYS, "this kernel has no io_uring, or an old one", "Function not implemented"},
                 {ENOMEM, "io_uring is short of memory it may lock", "Cannot allocate memory"},
                 {EMFILE, "io_uring is short of file descriptors", "Too many open files"},
                 {EINVAL, "io_uring cannot be had", "Invalid argument"}};
    put_folder();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char detail[128], notice[256];
        snprintf(detail, sizeof detail, "uring (pread: %s)", cases[i].why);
        snprintf(notice, sizeof notice, "%s here (%s): reading with pread instead", cases[i].why, cases[i].text);
        check_fallback(&(sgt_reader_fault){.ring_error = cases[i].error}, detail, notice);
    }
}

/* The first cursor has a ring, the other two do not: said once. */
Test(uring, ring_refused_to_some)
{
    put_folder();
    check_fallback(&(sgt_reader_fault){.ring_error = ENOMEM, .rings_first = 2}, "uring",
                   "io_uring is short of memory it may lock here (Cannot allocate memory): reading with pread instead");
}

/* As containers do it: the system call itself is answered with EPERM. */
Test(uring, ring_forbidden_by_seccomp)
{
    struct sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
                                  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                                  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    put_folder();
    cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) cr_skip_test("this kernel has no seccomp filters");
    check_fallback(NULL, "uring (pread: io_uring is forbidden)",
                   "io_uring is forbidden here (Operation not permitted): reading with pread instead");
}

Test(uring, one_thing_refused)
{
    static const struct {
        sgt_reader_fault fault;
        const char *detail, *notice;
    } cases[] = {
        {{.flags_error = EINVAL},
         "uring (no SINGLE_ISSUER)",
         "io_uring has no SINGLE_ISSUER and DEFER_TASKRUN here (Invalid argument): doing without"},
        {{.files_error = EMFILE},
         "uring (no registered files)",
         "io_uring cannot register 5 files here (Too many open files): handing them over with each read"},
        {{.memory_error = ENOMEM},
         "uring (no registered memory)",
         "io_uring cannot register 168 KiB of memory here (Cannot allocate memory; ulimit -l): reading into memory "
         "that is not"},
        {{.direct_error = EINVAL},
         "uring (through the page cache)",
         "d/train_000000.bin: direct reads are refused (Invalid argument): reading through the page cache"},
        {{.align_unknown = 1}, "uring", NULL},
    };
    put_folder();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_fallback(&cases[i].fault, cases[i].detail, cases[i].notice);
}

/* Some file systems open files for direct reads and then refuse those. */
Test(uring, direct_reads_refused_late)
{
    put_folder();
    notices said;
    sgt_loader_options o = uring;
    o.notice = collect(&said);
    for (int ring = 0; ring < 2; ring++) {
        sgt_reader_fault fault = {.direct_read_error = EINVAL, .ring_error = ring ? 0 : EPERM};
        sgt_loader *l = open_loader("d", &o, &fault);
        sgt_cursor *c = open_cursor(l);
        check_run(l, c, 0, 100, NULL);
        cr_assert_eq(said.count, ring ? 1 : 2);
        static const char want[] = ".bin: direct reads are refused (Invalid argument): reading through the page cache";
        cr_assert(strstr(said.last, want), "%s", said.last);
        sgt_cursor_close(c);
        sgt_loader_close(l);
        said.count = 0;
    }
}

/* What one cursor finds out the other must follow, whose ring has the shards as they were opened before. */
Test(uring, direct_reads_refused_in_between)
{
    put_folder();
    for (unsigned files = 0; files < 2; files++) {
        notices said;
        sgt_loader_options o = uring;
        o.notice = collect(&said);
        sgt_reader_fault fault = {.direct_read_error = EINVAL, .reads_first = 430, .most_files = files};
        sgt_loader *l = open_loader("d", &o, &fault);
        sgt_cursor *c = open_cursor(l), *other = open_cursor(l);
        check_batch(l, other, 7, NULL); /* 18 reads, and none ahead */
        check_run(l, c, 0, 40, NULL);   /* (40 + 27) * 6 at most */
        cr_assert_eq(said.count, 0);
        check_run(l, c, 40, 100, NULL);
        cr_assert_eq(said.count, 1);
        check_batch(l, other, 7, NULL);
        check_run(l, other, 40, 100, NULL);
        sgt_cursor_close(c);
        sgt_cursor_close(other);
        sgt_loader_close(l);
    }
}

Test(uring, everything_refused)
{
    notices said;
    sgt_loader_info info;
    sgt_loader_options o = uring;
    sgt_reader_fault fault = {
        .flags_error = EINVAL, .files_error = EMFILE, .memory_error = ENOMEM, .direct_error = EINVAL};
    put_folder();
    for (int ring = 0; ring < 2; ring++) {
        o.notice = collect(&said);
        fault.ring_error = ring ? 0 : EPERM;
        sgt_loader *l = open_loader("d", &o, &fault);
        sgt_cursor *c = open_cursor(l);
        check_run(l, c, 7, 100, NULL);
        sgt_loader_get_info(l, &info);
        cr_assert_str_eq(info.reader_detail,
                         ring ? "uring (no SINGLE_ISSUER, no registered files, no registered memory, "
                                "through the page cache)"
                              : "uring (pread: io_uring is forbidden, through the page cache)");
        cr_assert_eq(said.count, ring ? 4 : 2);
        sgt_cursor_close(c);
        sgt_loader_close(l);
    }
}

/* The ring itself fails, at once or with reads in flight: everything is read otherwise, and nothing is lost. */
Test(uring, ring_that_fails)
{
    static const unsigned after[] = {0, 1, 2, 7, 60};
    static const char said[] = "io_uring failed (Cannot allocate memory): reading with pread instead";
    put_folder();
    int before = open_descriptors();
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
        sgt_reader_fault fault = {.enter_error = ENOMEM, .enters_first = after[i]};
        check_fallback(&fault, "uring", said);
        fault.flags_error = EINVAL;
        notices all;
        sgt_loader_options o = uring;
        o.notice = collect(&all);
        sgt_loader *l = open_loader("d", &o, &fault);
        sgt_cursor *c = open_cursor(l);
        check_run(l, c, 0, 100, NULL);
        cr_assert(all.count == 2 && !strcmp(all.last, said), "%s", all.last);
        sgt_cursor_close(c);
        sgt_loader_close(l);
    }
    cr_assert_eq(open_descriptors(), before);
}

/* And nobody can tell when the reads that it has in flight will end: they may yet write into the memory that others
 * would read into. Where none was, it goes on as above. */
Test(uring, ring_that_fails_and_cannot_be_watched)
{
    put_folder();
    int before = open_descriptors(), failures = 0;
    for (unsigned after = 0; after < 20; after++) {
        sgt_reader_fault fault = {.enter_error = EIO, .enters_first = after, .pipe_error = EMFILE};
        notices said;
        sgt_loader_options o = uring;
        o.notice = collect(&said);
        sgt_loader *l = open_loader("d", &o, &fault);
        sgt_cursor *c = open_cursor(l);
        cr_assert_eq(said.count, 1);
        cr_assert_str_eq(said.last, "io_uring has no SINGLE_ISSUER and DEFER_TASKRUN here (Too many open files): doing "
                                    "without");
        int failed = 0;
        for (uint64_t k = 0; k < 60; k++) {
            static uint16_t rows[6 * 17];
            sgt_error err;
            int rc = sgt_loader_batch(l, c, k, rows, &err);
            cr_assert(!failed || rc < 0, "batch %lu, after one that failed", k);
            if ((failed = rc < 0))
                cr_assert(rc == SGT_EIO && strstr(err.text, ".bin: io_uring failed: Input/output error"), "%s",
                          err.text);
        }
        cr_assert(failed || said.count == 2);
        failures += failed;
        sgt_cursor_close(c);
        c = open_cursor(l);
        sgt_cursor_close(c); /* another one, of which nothing was asked */
        sgt_loader_close(l);
    }
    cr_assert(failures < 20); /* the first has nothing in flight */
    cr_assert_eq(open_descriptors(), before);
}

/* A file system in memory, where reads are copies. */
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

/* ---- reads that end early ---- */

static const sgt_reader_fault buffered = {.direct_error = EINVAL};

/* As many bytes at a time as a fault allows, by all means. */
static void check_short(const sgt_reader_fault *fault, size_t most, uint32_t seq, const uint32_t *map)
{
    for (int ring = 0; ring < 2; ring++) {
        sgt_reader_fault f = *fault;
        sgt_loader_options o = uring;
        o.seq = seq;
        f.most_bytes = most;
        f.ring_error = ring ? 0 : EPERM;
        sgt_loader *l = open_loader("d", &o, &f);
        sgt_cursor *c = open_cursor(l);
        check_run(l, c, 5, 40, map);
        check_batch(l, c, 3, map);
        sgt_cursor_close(c);
        sgt_loader_close(l);
    }
}

/* Windows of 34 bytes, and of 1,802, which lie in four or five pieces of 512. */
Test(uring, short_reads_are_continued)
{
    static const uint32_t map[] = {0, 2, 4};
    put_folder();
    for (size_t most = 1; most <= 35; most += 17) check_short(&buffered, most, 16, NULL);
    check_short(&buffered, 100, 900, map);
    check_short(&(sgt_reader_fault){0}, 1, 16, NULL);
    for (size_t most = 1; most <= 1025; most += 512) check_short(&(sgt_reader_fault){0}, most, 900, map);
}

Test(uring, interrupted_reads_are_asked_for_again)
{
    static const int errors[] = {EINTR, EAGAIN, ECANCELED};
    put_folder();
    for (int i = 0; i < 6; i++) {
        sgt_reader_fault fault = {.first_error = errors[i / 2], .ring_error = i & 1 ? EPERM : 0};
        sgt_loader *l = open_loader("d", &uring, &fault);
        sgt_cursor *c = open_cursor(l);
        check_run(l, c, 0, 200, NULL);
        sgt_cursor_close(c);
        sgt_loader_close(l);
    }
}

/* Windows that end where the file does: nowhere near a multiple of 512 (5,002 bytes), at one, and two bytes past. */
Test(uring, ends_of_files)
{
    static const uint64_t tokens[] = {(5002 - 1024) / 2, (5120 - 1024) / 2, (5122 - 1024) / 2};
    for (size_t i = 0; i < 3; i++)
        for (int direct = 0; direct < 2; direct++)
            for (int ring = 0; ring < 2; ring++) {
                sgt_reader_fault fault = {.direct_error = direct ? 0 : EINVAL, .ring_error = ring ? 0 : EPERM};
                put_shard("one.bin", 0, tokens[i]);
                sgt_loader_options o = {.reader = SGT_READER_URING,
                                        .batch = 1,
                                        .seq = (uint32_t)tokens[i] - 1,
                                        .sampling = SGT_SAMPLING_SEQUENTIAL};
                sgt_loader *l = open_loader("one.bin", &o, &fault);
                sgt_cursor *c = open_cursor(l);
                check_run(l, c, 0, 20, NULL); /* the whole shard, again and again */
                sgt_cursor_close(c);
                sgt_loader_close(l);
                o = uring;
                l = open_loader("one.bin", &o, &fault);
                c = open_cursor(l);
                check_run(l, c, 0, 60, NULL);
                sgt_cursor_close(c);
                sgt_loader_close(l);
            }
}

/* More completions than a ring has room for, and more reads than it takes at once. */
Test(uring, rings_smaller_than_what_is_in_flight)
{
    put_folder();
    for (unsigned entries = 1; entries <= 4; entries *= 2) {
        sgt_reader_fault fault = {.ring_entries = entries};
        for (int plain = 0; plain < 2; plain++) {
            sgt_loader_options o = {.reader = SGT_READER_URING, .batch = 300, .seq = 16};
            fault.flags_error = plain ? EINVAL : 0;
            sgt_loader *l = open_loader("d", &o, &fault);
            sgt_cursor *c = open_cursor(l);
            check_run(l, c, 0, 30, NULL);
            sgt_cursor_close(c);
            sgt_loader_close(l);
        }
    }
}

/* ---- failures ---- */

static int draw_one(const sgt_loader *l, sgt_cursor *c, uint64_t k, sgt_error *err)
{
    static uint16_t rows[300 * 17];
    return sgt_loader_batch(l, c, k, rows, err);
}

/* A read fails in the batch that is asked for, or in one that was expected: the first window that has failed is named,
 * no more is lost than that batch, and every further call says so again. */
Test(uring, disk_errors_name_shard_and_offset)
{
    put_folder();
    for (int i = 0; i < 4; i++) {
        sgt_loader_options o = {
            .reader = SGT_READER_URING, .batch = 1, .seq = 16, .sampling = SGT_SAMPLING_SEQUENTIAL};
        sgt_reader_fault fault = {.read_error = EIO,
                                  .reads_first = 310, /* shard 0 has 312 rows */
                                  .ring_error = i & 1 ? EPERM : 0,
                                  .direct_error = i & 2 ? EINVAL : 0};
        sgt_loader *l = open_loader("d", &o, &fault);
        sgt_cursor *c = open_cursor(l);
        check_run(l, c, 0, 100, NULL); /* with up to 160 more in flight */
        for (uint64_t k = 100; k < 320; k++) {
            sgt_error err;
            uint32_t shard;
            uint64_t at;
            char want[256];
            if (draw_one(l, c, k, &err) == 0) continue;
            sgt_loader_window(l, k, &shard, &at);
            snprintf(want, sizeof want, "%s: at byte %lu: cannot read: Input/output error",
                     sgt_loader_shard_path(l, shard), 1024 + 2 * at);
            cr_assert_str_eq(err.text, want);
            cr_assert_eq(err.code, SGT_EIO);
            cr_assert_geq(k, 100);
        }
        for (int again = 0; again < 2; again++)
            expect_failure(draw_one(l, c, 312, why), SGT_EIO,
                           "d/train_000001.bin: at byte 1024: cannot read: Input/output error");
        sgt_cursor_close(c);
        sgt_loader_close(l);
    }
}

/* A shard that is gone by the time it is first needed. */
Test(uring, shard_gone)
{
    put_folder();
    sgt_loader_options o = uring;
    o.sampling = SGT_SAMPLING_SEQUENTIAL;
    for (int i = 0; i < 2; i++) {
        sgt_loader *l = open_loader("d", &o, &(sgt_reader_fault){.ring_error = i ? EPERM : 0});
        sgt_cursor *c = open_cursor(l);
        cr_assert_eq(rename("d/train_000004.bin", "d/away"), 0);
        check_run(l, c, 0, 60, NULL);
        for (int again = 0; again < 2; again++) /* row 312 + 1 + 77 + 2 = 392 is shard 4's first */
            expect_failure(draw_one(l, c, 392 / 6, why), SGT_EIO, "d/train_000004.bin: No such file or directory");
        cr_assert_eq(rename("d/away", "d/train_000004.bin"), 0);
        check_run(l, c, 60, 20, NULL);
        sgt_cursor_close(c);
        sgt_loader_close(l);
    }
}

/* One that is another by then, of the same size. */
Test(uring, shard_replaced)
{
    put_folder();
    sgt_loader_options o = uring;
    o.sampling = SGT_SAMPLING_SEQUENTIAL;
    sgt_loader *l = open_loader("d", &o, NULL);
    sgt_cursor *c = open_cursor(l);
    check_run(l, c, 0, 20, NULL);
    put_shard("new", 9, 3000);
    cr_assert_eq(rename("new", "d/train_000004.bin"), 0);
    expect_failure(draw_one(l, c, 400 / 6, why), SGT_EFORMAT,
                   "d/train_000004.bin: written or replaced since the set was opened (open it again)");
    check_run(l, c, 20, 20, NULL);
    sgt_cursor_close(c);
    sgt_loader_close(l);
}

/* ---- descriptors ---- */

/* 60 shards, of which two are kept open, or as many as half of 80 descriptors; none is left open in the end. */
Test(uring, more_shards_than_descriptors)
{
    struct rlimit few = {80, 80};
    enum { SHARDS = 100 };
    cr_assert_eq(mkdir("d", 0777), 0);
    for (uint32_t i = 0; i < SHARDS; i++) {
        char name[64];
        snprintf(name, sizeof name, "d/train_%06u.bin", i);
        put_shard(name, i, 200 + i);
    }
    int before = open_descriptors();
    for (int i = 0; i < 6; i++) {
        sgt_reader_fault fault = {.most_files = i & 1 ? 2 : 0, .ring_error = i == 2 || i == 3 ? EPERM : 0};
        if (i == 4) {
            fault.files_error = EMFILE;
            fault.most_files = 1;
        }
        if (i == 5) {
            fault.most_files = 0;
            cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
        }
        notices said;
        sgt_loader_options o = uring;
        o.notice = collect(&said);
        sgt_loader *l = open_loader("d", &o, &fault);
        sgt_cursor *c = open_cursor(l), *other = open_cursor(l);
        check_run(l, c, 0, 100, NULL);
        check_run(l, other, 50, 100, NULL);
        if (i == 5) {
            cr_assert_eq(said.count, 1);
            cr_assert_str_eq(said.last, "io_uring cannot register 100 files here (Too many open files): handing them "
                                        "over with each read");
            cr_assert_leq(open_descriptors(), 80);
        }
        sgt_cursor_close(c);
        sgt_cursor_close(other);
        sgt_loader_close(l);
        cr_assert_eq(open_descriptors(), before);
    }
}

/* ---- cursors that are closed early, move between threads, or meet a fork ---- */

Test(uring, closed_with_reads_in_flight)
{
    put_folder();
    int before = open_descriptors();
    for (int i = 0; i < 5; i++) {
        sgt_reader_fault fault = {.ring_error = i == 1 ? EPERM : 0, .flags_error = i == 2 || i == 4 ? EINVAL : 0};
        if (i >= 3) fault.enter_error = ENXIO, fault.enters_first = 7;
        sgt_loader *l = open_loader("d", &uring, &fault);
        for (uint64_t k = 0; k < 60; k++) {
            sgt_cursor *c = open_cursor(l);
            check_run(l, c, 3 * k, k % 4, NULL);
            if (k % 3 == 1) check_run(l, c, 900 - k, 2, NULL); /* what was expected is not wanted any more */
            sgt_cursor_close(c);
        }
        sgt_loader_close(l);
    }
    cr_assert_eq(open_descriptors(), before);
}

typedef struct turn {
    const sgt_loader *l;
    sgt_cursor *c;
    uint64_t first, n;
    int close;
} turn;

static void *take_turn(void *arg)
{
    turn *t = arg;
    check_run(t->l, t->c, t->first, t->n, NULL);
    if (t->close) sgt_cursor_close(t->c);
    return NULL;
}

static void take_turn_elsewhere(const turn *t)
{
    pthread_t thread;
    turn copy = *t;
    cr_assert_eq(pthread_create(&thread, NULL, take_turn, &copy), 0);
    pthread_join(thread, NULL);
}

/* Reads that one thread has in flight are another's to wait for. */
Test(uring, cursors_move_between_threads)
{
    put_folder();
    int before = open_descriptors();
    for (int i = 0; i < 3; i++) {
        sgt_reader_fault fault = {.ring_error = i == 1 ? EPERM : 0, .direct_error = i == 2 ? EINVAL : 0};
        sgt_loader *l = open_loader("d", &uring, &fault);
        sgt_cursor *c = open_cursor(l);
        turn here = {l, c, 0, 10, 0}, there = {l, c, 10, 10, 0};
        take_turn(&here);
        take_turn_elsewhere(&there);
        here.first = 20;
        take_turn(&here);
        there.first = 30;
        there.close = 1;
        take_turn_elsewhere(&there);
        here.c = open_cursor(l); /* opened here, drawn from there, closed here */
        there.c = here.c;
        there.close = 0;
        take_turn_elsewhere(&there);
        sgt_cursor_close(here.c);
        sgt_loader_close(l);
    }
    cr_assert_eq(open_descriptors(), before);
}

/* In the child: its parent's cursor is refused, and one of its own has the same batches. */
static int in_child(const sgt_loader *l, sgt_cursor *parents)
{
    static const char want[] = "the cursor is the parent's: io_uring does not outlive a fork (open one in the child)";
    sgt_error err;
    sgt_cursor *own;
    uint16_t rows[6 * 17];
    for (int again = 0; again < 2; again++)
        if (draw_one(l, parents, 3, &err) != SGT_EUSAGE || strcmp(err.text, want)) return 1;
    sgt_cursor_close(parents);
    if (sgt_cursor_open(&own, l, &err) < 0) return 2;
    for (uint64_t k = 0; k < 30; k++) {
        if (sgt_loader_batch(l, own, k, rows, &err) < 0) return 3;
        for (uint32_t r = 0; r < 6; r++) {
            uint32_t shard;
            uint64_t at;
            sgt_loader_window(l, k * 6 + r, &shard, &at);
            for (uint32_t t = 0; t <= 16; t++)
                if (rows[r * 17 + t] != token_at(shard, at + t)) return 4;
        }
    }
    sgt_cursor_close(own);
    return 0;
}

Test(uring, forks)
{
    put_folder();
    for (int i = 0; i < 4; i++) {
        sgt_loader_options o = uring;
        o.sampling = i & 2 ? SGT_SAMPLING_BLOCK : SGT_SAMPLING_SHUFFLE; /* of the former a thread reads ahead */
        sgt_loader *l = open_loader("d", &o, &(sgt_reader_fault){.ring_error = i & 1 ? EPERM : 0});
        sgt_cursor *c = open_cursor(l);
        check_run(l, c, 0, 3, NULL); /* and more are in flight */
        if (i & 2) usleep(100000);   /* locks that another thread has at a fork are nobody's in the child */
        pid_t child = fork();
        if (!child) _exit(in_child(l, c));
        int status;
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
        check_run(l, c, 3, 50, NULL);
        sgt_cursor_close(c);
        sgt_loader_close(l);
    }
}

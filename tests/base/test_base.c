/* test_base.c: loader/base: messages, CPU levels, random numbers, atomic files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/memory.h"
#include "loader/base/cpu.h"
#include "loader/base/error.h"
#include "loader/base/file.h"
#include "loader/base/json.h"
#include "loader/base/thread.h"
#include "loader/base/philox.h"
#include "tests/expect.h"
#include "tests/scratch.h"

static char folder[SCRATCH_SIZE];

static void enter_folder(void)
{
    cr_assert(scratch_folder(folder, "/tmp", "base") && chdir(folder) == 0, "%s", folder);
}

static void leave_folder(void)
{
    cr_assert(chdir("/") == 0);
    must(sgt_remove_tree(folder, why));
    cr_assert(access(folder, F_OK) < 0 && errno == ENOENT);
}

Test(error, text_is_safe_to_print)
{
    const char *raw = "a\nb\x1b[31m\x7f\xff\xc3\xa9\xed\xa0\x80\xc2\x85\xf0\x9f\x99\x82";
    expect_failure(sgt_fail(why, SGT_EFORMAT, "%s", raw), SGT_EFORMAT,
                   "a\\x0ab\\x1b[31m\\x7f\\xff\xc3\xa9\\xed\\xa0\\x80\\xc2\\x85\xf0\x9f\x99\x82");
}

Test(error, errno_is_named_and_memory_told_apart)
{
    sgt_error err;
    errno = ENOENT;
    expect_failure(sgt_fail_errno(why, "%s", "x"), SGT_EIO, "x: No such file or directory");
    errno = ENOMEM;
    cr_assert_eq(sgt_fail_errno(&err, "x"), SGT_ENOMEM);
    cr_assert_eq(sgt_fail_errno(NULL, "x"), SGT_ENOMEM);
    expect_failure(sgt_fail_memory(why, "rows"), SGT_ENOMEM, "rows: out of memory");
    expect_failure(sgt_fail_memory(why, NULL), SGT_ENOMEM, "out of memory");
}

Test(error, byte_order_marks_are_shown)
{
    char shown[32];
    static const char text[] = "\xef\xbb\xbfx\xef\xbb\xbe\xef\xbb\xbf";
    cr_assert_str_eq(sgt_printable(shown, sizeof shown, text),
                     "\\xef\\xbb\\xbfx\xef\xbb\xbe\\xef\\xbb\\xbf");
}

Test(error, long_messages_are_cut_between_characters)
{
    sgt_error err;
    char longer[4000], small[5];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    sgt_fail(&err, SGT_EIO, "%s", longer);
    cr_assert_eq(strlen(err.text), sizeof err.text - 1);
    /* a message that is too long keeps the reason at its end; its middle is cut between two
     * characters */
    for (size_t i = 0; i < 2; i++) {
        longer[0] = 'x';
        for (size_t k = i; k + 2 < sizeof longer; k += 2) memcpy(longer + k, "\xc3\xa9", 2);
        errno = ENOENT;
        sgt_fail_errno(&err, "%s", longer);
        const char *gap = strstr(err.text, "\xc3\xa9 [...] \xc3\xa9");
        const char *end = strstr(err.text, ": No such file or directory");
        cr_assert(gap && end && gap < end && !end[27] && !strstr(err.text, "\\x"), "%s", err.text);
    }
    cr_assert_str_eq(sgt_printable(small, sizeof small, "abc\xc3\xa9"), "abc");
    cr_assert_str_eq(sgt_printable(small, sizeof small, "a\n"), "a");
}

Test(cpu, limit_lowers_and_refuses)
{
    sgt_error err;
    sgt_cpu_level own = sgt_cpu();
    must(sgt_cpu_limit("plain", why));
    cr_assert_eq(sgt_cpu(), SGT_CPU_PLAIN);
    cr_assert_str_eq(sgt_cpu_name(), "plain");
    cr_assert(!sgt_cpu_amx());
    cr_assert_eq(sgt_cpu_limit("avx512", &err), own == SGT_CPU_AVX512 ? SGT_OK : SGT_EUNSUPPORTED);
    cr_assert(!sgt_cpu_amx(), "AMX is above AVX-512");
    must(sgt_cpu_limit("auto", why));
    cr_assert_eq(sgt_cpu(), own);
    cr_assert_str_eq(sgt_cpu_name(), sgt_cpu_amx() ? "amx" : sgt_cpu_names[own]);
    cr_assert_eq(sgt_cpu_limit("amx", &err), sgt_cpu_amx() ? SGT_OK : SGT_EUNSUPPORTED);
    must(sgt_cpu_limit("auto", why));
    expect_failure(sgt_cpu_limit("sse9", why), SGT_EUSAGE,
                   "sse9: must be one of auto, plain, avx2, avx512, amx");
    cr_assert_geq(sgt_cpu_count(), 1);
    cr_assert(sgt_cpu_threads(0, 0) >= 1 && sgt_cpu_threads(1, 0) <= sgt_cpu_count());
    cr_assert_eq(sgt_cpu_threads(1, 1), 1);
    cr_assert_eq(sgt_cpu_threads(1 << 20, 0), 1);
}

/* The known answers that Random123 publishes for philox4x32-10. */
Test(philox, known_answers)
{
    sgt_philox4 a = sgt_philox(0, 0, 0), b = sgt_philox(~0ull, ~0ull, ~0ull);
    sgt_philox4 c = sgt_philox(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull, 0x0370734413198a2eull);
    cr_assert(a.x[0] == 0x6627e8d5 && a.x[1] == 0xe169c58d && a.x[2] == 0xbc57ac4c &&
              a.x[3] == 0x9b00dbd8);
    cr_assert(b.x[0] == 0x408f276d && b.x[1] == 0x41c83b0e && b.x[2] == 0xa20bc7c6 &&
              b.x[3] == 0x6d5451fd);
    cr_assert(c.x[0] == 0xd16cfe09 && c.x[1] == 0x94fdcceb && c.x[2] == 0x5001e420 &&
              c.x[3] == 0x24126ea1);
}

Test(file, appears_only_at_commit, .init = enter_folder, .fini = leave_folder)
{
    sgt_file f;
    must(sgt_file_put("a.bin", "old", 3, why));
    must(sgt_file_begin(&f, "a.bin", why));
    must(sgt_file_write(&f, "new", 3, why));
    must(sgt_file_write(&f, "er", 2, why));
    char *text;
    size_t n;
    must(sgt_file_get(&text, &n, "a.bin", 100, why));
    cr_assert_str_eq(text, "old");
    free(text);
    must(sgt_file_commit(&f, why));
    must(sgt_file_get(&text, &n, "a.bin", 100, why));
    cr_assert(n == 5 && !strcmp(text, "newer"));
    free(text);
    cr_assert_eq(count_names("."), 1);
}

Test(file, abandoned_leaves_nothing_and_temporaries_do_not_end_in_bin, .init = enter_folder,
     .fini = leave_folder)
{
    sgt_file f;
    must(sgt_file_begin(&f, "a.bin", why));
    DIR *d = opendir(".");
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') cr_assert_str_eq(e->d_name + strlen(e->d_name) - 4, ".tmp");
    closedir(d);
    sgt_file_abandon(&f);
    sgt_file_abandon(&f); /* which has ended */
    cr_assert_eq(count_names("."), 0);
}

Test(file, failures_name_the_file, .init = enter_folder, .fini = leave_folder)
{
    sgt_file f;
    char *text, byte;
    size_t n;
    expect_failure(sgt_file_begin(&f, "no/such/a", why), SGT_EIO,
                   "no/such/a: cannot create: No such file or directory");
    expect_failure(sgt_file_get(&text, &n, "nowhere", 10, why), SGT_EIO,
                   "nowhere: No such file or directory");
    must(sgt_file_put("big", "0123456789", 10, why));
    expect_failure(sgt_file_get(&text, &n, "big", 9, why), SGT_EFORMAT,
                   "big: too large: a file of this kind may have at most 9 bytes");
    expect_failure(sgt_file_get(&text, &n, ".", 1 << 20, why), SGT_EIO,
                   ".: is a folder, not a file");
    cr_assert_eq(mkfifo("pipe", 0600), 0);
    expect_failure(sgt_file_get(&text, &n, "pipe", 1 << 20, why), SGT_EIO,
                   "pipe: is not a regular file");
    expect_failure(sgt_file_put("pipe", "x", 1, why), SGT_EIO, "pipe: is not a regular file");
    expect_failure(sgt_make_folders("big/x", why), SGT_EIO, "big: is a file, not a folder");
    int fd = open("big", O_RDONLY);
    expect_failure(
        sgt_pread_all(fd, &byte, 1, 10, "big", why), SGT_EIO,
        "big: ends at offset 10, 1 bytes too early (was it truncated while being read?)");
    close(fd);
}

Test(file, gone_is_what_has_no_name, .init = enter_folder, .fini = leave_folder)
{
    cr_assert_eq(sgt_file_put("file", "", 0, NULL), 0);
    cr_assert_eq(symlink("file", "link"), 0);
    cr_expect(!sgt_file_gone("file") && !sgt_file_gone("link") && !sgt_file_gone("."));
    cr_expect(sgt_file_gone("other") && sgt_file_gone("other/file"));
    cr_expect(sgt_file_gone("file/below"), "a file is no folder: nothing is in it");
    cr_assert_eq(symlink("loop", "loop"), 0);
    cr_expect(!sgt_file_gone("loop"), "who opens it says what is wrong");
}

Test(file, folders_are_made_and_removed_without_following_links, .init = enter_folder,
     .fini = leave_folder)
{
    must(sgt_make_folders("a/b//c/", why));
    must(sgt_make_folders("a/b/c", why));
    must(sgt_make_folders("keep", why));
    expect_failure(sgt_make_folders("", why), SGT_EIO, "an empty name: No such file or directory");
    must(sgt_file_put("keep/me", "x", 1, why));
    cr_assert_eq(symlink("../../keep", "a/b/link"), 0);
    must(sgt_file_put("a/b/c/f", "x", 1, why));
    must(sgt_remove_tree("a", why));
    cr_assert(access("a", F_OK) < 0);
    cr_assert(access("keep/me", F_OK) == 0);
    must(sgt_remove_tree("a", why));
    static const char *const folders[] = {"x/", "x", ""}, *const want[] = {"x/y7", "x/y7", "y7"};
    char path[SGT_PATH];
    for (int i = 0; i < 3; i++) cr_assert_str_eq(sgt_path(path, folders[i], "y%d", 7), want[i]);
    cr_assert(open(sgt_path(path, "x", "%5000d", 1), O_RDONLY) < 0 && errno == ENAMETOOLONG);
}

Test(file, lines_have_a_length_and_only_files_have_lines, .init = enter_folder,
     .fini = leave_folder)
{
    char line[8];
    static const char text[] = "one\n1234567\n123456\n\nlonger than that\n12345678\nlast";
    static const char *const want[] = {"one\n",   "1234567", "123456\n", "\n",
                                       "longer ", "1234567", "last"};
    static const size_t sizes[] = {4, 8, 7, 1, 8, 8, 4};
    FILE *f = NULL;
    sgt_error err;
    must(sgt_file_put("file", text, sizeof text - 1, why));
    must(sgt_file_lines(&f, "file", why));
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        cr_expect_eq(sgt_file_line(line, sizeof line, f), sizes[i], "line %zu", i);
        cr_expect_str_eq(line, want[i]);
    }
    cr_expect_eq(sgt_file_line(line, sizeof line, f), 0);
    fclose(f);
    cr_assert_eq(mkfifo("pipe", 0600), 0);
    /* opening a FIFO must not wait for a writer */
    expect_failure_about(sgt_file_lines(&f, "pipe", why), SGT_EIO, "pipe: is not a regular file");
    cr_expect_eq(sgt_file_lines(&f, ".", &err), SGT_EIO);
    unlink("file");
    cr_expect_eq(sgt_file_lines(&f, "file", &err), SGT_EIO);
}

Test(json, values_are_counted_before_they_are_parsed)
{
    static const struct {
        const char *text;
        size_t values;
    } cases[] = {{"", 1},
                 {"1", 1},
                 {"[1,2]", 3},
                 {"{\"a\":[{},{}]}", 6},
                 {"\"[,{\\\",[\"", 1},
                 {"[\"a,b\",\"]\"", 3},
                 {"\"not ended, [ \\", 1},
                 {"\"", 1}};
    sgt_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = strlen(cases[i].text);
        /* allocate exactly the text's bytes, so that the sanitizer finds reads beyond them */
        scoped_memory char *text = malloc(n ? n : 1);
        memcpy(text, cases[i].text, n);
        cr_expect_eq(sgt_json_fits(text, n, cases[i].values, "f", &err), SGT_OK, "%s",
                     cases[i].text);
        cr_expect_eq(sgt_json_fits(text, n, cases[i].values - 1, "f", &err), SGT_EFORMAT, "%s",
                     cases[i].text);
    }
    cr_expect_str_eq(err.text, "f: more than 0 JSON values, too many for a file of this kind");
}

/* ---- threads ---- */

static void *mask_of(void *mask)
{
    pthread_sigmask(SIG_SETMASK, NULL, mask);
    return NULL;
}

Test(thread, signals_are_the_programs_but_for_faults)
{
    sigset_t before, mask, after;
    pthread_t t;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    cr_assert_eq(sgt_thread_start(&t, mask_of, &mask), 0);
    pthread_join(t, NULL);
    for (int s = 1; s < 32; s++)
        if (s != SIGKILL && s != SIGSTOP)
            cr_assert_eq(sigismember(&mask, s),
                         s != SIGSEGV && s != SIGBUS && s != SIGFPE && s != SIGILL, "%d", s);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int s = 1; s < 32; s++)
        cr_assert_eq(sigismember(&before, s), sigismember(&after, s), "%d", s);
}

/* ---- structs that may grow ---- */

/* tests/tokenize/test_options.c tests structs from programs of older and newer versions. */
Test(memory, a_struct_has_a_size)
{
    const size_t refused[] = {0, sizeof(size_t) - 1, 4097, SIZE_MAX};
    uint64_t own[2];
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        expect_failure(sgt_struct_read(own, sizeof own, &refused[i], "options", why), SGT_EUSAGE,
                       "options.size is %zu: set it to sizeof(options)", refused[i]);
}

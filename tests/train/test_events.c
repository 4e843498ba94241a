/* test_events.c: TensorBoard's event files: their bytes, and which steps a run writes. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/log/metrics.h"
#include "tests/expect.h"
#include "tests/train/fixture.h"
#include "tests/train/folder.h"
#include "tests/train/run_fixture.h"

TestSuite(events, .init = make_data, .fini = remove_folder);

/* List the names in FOLDER/run/tb in alphabetical order, as "run/tb/NAME". Return their number. */
static int order(const void *a, const void *b) { return strcmp(a, b); }
static int files(char names[4][192], const char *run)
{
    char tb[64];
    int n = 0;
    snprintf(tb, sizeof tb, "%s/tb", run);
    DIR *d = opendir(in_folder(tb));
    cr_assert(d, "%s", tb);
    for (struct dirent *f; (f = readdir(d));) {
        if (f->d_name[0] == '.') continue;
        cr_assert_lt(n, 4);
        snprintf(names[n++], sizeof *names, "%s/%.120s", tb, f->d_name);
    }
    closedir(d);
    qsort(names, (size_t)n, sizeof *names, order);
    return n;
}

/* ---- the same bytes as protobuf-c's ---- */

/* Check that the event files `ours` and `theirs` are equal, except for the time, which is the 8
 * bytes after the first key of each event, and the checksum that depends on it. Both are copied
 * from `theirs` to `ours`. */
static void same_events(unsigned char *ours, size_t n, const unsigned char *theirs, size_t want)
{
    cr_assert_eq(n, want);
    for (size_t at = 0; at < n;) {
        uint64_t length;
        double now;
        memcpy(&length, theirs + at, 8);
        cr_assert(n - at > 16 && length <= n - at - 16);
        unsigned char *event = ours + at + 12;
        uint32_t sum = sgt_crc32c_masked(event, length);
        cr_expect_arr_eq(event + length, &sum, 4, "the checksum of the event at byte %zu", at);
        memcpy(&now, event + 1, 8);
        cr_expect(now > 1.7e9, "seconds since 1970: %f", now);
        memcpy(event + 1, theirs + at + 13, 8);
        sum = sgt_crc32c_masked(event, length);
        memcpy(event + length, &sum, 4);
        at += length + 16;
    }
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(ours[i], theirs[i], "byte %zu is %02x, not %02x", i, ours[i], theirs[i]);
}

/* fixtures/events.bin was written by sgt_events_open at step 300 and three calls of sgt_events_add,
 * when protobuf-c still encoded events. */
Test(events, the_bytes_are_those_of_protobuf_c)
{
    static const sgt_metrics steps[] = {
        {.loss = 10.8249,
         .lr = 3e-4,
         .loss_scale = 1,
         .tokens = 512,
         .ms_per_step = 12.5,
         .tokens_per_s = 40960,
         .peak_bytes = 123456789},
        {.step = 300,
         .loss = (double)NAN,
         .grad_norm = HUGE_VAL,
         .lr = -0.0,
         .loss_scale = 65536,
         .skipped = 3,
         .skipping = 1,
         .spikes = 2,
         .evaluated = 1,
         .val_loss = 5.25,
         .tokens = (uint64_t)1 << 40,
         .epoch = 1.5,
         .mfu = .4,
         .mfu_datasheet = .3,
         .data_wait_ms = 1e-3},
        {.step = (uint64_t)1 << 40, .loss = 1e-44, .grad_norm = 1e39, .lr = 1e30, .tokens = 1}};
    char names[4][192];
    unsigned char theirs[1024];
    size_t n;
    sgt_events *e;
    scoped(FILE) *f = fopen(FIXTURES "events.bin", "rb");
    cr_assert(f, "tests run in the repository's root");
    size_t want = fread(theirs, 1, sizeof theirs, f);
    cr_assert_eq(want, 795);
    must(sgt_events_open(&e, in_folder("r/tb"), 300, why));
    for (size_t i = 0; i < 3; i++) must(sgt_events_add(e, &steps[i], why));
    sgt_events_close(e);
    cr_assert_eq(files(names, "r"), 1);
    scoped_memory char *ours = get_file(names[0], &n);
    same_events((unsigned char *)ours, n, theirs, want);
}

/* ---- what a run writes ---- */

/* Check that FOLDER/name has the points of steps `first` .. `end` - 1 of the last run. */
static void has_points(const char *name, uint64_t first, uint64_t end)
{
    char names[4][192];
    size_t n, want;
    sgt_events *e;
    must(sgt_events_open(&e, in_folder("want/tb"), first, why));
    for (uint64_t s = first; s < end; s++) must(sgt_events_add(e, &stepped[s], why));
    sgt_events_close(e);
    int last = files(names, "want") - 1;
    scoped_memory char *ours = get_file(name, &n), *theirs = get_file(names[last], &want);
    same_events((unsigned char *)ours, n, (unsigned char *)theirs, want);
}

/* Each start of a run writes a file. A run that starts over deletes those before it, and no other
 * file. */
Test(events, a_run_has_a_point_for_each_step)
{
    char names[4][192];
    sgt_error err;
    cr_assert_eq(train(tiny(8), "r", 0, 0, 5, NULL, &err), SGT_ESTOPPED);
    must_train(tiny(8), "r", 1);
    cr_assert_eq(files(names, "r"), 2, "a file for each start");
    has_points(names[0], 0, 5);
    has_points(names[1], 5, 8);
    must_train(tiny(8), "r", 1);
    cr_expect_eq(files(names, "r"), 2, "a finished run gets no file more");
    put_file("r/tb/notes.txt", "mine", 4);
    must(train(tiny(2), "r", 0, 1, 0, NULL, why));
    cr_assert_eq(files(names, "r"), 2);
    cr_expect_str_eq(names[1], "r/tb/notes.txt", "what is no event file stays");
    has_points(names[0], 0, 2);
}

Test(events, files_that_cannot_be_written)
{
    sgt_events *e;
    put_file("tb", "", 0);
    expect_failure_about(sgt_events_open(&e, in_folder("tb"), 0, why), SGT_EIO,
                         "/tb: is a file, not a folder");
    cr_assert_lt(sgt_events_open(&e, "/dev/null/tb", 0, NULL), 0);
}

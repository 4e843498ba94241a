/* test_events.c: TensorBoard's event files, parsed byte by byte by this test: records, checksums,
 * fields. */
#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/log/metrics.h"
#include "tests/expect.h"
#include "tests/train/folder.h"
#include "tests/train/run_fixture.h"

TestSuite(events, .init = make_data, .fini = remove_folder);

/* Known values of CRC-32C, from RFC 3720, B.4, and the published check value. */
Test(events, crc32c)
{
    unsigned char zeros[32] = {0}, ones[32], rising[32];
    memset(ones, 0xff, sizeof ones);
    for (unsigned char i = 0; i < 32; i++) rising[i] = i;
    cr_expect_eq(sgt_crc32c("", 0), 0);
    cr_expect_eq(sgt_crc32c("123456789", 9), 0xe3069283);
    cr_expect_eq(sgt_crc32c(zeros, 32), 0x8a9136aa);
    cr_expect_eq(sgt_crc32c(ones, 32), 0x62a8ab43);
    cr_expect_eq(sgt_crc32c(rising, 32), 0x46dd794e);
    uint32_t crc = 0xe3069283;
    cr_expect_eq(sgt_crc32c_masked("123456789", 9), (crc / 32768 | crc << 17) + 0xa282ead8u);
}

/* ---- a reader ---- */

typedef struct event {
    double wall_time;
    int64_t step;
    char version[32];
    int start; /* 1: a SessionLog event with status START */
    size_t values;
    struct {
        char tag[32];
        float value;
    } value[SGT_METRICS];
} event;

static uint64_t little_endian(const unsigned char *p, size_t n)
{
    uint64_t v = 0;
    while (n--) v = v << 8 | p[n];
    return v;
}

static uint64_t varint(const unsigned char **p)
{
    uint64_t v = 0;
    for (int shift = 0;; shift += 7, (*p)++) {
        v |= (uint64_t)(**p & 127) << shift;
        if (**p < 128) break;
    }
    (*p)++;
    return v;
}

/* Read the key of a protobuf field and return it: number << 3 | wire type. *v receives the value if
 * it is a number, otherwise the length of the text or message that follows. */
static unsigned field(const unsigned char **p, uint64_t *v)
{
    uint64_t key = varint(p);
    switch (key & 7) {
    case 0: *v = varint(p); break;
    case 1: *v = little_endian(*p, 8), *p += 8; break;
    case 2: *v = varint(p); break;
    case 5: *v = little_endian(*p, 4), *p += 4; break;
    default: cr_assert_fail("wire type %d", (int)(key & 7));
    }
    return (unsigned)key;
}

static void read_value(event *e, const unsigned char *p, const unsigned char *end)
{
    uint64_t v;
    cr_assert_lt(e->values, SGT_METRICS);
    while (p < end) switch (field(&p, &v)) {
        case 1 << 3 | 2:
            snprintf(e->value[e->values].tag, sizeof e->value->tag, "%.*s", (int)v,
                     (const char *)p);
            p += v;
            break;
        case 2 << 3 | 5: memcpy(&e->value[e->values].value, &(uint32_t){(uint32_t)v}, 4); break;
        default: cr_assert_fail("an unknown field of a value");
        }
    e->values++;
}

static event read_event(const unsigned char *p, size_t n)
{
    event e = {.step = -1};
    uint64_t v;
    for (const unsigned char *end = p + n; p < end;) switch (field(&p, &v)) {
        case 1 << 3 | 1: memcpy(&e.wall_time, &v, 8); break;
        case 2 << 3: e.step = (int64_t)v; break;
        case 3 << 3 | 2:
            snprintf(e.version, sizeof e.version, "%.*s", (int)v, (const char *)p);
            p += v;
            break;
        case 5 << 3 | 2: /* the summary, which has each of its values as field 1 */
            for (const unsigned char *inner = p + v; p < inner; p += v) {
                cr_assert_eq(field(&p, &v), 1 << 3 | 2);
                read_value(&e, p, p + v);
            }
            break;
        case 7 << 3 | 2:
            cr_assert(v == 2 && p[0] == 1 << 3 && p[1] == 1, "a session log that is no START");
            e.start = 1;
            p += v;
            break;
        default: cr_assert_fail("an unknown field of an event");
        }
    return e;
}

/* Return all events of FOLDER/name; malloc'd. */
static event *read_events(const char *name, size_t *count)
{
    size_t n, at = 0;
    scoped_memory char *text = get_file(name, &n);
    cr_assert(text, "%s", name);
    event *e = calloc(n / 16 + 1, sizeof *e);
    for (*count = 0; at < n; (*count)++) {
        const unsigned char *p = (const unsigned char *)text + at;
        cr_assert(n - at >= 16);
        uint64_t length = little_endian(p, 8);
        cr_assert(length <= n - at - 16, "a record of %llu bytes", (unsigned long long)length);
        cr_expect_eq(little_endian(p + 8, 4), sgt_crc32c_masked(p, 8));
        cr_expect_eq(little_endian(p + 12 + length, 4), sgt_crc32c_masked(p + 12, length));
        e[*count] = read_event(p + 12, length);
        at += length + 16;
    }
    return e;
}

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

/* ---- what a run writes ---- */

/* Check that an event has the numbers of a line of the log, with the same names in the same
 * order. */
static void same_numbers(const event *e, const char *line)
{
    const char *name;
    json_t *v, *json = json_loads(line, 0, NULL);
    size_t i = 0;
    cr_assert(json, "%s", line);
    cr_expect_eq(e->step, json_integer_value(json_object_get(json, "step")));
    cr_expect_eq(e->values, json_object_size(json) - 1);
    json_object_foreach(json, name, v)
    {
        if (strcmp(name, "step") == 0) continue;
        cr_assert_lt(i, e->values);
        cr_expect_str_eq(e->value[i].tag, name);
        double want = json_number_value(v), got = (double)e->value[i].value;
        /* significant digits of this value in the log */
        int digits = strcmp(name, "data_wait_ms") && strcmp(name, "mfu") ? 6 : 4;
        if (json_is_null(v)) cr_expect_not(isfinite(got), "%s", name);
        else
            cr_expect(fabs(got - want) <= fabs(want) * (pow(10, 1 - digits) + 0x1p-24),
                      "%s: %.9g, not %.9g", name, got, want);
        i++;
    }
    json_decref(json);
}

/* Check the first two events of a file; return how many follow. */
static size_t check_head(const event *e, size_t n, int64_t step)
{
    cr_assert_geq(n, 2);
    cr_expect_str_eq(e[0].version, "brain.Event:2");
    cr_expect(e[0].wall_time > 1.7e9, "seconds since 1970: %f", e[0].wall_time);
    cr_expect(e[1].start && e[1].step == step, "START at %lld", (long long)e[1].step);
    return n - 2;
}

Test(events, a_run_in_two_parts_is_its_log)
{
    char names[4][192], *log, *save;
    size_t n[2];
    event *e[2];
    sgt_error err;
    cr_assert_eq(train(tiny(8), "r", 0, 0, 5, NULL, &err), SGT_ESTOPPED);
    must_train(tiny(8), "r", 1);
    cr_assert_eq(files(names, "r"), 2, "a file for each start");
    for (int i = 0; i < 2; i++) e[i] = read_events(names[i], &n[i]);
    cr_assert_eq(check_head(e[0], n[0], 0), 5);
    cr_assert_eq(check_head(e[1], n[1], 5), 3);
    cr_assert((log = get_file("r/log.jsonl", NULL)));
    char *line = strtok_r(log, "\n", &save);
    for (int i = 0; i < 8; i++, line = strtok_r(NULL, "\n", &save))
        same_numbers(i < 5 ? &e[0][2 + i] : &e[1][2 + i - 5], line);
    free(log);
    for (int i = 0; i < 2; i++) free(e[i]);
}

Test(events, starting_over_leaves_no_points_of_the_run_before)
{
    char names[4][192];
    size_t n;
    must_train(tiny(3), "r", 0);
    put_file("r/tb/notes.txt", "mine", 4);
    must(train(tiny(2), "r", 0, 1, 0, NULL, why));
    cr_assert_eq(files(names, "r"), 2);
    cr_expect_str_eq(names[1], "r/tb/notes.txt", "what is no event file stays");
    scoped_memory event *e = read_events(names[0], &n);
    cr_expect_eq(check_head(e, n, 0), 2);
}

Test(events, a_finished_run_gets_no_file_more)
{
    char names[4][192];
    must_train(tiny(2), "r", 0);
    must_train(tiny(2), "r", 1);
    cr_expect_eq(files(names, "r"), 1);
}

Test(events, a_loss_that_is_no_number_is_one_in_its_point_too)
{
    char names[4][192];
    size_t n;
    sgt_config s = tiny(3);
    s.lr = 1e30;
    s.warmup = 0;
    must_train(s, "r", 0);
    cr_assert_eq(files(names, "r"), 1);
    scoped_memory event *e = read_events(names[0], &n);
    cr_assert_eq(check_head(e, n, 0), 3);
    cr_expect_str_eq(e[3].value[0].tag, "loss");
    cr_expect(isnan(e[3].value[0].value));
}

Test(events, files_that_cannot_be_written)
{
    sgt_events *e;
    put_file("tb", "", 0);
    expect_failure_about(sgt_events_open(&e, in_folder("tb"), 0, why), SGT_EIO,
                         "/tb: is a file, not a folder");
    cr_assert_lt(sgt_events_open(&e, "/dev/null/tb", 0, NULL), 0);
}

/* ---- the same bytes as protobuf-c's ---- */

/* fixtures/events.bin was written by sgt_events_open at step 300 and three calls of sgt_events_add,
 * when protobuf-c still encoded events. All bytes must be equal, except the time, which is the 8
 * bytes after the first key of each event. take_times copies it, and the checksum that depends on
 * it, from the fixture. */
static void take_times(unsigned char *ours, const unsigned char *theirs, size_t n)
{
    for (size_t at = 0; at + 21 <= n;) {
        uint64_t length = little_endian(theirs + at, 8);
        cr_assert(length <= n - at - 16);
        memcpy(ours + at + 13, theirs + at + 13, 8);
        uint32_t sum = sgt_crc32c_masked(ours + at + 12, length);
        for (size_t i = 0; i < 4; i++) ours[at + 12 + length + i] = (unsigned char)(sum >> 8 * i);
        at += length + 16;
    }
}

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
    char names[4][192], *ours;
    unsigned char theirs[1024];
    size_t n;
    sgt_events *e;
    FILE *f = fopen("tests/data/fixtures/events.bin", "rb");
    cr_assert(f, "tests run in the repository's root");
    size_t want = fread(theirs, 1, sizeof theirs, f);
    fclose(f);
    cr_assert_eq(want, 795);
    must(sgt_events_open(&e, in_folder("r/tb"), 300, why));
    for (size_t i = 0; i < 3; i++) must(sgt_events_add(e, &steps[i], why));
    sgt_events_close(e);
    cr_assert_eq(files(names, "r"), 1);
    cr_assert((ours = get_file(names[0], &n)));
    cr_assert_eq(n, want);
    take_times((unsigned char *)ours, theirs, n);
    for (size_t i = 0; i < n; i++)
        cr_assert_eq((unsigned char)ours[i], theirs[i], "byte %zu is %02x, not %02x", i,
                     (unsigned char)ours[i], theirs[i]);
    free(ours);
}

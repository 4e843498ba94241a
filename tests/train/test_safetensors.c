/* test_safetensors.c: safetensors files: writing and reading, the types that are supported, and
 * damaged headers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tests/expect.h"
#include "tests/train/folder.h"
#include "train/run/safetensors.h"

SCOPED_POINTER(sgt_safetensors, sgt_safetensors_close)

TestSuite(safetensors, .init = make_folder, .fini = remove_folder);

/* Write FOLDER/x.safetensors from a header and bytes of data. */
static void make_file(const char *header, const void *data, size_t n)
{
    size_t h = strlen(header);
    unsigned char *file = calloc(1, 8 + h + n);
    for (int i = 0; i < 8; i++) file[i] = (unsigned char)((uint64_t)h >> 8 * i);
    memcpy(file + 8, header, h);
    if (n) memcpy(file + 8 + h, data, n);
    put_file("x.safetensors", file, 8 + h + n);
    free(file);
}

static sgt_safetensors *open_good(void)
{
    sgt_safetensors *s = NULL;
    must(sgt_safetensors_open(&s, in_folder("x.safetensors"), why));
    return s;
}

#define HINT " (damaged or cut short: copy it again, or use another checkpoint)"

/* Check that opening x.safetensors fails. The message has `why` after the path, and advice at its
 * end. */
static void refused(const char *why)
{
    sgt_error err;
    char want[512];
    scoped(sgt_safetensors) *s = NULL;
    int rc = sgt_safetensors_open(&s, in_folder("x.safetensors"), &err);
    snprintf(want, sizeof want, "%s: %s%s", in_folder("x.safetensors"), why,
             why[strlen(why) - 1] == ')' ? "" : HINT);
    cr_expect_eq(rc, SGT_EFORMAT, "it was taken; expected: %s", why);
    if (rc < 0) cr_expect_str_eq(err.text, want);
}

Test(safetensors, round_trip)
{
    sgt_error err;
    sgt_safetensors_writer *w;
    uint32_t shape[] = {3, 5};
    float a[15], b[4] = {1, -2, 3e-40f, 1e38f}, got[15];
    uint64_t bytes, sum;
    size_t size;
    for (int i = 0; i < 15; i++) a[i] = (float)i / 7;
    must(sgt_safetensors_begin(&w, in_folder("x.safetensors"), why));
    must(sgt_safetensors_declare(w, "a", shape, 2, why));
    must(sgt_safetensors_declare(w, "b", (uint32_t[]){4}, 1, why));
    must(sgt_safetensors_write(w, a, 9, why));
    must(sgt_safetensors_write(w, a + 9, 6, why));
    cr_expect_not(exists("x.safetensors"), "it has its name before it is whole");
    must(sgt_safetensors_write(w, b, 4, why));
    must(sgt_safetensors_commit(w, &bytes, &sum, why));

    sgt_safetensors *s = open_good();
    const sgt_safetensor *t = sgt_safetensors_find(s, "a");
    cr_assert(t && t->dims == 2 && t->dim[0] == 3 && t->dim[1] == 5 && t->count == 15 &&
              sgt_safetensors_count(s) == 2);
    must(sgt_safetensors_read(s, t, 0, 15, got, why));
    cr_expect(memcmp(got, a, sizeof a) == 0);
    must(sgt_safetensors_read(s, t, 7, 3, got, why));
    cr_expect(memcmp(got, a + 7, 3 * sizeof *a) == 0);
    must(sgt_safetensors_read(s, sgt_safetensors_at(s, 1), 0, 4, got, why));
    cr_expect(memcmp(got, b, sizeof b) == 0);
    cr_expect_eq(sgt_safetensors_read(s, t, 14, 2, got, &err), SGT_EUSAGE);
    cr_expect_null(sgt_safetensors_find(s, "c"));
    sgt_safetensors_close(s);
    scoped_memory char *text = get_file("x.safetensors", &size);
    cr_expect_eq((unsigned char)text[0] % 8, 0, "the numbers begin at no multiple of 8");
    cr_expect(bytes == size && sum == XXH3_64bits(text, size));
}

Test(safetensors, types_that_are_read)
{
    float got[6];
    uint16_t half[] = {0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00, 0x8000}, brain[] = {0x3f80, 0xc000};
    double d[] = {0.1, -3};
    unsigned char data[32];
    memcpy(data, half, 12);
    memcpy(data + 12, brain, 4);
    memcpy(data + 16, d, 16);
    make_file("{\"h\":{\"dtype\":\"F16\",\"shape\":[6],\"data_offsets\":[0,12]},\"b\":{\"dtype\":"
              "\"BF16\",\"shape\":[2],\"data_offsets\":[12,16]},\"d\":{\"dtype\":\"F64\",\"shape\":"
              "[2],\"data_offsets\":[16,32]}}",
              data, 32);
    scoped(sgt_safetensors) *s = open_good();
    must(sgt_safetensors_read(s, sgt_safetensors_find(s, "h"), 0, 6, got, why));
    cr_expect(got[0] == 1 && got[1] == -2 && got[2] == 0x1p-24f && got[3] == 65504 &&
              got[4] > 3e38f && 1 / got[5] < 0);
    must(sgt_safetensors_read(s, sgt_safetensors_find(s, "b"), 0, 2, got, why));
    cr_expect(got[0] == 1 && got[1] == -2);
    must(sgt_safetensors_read(s, sgt_safetensors_find(s, "d"), 1, 1, got, why));
    cr_expect_eq(got[0], -3);
    sgt_safetensors_close(s);
    make_file("{\"i\":{\"dtype\":\"I8\",\"shape\":[2],\"data_offsets\":[0,2]}}", data, 2);
    s = open_good();
    expect_failure_about(sgt_safetensors_read(s, sgt_safetensors_at(s, 0), 0, 2, got, why),
                         SGT_EUNSUPPORTED, "tensor i is I8, not F32, F16, BF16 or F64");
}

Test(safetensors, headers_that_lie)
{
#define T(shape, begin, end) \
    "{\"a\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"
    static const struct {
        const char *header, *why;
    } bad[] = {
        {T("[2]", "0", "12") "}", "tensor a: 12 bytes do not fit 2 numbers of type F32"},
        {T("[4]", "0", "16") "}",
         "tensor a ends at byte 16, but there are only 12 bytes of data (was it cut short?)"},
        {T("[2]", "0", "8") "}", "12 bytes of data, but its tensors cover 8"},
        {T("[2]", "4", "12") "}", "tensor a begins at byte 4, after a gap from byte 0"},
        {T("[-1]", "0", "12") "}", "tensor a: dimension 0 is not a size"},
        {T("[4294967296,4294967296]", "0", "0") "}", "tensor a: its shape overflows"},
        {T("[4611686018427387904]", "0", "0") "}",
         "tensor a: 0 bytes do not fit 4611686018427387904 numbers of type F32"},
        {T("[1,1,1,1,1,1,1,1,3]", "0", "12") "}",
         "tensor a: its shape is missing or has more than 8 dimensions"},
        {"{\"a\":{\"dtype\":\"F33\",\"shape\":[3],\"data_offsets\":[0,12]}}",
         "tensor a: unknown type 'F33'"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3]}}",
         "tensor a: data_offsets are not [begin, end]"},
        {T("[2]", "0", "8") ",\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
         "tensor b begins at byte 4, inside the one that ends at byte 8"},
        {"[]", "its header is not a JSON object: another value at byte 8"},
    };
#undef T
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        make_file(bad[i].header, "0123456789ab", 12);
        refused(bad[i].why);
    }
}

Test(safetensors, files_that_are_none)
{
    sgt_error err;
    sgt_safetensors *s = NULL;
    cr_expect_eq(sgt_safetensors_open(&s, in_folder("nowhere"), &err), SGT_EIO);
    put_file("x.safetensors", "1234567", 7);
    refused("7 bytes: too short for a safetensors file");
    put_file("x.safetensors", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
    refused("a header of 18446744073709551615 bytes in a file of 10 bytes (at most 16777216 are "
            "supported)");
    put_file("x.safetensors", "\x03\0\0\0\0\0\0\0{}", 10);
    refused("a header of 3 bytes in a file of 10 bytes (at most 16777216 are supported)");
    cr_expect_eq(sgt_safetensors_open(&s, folder, &err), SGT_EFORMAT);
    make_file("{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},\"a\":{\"dtype\":"
              "\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}",
              NULL, 0);
    expect_failure_about(sgt_safetensors_open(&s, in_folder("x.safetensors"), why), SGT_EFORMAT,
                         "duplicate object key");
}

/* test_abi.c: what programs that were compiled once rely on. A size or a place that changes here makes another
 * libsgt-loader.so.N (ABI in the Makefile); fields are added by taking from `reserved`. */
#include <criterion/criterion.h>
#include <stddef.h>

#include "tests/loader/batches.h"

TestSuite(abi, .init = enter_scratch, .fini = leave_scratch);

_Static_assert(sizeof(sgt_error) == 1028 && offsetof(sgt_error, text) == 4, "sgt_error");
_Static_assert(sizeof(sgt_notice) == 16, "sgt_notice");
_Static_assert(sizeof(sgt_loader_set) == 16, "sgt_loader_set");
_Static_assert(sizeof(sgt_loader_options) == 160, "sgt_loader_options");
_Static_assert(offsetof(sgt_loader_options, seed) == 8 && offsetof(sgt_loader_options, split) == 40 &&
                   offsetof(sgt_loader_options, raw) == 60 && offsetof(sgt_loader_options, notice) == 64 &&
                   offsetof(sgt_loader_options, set_count) == 88 && offsetof(sgt_loader_options, documents) == 92,
               "sgt_loader_options");
_Static_assert(sizeof(sgt_loader_info) == 144 && offsetof(sgt_loader_info, batch) == 32 &&
                   offsetof(sgt_loader_info, hash) == 56 && offsetof(sgt_loader_info, reader_detail) == 72,
               "sgt_loader_info");
_Static_assert(sizeof(sgt_loader_set_info) == 96, "sgt_loader_set_info");
_Static_assert(sizeof(sgt_loader_state) == 80 && offsetof(sgt_loader_state, seed) == 24, "sgt_loader_state");
_Static_assert(sizeof(sgt_stream_options) == 136 && offsetof(sgt_stream_options, alloc) == 32 &&
                   offsetof(sgt_stream_options, making_ctx) == 64,
               "sgt_stream_options");
_Static_assert(sizeof(sgt_stream_batch) == 80 && offsetof(sgt_stream_batch, inputs) == 24 &&
                   offsetof(sgt_stream_batch, slot) == 40,
               "sgt_stream_batch");

/* Fields that this library does not know mean something to whoever set them. */
Test(abi, reserved_fields_are_zero)
{
    sgt_loader *l;
    sgt_stream *s;
    put_folder();
    sgt_loader_options o = {.seq = 16, .reserved = {[7] = 1}};
    expect_failure(sgt_loader_open(&l, "d", &o, why), SGT_EUSAGE,
                   "sgt_loader_options.reserved is not 0 (not cleared, or made for a newer library)");
    o.reserved[7] = 0;
    l = open_loader("d", &o, NULL);
    sgt_stream_options so = {.reserved = {1}};
    expect_failure(sgt_stream_open(&s, l, &so, why), SGT_EUSAGE,
                   "sgt_stream_options.reserved is not 0 (not cleared, or made for a newer library)");
    sgt_loader_close(l);
}

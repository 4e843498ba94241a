/* read.h: read one batch through a cursor, in any output format, and get one of its ids. */
#ifndef SGT_TEST_READ_H
#define SGT_TEST_READ_H

#include "loader/sgt_loader.h"

/* Read batch k into `out`, which is large enough, and describe it in *b. */
static inline int read_batch(const sgt_loader *l, sgt_cursor *c, uint64_t k, sgt_output output,
                             void *out, sgt_loader_batch *b, sgt_error *err)
{
    int rc = sgt_loader_read(l, c, k, 1, output, out, SIZE_MAX, err);
    *b = *sgt_cursor_batch(c);
    return rc;
}

static inline int read_rows(const sgt_loader *l, sgt_cursor *c, uint64_t k, uint16_t *rows,
                            sgt_error *err)
{
    return sgt_loader_read(l, c, k, 1, SGT_OUTPUT_U16, rows, SIZE_MAX, err);
}

/* Return id number i of `array`, which is b->inputs or b->targets. */
static inline int64_t id_of(const sgt_loader_batch *b, const void *array, size_t i)
{
    if (b->output == SGT_OUTPUT_U16) return ((const uint16_t *)array)[i];
    if (b->output == SGT_OUTPUT_I64) return ((const int64_t *)array)[i];
    return ((const int32_t *)array)[i];
}

#endif

/* read.h: read one batch through a cursor, as rows of uint16 or int32, or as int32 inputs and targets; and
 * an id of a batch of any output. */
#ifndef SGT_TEST_READ_H
#define SGT_TEST_READ_H

#include "loader/sgt_loader.h"

static inline int read_rows(const sgt_loader *l, sgt_cursor *c, uint64_t k, uint16_t *rows,
                            sgt_error *err)
{
    sgt_loader_batch b = {.output = SGT_OUTPUT_U16, .inputs = rows};
    return sgt_loader_read(l, c, k, 1, &b, err);
}

static inline int read_i32_rows(const sgt_loader *l, sgt_cursor *c, uint64_t k, int32_t *rows,
                                sgt_error *err)
{
    sgt_loader_batch b = {.output = SGT_OUTPUT_I32_ROWS, .inputs = rows};
    return sgt_loader_read(l, c, k, 1, &b, err);
}

static inline int read_i32(const sgt_loader *l, sgt_cursor *c, uint64_t k, int32_t *inputs,
                           int32_t *targets, sgt_error *err)
{
    sgt_loader_batch b = {.output = SGT_OUTPUT_I32, .inputs = inputs, .targets = targets};
    return sgt_loader_read(l, c, k, 1, &b, err);
}

/* Return number i of `array`, which is b->inputs or b->targets. */
static inline int64_t id_of(const sgt_loader_batch *b, const void *array, size_t i)
{
    if (b->output == SGT_OUTPUT_U16) return ((const uint16_t *)array)[i];
    if (b->output == SGT_OUTPUT_I64) return ((const int64_t *)array)[i];
    return ((const int32_t *)array)[i];
}

#endif

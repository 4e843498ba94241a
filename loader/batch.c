/* batch.c: one batch: its windows drawn, fetched, and put into the caller's rows. A cursor is the memory this takes. */
#include <inttypes.h>
#include <stdlib.h>

#include "handle.h"

static uint32_t local_batch(const sgt_loader *l)
{
    return l->o.batch / l->o.ranks;
}

int sgt_cursor_open(sgt_cursor **out, const sgt_loader *l, sgt_error *err)
{
    uint32_t n = local_batch(l);
    int rc = SGT_ENOMEM;
    sgt_cursor *c = calloc(1, sizeof *c);
    if (c) {
        c->l = l;
        c->windows = calloc(n, sizeof *c->windows);
        c->tokens = calloc(n, sizeof *c->tokens);
    }
    if (!c || !c->windows || !c->tokens)
        sgt_fail(err, SGT_ENOMEM, "%" PRIu32 " rows: out of memory", n);
    else
        rc = l->ops->cursor_open(&c->reader_cursor, l->reader, err);
    if (rc < 0) {
        sgt_cursor_close(c);
        return rc;
    }
    *out = c;
    return SGT_OK;
}

void sgt_cursor_close(sgt_cursor *c)
{
    if (!c) return;
    if (c->reader_cursor) c->l->ops->cursor_close(c->reader_cursor);
    free(c->windows);
    free(c->tokens);
    free(c);
}

/* The windows of batch `index` into c->tokens. */
static int fetch(const sgt_loader *l, sgt_cursor *c, uint64_t index, sgt_error *err)
{
    if (index > UINT64_MAX / l->o.batch - 1)
        return sgt_fail(err, SGT_EUSAGE,
                        "batch %" PRIu64 ": its rows, %" PRIu32 " a batch, are past the 64 bits that number them",
                        index, l->o.batch);
    uint64_t row = index * l->o.batch + l->o.rank;
    uint32_t n = local_batch(l);
    for (uint32_t i = 0; i < n; i++, row += l->o.ranks) c->windows[i] = sgt_sampler_window(&l->sampler, &c->memo, row);
    return l->ops->fetch(c->reader_cursor, c->windows, n, c->tokens, err);
}

/* Row i holds an id that the vocabulary does not: says which and where. */
static int fail_id(const sgt_loader *l, const sgt_cursor *c, uint32_t i, sgt_error *err)
{
    const uint16_t *p = c->tokens[i];
    uint32_t t = 0;
    while (t < l->o.seq && p[t] < l->set.vocab) t++;
    return sgt_set_bad_id(&l->set, c->windows[i].shard, c->windows[i].offset + t, p[t], err);
}

/* What a compiler makes of this and of sgt_loader_batch_i32_scalar is part of what is compared: the test of every id
 * keeps it from being vectorised. */
static int copy_scalar(const sgt_loader *l, const sgt_cursor *c, uint16_t *rows, sgt_error *err)
{
    size_t width = (size_t)l->o.seq + 1;
    for (uint32_t i = 0; i < local_batch(l); i++)
        for (size_t t = 0; t < width; t++) {
            uint16_t id = c->tokens[i][t];
            if (id >= l->set.vocab) return fail_id(l, c, i, err);
            rows[i * width + t] = id;
        }
    return SGT_OK;
}

int sgt_loader_batch(const sgt_loader *l, sgt_cursor *c, uint64_t index, uint16_t *rows, sgt_error *err)
{
    size_t width = (size_t)l->o.seq + 1;
    int rc = fetch(l, c, index, err);
    if (rc < 0) return rc;
    if (l->o.scalar) return copy_scalar(l, c, rows, err);
    for (uint32_t i = 0; i < local_batch(l); i++)
        if (l->rows->copy(rows + i * width, c->tokens[i], width) >= l->set.vocab) return fail_id(l, c, i, err);
    return SGT_OK;
}

int sgt_loader_batch_i32(const sgt_loader *l, sgt_cursor *c, uint64_t index, int32_t *inputs, int32_t *targets,
                         sgt_error *err)
{
    size_t T = l->o.seq;
    if (l->o.scalar) return sgt_loader_batch_i32_scalar(l, c, index, inputs, targets, err);
    int rc = fetch(l, c, index, err);
    if (rc < 0) return rc;
    for (uint32_t i = 0; i < local_batch(l); i++)
        if (l->rows->widen(inputs + i * T, targets + i * T, c->tokens[i], T) >= l->set.vocab)
            return fail_id(l, c, i, err);
    return SGT_OK;
}

int sgt_loader_batch_i32_scalar(const sgt_loader *l, sgt_cursor *c, uint64_t index, int32_t *inputs, int32_t *targets,
                                sgt_error *err)
{
    size_t T = l->o.seq;
    int rc = fetch(l, c, index, err);
    if (rc < 0) return rc;
    for (uint32_t i = 0; i < local_batch(l); i++) {
        for (size_t t = 0; t <= T; t++) {
            uint16_t id = c->tokens[i][t];
            if (id >= l->set.vocab) return fail_id(l, c, i, err);
            if (t < T) inputs[i * T + t] = id;
            if (t > 0) targets[i * T + t - 1] = id;
        }
    }
    return SGT_OK;
}

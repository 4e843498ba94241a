/* starts.c: where documents begin in the rows of a batch, and what follows from it: positions and
 * document numbers. */
#include <stdlib.h>

#include "loader/handle.h"

int sgt_cursor_open_starts(sgt_cursor *c, const sgt_loader *l, size_t n)
{
    if (!l->o.documents) return 1;
    c->starts_first = calloc(n + 1, sizeof *c->starts_first);
    /* Reserve room for a start at every token. Pages that are never written take no memory. */
    c->starts = reallocarray(NULL, n, ((size_t)l->o.seq + 1) * sizeof *c->starts);
    c->begun = (sgt_row_documents){c->starts_first, c->starts};
    return c->starts_first && c->starts;
}

void sgt_cursor_close_starts(sgt_cursor *c)
{
    free(c->starts_first);
    free(c->starts);
}

void sgt_cursor_find_starts(const sgt_loader *l, sgt_cursor *c)
{
    uint32_t count = 0, n = l->o.batch / l->o.ranks;
    for (uint32_t i = 0; i < n; i++) {
        c->starts_first[i] = count;
        if (c->lengths) c->starts[count++] = 0; /* the whole row is one document */
        else
            count +=
                sgt_documents_within(&l->documents, &c->windows[i], c->tokens[i],
                                     sgt_set_eot(&l->set, c->windows[i].shard), c->starts + count);
    }
    c->starts_first[n] = count;
}

const sgt_row_documents *sgt_cursor_documents(const sgt_cursor *c)
{
    return c->starts ? &c->begun : NULL;
}

/* Fill in begins, positions and ids for the inputs from ... to - 1, which belong to one
 * document. */
static void expand(uint32_t from, uint32_t to, int32_t id, int32_t *begins, int32_t *positions,
                   int32_t *ids)
{
    for (uint32_t t = from; begins && t < to; t++) begins[t] = (int32_t)from;
    for (uint32_t t = from; positions && t < to; t++) positions[t] = (int32_t)(t - from);
    for (uint32_t t = from; ids && t < to; t++) ids[t] = id;
}

static void expand_padding(uint32_t from, uint32_t to, int32_t *begins, int32_t *positions,
                           int32_t *ids)
{
    for (uint32_t t = from; t < to; t++) {
        if (begins) begins[t] = (int32_t)t;
        if (positions) positions[t] = 0;
        if (ids) ids[t] = -1;
    }
}

void sgt_row_documents_expand(const sgt_row_documents *d, const uint32_t *lengths, uint32_t rows,
                              uint32_t seq, int32_t *begins, int32_t *positions, int32_t *ids)
{
    for (uint32_t r = 0; r < rows; r++) {
        uint32_t own = lengths && lengths[r] < seq ? lengths[r] : seq, from = 0;
        int32_t id = 0;
        for (uint32_t k = d->first[r]; k < d->first[r + 1] && d->starts[k] < own; k++) {
            if (d->starts[k] == 0) continue;
            expand(from, d->starts[k], id++, begins, positions, ids);
            from = d->starts[k];
        }
        expand(from, own, id, begins, positions, ids);
        expand_padding(own, seq, begins, positions, ids);
        if (begins) begins += seq;
        if (positions) positions += seq;
        if (ids) ids += seq;
    }
}

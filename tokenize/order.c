/* order.c: walks the parts one after the other. */
#include "order.h"

#include <inttypes.h>
#include <stdlib.h>

struct sgt_order {
    sgt_order_request r;
    uint64_t *before;  /* tokens of the parts before part i; of all for i = count */
    size_t part;       /* the one being walked; count: it is over */
    uint64_t document; /* in it, the next */
    uint64_t start, tokens; /* of the last one given out, in the part */
};

int sgt_order_open(sgt_order **out, const sgt_order_request *r, sgt_error *err)
{
    sgt_order *o = calloc(1, sizeof *o);
    if (!o || !(o->before = calloc(r->count + 1, sizeof *o->before))) {
        free(o);
        return sgt_fail(err, SGT_ENOMEM, "the order of documents: out of memory");
    }
    o->r = *r;
    for (size_t i = 0; i < r->count; i++) o->before[i + 1] = o->before[i] + sgt_set_tokens(r->parts[i], r->split);
    *out = o;
    return SGT_OK;
}

void sgt_order_close(sgt_order *o)
{
    if (!o) return;
    for (size_t i = 0; i < o->r.count; i++) sgt_set_rest(o->r.parts[i]);
    free(o->before);
    free(o);
}

uint64_t sgt_order_tokens(const sgt_order *o)
{
    return o->before[o->r.count];
}

static void go_to_part(sgt_order *o, size_t part)
{
    if (o->part < o->r.count) sgt_set_rest(o->r.parts[o->part]);
    o->part = part;
    o->document = o->start = o->tokens = 0;
}

int sgt_order_next(sgt_order *o, uint64_t *tokens, sgt_error *err)
{
    int split = o->r.split, rc;
    while (o->part < o->r.count && o->document == sgt_set_documents(o->r.parts[o->part], split))
        go_to_part(o, o->part + 1);
    if (o->part == o->r.count) return 1;
    sgt_set *s = o->r.parts[o->part];
    uint64_t end, want = o->start + o->tokens; /* documents lie end to end */
    if ((rc = sgt_set_start(s, split, o->document, &o->start, err)) < 0 ||
        (rc = sgt_set_start(s, split, o->document + 1, &end, err)) < 0)
        return rc;
    if (o->start != want || end <= o->start || end > sgt_set_tokens(s, split))
        return sgt_fail(err, SGT_EFORMAT,
                        "part %zu: document %" PRIu64 " begins at token %" PRIu64 " and ends at %" PRIu64
                        ", damaged (--force starts over)",
                        o->part + 1, o->document, o->start, end);
    o->document++;
    *tokens = o->tokens = end - o->start;
    return SGT_OK;
}

int sgt_order_seek(sgt_order *o, uint64_t at, uint64_t *tokens, uint64_t *skip, sgt_error *err)
{
    size_t part = 0;
    int rc;
    while (part + 1 < o->r.count && o->before[part + 1] <= at) part++;
    go_to_part(o, part);
    uint64_t position = o->before[part];
    while ((rc = sgt_order_next(o, tokens, err)) == 0 && position + *tokens <= at) position += *tokens;
    *skip = at - position;
    return rc == 1 ? sgt_fail(err, SGT_EFORMAT, "part %zu: ends too early (--force starts over)", part + 1) : rc;
}

int sgt_order_ids(sgt_order *o, uint64_t at, size_t n, const uint16_t **ids, sgt_error *err)
{
    return sgt_set_ids(o->r.parts[o->part], o->r.split, o->start + at, n, ids, err);
}

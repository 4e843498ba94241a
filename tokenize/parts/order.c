/* order.c: walk the parts one after the other, or hand over to gather.c or shuffle.c. */
#include "tokenize/parts/order.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tokenize/parts/gather.h"
#include "tokenize/parts/shuffle.h"

struct sgt_order {
    sgt_order_request r;
    uint64_t *before;       /* tokens of the parts before part i; of all parts for i = count */
    uint64_t *numbers;      /* documents of the parts before part i, also those left out */
    size_t part, end;       /* index of the current part; where the order ends */
    uint64_t document;      /* index in that part of the next document */
    uint64_t start, tokens; /* extent in the part of the last document delivered */
    /* both NULL: the documents come in the order of the input */
    sgt_shuffle *shuffle;
    sgt_gather *gather;
};

static void go_to_part(sgt_order *o, size_t part)
{
    if (o->part < o->r.count) sgt_made_rest(o->r.parts[o->part]);
    o->part = part;
    o->document = o->start = o->tokens = 0;
}

static uint64_t documents_here(const sgt_order *o)
{
    return sgt_made_documents(o->r.parts[o->part], o->r.split);
}

/* Return 1 if the document just reached is left out, 0 if not, or a negative SGT_E*. */
static int left_out(const sgt_order *o, sgt_error *err)
{
    if (!o->r.dedup) return 0;
    return sgt_dedup_is_duplicate(o->r.dedup, o->r.split, sgt_order_number(o), err);
}

static int next_of_part(sgt_order *o, sgt_error *err)
{
    int rc = 1;
    while (rc == 1 && o->document < documents_here(o)) {
        rc = sgt_made_document(o->r.parts[o->part], o->r.split, o->document, &o->start, &o->tokens,
                               err);
        o->document++;
        if (!rc) rc = left_out(o, err);
    }
    return rc;
}

/* Count the tokens of each part that are in this order. */
static void add_up(sgt_order *o)
{
    for (size_t i = 0; i < o->r.count; i++) {
        const sgt_made *s = o->r.parts[i];
        const uint64_t less = o->r.dedup ? sgt_dedup_left_out(o->r.dedup, i, o->r.split) : 0;
        o->numbers[i + 1] = o->numbers[i] + sgt_made_documents(s, o->r.split);
        o->before[i + 1] = o->before[i] + sgt_made_tokens(s, o->r.split) - less;
    }
}

/* Open the order of the input. */
static int open_input(sgt_order **out, const sgt_order_request *r, sgt_error *err)
{
    sgt_order *o = calloc(1, sizeof *o);
    if (!o) return sgt_fail_memory(err, "the order of documents");
    o->r = *r;
    o->r.share = sgt_share_or_all(r->share);
    o->end = r->count;
    o->before = calloc(r->count + 1, sizeof *o->before);
    o->numbers = calloc(r->count + 1, sizeof *o->numbers);
    if (!o->before || !o->numbers) {
        sgt_order_close(o);
        return sgt_fail_memory(err, "the order of documents");
    }
    add_up(o);
    *out = o;
    return SGT_OK;
}

int sgt_order_copies(const sgt_order_request *r, sgt_error *err)
{
    sgt_order_request all = *r;
    all.share = sgt_share_or_all(r->share);
    if (!r->shuffle || !sgt_gather_suits(&all)) return r->shuffle;
    return r->force || all.share.count > 1 ? 0 : sgt_shuffle_exists(&all, err);
}

int sgt_order_scatter(const sgt_order_request *r, sgt_error *err)
{
    sgt_order *o;
    int rc = open_input(&o, r, err);
    if (rc < 0) return rc;
    const sgt_share *s = &o->r.share;
    o->part = (size_t)sgt_share_first(s, r->count, s->index);
    o->end = (size_t)sgt_share_first(s, r->count, s->index + 1ull);
    rc = sgt_order_copies(r, err);
    if (rc > 0) rc = s->index < s->count ? sgt_shuffle_scatter(&o->r, o, err) : SGT_OK;
    else if (!rc && s->count == 1) rc = sgt_shuffle_remove(&o->r, err);
    sgt_order_close(o);
    return rc;
}

/* Open the shuffled order. A rank that is alone has scattered the documents if their files are
 * there. */
static int open_shuffled(sgt_order *o, sgt_error *err)
{
    const int there =
        o->r.share.count > 1 ? !sgt_gather_suits(&o->r) : sgt_shuffle_exists(&o->r, err);
    if (there < 0) return there;
    return there ? sgt_shuffle_open(&o->shuffle, &o->r, sgt_order_tokens(o), err)
                 : sgt_gather_open(&o->gather, &o->r, err);
}

int sgt_order_open(sgt_order **out, const sgt_order_request *r, sgt_error *err)
{
    sgt_order *o;
    int rc = open_input(&o, r, err);
    if (rc < 0) return rc;
    if (r->shuffle) rc = open_shuffled(o, err);
    if (rc < 0) sgt_order_close(o);
    else *out = o;
    return rc;
}

void sgt_order_close(sgt_order *o)
{
    if (!o) return;
    for (size_t i = 0; i < o->r.count; i++) sgt_made_rest(o->r.parts[i]);
    sgt_shuffle_close(o->shuffle);
    sgt_gather_close(o->gather);
    free(o->before);
    free(o->numbers);
    free(o);
}

uint64_t sgt_order_tokens(const sgt_order *o) { return o->before[o->r.count]; }
int sgt_order_copied(const sgt_order *o) { return o->shuffle != NULL; }
uint64_t sgt_order_number(const sgt_order *o) { return o->numbers[o->part] + o->document - 1; }

int sgt_order_next(sgt_order *o, uint64_t *tokens, sgt_error *err)
{
    if (o->shuffle) return sgt_shuffle_next(o->shuffle, tokens, err);
    if (o->gather) return sgt_gather_next(o->gather, tokens, err);
    int rc = 1;
    while (o->part < o->end && (rc = next_of_part(o, err)) == 1) go_to_part(o, o->part + 1);
    *tokens = o->tokens;
    return rc;
}

int sgt_order_seek(sgt_order *o, uint64_t at, uint64_t *tokens, uint64_t *skip, sgt_error *err)
{
    if (o->shuffle) return sgt_shuffle_seek(o->shuffle, at, tokens, skip, err);
    if (o->gather) return sgt_gather_seek(o->gather, at, tokens, skip, err);
    size_t part = 0;
    int rc;
    while (part + 1 < o->r.count && o->before[part + 1] <= at) part++;
    go_to_part(o, part);
    uint64_t position = o->before[part];
    while ((rc = sgt_order_next(o, tokens, err)) == 0 && position + *tokens <= at)
        position += *tokens;
    *skip = at - position;
    return rc == 1 ? sgt_fail(err, SGT_EFORMAT, "the documents end before token %" PRIu64, at) : rc;
}

int sgt_order_ids(sgt_order *o, uint64_t at, size_t n, const uint16_t **ids, sgt_error *err)
{
    if (o->shuffle) return sgt_shuffle_ids(o->shuffle, at, n, ids, err);
    if (o->gather) return sgt_gather_ids(o->gather, at, n, ids, err);
    return sgt_made_ids(o->r.parts[o->part], o->r.split, o->start + at, n, ids, err);
}

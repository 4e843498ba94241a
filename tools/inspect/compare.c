/* compare.c: compares the tokens of two data sets, and prints the first difference. How the tokens
 * are divided into shards does not matter. If both data sets are folders, their train splits are
 * compared with each other, and then their val splits. If a data set is a single shard, all tokens
 * are compared as one sequence. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/progress.h"
#include "loader/base/file.h"
#include "loader/base/json.h"
#include "tools/cli/talk.h"
#include "tools/inspect/inspect.h"

/* number of tokens that are compared at a time, small enough that the tokens of both data sets are
 * still in the L2 cache after they have been read */
#define BLOCK ((size_t)1 << 17)
#define AROUND 6 /* number of tokens that are printed before and after the first difference */

/* one of the two data sets */
typedef struct side {
    inspect_set set;
    void *ids; /* buffer for the ids of BLOCK tokens */
    /* JSON object with the tokens around the first difference, for the output; NULL if there is no
     * difference */
    json_t *around;
} side;

typedef struct pair {
    const inspect *o;
    side sides[2];
    sgt_progress *bar;
    uint64_t done; /* number of tokens compared so far, in both data sets together */
    /* index of the last split that was compared, which contains the difference if there is one; -1
     * if all tokens were compared as one sequence */
    int split;
    /* index of the first token that differs, in the split or, if `split` is -1, in the data set */
    uint64_t token;
    int differs; /* 1 if the tokens differ, otherwise 0 */
    /* 1 if the data sets have the same vocabulary, 0 if they have different ones, -1 if the
     * vocabulary of a data set is unknown */
    int vocabularies;
} pair;

/* ---- comparing ---- */

static size_t first_difference(const side *a, const side *b, size_t n)
{
    const size_t width = a->set.first.width, other = b->set.first.width;
    size_t i = 0;
    if (width == other && !memcmp(a->ids, b->ids, n * width)) return n;
    while (i < n && sgt_id_at(a->ids, width, i) == sgt_id_at(b->ids, other, i)) i++;
    return i;
}

/* Compare the splits with the index `split` of the two data sets, or all tokens if `split` is -1.
 * Set p->differs to 1 if there is a difference, and p->token to the number of equal tokens before
 * the first difference. */
static int compare_split(pair *p, int split, sgt_error *err)
{
    side *a = &p->sides[0], *b = &p->sides[1];
    const uint64_t width = a->set.first.width, all = a->set.tokens + b->set.tokens;
    p->split = split;
    for (p->token = 0; !p->differs;) {
        size_t n = 0, m = 0;
        int rc = inspect_read(&a->set, split, p->token, a->ids, BLOCK, &n, err);
        if (rc == SGT_OK) rc = inspect_read(&b->set, split, p->token, b->ids, BLOCK, &m, err);
        if (rc < 0) return rc;
        size_t both = n < m ? n : m, same = first_difference(a, b, both);
        p->token += same;
        p->differs = same < both || n != m;
        if (!both) break;
        if (sgt_stopped(p->o->stop)) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
        sgt_progress_update(p->bar, width * (p->done += 2 * both), width * all, 0, NULL);
    }
    return SGT_OK;
}

static int compare_tokens(pair *p, sgt_error *err)
{
    int rc = SGT_OK;
    p->bar = sgt_progress_new("B", p->o->quiet);
    if (!p->sides[0].set.folder || !p->sides[1].set.folder) rc = compare_split(p, -1, err);
    else
        for (int i = 0; i < SGT_SPLITS && !rc && !p->differs; i++) rc = compare_split(p, i, err);
    sgt_progress_end(p->bar);
    return rc;
}

static int open_side(side *d, const inspect *o, const char *path, sgt_error *err)
{
    int rc = inspect_set_open(&d->set, o, path, err);
    if (rc < 0) return rc;
    d->ids = malloc(BLOCK * sizeof(uint32_t));
    return d->ids ? SGT_OK : sgt_fail_memory(err, NULL);
}

/* ---- output ---- */

/* Set d->around to a JSON object with the tokens of this data set around the first difference. It
 * includes their text if the vocabulary is known and contains all their ids. */
static int describe_around(side *d, const pair *p, sgt_error *err)
{
    sgt_vocab *v;
    uint32_t ids[2 * AROUND + 1];
    uint64_t offset, byte, from = p->token > AROUND ? p->token - AROUND : 0;
    size_t n, bytes, width = d->set.first.width;
    char *text = NULL;
    int rc = inspect_read(&d->set, p->split, from, ids, 2 * AROUND + 1, &n, err);
    if (rc < 0) return rc;
    if (inspect_set_vocabulary(&v, &d->set, NULL) == SGT_OK) {
        if (sgt_decode(v, ids, n, &text, &bytes, NULL) < 0) text = NULL;
        sgt_vocab_free(v);
    }
    json_t *list = sgt_json_ids(ids, width, n);
    const sgt_set_shard *in = inspect_place(&d->set, p->split, p->token, &offset);
    if (in) {
        byte = in->head.data + width * offset;
        d->around = json_pack("{s:o, s:I, s:I, s:O}", "shard", sgt_json_string(in->path), "token",
                              (json_int_t)offset, "byte", (json_int_t)byte, "id",
                              json_array_get(list, (size_t)(p->token - from)));
    } else
        d->around = json_pack("{s:n, s:I}", "shard", "ends_after",
                              (json_int_t)inspect_count(&d->set, p->split, NULL));
    json_object_set_new(d->around, "from", json_integer((json_int_t)from));
    json_object_set_new(d->around, "ids", list);
    json_object_set_new(d->around, "text", text ? sgt_json_text(text, bytes) : json_null());
    free(text);
    return SGT_OK;
}

static json_t *side_json(const side *d)
{
    const inspect_set *s = &d->set;
    return json_pack("{s:o, s:I, s:I, s:o}", "path", sgt_json_string(s->path), "tokens",
                     (json_int_t)s->tokens, "shards", (json_int_t)s->set.count, "fingerprint",
                     s->first.fingerprint ? sgt_json_hex(s->first.fingerprint) : json_null());
}

static const char *split_name(const pair *p)
{
    return p->split < 0 ? NULL : sgt_split_names[p->split];
}

static json_t *pair_json(const pair *p)
{
    const side *a = &p->sides[0], *b = &p->sides[1];
    json_t *first = NULL;
    if (p->differs)
        first = json_pack("{s:O, s:O, s:s?, s:I}", "a", a->around, "b", b->around, "split",
                          split_name(p), "token", (json_int_t)p->token);
    return json_pack("{s:b, s:o, s:o, s:o, s:o?}", "same", !p->differs && p->vocabularies,
                     "same_vocabulary",
                     p->vocabularies < 0 ? json_null() : json_boolean(p->vocabularies), "a",
                     side_json(a), "b", side_json(b), "first_difference", first);
}

static int show(const pair *p, sgt_error *err)
{
    char names[2 * SGT_PATH], what[128] = "the same tokens", count[32];
    const char *split = split_name(p);
    snprintf(names, sizeof names, "%s and %s", p->sides[0].set.path, p->sides[1].set.path);
    if (p->differs)
        snprintf(what, sizeof what, "%sdiffer from token %s%s%s on",
                 p->vocabularies ? "" : "have different vocabularies, and ",
                 sgt_format_count(count, sizeof count, p->token), split ? " of " : "",
                 split ? split : "");
    else if (!p->vocabularies)
        snprintf(what, sizeof what, "the same ids, but different vocabularies");
    return sgt_print_result(p->o->json, p->o->quiet, names, what, pair_json(p), err);
}

int inspect_compare(const inspect *o, const char *const paths[2], sgt_error *err)
{
    pair p = {.o = o};
    side *a = &p.sides[0], *b = &p.sides[1];
    int rc = open_side(a, o, paths[0], err);
    if (!rc) rc = open_side(b, o, paths[1], err);
    const uint64_t x = a->set.first.fingerprint, y = b->set.first.fingerprint;
    p.vocabularies = !x || !y ? -1 : x == y;
    if (!rc) rc = compare_tokens(&p, err);
    if (!rc && p.differs) rc = describe_around(a, &p, err);
    if (!rc && p.differs) rc = describe_around(b, &p, err);
    if (!rc) rc = show(&p, err);
    for (side *d = p.sides; d < p.sides + 2; d++) {
        free(d->ids);
        json_decref(d->around);
        inspect_set_close(&d->set);
    }
    return rc < 0 ? rc : p.differs || !p.vocabularies;
}

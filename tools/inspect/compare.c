/* compare.c: compares the tokens of two sets, however they are divided into shards, and shows the
 * first difference. Two folders are compared split by split. If one of the two is a single shard,
 * all tokens are compared in order. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/progress.h"
#include "loader/base/json.h"
#include "tools/cli/talk.h"
#include "tools/inspect/inspect.h"

/* tokens compared at a time: both blocks together fit in the L2 cache */
#define BLOCK ((size_t)1 << 17)
#define AROUND 6 /* tokens shown before and after the first difference */

typedef struct pair {
    inspect_set sets[2];
    /* split with the first difference; NULL: the sets were compared without splits */
    const char *split;
    uint64_t token; /* index of the first difference within the split, or in all tokens */
    int differs;    /* 1: the tokens differ */
    /* 1: the vocabularies are the same; 0: they differ; -1: a set does not tell */
    int vocabularies;
    uint64_t fingerprints[2];
} pair;

/* ---- comparing ---- */

typedef struct walk {
    const inspect *o;
    sgt_progress *bar;
    uint64_t done, all; /* done: tokens compared so far; all: tokens in both sets together */
    uint16_t *ids[2];
} walk;

static size_t first_difference(const uint16_t *a, const uint16_t *b, size_t n)
{
    size_t i = 0;
    if (!memcmp(a, b, n * sizeof *a)) return n;
    while (a[i] == b[i]) i++;
    return i;
}

/* Compare two sequences from their beginning. Return 1 if both are equal to their end, else 0;
 * *token is the number of equal tokens. */
static int walk_both(walk *w, inspect_reader r[2], uint64_t *token, sgt_error *err)
{
    for (*token = 0;;) {
        size_t n[2];
        for (int i = 0; i < 2; i++) {
            int rc = inspect_reader_next(&r[i], w->ids[i], BLOCK, &n[i], err);
            if (rc < 0) return rc;
        }
        size_t both = n[0] < n[1] ? n[0] : n[1],
               same = first_difference(w->ids[0], w->ids[1], both);
        *token += same;
        if (same < both || n[0] != n[1]) return 0;
        if (!both) return 1;
        if (sgt_stopped(w->o->stop)) return sgt_fail(err, SGT_ESTOPPED, "stopped");
        sgt_progress_update(w->bar, 2 * (w->done += 2 * both), 2 * w->all, 0, NULL);
    }
}

/* Compare one split, or with split NULL, all tokens. */
static int compare_split(pair *p, walk *w, const char *split, sgt_error *err)
{
    inspect_reader r[2];
    for (int i = 0; i < 2; i++) inspect_reader_start(&r[i], &p->sets[i], split, 0);
    int same = walk_both(w, r, &p->token, err);
    for (int i = 0; i < 2; i++) inspect_reader_end(&r[i]);
    p->split = split;
    p->differs = same == 0;
    return same < 0 ? same : SGT_OK;
}

static int compare_tokens(pair *p, const inspect *o, sgt_error *err)
{
    walk w = {.o = o,
              .bar = sgt_progress_new("B", SGT_PROGRESS_BYTES, o->quiet),
              .all = p->sets[0].tokens + p->sets[1].tokens,
              .ids = {malloc(BLOCK * sizeof **w.ids), malloc(BLOCK * sizeof **w.ids)}};
    int rc = w.ids[0] && w.ids[1] ? SGT_OK : sgt_fail_memory(err, NULL);
    if (!p->sets[0].folder || !p->sets[1].folder) {
        if (!rc) rc = compare_split(p, &w, NULL, err);
    } else {
        for (int i = 0; i < INSPECT_SPLITS && !rc && !p->differs; i++)
            rc = compare_split(p, &w, inspect_splits[i], err);
    }
    for (int i = 0; i < 2; i++) free(w.ids[i]);
    sgt_progress_end(w.bar);
    return rc;
}

/* Compare the vocabularies, as far as manifests and headers tell. A set with a manifest has one
 * vocabulary, which was checked when the set was opened; otherwise its first shard's counts. */
static void compare_vocabularies(pair *p)
{
    for (int i = 0; i < 2; i++) {
        const inspect_set *s = &p->sets[i];
        p->fingerprints[i] = s->manifest ? s->manifest->fingerprint : s->first.fingerprint;
    }
    p->vocabularies =
        !p->fingerprints[0] || !p->fingerprints[1] ? -1 : p->fingerprints[0] == p->fingerprints[1];
}

/* ---- output ---- */

/* The tokens of one of the sets around the difference: ids[0 .. n - 1], the first of which has
 * index `from`. */
typedef struct excerpt {
    const inspect_shard *shard; /* shard with the differing token; NULL: the set ends before it */
    uint64_t offset, from;
    uint16_t ids[2 * AROUND + 1];
    size_t n, at; /* at: index of the differing token in ids */
    char *text;   /* text of ids; NULL: unknown */
    size_t bytes;
} excerpt;

static int read_excerpt(excerpt *e, const pair *p, int side, sgt_error *err)
{
    const inspect_set *s = &p->sets[side];
    sgt_vocab *v;
    inspect_reader r;
    *e = (excerpt){0};
    e->shard = inspect_place(s, p->split, p->token, &e->offset);
    e->from = p->token > AROUND ? p->token - AROUND : 0;
    e->at = (size_t)(p->token - e->from);
    inspect_reader_start(&r, s, p->split, e->from);
    int rc = inspect_reader_next(&r, e->ids, 2 * AROUND + 1, &e->n, err);
    inspect_reader_end(&r);
    /* show the text too, if the vocabulary is known and has all of the ids */
    if (!rc && inspect_set_vocabulary(&v, s, NULL) == SGT_OK) {
        if (sgt_decode(v, e->ids, e->n, &e->text, &e->bytes, NULL) < 0) e->text = NULL;
        sgt_vocab_free(v);
    }
    return rc;
}

static void show_excerpt(const excerpt *e, const pair *p, int side)
{
    const inspect_set *s = &p->sets[side];
    printf("  %s:\n", inspect_name(s->path));
    if (e->shard)
        printf("    %s: token %" PRIu64 " (byte %" PRIu64 "): id %u\n",
               inspect_name(e->shard->path), e->offset, e->shard->header.data + 2 * e->offset,
               e->ids[e->at]);
    else printf("    ends after %s\n", inspect_count(inspect_tokens(s, p->split), "token"));
    printf("    ids ");
    for (size_t i = 0; i < e->n; i++) printf(i == e->at ? " [%u]" : " %u", e->ids[i]);
    printf("\n");
    if (e->text) printf("    text \"%s\"\n", inspect_name(e->text));
}

static void show(const pair *p, const excerpt e[2])
{
    const char *a = inspect_name(p->sets[0].path), *b = inspect_name(p->sets[1].path);
    if (!p->vocabularies)
        printf("%s and %s are of different vocabularies: fingerprints %016" PRIx64
               " and %016" PRIx64 "\n",
               a, b, p->fingerprints[0], p->fingerprints[1]);
    if (p->differs)
        printf("%s and %s differ from token %s%s%s on\n", a, b, inspect_count(p->token, NULL),
               p->split ? " of " : "", p->split ? p->split : "");
    else
        printf("%s and %s hold the same %s\n", a, b,
               inspect_count(p->sets[0].tokens, p->vocabularies ? "token" : "id"));
    for (int i = 0; i < 2 && p->differs; i++) show_excerpt(&e[i], p, i);
}

static json_t *excerpt_json(const excerpt *e)
{
    const inspect_shard *d = e->shard;
    uint64_t byte = d ? d->header.data + 2 * e->offset : 0;
    json_t *ids = json_array();
    for (size_t i = 0; i < e->n; i++) json_array_append_new(ids, json_integer(e->ids[i]));
    json_t *o =
        d ? json_pack("{s:o, s:I, s:I, s:i}", "shard", sgt_json_text(d->path, strlen(d->path)),
                      "token", (json_int_t)e->offset, "byte", (json_int_t)byte, "id", e->ids[e->at])
          : json_pack("{s:n}", "shard");
    json_object_set_new(o, "from", json_integer((json_int_t)e->from));
    json_object_set_new(o, "ids", ids);
    json_object_set_new(o, "text", e->text ? sgt_json_text(e->text, e->bytes) : json_null());
    return o;
}

static json_t *side_json(const pair *p, int side)
{
    const inspect_set *s = &p->sets[side];
    uint64_t fingerprint = p->fingerprints[side];
    return json_pack("{s:o, s:I, s:I, s:o}", "path", sgt_json_text(s->path, strlen(s->path)),
                     "tokens", (json_int_t)s->tokens, "shards", (json_int_t)s->count, "fingerprint",
                     fingerprint ? sgt_json_hex(fingerprint) : json_null());
}

static json_t *pair_json(const pair *p, const excerpt e[2])
{
    json_t *first = !p->differs ? json_null()
                                : json_pack("{s:s?, s:I, s:o, s:o}", "split", p->split, "token",
                                            (json_int_t)p->token, "a", excerpt_json(&e[0]), "b",
                                            excerpt_json(&e[1]));
    return json_pack("{s:b, s:o, s:o, s:o, s:o}", "same", !p->differs && p->vocabularies,
                     "same_vocabulary",
                     p->vocabularies < 0 ? json_null() : json_boolean(p->vocabularies), "a",
                     side_json(p, 0), "b", side_json(p, 1), "first_difference", first);
}

int inspect_compare(const inspect *o, const char *const paths[2], sgt_error *err)
{
    pair p = {0};
    excerpt e[2] = {0};
    int rc = SGT_OK;
    for (int i = 0; i < 2 && !rc; i++) {
        inspect one = *o;
        one.path = paths[i];
        rc = inspect_set_open(&p.sets[i], &one, err);
    }
    if (!rc) {
        compare_vocabularies(&p);
        rc = compare_tokens(&p, o, err);
    }
    for (int i = 0; i < 2 && !rc && p.differs; i++) rc = read_excerpt(&e[i], &p, i, err);
    if (!rc && o->json) rc = sgt_print_json(pair_json(&p, e), JSON_INDENT(2), err);
    else if (!rc && !o->quiet) show(&p, e);
    for (int i = 0; i < 2; i++) {
        free(e[i].text);
        inspect_set_close(&p.sets[i]);
    }
    return rc < 0 ? rc : p.differs || !p.vocabularies;
}

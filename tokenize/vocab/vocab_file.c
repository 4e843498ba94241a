/* vocab_file.c: makes a vocabulary from a file's tokens and merges. It numbers tokens in merge
 * order (vocab.h), and makes the table that maps back to the file's ids. */
#include "tokenize/vocab/vocab_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "loader/base/memory.h"

#define MAX_BYTES ((size_t)1 << 23) /* most bytes of all tokens: the trie's keys hold 2^24 nodes */
/* most tokens or merges. o200k has 446,189 merges: it is read, and then refused for its ids */
#define MAX_PARTS ((size_t)1 << 19)
/* most bytes of a token whose merge is found by trying every way to cut the token in two */
#define MAX_RANKED 4096

const char *const sgt_vocab_eot_names[] = {SGT_EOT_TEXT, "<|end_of_text|>", "</s>",
                                           "<eos>",      "<|eos|>",         NULL};

/* ---- parts ---- */

/* Append a part, whose bytes are l[ln] and r[rn] behind them. Those of another part are shared. */
static int add_part(sgt_vocab_parts *p, sgt_vocab_list *list, sgt_vocab_part part, const void *l,
                    size_t ln, const void *r, size_t rn, sgt_error *err)
{
    if (!p->bytes && !(p->bytes = malloc(MAX_BYTES))) return sgt_fail_memory(err, p->path);
    const int shared = !rn && (uintptr_t)l - (uintptr_t)p->bytes < p->used;
    if (!shared && (ln > MAX_BYTES - p->used || rn > MAX_BYTES - p->used - ln))
        return sgt_fail(err, SGT_EFORMAT, "%s: tokens and merges of more than %zu bytes", p->path,
                        MAX_BYTES);
    if (list->count == MAX_PARTS)
        return sgt_fail(err, SGT_EFORMAT, "%s: more than %zu tokens or merges", p->path, MAX_PARTS);
    int rc = sgt_reserve(&list->parts, &list->room, list->count + 1, sizeof part, p->path, err);
    if (rc < 0) return rc;
    part.s = shared ? l : p->bytes + p->used;
    part.n = ln + rn;
    if (!shared) {
        memcpy(p->bytes + p->used, l, ln);
        memcpy(p->bytes + p->used + ln, r, rn);
        p->used += part.n;
    }
    list->parts[list->count++] = part;
    return SGT_OK;
}

int sgt_vocab_parts_token(sgt_vocab_parts *p, uint64_t id, const void *bytes, size_t n, int added,
                          sgt_error *err)
{
    return add_part(p, &p->tokens, (sgt_vocab_part){.id = id, .added = added}, bytes, n, "", 0,
                    err);
}

int sgt_vocab_parts_merge(sgt_vocab_parts *p, const void *left, size_t left_n, const void *right,
                          size_t right_n, sgt_error *err)
{
    return add_part(p, &p->merges, (sgt_vocab_part){.id = left_n}, left, left_n, right, right_n,
                    err);
}

void sgt_vocab_parts_free(sgt_vocab_parts *p)
{
    free(p->tokens.parts);
    free(p->merges.parts);
    free(p->bytes);
    free(p->own_rule);
    *p = (sgt_vocab_parts){0};
}

/* ---- looking things up ---- */

typedef struct builder {
    const sgt_vocab_parts *p;
    uint32_t size, eot; /* public ids */
    const char *eot_text;
    const sgt_vocab_part **tokens; /* (size): by public id */
    /* hash table from the text of a token to its id + 1; without added tokens */
    uint32_t *names;
    size_t name_mask;
    /* (size): id in merge order, by public id; SGT_NO_TOKEN until a merge makes the token */
    uint32_t *order;
    /* (size): 1: a merge needed the token before any merge had made it */
    uint8_t *awaited;
    uint16_t *ids;         /* merge order to public id */
    uint16_t (*halves)[2]; /* in merge order, like vocab.h's */
    /* hash tables of pairs: in merge order, to the token that they make; by public ids, to the
     * number, from 1, of the last merge that lists them */
    sgt_vocab_slot *made, *listed;
    unsigned shift; /* of both */
    uint32_t count; /* number of tokens that are in merge order so far */
} builder;

static size_t find_name(const builder *b, const uint8_t *s, size_t n)
{
    size_t i = XXH3_64bits(s, n) & b->name_mask;
    for (; b->names[i]; i = (i + 1) & b->name_mask) {
        const sgt_vocab_part *t = b->tokens[b->names[i] - 1];
        if (t->n == n && !memcmp(t->s, s, n)) break;
    }
    return i;
}

/* Return the id of the token s[0..n), or SGT_NO_TOKEN. */
static uint32_t find_token(const builder *b, const uint8_t *s, size_t n)
{
    return b->names[find_name(b, s, n)] - 1;
}

static sgt_vocab_slot *find_pair(const builder *b, sgt_vocab_slot *slots, uint32_t l, uint32_t r)
{
    sgt_vocab_slot *slot = sgt_vocab_slot_of(slots, b->shift, l << 16 | r);
    slot->key = l << 16 | r;
    return slot;
}

/* Write a token into to[size] as messages show it: its text, or hex if it is not printable. */
static const char *shown(const builder *b, uint32_t id, char *to, size_t size)
{
    const sgt_vocab_part *t = b->tokens[id];
    char text[64];
    size_t n = t->n < sizeof text - 4 ? t->n : sizeof text - 4;
    memcpy(text, t->s, n);
    memcpy(text + n, n < t->n ? "..." : "", n < t->n ? 4 : 1);
    return sgt_printable(to, size, text);
}

/* ---- tokens ---- */

static int check_ids(builder *b, sgt_error *err)
{
    const sgt_vocab_list *tokens = &b->p->tokens;
    uint64_t largest = 0;
    for (size_t i = 0; i < tokens->count; i++)
        if (tokens->parts[i].id > largest) largest = tokens->parts[i].id;
    if (largest >= SGT_VOCAB_MAX_IDS)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: ids up to %" PRIu64 "; sgt's tokens are of 16 bits, up to 65535",
                        b->p->path, largest);
    b->size = (uint32_t)largest + 1;
    return SGT_OK;
}

static int reserve(builder *b, sgt_error *err)
{
    const size_t most = b->size > b->p->merges.count ? b->size : b->p->merges.count;
    size_t slots = 2;
    while (slots < 2 * most) slots *= 2;
    b->name_mask = slots - 1;
    b->shift = (unsigned)__builtin_clzll(slots) + 1;
    b->tokens = calloc(b->size, sizeof *b->tokens);
    b->names = calloc(slots, sizeof *b->names);
    b->order = malloc(b->size * sizeof *b->order);
    b->awaited = calloc(b->size, 1);
    b->ids = calloc((size_t)b->size + 257, sizeof *b->ids);
    b->halves = calloc((size_t)b->size + 257, sizeof *b->halves);
    b->made = calloc(slots, sizeof *b->made);
    b->listed = calloc(slots, sizeof *b->listed);
    if (!b->tokens || !b->names || !b->order || !b->awaited || !b->ids || !b->halves || !b->made ||
        !b->listed)
        return sgt_fail_memory(err, b->p->path);
    memset(b->order, 0xFF, b->size * sizeof *b->order);
    return SGT_OK;
}

/* Index the tokens by id and by text. Fails unless every id and every text occurs once. */
static int index_tokens(builder *b, sgt_error *err)
{
    char text[300];
    for (size_t i = 0; i < b->p->tokens.count; i++) {
        const sgt_vocab_part *t = &b->p->tokens.parts[i];
        if (b->tokens[t->id])
            return sgt_fail(err, SGT_EFORMAT, "%s: two tokens have id %" PRIu64, b->p->path, t->id);
        b->tokens[t->id] = t;
        if (!t->n)
            return sgt_fail(err, SGT_EFORMAT, "%s: token %" PRIu64 " is empty", b->p->path, t->id);
        if (t->added) continue;
        size_t at = find_name(b, t->s, t->n);
        if (b->names[at])
            return sgt_fail(err, SGT_EFORMAT, "%s: tokens %u and %" PRIu64 " are the same: %s",
                            b->p->path, b->names[at] - 1, t->id,
                            shown(b, b->names[at] - 1, text, sizeof text));
        b->names[at] = (uint32_t)t->id + 1;
    }
    for (uint32_t id = 0; id < b->size; id++)
        if (!b->tokens[id])
            return sgt_fail(err, SGT_EFORMAT, "%s: no token has id %u, and there are ids up to %u",
                            b->p->path, id, b->size - 1);
    return SGT_OK;
}

static int find_eot(builder *b, sgt_error *err)
{
    for (const char *const *names = sgt_vocab_eot_names; *names; names++)
        for (uint32_t id = 0; id < b->size; id++)
            if (b->tokens[id]->added && b->tokens[id]->n == strlen(*names) &&
                !memcmp(b->tokens[id]->s, *names, strlen(*names))) {
                b->eot = id;
                b->eot_text = *names;
                return SGT_OK;
            }
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: has no end-of-text token (looked for <|endoftext|>, <|end_of_text|>, "
                    "</s>, <eos>, <|eos|>)",
                    b->p->path);
}

static int order_bytes(builder *b, sgt_error *err)
{
    sgt_alphabet a;
    sgt_alphabet_fill(&a);
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t id = find_token(b, a.order + i, 1);
        if (id == SGT_NO_TOKEN)
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: is not byte-level: no token is the byte 0x%02X alone", b->p->path,
                            a.order[i]);
        b->order[id] = b->halves[i][0] = b->halves[i][1] = (uint16_t)i;
        b->ids[i] = (uint16_t)id;
    }
    b->count = 256;
    return SGT_OK;
}

/* ---- merges ---- */

static uint32_t merged_by(const void *builder_, uint32_t left, uint32_t right)
{
    const builder *b = builder_;
    return find_pair(b, b->made, left, right)->value - 1;
}

/* Return whether the merges made so far keep two adjacent tokens apart, given as ids in merge
 * order. A merge of these two tokens is not among the merges yet. */
static int stay_apart(const builder *b, uint32_t left, uint32_t right)
{
    return sgt_stay_apart((const uint16_t(*)[2])b->halves, merged_by, b, left, right, SGT_NO_TOKEN);
}

/* Append token `id` to the merge order. It is made of the tokens left and right, which are given in
 * merge order. */
static void make_token(builder *b, uint32_t id, uint32_t left, uint32_t right)
{
    uint32_t at = b->count++;
    find_pair(b, b->made, left, right)->value = at + 1;
    b->halves[at][0] = (uint16_t)left;
    b->halves[at][1] = (uint16_t)right;
    b->ids[at] = (uint16_t)id;
    b->order[id] = at;
}

/* The tokens of a merge, and the one that it makes, by public id. */
typedef struct triple {
    uint32_t left, right, id;
} triple;

/* Find the tokens of the merges, and the last place where each pair is listed. */
static int find_merges(builder *b, triple *all, sgt_error *err)
{
    for (size_t i = 0; i < b->p->merges.count; i++) {
        const sgt_vocab_part *m = &b->p->merges.parts[i];
        const triple t = {find_token(b, m->s, m->id), find_token(b, m->s + m->id, m->n - m->id),
                          find_token(b, m->s, m->n)};
        if (t.left == SGT_NO_TOKEN || t.right == SGT_NO_TOKEN || t.id == SGT_NO_TOKEN)
            return sgt_fail(err, SGT_EFORMAT, "%s: merge %zu: %s is not a token of the vocabulary",
                            b->p->path, i + 1,
                            t.left == SGT_NO_TOKEN    ? "its left side"
                            : t.right == SGT_NO_TOKEN ? "its right side"
                                                      : "what it makes");
        all[i] = t;
        find_pair(b, b->listed, t.left, t.right)->value = (uint32_t)i + 1;
    }
    return SGT_OK;
}

/* Go through the merges in the order of the file. Leave out merges that can never happen: an earlier
 * merge crosses the border between the two tokens, or an earlier merge already makes the same
 * token. Of a merge that is listed twice the last listing counts, as in Hugging Face's table of
 * merges. */
static int order_merges(builder *b, const triple *all, sgt_error *err)
{
    char text[300];
    for (size_t i = 0; i < b->p->merges.count; i++) {
        const uint32_t id = all[i].id, l = b->order[all[i].left], r = b->order[all[i].right];
        if (find_pair(b, b->listed, all[i].left, all[i].right)->value != i + 1) continue;
        if (l == SGT_NO_TOKEN || r == SGT_NO_TOKEN)
            b->awaited[l == SGT_NO_TOKEN ? all[i].left : all[i].right] = 1;
        else if (b->order[id] == SGT_NO_TOKEN && stay_apart(b, l, r)) {
            if (b->awaited[id])
                return sgt_fail(err, SGT_EFORMAT,
                                "%s: merge %zu makes token %u (%s), which an earlier merge joins",
                                b->p->path, i + 1, id, shown(b, id, text, sizeof text));
            make_token(b, id, l, r);
        }
    }
    return SGT_OK;
}

static int order_listed(builder *b, sgt_error *err)
{
    triple *all = calloc(b->p->merges.count + 1, sizeof *all);
    int rc = all ? find_merges(b, all, err) : sgt_fail_memory(err, b->p->path);
    if (!rc) rc = order_merges(b, all, err);
    free(all);
    return rc;
}

/* Find the merge of token `id` if ids are ranks: the only way to cut it into two tokens that merges
 * of lower ranks keep apart. */
static int order_ranked(builder *b, uint32_t id, sgt_error *err)
{
    const sgt_vocab_part *t = b->tokens[id];
    const uint8_t *s = t->s;
    char text[300];
    if (t->n > MAX_RANKED)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: token %u has %zu bytes, more than %d (give its merges as well)",
                        b->p->path, id, t->n, MAX_RANKED);
    for (size_t cut = 1; cut < t->n; cut++) {
        uint32_t l = find_token(b, s, cut),
                 r = l == SGT_NO_TOKEN ? l : find_token(b, s + cut, t->n - cut);
        if (r == SGT_NO_TOKEN || b->order[l] == SGT_NO_TOKEN || b->order[r] == SGT_NO_TOKEN ||
            !stay_apart(b, b->order[l], b->order[r]))
            continue;
        make_token(b, id, b->order[l], b->order[r]);
        return SGT_OK;
    }
    return sgt_fail(err, SGT_EFORMAT, "%s: token %u (%s): no two tokens of lower ids make it",
                    b->p->path, id, shown(b, id, text, sizeof text));
}

static int order_tokens(builder *b, sgt_error *err)
{
    char text[300];
    int rc = order_bytes(b, err);
    if (!rc && !b->p->ranks) rc = order_listed(b, err);
    for (uint32_t id = 0; id < b->size && !rc; id++) {
        if (b->tokens[id]->added || b->order[id] != SGT_NO_TOKEN) continue;
        if (b->p->ranks) rc = order_ranked(b, id, err);
        else if (b->p->whole)
            rc = sgt_fail(err, SGT_EFORMAT,
                          "%s: token %u (%s): no merges make it, and ignore_merges is on",
                          b->p->path, id, shown(b, id, text, sizeof text));
    }
    return rc;
}

/* ---- the vocabulary ---- */

/* Number the tokens of v as the file does. */
static int number_tokens(sgt_vocab *v, builder *b, sgt_error *err)
{
    sgt_vocab_file *f = &v->file;
    size_t total = 0;
    int same = 1;
    for (uint32_t id = 0; id < b->size; id++) total += b->tokens[id]->n;
    free(f->added);
    *f = (sgt_vocab_file){.size = b->size,
                          .eot = b->eot,
                          .offsets = calloc((size_t)b->size + 1, sizeof *f->offsets),
                          .bytes = malloc(total + 1),
                          .added = calloc(b->size, 1)};
    if (!f->offsets || !f->bytes || !f->added) return sgt_fail_memory(err, b->p->path);
    for (uint32_t id = 0; id < b->size; id++) {
        memcpy(f->bytes + f->offsets[id], b->tokens[id]->s, b->tokens[id]->n);
        f->offsets[id + 1] = f->offsets[id] + (uint32_t)b->tokens[id]->n;
        f->added[id] = b->tokens[id]->added != 0;
    }
    b->ids[b->count] = (uint16_t)b->eot; /* in merge order the end of text is last */
    for (uint32_t i = 0; i <= b->count; i++) same &= b->ids[i] == i;
    if (same) return SGT_OK;
    f->ids = b->ids;
    b->ids = NULL;
    return SGT_OK;
}

static const char *setting_of(int added)
{
    return added & SGT_ADDED_LSTRIP        ? "lstrip"
           : added & SGT_ADDED_RSTRIP      ? "rstrip"
           : added & SGT_ADDED_SINGLE_WORD ? "single_word"
                                           : NULL;
}

static int build(sgt_vocab **out, builder *b, sgt_error *err)
{
    sgt_vocab *v = NULL;
    int rc = check_ids(b, err);
    if (rc < 0 || (rc = reserve(b, err)) < 0 || (rc = index_tokens(b, err)) < 0 ||
        (rc = find_eot(b, err)) < 0)
        return rc;
    if ((rc = order_tokens(b, err)) < 0) return rc;
    rc = sgt_vocab_from_halves(&v, b->p->path, (const uint16_t(*)[2])(b->halves + 256),
                               b->count - 256, NULL, err);
    if (rc < 0) return rc;
    rc = number_tokens(v, b, err);
    if (!rc && b->p->rule) rc = sgt_vocab_split_by(v, b->p->rule, err);
    if (!rc) rc = sgt_vocab_set_fingerprint(v, err);
    if (rc < 0) {
        sgt_vocab_free(v);
        return rc;
    }
    v->eot_text = b->eot_text;
    v->eot_setting = setting_of(b->tokens[b->eot]->added);
    v->normalize = b->p->normalize;
    v->ignored = b->p->ignored;
    v->assumed = b->p->assumed;
    *out = v;
    return SGT_OK;
}

int sgt_vocab_from_parts(sgt_vocab **out, const sgt_vocab_parts *p, sgt_error *err)
{
    builder b = {.p = p};
    int rc = build(out, &b, err);
    free(b.tokens);
    free(b.names);
    free(b.order);
    free(b.awaited);
    free(b.ids);
    free(b.halves);
    free(b.made);
    free(b.listed);
    return rc;
}

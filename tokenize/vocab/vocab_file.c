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

const char *const sgt_vocab_eot_names[] = {"<|endoftext|>", "<|end_of_text|>", "</s>",
                                           "<eos>",         "<|eos|>",         NULL};

/* ---- parts ---- */

static int reserve_bytes(sgt_vocab_parts *p, size_t n, sgt_error *err)
{
    if (n > MAX_BYTES - p->used)
        return sgt_fail(err, SGT_EFORMAT, "%s: tokens and merges of more than %zu bytes", p->path,
                        MAX_BYTES);
    return sgt_reserve(&p->bytes, &p->room, p->used + n, 1, p->path, err);
}

/* Append bytes for which room is reserved. */
static void add_bytes(sgt_vocab_parts *p, const void *bytes, size_t n)
{
    if (n) memcpy(p->bytes + p->used, bytes, n);
    p->used += n;
}

static int add_part(const sgt_vocab_parts *p, sgt_vocab_part **list, size_t *count, size_t *room,
                    sgt_vocab_part part, sgt_error *err)
{
    if (*count == MAX_PARTS)
        return sgt_fail(err, SGT_EFORMAT, "%s: more than %zu tokens or merges", p->path, MAX_PARTS);
    int rc = sgt_reserve(list, room, *count + 1, sizeof part, p->path, err);
    if (rc == SGT_OK) (*list)[(*count)++] = part;
    return rc;
}

static int add_token(sgt_vocab_parts *p, sgt_vocab_part token, sgt_error *err)
{
    return add_part(p, &p->tokens, &p->token_count, &p->token_room, token, err);
}

static int add_merge(sgt_vocab_parts *p, sgt_vocab_part merge, sgt_error *err)
{
    return add_part(p, &p->merges, &p->merge_count, &p->merge_room, merge, err);
}

int sgt_vocab_parts_token(sgt_vocab_parts *p, uint64_t id, const void *bytes, size_t n, int added,
                          sgt_error *err)
{
    int rc = reserve_bytes(p, n, err);
    if (rc < 0) return rc;
    add_bytes(p, bytes, n);
    return add_token(p, (sgt_vocab_part){id, p->used - n, n, added}, err);
}

int sgt_vocab_parts_merge(sgt_vocab_parts *p, const void *bytes, size_t left, size_t n,
                          sgt_error *err)
{
    int rc = reserve_bytes(p, n, err);
    if (rc < 0) return rc;
    add_bytes(p, bytes, n);
    return add_merge(p, (sgt_vocab_part){left, p->used - n, n, 0}, err);
}

int sgt_vocab_parts_made(sgt_vocab_parts *p, uint64_t id, size_t merge, sgt_error *err)
{
    return add_token(p, (sgt_vocab_part){id, p->merges[merge].at, p->merges[merge].n, 0}, err);
}

int sgt_vocab_parts_join(sgt_vocab_parts *p, uint64_t id, size_t left, size_t right, sgt_error *err)
{
    const sgt_vocab_part l = p->tokens[left], r = p->tokens[right];
    int rc = reserve_bytes(p, l.n + r.n, err);
    if (rc < 0) return rc;
    add_bytes(p, p->bytes + l.at, l.n);
    add_bytes(p, p->bytes + r.at, r.n);
    rc = add_merge(p, (sgt_vocab_part){l.n, p->used - l.n - r.n, l.n + r.n, 0}, err);
    return rc < 0 ? rc : sgt_vocab_parts_made(p, id, p->merge_count - 1, err);
}

void sgt_vocab_parts_free(sgt_vocab_parts *p)
{
    free(p->tokens);
    free(p->merges);
    free(p->bytes);
    free(p->own_rule);
    p->tokens = p->merges = NULL;
    p->bytes = NULL;
    p->own_rule = NULL;
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
    sgt_vocab_slot *pairs; /* hash table of pairs, in merge order */
    unsigned pair_shift;
    uint32_t made; /* number of tokens that are in merge order so far */
    /* (merges): 1: the same pair is listed again later, and only the later merge counts */
    uint8_t *again;
} builder;

static size_t find_name(const builder *b, const uint8_t *s, size_t n)
{
    size_t i = XXH3_64bits(s, n) & b->name_mask;
    for (; b->names[i]; i = (i + 1) & b->name_mask) {
        const sgt_vocab_part *t = b->tokens[b->names[i] - 1];
        if (t->n == n && !memcmp(b->p->bytes + t->at, s, n)) break;
    }
    return i;
}

/* Return the id of the token s[0..n), or SGT_NO_TOKEN. */
static uint32_t find_token(const builder *b, const uint8_t *s, size_t n)
{
    return b->names[find_name(b, s, n)] - 1;
}

static size_t find_pair(const builder *b, uint32_t left, uint32_t right)
{
    size_t mask = ((size_t)1 << (64 - b->pair_shift)) - 1,
           i = sgt_vocab_hash(left << 16 | right, b->pair_shift);
    while (b->pairs[i].value && b->pairs[i].key != (left << 16 | right)) i = (i + 1) & mask;
    return i;
}

/* Write a token into to[size] as messages show it: its text, or hex if it is not printable. */
static const char *shown(const builder *b, uint32_t id, char *to, size_t size)
{
    const sgt_vocab_part *t = b->tokens[id];
    char text[64];
    size_t n = t->n < sizeof text - 4 ? t->n : sizeof text - 4;
    memcpy(text, b->p->bytes + t->at, n);
    memcpy(text + n, n < t->n ? "..." : "", n < t->n ? 4 : 1);
    return sgt_printable(to, size, text);
}

/* ---- tokens ---- */

static int check_ids(builder *b, sgt_error *err)
{
    const sgt_vocab_parts *p = b->p;
    uint64_t largest = 0;
    for (size_t i = 0; i < p->token_count; i++)
        if (p->tokens[i].id > largest) largest = p->tokens[i].id;
    if (largest >= SGT_VOCAB_MAX_IDS)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: ids up to %" PRIu64 "; sgt's tokens are of 16 bits, up to 65535",
                        p->path, largest);
    b->size = (uint32_t)largest + 1;
    return SGT_OK;
}

static int reserve(builder *b, sgt_error *err)
{
    size_t slots = 2;
    while (slots < 2 * (size_t)b->size) slots *= 2;
    b->name_mask = slots - 1;
    b->pair_shift = (unsigned)__builtin_clzll(slots) + 1;
    b->tokens = calloc(b->size, sizeof *b->tokens);
    b->names = calloc(slots, sizeof *b->names);
    b->order = malloc(b->size * sizeof *b->order);
    b->awaited = calloc(b->size, 1);
    b->ids = calloc((size_t)b->size + 257, sizeof *b->ids);
    b->halves = calloc((size_t)b->size + 257, sizeof *b->halves);
    b->pairs = calloc(slots, sizeof *b->pairs);
    if (!b->tokens || !b->names || !b->order || !b->awaited || !b->ids || !b->halves || !b->pairs)
        return sgt_fail_memory(err, b->p->path);
    memset(b->order, 0xFF, b->size * sizeof *b->order);
    return SGT_OK;
}

/* Index the tokens by id and by text. Fails unless every id and every text occurs once. */
static int index_tokens(builder *b, sgt_error *err)
{
    char text[300];
    for (size_t i = 0; i < b->p->token_count; i++) {
        const sgt_vocab_part *t = &b->p->tokens[i];
        if (b->tokens[t->id])
            return sgt_fail(err, SGT_EFORMAT, "%s: two tokens have id %" PRIu64, b->p->path, t->id);
        b->tokens[t->id] = t;
        if (!t->n)
            return sgt_fail(err, SGT_EFORMAT, "%s: token %" PRIu64 " is empty", b->p->path, t->id);
        if (t->added) continue;
        size_t at = find_name(b, b->p->bytes + t->at, t->n);
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
                !memcmp(b->p->bytes + b->tokens[id]->at, *names, strlen(*names))) {
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
    b->made = 256;
    return SGT_OK;
}

/* ---- merges ---- */

/* Return whether the merges made so far keep two adjacent tokens apart, given as ids in merge
 * order. Works like sgt_vocab_may_follow (vocab.c). A merge of these two tokens is not among the
 * merges yet. */
static int stay_apart(const builder *b, uint32_t left, uint32_t right)
{
    for (uint32_t limit = SGT_NO_TOKEN;;) {
        uint32_t merged = b->pairs[find_pair(b, left, right)].value;
        if (merged && merged < limit) return 0;
        if (left > right) {
            if (left < 256) return 1;
            limit = left;
            left = b->halves[left][1];
        } else {
            if (right < 256) return 1;
            limit = right + 1;
            right = b->halves[right][0];
        }
    }
}

/* Append token `id` to the merge order. It is made of the tokens left and right, which are given in
 * merge order. */
static void make_token(builder *b, uint32_t id, uint32_t left, uint32_t right)
{
    uint32_t at = b->made++;
    b->pairs[find_pair(b, left, right)] = (sgt_vocab_slot){left << 16 | right, at};
    b->halves[at][0] = (uint16_t)left;
    b->halves[at][1] = (uint16_t)right;
    b->ids[at] = (uint16_t)id;
    b->order[id] = at;
}

/* Mark merges that are listed again later. The last listing counts, as in Hugging Face's table of
 * merges. */
static int mark_repeated(builder *b, sgt_error *err)
{
    size_t count = b->p->merge_count, slots = 2;
    while (slots < 2 * count) slots *= 2;
    uint32_t *found = calloc(slots, sizeof *found); /* index of a merge + 1; 0: free */
    b->again = calloc(count + 1, 1);
    for (size_t i = 0; found && b->again && i < count; i++) {
        const sgt_vocab_part *m = &b->p->merges[i], *had;
        size_t at = XXH3_64bits_withSeed(b->p->bytes + m->at, m->n, m->id) & (slots - 1);
        for (; found[at]; at = (at + 1) & (slots - 1)) {
            had = &b->p->merges[found[at] - 1];
            if (had->id == m->id && had->n == m->n &&
                !memcmp(b->p->bytes + had->at, b->p->bytes + m->at, m->n))
                break;
        }
        if (found[at]) b->again[found[at] - 1] = 1;
        found[at] = (uint32_t)i + 1;
    }
    int rc = found && b->again ? SGT_OK : sgt_fail_memory(err, b->p->path);
    free(found);
    return rc;
}

/* Go through the merges in the order of the file. Leave out merges that can never happen: an earlier
 * merge crosses the border between the two tokens, or an earlier merge already makes the same
 * token. */
static int order_merges(builder *b, sgt_error *err)
{
    char text[300];
    int rc = mark_repeated(b, err);
    for (size_t i = 0; i < b->p->merge_count && !rc; i++) {
        if (b->again[i]) continue;
        const sgt_vocab_part *m = &b->p->merges[i];
        const uint8_t *s = b->p->bytes + m->at;
        uint32_t l = find_token(b, s, m->id), r = find_token(b, s + m->id, m->n - m->id),
                 id = find_token(b, s, m->n);
        if (l == SGT_NO_TOKEN || r == SGT_NO_TOKEN || id == SGT_NO_TOKEN)
            return sgt_fail(err, SGT_EFORMAT, "%s: merge %zu: %s is not a token of the vocabulary",
                            b->p->path, i + 1,
                            l == SGT_NO_TOKEN   ? "its left side"
                            : r == SGT_NO_TOKEN ? "its right side"
                                                : "what it makes");
        if (b->order[l] == SGT_NO_TOKEN || b->order[r] == SGT_NO_TOKEN)
            b->awaited[b->order[l] == SGT_NO_TOKEN ? l : r] = 1;
        else if (b->order[id] == SGT_NO_TOKEN && stay_apart(b, b->order[l], b->order[r])) {
            if (b->awaited[id])
                return sgt_fail(err, SGT_EFORMAT,
                                "%s: merge %zu makes token %u (%s), which an earlier merge joins",
                                b->p->path, i + 1, id, shown(b, id, text, sizeof text));
            make_token(b, id, b->order[l], b->order[r]);
        }
    }
    return rc;
}

/* Find the merge of token `id` if ids are ranks: the only way to cut it into two tokens that merges
 * of lower ranks keep apart. */
static int order_ranked(builder *b, uint32_t id, sgt_error *err)
{
    const sgt_vocab_part *t = b->tokens[id];
    const uint8_t *s = b->p->bytes + t->at;
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
    if (!rc && !b->p->ranks) rc = order_merges(b, err);
    for (uint32_t id = 0; id < b->size && !rc && b->p->ranks; id++)
        if (!b->tokens[id]->added && b->order[id] == SGT_NO_TOKEN) rc = order_ranked(b, id, err);
    for (uint32_t id = 0; id < b->size && !rc && b->p->whole; id++)
        if (!b->tokens[id]->added && b->order[id] == SGT_NO_TOKEN)
            rc = sgt_fail(err, SGT_EFORMAT,
                          "%s: token %u (%s): no merges make it, and ignore_merges is on",
                          b->p->path, id, shown(b, id, text, sizeof text));
    return rc;
}

/* ---- the vocabulary ---- */

static void name_file(sgt_vocab_file *f, const char *path)
{
    size_t n = strlen(path), from;
    /* each byte that is not printable takes four characters */
    char name[sizeof f->name / 4], *to = name;
    while (n && path[n - 1] == '/') n--;
    for (from = n; from && path[from - 1] != '/';) from--;
    while (from < n && to < name + sizeof name - 1) *to++ = path[from++];
    *to = 0;
    sgt_printable(f->name, sizeof f->name, name);
}

static int fill_file(sgt_vocab_file *f, builder *b, sgt_error *err)
{
    size_t total = 0;
    int same = 1;
    name_file(f, b->p->path);
    f->size = b->size;
    f->eot = b->eot;
    for (uint32_t id = 0; id < b->size; id++) total += b->tokens[id]->n;
    f->offsets = calloc((size_t)b->size + 1, sizeof *f->offsets);
    f->bytes = malloc(total + 1);
    f->added = calloc(b->size, 1);
    f->ignored = b->p->ignored;
    f->assumed = b->p->assumed;
    if (b->p->rule) f->rule = strdup(b->p->rule);
    if (f->rule) {
        f->known = sgt_rule_of(f->rule);
        f->regex = sgt_rule_to_regex(f->rule);
    }
    if (!f->offsets || !f->bytes || !f->added || (b->p->rule && !f->rule))
        return sgt_fail_memory(err, b->p->path);
    for (uint32_t id = 0; id < b->size; id++) {
        memcpy(f->bytes + f->offsets[id], b->p->bytes + b->tokens[id]->at, b->tokens[id]->n);
        f->offsets[id + 1] = f->offsets[id] + (uint32_t)b->tokens[id]->n;
        f->added[id] = b->tokens[id]->added != 0;
    }
    b->ids[b->made] = (uint16_t)b->eot; /* in merge order the end of text is last */
    for (uint32_t i = 0; i <= b->made; i++) same &= b->ids[i] == i;
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
                               b->made - 256, NULL, err);
    if (rc < 0) return rc;
    v->file = calloc(1, sizeof *v->file);
    rc = v->file ? fill_file(v->file, b, err) : sgt_fail_memory(err, b->p->path);
    if (!rc) rc = sgt_vocab_set_fingerprint(v, err);
    if (rc < 0) {
        sgt_vocab_free(v);
        return rc;
    }
    v->name = v->file->name;
    v->eot_text = b->eot_text;
    v->eot_setting = setting_of(b->tokens[b->eot]->added);
    v->normalize = b->p->normalize;
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
    free(b.pairs);
    free(b.again);
    return rc;
}

/* vocab_file.c: builds a vocabulary from the tokens and merges of a file. It assigns ids in merge
 * order (vocab.h) to the tokens, and builds the table that maps these ids to the ids in the
 * file. */
#include "tokenize/vocab/vocab_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "loader/base/memory.h"

/* Maximum total size in bytes of all tokens. Each byte can need its own node in the trie of tokens,
 * and the keys of the trie's hash table have only 24 bits for the index of a node. Two of these
 * 2^24 indices stand for no byte: 0 is unused, and 1 is the root. */
#define MAX_BYTES (((size_t)1 << 24) - 2)
#define MAX_MERGES ((size_t)1 << 21)
#define NAMES ((size_t)2 * SGT_MOST_IDS) /* number of slots in the hash table p->names */
/* Maximum length in bytes of a token in a file that lists no merges. Such a token's merge is found
 * by encoding the token's bytes (make_ranked), which takes quadratic time. */
#define MAX_RANKED 4096

const char *const sgt_vocab_eot_names[] = {SGT_EOT_NAMES, NULL};

/* ---- parts ---- */

/* Return the slot of the hash table p->names that contains the token with the n bytes at s. If the
 * table does not contain it, return the empty slot in which the caller can store it. */
static uint32_t *find_name(const sgt_vocab_parts *p, const uint8_t *s, size_t n)
{
    size_t i = XXH3_64bits(s, n) % NAMES;
    for (; p->names[i]; i = (i + 1) % NAMES) {
        const sgt_vocab_part *t = &p->tokens[p->names[i] - 1];
        if (t->n == n && !memcmp(t->s, s, n)) break;
    }
    return &p->names[i];
}

/* Write the text of the token with this id, for an error message, to the buffer of `size` bytes at
 * `to`. Unprintable bytes are escaped, and a long text is shortened. Return `to`. */
static const char *shown(const sgt_vocab_parts *p, uint32_t id, char *to, size_t size)
{
    const sgt_vocab_part *t = &p->tokens[id];
    char text[64];
    size_t n = t->n < sizeof text - 4 ? t->n : sizeof text - 4;
    memcpy(text, t->s, n);
    memcpy(text + n, n < t->n ? "..." : "", n < t->n ? 4 : 1);
    return sgt_printable(to, size, text);
}

static int reserve_tokens(sgt_vocab_parts *p, sgt_error *err)
{
    const size_t tokens = SGT_MOST_IDS * sizeof *p->tokens, names = NAMES * sizeof *p->names;
    if (p->tokens) return SGT_OK;
    const int rc = sgt_arena_map(&p->memory, tokens + names + MAX_BYTES, 0, err);
    if (rc < 0) return rc;
    p->tokens = sgt_arena_take(&p->memory, tokens, 1);
    p->names = sgt_arena_take(&p->memory, names, 1);
    p->bytes = sgt_arena_take(&p->memory, MAX_BYTES, 1);
    return SGT_OK;
}

/* Add the token that has this id in the file. Its bytes are the ln bytes at l, followed by the rn
 * bytes at r. */
static int add_token(sgt_vocab_parts *p, uint64_t id, int added, const void *l, size_t ln,
                     const void *r, size_t rn, sgt_error *err)
{
    char text[300];
    uint32_t *name = NULL;
    const int rc = reserve_tokens(p, err);
    if (rc < 0) return rc;
    uint8_t *s = p->bytes + p->used;
    if (id >= SGT_MOST_IDS)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: id %" PRIu64 " is too large (sgt supports at most %u ids)", p->path,
                        id, SGT_MOST_IDS);
    if (p->tokens[id].n)
        return sgt_fail(err, SGT_EFORMAT, "%s: two tokens have id %" PRIu64, p->path, id);
    if (!ln) return sgt_fail(err, SGT_EFORMAT, "%s: token %" PRIu64 " is empty", p->path, id);
    if (ln > MAX_BYTES - p->used || rn > MAX_BYTES - p->used - ln)
        return sgt_fail(err, SGT_EFORMAT, "%s: its tokens have more than %zu bytes together",
                        p->path, MAX_BYTES);
    memcpy(s, l, ln);
    memcpy(s + ln, r, rn);
    if (!added) name = find_name(p, s, ln + rn);
    if (name && *name)
        return sgt_fail(err, SGT_EFORMAT, "%s: tokens %u and %" PRIu64 " are the same: %s", p->path,
                        *name - 1, id, shown(p, *name - 1, text, sizeof text));
    if (name) *name = (uint32_t)id + 1;
    p->tokens[id] = (sgt_vocab_part){.s = s, .n = ln + rn, .added = added};
    p->used += ln + rn;
    p->count++;
    if (id >= p->size) p->size = (uint32_t)id + 1;
    return SGT_OK;
}

int sgt_vocab_parts_token(sgt_vocab_parts *p, uint64_t id, const void *bytes, size_t n, int added,
                          sgt_error *err)
{
    return add_token(p, id, added, bytes, n, "", 0, err);
}

uint32_t sgt_vocab_parts_find(const sgt_vocab_parts *p, const uint8_t *bytes, size_t n)
{
    return p->names ? *find_name(p, bytes, n) - 1 : SGT_NO_TOKEN;
}

int sgt_vocab_parts_merge(sgt_vocab_parts *p, uint32_t left, uint32_t right, uint32_t made,
                          sgt_error *err)
{
    if (p->merge_count == MAX_MERGES)
        return sgt_fail(err, SGT_EFORMAT, "%s: has more than %zu merges", p->path, MAX_MERGES);
    const int rc = sgt_reserve(&p->merges, &p->merge_room, p->merge_count + 1, sizeof *p->merges,
                               p->path, err);
    if (!rc) p->merges[p->merge_count++] = (sgt_vocab_merge){left, right, made};
    return rc;
}

int sgt_vocab_parts_join(sgt_vocab_parts *p, uint32_t left, uint32_t right, sgt_error *err)
{
    const sgt_vocab_part *l = &p->tokens[left], *r = &p->tokens[right];
    const int rc = add_token(p, p->size, 0, l->s, l->n, r->s, r->n, err);
    return rc < 0 ? rc : sgt_vocab_parts_merge(p, left, right, p->size - 1, err);
}

void sgt_vocab_parts_free(sgt_vocab_parts *p)
{
    sgt_arena_unmap(&p->memory);
    free(p->merges);
    *p = (sgt_vocab_parts){0};
}

/* ---- the order of merges ---- */

typedef struct builder {
    const sgt_vocab_parts *p;
    /* the vocabulary being built. v->ids and v->halves are filled in as tokens get their ids in
     * merge order. */
    sgt_vocab *v;
    sgt_arena memory; /* memory of all arrays in this struct except `waits` */
    /* array indexed by id in the file: id in merge order of each token; SGT_NO_TOKEN until a merge
     * has produced the token */
    uint32_t *order;
    /* array of flags, indexed by id in the file: 1 if a listed merge used the token before any
     * merge produced it, otherwise 0 */
    uint8_t *awaited;
    /* Two hash tables, indexed by pairs of ids. `made` maps two ids in merge order to the id that
     * they merge to. `listed` maps two ids in the file to the index of the last listed merge of
     * these two tokens. A slot is `pair << 24 | value + 1`, where the pair is two ids of 20 bits
     * each; an empty slot is 0. */
    uint64_t *made, *listed;
    unsigned shift; /* 64 - log2(number of slots), for both hash tables */
    /* Bit array that tells quickly that a pair is not in the hash table `made`: the pair's bit is 0
     * in this case. The array has eight bits for each slot of `made`. The index of a pair's bit is
     * the upper part of the pair's hash. The array saves time because most pairs that are looked up
     * are not in `made`, and because it fits into a second-level cache, while `made` does not. */
    uint64_t *hints;
    /* Ids in the file, ascending, of the late tokens: those that no merge had produced after all
     * tokens with lower ids were processed. If ids are ranks, a late token can still be merged from
     * tokens with higher ids. At the end, order_tokens removes the late tokens that have been
     * produced, so that only tokens that no merges produce remain. */
    uint32_t *late;
    size_t late_count;
    /* array indexed by id in the file, used only if ids are ranks: for each token that no merge has
     * produced yet, a linked list of the late tokens that could be merged from it. first, last:
     * indices in `waits` of the first and the last element of the list; 0 if the list is empty. */
    struct waiting {
        uint32_t first, last;
    } * waiting;
    /* elements of the lists in `waiting`; element 0 is unused. late: id in the file of a late
     * token. next: index in `waits` of the next element of the list; 0 for the last element. */
    struct wait {
        uint32_t late, next;
    } * waits;
    size_t wait_count, wait_room;
    /* array of p->size + 256 counts, used only in may_clash, and all 0 otherwise: number of merges,
     * among those that are compared, in which each token is the left one */
    uint32_t *lefts;
} builder;

#define VALUE 0xFFFFFF

static uint64_t *find_pair(const builder *b, uint64_t *slots, uint32_t l, uint32_t r)
{
    const uint64_t key = sgt_pair_key(l, r);
    const size_t mask = ((size_t)1 << (64 - b->shift)) - 1;
    size_t i = (size_t)(sgt_pair_hash(key) >> b->shift);
    while (slots[i] && slots[i] >> 24 != key) i = (i + 1) & mask;
    return &slots[i];
}

static uint32_t look_up(const builder *b, uint64_t *slots, uint32_t l, uint32_t r)
{
    return (uint32_t)(*find_pair(b, slots, l, r) & VALUE) - 1;
}

static void enter(const builder *b, uint64_t *slots, uint32_t l, uint32_t r, uint32_t value)
{
    *find_pair(b, slots, l, r) = sgt_pair_key(l, r) << 24 | (value + 1);
}

static void lay_out(builder *b, size_t size, size_t slots)
{
    sgt_arena *a = &b->memory;
    b->made = sgt_arena_take(a, slots, sizeof *b->made);
    b->listed = sgt_arena_take(a, slots, sizeof *b->listed);
    b->order = sgt_arena_take(a, size, sizeof *b->order);
    b->late = sgt_arena_take(a, size, sizeof *b->late);
    b->waiting = sgt_arena_take(a, size, sizeof *b->waiting);
    b->lefts = sgt_arena_take(a, size + 256, sizeof *b->lefts);
    b->awaited = sgt_arena_take(a, size, 1);
    b->hints = sgt_arena_take(a, slots / 8 + 1, sizeof *b->hints);
}

static int reserve(builder *b, sgt_error *err)
{
    sgt_vocab *v = b->v;
    const size_t size = b->p->size, most = size > b->p->merge_count ? size : b->p->merge_count;
    size_t slots = 2;
    while (slots < most + most / 4 + 1) slots *= 2;
    b->shift = (unsigned)__builtin_clzll(slots) + 1;
    lay_out(b, size, slots);
    const int rc = sgt_arena_map(&b->memory, b->memory.used, 0, err);
    if (rc < 0) return rc;
    lay_out(b, size, slots);
    v->ids = calloc(size + 256, sizeof *v->ids);
    v->halves = calloc(size + 256, sizeof *v->halves);
    if (!v->ids || !v->halves) return sgt_fail_memory(err, b->p->path);
    memset(b->order, 0xFF, size * sizeof *b->order);
    return SGT_OK;
}

/* Return SGT_EFORMAT if there is an id below the largest id that no token has, otherwise 0. */
static int check_ids(const sgt_vocab_parts *p, sgt_error *err)
{
    for (uint32_t id = 0; id < p->size; id++)
        if (!p->tokens[id].n)
            return sgt_fail(err, SGT_EFORMAT, "%s: no token has id %u, but ids go up to %u",
                            p->path, id, p->size - 1);
    return SGT_OK;
}

static int find_eot(builder *b, sgt_error *err)
{
    for (const char *const *names = sgt_vocab_eot_names; *names; names++)
        for (uint32_t id = 0; id < b->p->size; id++) {
            const sgt_vocab_part *t = &b->p->tokens[id];
            if (!t->added || t->n != strlen(*names) || memcmp(t->s, *names, t->n) != 0) continue;
            b->v->eot = id;
            b->v->eot_text = *names;
            b->v->eot_setting = t->setting;
            return SGT_OK;
        }
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: has no end-of-text token (looked for <|endoftext|>, <|end_of_text|>, "
                    "</s>, <eos>, <|eos|>, <｜end▁of▁sentence｜>, [EOS], <EOS_TOKEN>, <EOT>)",
                    b->p->path);
}

static int order_bytes(builder *b, sgt_error *err)
{
    for (uint32_t i = 0; i < 256; i++) {
        const uint8_t byte = sgt_alphabet_byte(i);
        const uint32_t id = sgt_vocab_parts_find(b->p, &byte, 1);
        if (id == SGT_NO_TOKEN)
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: is not byte-level: no token consists of only the byte 0x%02X",
                            b->p->path, byte);
        b->order[id] = b->v->halves[i][0] = b->v->halves[i][1] = i;
        b->v->byte_id[byte] = (uint16_t)i;
        b->v->ids[i] = id;
    }
    b->v->made = 256;
    return SGT_OK;
}

/* ---- merges ---- */

/* Return the index of the bit for a pair of tokens in b->hints. */
static uint64_t hint_of(const builder *b, uint32_t left, uint32_t right)
{
    return sgt_pair_hash(sgt_pair_key(left, right)) >> (b->shift - 3);
}

static uint32_t merged_by(const void *builder_, uint32_t left, uint32_t right)
{
    const builder *b = builder_;
    const uint64_t hint = hint_of(b, left, right);
    return b->hints[hint / 64] >> hint % 64 & 1 ? look_up(b, b->made, left, right) : SGT_NO_TOKEN;
}

/* Give the token with this id in the file the next id in merge order. left, right: ids in merge
 * order of the two tokens that merge to this token. */
static void make_token(builder *b, uint32_t id, uint32_t left, uint32_t right)
{
    sgt_vocab *v = b->v;
    const uint32_t at = v->made++;
    const uint64_t hint = hint_of(b, left, right);
    enter(b, b->made, left, right, at);
    b->hints[hint / 64] |= (uint64_t)1 << hint % 64;
    v->halves[at][0] = left;
    v->halves[at][1] = right;
    v->ids[at] = id;
    b->order[id] = at;
}

/* Assign ids in merge order to the tokens that the listed merges produce, in the order of the list.
 * A merge is skipped if it can never happen: if an earlier merge crosses the border between its two
 * tokens, or produces the same token. If the same two tokens are listed more than once, only the
 * last merge of them counts, as in Hugging Face's library. */
static int order_listed(builder *b, sgt_error *err)
{
    const sgt_vocab_parts *p = b->p;
    char text[300];
    for (size_t i = 0; i < p->merge_count; i++)
        enter(b, b->listed, p->merges[i].left, p->merges[i].right, (uint32_t)i);
    for (size_t i = 0; i < p->merge_count; i++) {
        const sgt_vocab_merge *m = &p->merges[i];
        const uint32_t l = b->order[m->left], r = b->order[m->right];
        if (look_up(b, b->listed, m->left, m->right) != i) continue;
        if (l == SGT_NO_TOKEN || r == SGT_NO_TOKEN)
            b->awaited[l == SGT_NO_TOKEN ? m->left : m->right] = 1;
        else if (b->order[m->made] == SGT_NO_TOKEN &&
                 sgt_stay_apart((const uint32_t(*)[2])b->v->halves, merged_by, b, l, r)) {
            if (b->awaited[m->made])
                return sgt_fail(
                    err, SGT_EFORMAT,
                    "%s: merge %zu makes token %u (%s), which an earlier merge already uses",
                    p->path, i + 1, m->made, shown(p, m->made, text, sizeof text));
            make_token(b, m->made, l, r);
        }
    }
    return SGT_OK;
}

/* For a file whose ids are ranks: find the two tokens that merge to the token with this id in the
 * file. To do so, merge the token's bytes by the merges found so far, until two tokens are left. If
 * `half` is SGT_NO_TOKEN, or if one of the two has the id `half` in merge order, give the token the
 * next id in merge order and return 0. If more than two tokens are left, or if neither is `half`,
 * return 1. Return a negative SGT_E* on error. */
static int make_ranked(builder *b, uint32_t id, uint32_t half, sgt_error *err)
{
    const sgt_vocab_part *t = &b->p->tokens[id];
    /* The tokens to which the bytes have been merged so far, as ids in merge order. merged: token
     * that a token and its right neighbour merge to, or SGT_NO_TOKEN if they do not merge. */
    struct {
        uint32_t id, merged;
    } parts[MAX_RANKED];
    size_t n = t->n, least;
    if (n > MAX_RANKED)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: token %u has %zu bytes, more than the %d allowed without merges (use "
                        "a file that lists them)",
                        b->p->path, id, n, MAX_RANKED);
    if (n < 2) return 1; /* a single byte needs no merge */
    for (size_t i = 0; i < n; i++) {
        parts[i].id = b->v->byte_id[t->s[i]];
        if (i) parts[i - 1].merged = merged_by(b, parts[i - 1].id, parts[i].id);
    }
    for (; n > 2; n--) {
        least = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (parts[i].merged < parts[least].merged) least = i;
        if (parts[least].merged == SGT_NO_TOKEN) return 1;
        parts[least].id = parts[least].merged;
        for (size_t i = least + 1; i + 1 < n; i++) parts[i] = parts[i + 1];
        if (least) parts[least - 1].merged = merged_by(b, parts[least - 1].id, parts[least].id);
        if (least + 2 < n) parts[least].merged = merged_by(b, parts[least].id, parts[least + 1].id);
    }
    if (half != SGT_NO_TOKEN && half != parts[0].id && half != parts[1].id) return 1;
    make_token(b, id, parts[0].id, parts[1].id);
    return 0;
}

/* ---- late tokens ----
 *
 * Tokens that have lower ids in the file than the tokens that they are merged from. */

/* If no merge has produced the token `half` yet, append the late token `id` to the list of tokens
 * that wait for `half`. Both arguments are ids in the file. */
static int wait_for(builder *b, uint32_t id, uint32_t half, sgt_error *err)
{
    if (b->order[half] != SGT_NO_TOKEN) return SGT_OK;
    const int rc =
        sgt_reserve(&b->waits, &b->wait_room, b->wait_count + 2, sizeof *b->waits, b->p->path, err);
    if (rc < 0) return rc;
    struct waiting *list = &b->waiting[half];
    const uint32_t at = (uint32_t)++b->wait_count;
    b->waits[at] = (struct wait){id, 0};
    *(list->last ? &b->waits[list->last].next : &list->first) = at;
    list->last = at;
    return SGT_OK;
}

/* Append the token with this id in the file, which no merge has produced so far, to b->late. For
 * each way to divide the token's bytes into two tokens, make the token wait for each of the two
 * that no merge has produced yet. */
static int add_late(builder *b, uint32_t id, sgt_error *err)
{
    const sgt_vocab_part *t = &b->p->tokens[id];
    int rc = SGT_OK;
    b->late[b->late_count++] = id;
    for (size_t cut = 1; cut < t->n && !rc; cut++) {
        const uint32_t l = sgt_vocab_parts_find(b->p, t->s, cut),
                       r = l == SGT_NO_TOKEN ? l
                                             : sgt_vocab_parts_find(b->p, t->s + cut, t->n - cut);
        if (r != SGT_NO_TOKEN && !(rc = wait_for(b, id, l, err)) && r != l)
            rc = wait_for(b, id, r, err);
    }
    return rc;
}

/* Return 1 if two of the newest merges can clash, otherwise 0. The newest merges are those that
 * produce the token `root` and the tokens after it in merge order, which are late tokens. Two
 * merges clash if the right token of one is the left token of the other: if both can use the same
 * token in a text, the result depends on which merge happens first. */
static int may_clash(const builder *b, uint32_t root)
{
    uint32_t(*h)[2] = b->v->halves;
    int clash = 0;
    for (uint32_t i = root + 1; i < b->v->made; i++) b->lefts[h[i][0]]++;
    for (uint32_t i = root + 1; i < b->v->made; i++)
        clash |= h[i][1] == h[root][0] || b->lefts[h[i][1]] > (h[i][1] == h[i][0]);
    for (uint32_t i = root + 1; i < b->v->made; i++) b->lefts[h[i][0]] = 0;
    return clash;
}

/* Give ids in merge order to the late tokens that were waiting for the newest token in merge order,
 * then to the late tokens that were waiting for those, and so on. A late token has a lower rank
 * than the two tokens that it is merged from, so it is merged as soon as both exist. Therefore, it
 * follows the later of the two in merge order. Fail with SGT_EFORMAT if merges can clash
 * (may_clash), because their exact order is unknown. */
static int make_late(builder *b, sgt_error *err)
{
    const uint32_t root = b->v->made - 1;
    for (uint32_t at = root; at < b->v->made; at++)
        for (uint32_t w = b->waiting[b->v->ids[at]].first; w; w = b->waits[w].next)
            if (b->order[b->waits[w].late] == SGT_NO_TOKEN)
                make_ranked(b, b->waits[w].late, at, err);
    if (!may_clash(b, root)) return SGT_OK;
    char text[300];
    const uint32_t id = b->v->ids[b->v->made - 1];
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: token %u (%s): its place in the order of merges is ambiguous", b->p->path,
                    id, shown(b->p, id, text, sizeof text));
}

/* Return 1 if the list of merges was made from a file of ranks, so that ids are ranks; otherwise 0.
 * This is the case if the merged tokens are in the order of ids, and the list contains one merge
 * for every way to divide a token into two tokens. */
static int merges_are_ranks(const sgt_vocab_parts *p)
{
    size_t ways = 0;
    /* A list made from ranks has more merges than tokens, because most tokens can be divided in
     * several ways. */
    if (p->merge_count <= p->count) return 0;
    for (size_t i = 1; i < p->merge_count; i++)
        if (p->merges[i].made < p->merges[i - 1].made) return 0;
    for (uint32_t id = 0; id < p->size; id++) {
        const sgt_vocab_part *t = &p->tokens[id];
        if (t->n > MAX_RANKED) return 0;
        for (size_t cut = 1; cut < t->n && !t->added; cut++)
            ways += sgt_vocab_parts_find(p, t->s, cut) != SGT_NO_TOKEN &&
                    sgt_vocab_parts_find(p, t->s + cut, t->n - cut) != SGT_NO_TOKEN;
    }
    return ways == p->merge_count;
}

static int order_tokens(builder *b, sgt_error *err)
{
    const sgt_vocab_parts *p = b->p;
    const int ranks = p->ranks || merges_are_ranks(p);
    size_t late = 0;
    int rc = order_bytes(b, err);
    if (!rc && !ranks) rc = order_listed(b, err);
    for (uint32_t id = 0; id < p->size && rc >= 0; id++) {
        if (p->tokens[id].added || b->order[id] != SGT_NO_TOKEN) continue;
        rc = ranks ? make_ranked(b, id, SGT_NO_TOKEN, err) : 1;
        if (rc == 1 && !ranks) b->late[b->late_count++] = id;
        else if (rc == 1) rc = add_late(b, id, err);
        else if (!rc) rc = make_late(b, err);
    }
    for (size_t i = 0; i < b->late_count; i++)
        if (b->order[b->late[i]] == SGT_NO_TOKEN) b->late[late++] = b->late[i];
    b->late_count = late;
    return rc < 0 ? rc : SGT_OK;
}

/* ---- the vocabulary ---- */

/* Copy the tokens of *p to v, in the order of their ids in the file. Free v->ids if it is not
 * needed, because ids in merge order equal those in the file. */
static int add_tokens(sgt_vocab *v, const sgt_vocab_parts *p, sgt_error *err)
{
    uint32_t same = 0;
    v->size = p->size;
    v->offsets = calloc((size_t)p->size + 1, sizeof *v->offsets);
    v->bytes = malloc(p->used + 1);
    v->added = calloc(p->size, 1);
    if (!v->offsets || !v->bytes || !v->added) return sgt_fail_memory(err, p->path);
    for (uint32_t id = 0; id < p->size; id++) {
        const sgt_vocab_part *t = &p->tokens[id];
        memcpy(v->bytes + v->offsets[id], t->s, t->n);
        v->offsets[id + 1] = v->offsets[id] + (uint32_t)t->n;
        v->added[id] = (uint8_t)t->added;
    }
    while (same < v->made && v->ids[same] == same) same++;
    if (same < v->made) return SGT_OK;
    free(v->ids);
    v->ids = NULL;
    return SGT_OK;
}

static int build(builder *b, sgt_error *err)
{
    const sgt_vocab_parts *p = b->p;
    sgt_vocab *v = b->v;
    v->normalize = p->normalize;
    v->ignored = p->ignored;
    v->marker = p->marker;
    v->assumed = p->assumed;
    int rc = check_ids(p, err);
    if (!rc) rc = reserve(b, err);
    if (!rc) rc = find_eot(b, err);
    if (!rc) rc = order_tokens(b, err);
    if (!rc) rc = add_tokens(v, p, err);
    if (!rc) rc = sgt_vocab_make_tables(v, NULL, err);
    if (!rc && b->late_count && (p->ranks || p->whole))
        rc = sgt_vocab_add_wholes(v, b->late, b->late_count, err);
    if (!rc) rc = sgt_vocab_split_by(v, p->rule, err);
    return rc < 0 ? rc : sgt_vocab_set_fingerprint(v, err);
}

int sgt_vocab_from_parts(sgt_vocab **out, const sgt_vocab_parts *p, sgt_error *err)
{
    builder b = {.p = p, .v = sgt_vocab_new(p->path)};
    const int rc = b.v ? build(&b, err) : sgt_fail_memory(err, p->path);
    if (rc < 0) sgt_vocab_free(b.v);
    else *out = b.v;
    sgt_arena_unmap(&b.memory);
    free(b.waits);
    return rc;
}

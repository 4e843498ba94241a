/* merges.c: trains the merges of a BPE vocabulary. For every pair of adjacent tokens, it stores the
 * number of times that the pair occurs, and a linked list of the words (distinct pre-tokens) that
 * may contain the pair. A heap orders the pairs by this number. When a pair is merged, only the
 * words in the list of the pair are visited.
 *
 * The count of a pair in the heap may be too high, because merges of other pairs can remove
 * occurrences of the pair. If the count of a pair popped from the heap is too high, the pair is
 * pushed again with its current count. A count in the heap is never too low: a pair gains
 * occurrences only in the merge that creates one of its tokens, and the pair is pushed after that
 * merge. */
#include "tokenize/learn/merges.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "loader/base/memory.h"

/* ---- counted pieces ----
 *
 * Implements the table of distinct pieces (pre-tokens) as a hash table with open addressing. The
 * bytes of all pieces are in a separate buffer. */

#define FIRST_ROOM ((size_t)1 << 15)

void sgt_pieces_free(sgt_pieces *p)
{
    free(p->slots);
    free(p->text);
    *p = (sgt_pieces){0};
}

static int grow(sgt_pieces *p, sgt_error *err)
{
    size_t room = p->room ? 2 * p->room : FIRST_ROOM;
    sgt_piece *slots = calloc(room, sizeof *slots);
    if (!slots) return sgt_fail_memory(err, "distinct pieces of text");
    for (size_t i = 0; i < p->room; i++) {
        if (!p->slots[i].count) continue;
        size_t at = p->slots[i].hash & (room - 1);
        while (slots[at].count) at = (at + 1) & (room - 1);
        slots[at] = p->slots[i];
    }
    free(p->slots);
    p->slots = slots;
    p->room = room;
    return SGT_OK;
}

static int add(sgt_pieces *p, uint64_t hash, const uint8_t *s, size_t n, uint64_t count,
               sgt_error *err)
{
    int rc = 2 * (p->count + 1) > p->room ? grow(p, err) : SGT_OK;
    if (rc < 0) return rc;
    size_t mask = p->room - 1, at = hash & mask;
    p->total += count;
    for (; p->slots[at].count; at = (at + 1) & mask) {
        sgt_piece *slot = &p->slots[at];
        if (slot->hash == hash && slot->n == n && !memcmp(p->text + slot->at, s, n)) {
            slot->count += count;
            return SGT_OK;
        }
    }
    rc = sgt_reserve(&p->text, &p->text_room, p->used + n, 1, "distinct pieces of text", err);
    if (rc < 0) return rc;
    memcpy(p->text + p->used, s, n);
    p->slots[at] = (sgt_piece){hash, count, p->used, n};
    p->used += n;
    p->count++;
    return SGT_OK;
}

int sgt_pieces_add(sgt_pieces *p, const uint8_t *s, size_t n, uint64_t count, sgt_error *err)
{
    return n && count ? add(p, XXH3_64bits(s, n), s, n, count, err) : SGT_OK;
}

int sgt_pieces_add_all(sgt_pieces *p, const sgt_pieces *other, sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t i = 0; i < other->room && !rc; i++) {
        const sgt_piece *o = &other->slots[i];
        if (o->count) rc = add(p, o->hash, other->text + o->at, o->n, o->count, err);
    }
    return rc;
}

/* ---- training ---- */

/* Key of a pair of adjacent tokens: the left id << 20 | the right id (an id has at most 20
 * bits). */
typedef uint64_t pair_key;

typedef struct pair {
    pair_key key; /* 0: free slot (ids begin at 1) */
    int64_t count;
    /* Head of the linked list of the words that may contain the pair: index, in trainer.holders, of
     * the element that was added to the list last; 0 if the list is empty. */
    uint32_t last;
} pair;

static uint32_t left_of(pair_key key) { return (uint32_t)(key >> 20); }
static uint32_t right_of(pair_key key) { return key & 0xFFFFF; }

/* An element of the linked list of the words that may contain a pair. word: index of a word in
 * trainer.words. before: index, in trainer.holders, of the element that was added to the same list
 * before this element; 0 if this element was the first. */
typedef struct holder {
    uint32_t word, before;
} holder;

typedef struct ranked {
    int64_t count;
    pair_key key;
} ranked;

/* A distinct piece, as tokens. */
typedef struct word {
    uint32_t *ids; /* its tokens, in trainer.ids */
    uint32_t n;    /* current number of tokens */
    int64_t count; /* number of times that the word occurs in the text */
} word;

typedef struct trainer {
    uint32_t *ids;
    word *words;
    size_t word_count;
    pair *pairs;
    size_t pair_room, pair_count;
    holder *holders;
    size_t holder_count, holder_room;
    ranked *heap;
    size_t heap_count, heap_room;
    pair_key *fresh; /* keys of the pairs that have been counted but not yet pushed onto the heap */
    size_t fresh_count, fresh_room;
} trainer;

/* ---- pairs ---- */

static size_t find_pair(const trainer *t, pair_key key)
{
    size_t mask = t->pair_room - 1, i = (size_t)(sgt_pair_hash(key) >> 32) & mask;
    while (t->pairs[i].key && t->pairs[i].key != key) i = (i + 1) & mask;
    return i;
}

static int widen_pairs(trainer *t, sgt_error *err)
{
    trainer wider = {.pair_room = 2 * t->pair_room,
                     .pairs = calloc(2 * t->pair_room, sizeof(pair))};
    if (!wider.pairs) return sgt_fail_memory(err, "merges");
    for (size_t i = 0; i < t->pair_room; i++)
        if (t->pairs[i].key) wider.pairs[find_pair(&wider, t->pairs[i].key)] = t->pairs[i];
    free(t->pairs);
    t->pairs = wider.pairs;
    t->pair_room = wider.pair_room;
    return SGT_OK;
}

/* Add the word with index w to the list of words that may contain the pair *p, unless it was added
 * to this list last. */
static int add_holder(trainer *t, pair *p, uint32_t w, sgt_error *err)
{
    if (p->last && t->holders[p->last].word == w) return SGT_OK;
    if (t->holder_count + 1 >= UINT32_MAX)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "the distinct pieces of text hold too many pairs (use fewer inputs)");
    const int rc = sgt_reserve(&t->holders, &t->holder_room, t->holder_count + 2,
                               sizeof *t->holders, "merges", err);
    if (rc < 0) return rc;
    t->holders[++t->holder_count] = (holder){w, p->last};
    p->last = (uint32_t)t->holder_count;
    return SGT_OK;
}

/* Add `count` to the count of the pair with the ids l and r, and add the word with index w to the
 * list of words that may contain this pair. */
static int add_pair(trainer *t, uint32_t l, uint32_t r, uint32_t w, int64_t count, sgt_error *err)
{
    const pair_key key = sgt_pair_key(l, r);
    pair *p = &t->pairs[find_pair(t, key)];
    if (!p->key) {
        int rc =
            sgt_reserve(&t->fresh, &t->fresh_room, t->fresh_count + 1, sizeof key, "merges", err);
        if (rc < 0) return rc;
        t->fresh[t->fresh_count++] = p->key = key;
        if (2 * ++t->pair_count > t->pair_room) {
            if ((rc = widen_pairs(t, err)) < 0) return rc;
            p = &t->pairs[find_pair(t, key)];
        }
    }
    p->count += count;
    return add_holder(t, p, w, err);
}

/* Subtract `count` from the count of the pair with the ids l and r. */
static void take_pair(trainer *t, uint32_t l, uint32_t r, int64_t count)
{
    t->pairs[find_pair(t, sgt_pair_key(l, r))].count -= count;
}

/* ---- the heap ---- */

static int before(ranked a, ranked b)
{
    return a.count != b.count ? a.count > b.count : a.key < b.key;
}

static int push(trainer *t, ranked r, sgt_error *err)
{
    int rc = sgt_reserve(&t->heap, &t->heap_room, t->heap_count + 1, sizeof r, "merges", err);
    if (rc < 0) return rc;
    size_t at = t->heap_count++;
    for (; at && before(r, t->heap[(at - 1) / 2]); at = (at - 1) / 2)
        t->heap[at] = t->heap[(at - 1) / 2];
    t->heap[at] = r;
    return SGT_OK;
}

static ranked pop(trainer *t)
{
    ranked top = t->heap[0], last = t->heap[--t->heap_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < t->heap_count; at = child) {
        child += child + 1 < t->heap_count && before(t->heap[child + 1], t->heap[child]);
        if (!before(t->heap[child], last)) break;
        t->heap[at] = t->heap[child];
    }
    t->heap[at] = last;
    return top;
}

/* ---- from pieces to words ---- */

static int read_words(trainer *t, const sgt_pieces *p, sgt_error *err)
{
    uint32_t id_of[256];
    size_t at = 0;
    for (uint32_t i = 0; i < 256; i++) id_of[sgt_alphabet_byte(i)] = i + 1;
    t->ids = malloc((p->used + 1) * sizeof *t->ids);
    t->words = malloc((p->count + 1) * sizeof *t->words);
    if (!t->ids || !t->words) return sgt_fail_memory(err, "merges");
    if (p->count >= UINT32_MAX)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "%zu distinct pieces of text: too many (use fewer inputs)", p->count);
    for (size_t i = 0; i < p->room; i++) {
        const sgt_piece *s = &p->slots[i];
        if (!s->count || s->n < 2) continue; /* a piece of one byte contains no pair */
        t->words[t->word_count++] = (word){t->ids + at, (uint32_t)s->n, (int64_t)s->count};
        for (uint64_t j = 0; j < s->n; j++) t->ids[at++] = id_of[p->text[s->at + j]];
    }
    return SGT_OK;
}

/* Push onto the heap all pairs that were found for the first time since the previous call. */
static int push_fresh(trainer *t, sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t i = 0; i < t->fresh_count && !rc; i++) {
        const int64_t count = t->pairs[find_pair(t, t->fresh[i])].count;
        if (count > 0) rc = push(t, (ranked){count, t->fresh[i]}, err);
    }
    t->fresh_count = 0;
    return rc;
}

/* Count all pairs of bytes. */
static int count_pairs(trainer *t, sgt_error *err)
{
    int rc = SGT_OK;
    for (uint32_t w = 0; w < t->word_count; w++) {
        const word *at = &t->words[w];
        for (uint32_t i = 1; i < at->n && !rc; i++)
            rc = add_pair(t, at->ids[i - 1], at->ids[i], w, at->count, err);
    }
    return rc < 0 ? rc : push_fresh(t, err);
}

/* ---- one merge ---- */

/* In the word with index w, replace each pair of the adjacent ids l and r with the id `made`, from
 * left to right, and adjust the counts of pairs. A replacement removes the pair of l and its left
 * neighbour and the pair of r and its right neighbour. It creates a pair of `made` with each of
 * these neighbours. */
static int merge_word(trainer *t, uint32_t w, uint32_t l, uint32_t r, uint32_t made, sgt_error *err)
{
    uint32_t *s = t->words[w].ids;
    const uint32_t n = t->words[w].n;
    const int64_t count = t->words[w].count;
    uint32_t to = 0;
    int rc = SGT_OK;
    for (uint32_t i = 0; i < n && !rc; i++) {
        if (s[i] != l || i + 1 == n || s[i + 1] != r) {
            s[to++] = s[i];
            continue;
        }
        if (to) {
            take_pair(t, s[to - 1], l, count);
            rc = add_pair(t, s[to - 1], made, w, count, err);
        }
        if (i + 2 < n && !rc) {
            take_pair(t, r, s[i + 2], count);
            rc = add_pair(t, made, s[i + 2], w, count, err);
        }
        s[to++] = made;
        i++;
    }
    t->words[w].n = to;
    return rc;
}

static int merge_pair(trainer *t, pair_key key, uint32_t made, sgt_error *err)
{
    int rc = SGT_OK;
    for (uint32_t at = t->pairs[find_pair(t, key)].last; at && !rc; at = t->holders[at].before)
        rc = merge_word(t, t->holders[at].word, left_of(key), right_of(key), made, err);
    /* Set the count of the merged pair to 0. The pair no longer occurs in any word, but merge_word
     * has not subtracted the occurrences that it replaced from the count. */
    t->pairs[find_pair(t, key)].count = 0;
    return rc < 0 ? rc : push_fresh(t, err);
}

/* ---- the training loop ---- */

/* Add the tokens that no merge produces to *parts: the end-of-text token, and one token for each of
 * the 256 bytes. */
static int add_first(sgt_vocab_parts *parts, sgt_error *err)
{
    int rc = sgt_vocab_parts_token(parts, 0, SGT_EOT_TEXT, strlen(SGT_EOT_TEXT), 1, err);
    for (uint32_t i = 0; i < 256 && !rc; i++) {
        const uint8_t byte = sgt_alphabet_byte(i);
        rc = sgt_vocab_parts_token(parts, i + 1, &byte, 1, 0, err);
    }
    return rc;
}

/* Return 1 if the joined text of the tokens *l and *r is the text of the end-of-text token;
 * otherwise 0. No other token may have this text. The case is possible only with split patterns
 * other than GPT-2's, because GPT-2's pattern always splits this text. */
static int makes_eot(const sgt_vocab_part *l, const sgt_vocab_part *r)
{
    return l->n + r->n == strlen(SGT_EOT_TEXT) && !memcmp(SGT_EOT_TEXT, l->s, l->n) &&
           !memcmp(&SGT_EOT_TEXT[l->n], r->s, r->n);
}

static int train(trainer *t, sgt_vocab_parts *parts, uint32_t size, const sgt_stop *stop,
                 sgt_error *err)
{
    int rc = SGT_OK;
    while (parts->size < size && t->heap_count && !rc) {
        ranked top = pop(t);
        const int64_t count = t->pairs[find_pair(t, top.key)].count;
        const uint32_t l = left_of(top.key), r = right_of(top.key), made = parts->size;
        if (count != top.count) {
            if (count > 0) rc = push(t, (ranked){count, top.key}, err);
            continue;
        }
        if (makes_eot(&parts->tokens[l], &parts->tokens[r])) continue;
        if (sgt_stopped(stop)) return sgt_fail(err, SGT_ESTOPPED, "stopped");
        if ((rc = sgt_vocab_parts_join(parts, l, r, err)) == 0)
            rc = merge_pair(t, top.key, made, err);
    }
    return rc;
}

static void free_trainer(trainer *t)
{
    free(t->ids);
    free(t->words);
    free(t->pairs);
    free(t->holders);
    free(t->heap);
    free(t->fresh);
}

int sgt_merges_train(sgt_vocab_parts *parts, const sgt_pieces *p, uint32_t size,
                     const sgt_stop *stop, sgt_error *err)
{
    trainer t = {.pair_room = (size_t)1 << 17};
    t.pairs = calloc(t.pair_room, sizeof *t.pairs);
    int rc = t.pairs ? read_words(&t, p, err) : sgt_fail_memory(err, "merges");
    if (!rc) rc = count_pairs(&t, err);
    if (!rc) rc = add_first(parts, err);
    if (!rc) rc = train(&t, parts, size, stop, err);
    free_trainer(&t);
    return rc;
}

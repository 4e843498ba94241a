/* merges.c: the training loop. It keeps for every pair how often it occurs and which words
 * (distinct pieces) may hold it. A heap orders the pairs by count, and a merge only visits the
 * words of its pair. Counts in the heap may be too high, because merges take occurrences from
 * neighbouring pairs. A pair that is popped with an outdated count is pushed back with the current
 * one. Only pairs with the newest token can grow, in the step that makes it, so no count in the
 * heap is ever too low. */
#include "tokenize/learn/merges.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "loader/base/memory.h"
#include "tokenize/vocab/vocab.h"

/* ---- counted pieces ----
 *
 * An open-addressing table of distinct pieces; their bytes lie end to end beside it. */

#define FIRST_ROOM ((size_t)1 << 15)

int sgt_pieces_new(sgt_pieces **out, sgt_error *err)
{
    sgt_pieces *p = calloc(1, sizeof *p);
    if (p) p->slots = calloc(FIRST_ROOM, sizeof *p->slots);
    if (!p || !p->slots) {
        free(p);
        return sgt_fail_memory(err, "distinct pieces of text");
    }
    p->room = FIRST_ROOM;
    *out = p;
    return SGT_OK;
}

void sgt_pieces_free(sgt_pieces *p)
{
    if (!p) return;
    free(p->slots);
    free(p->text);
    free(p);
}

static int grow(sgt_pieces *p, sgt_error *err)
{
    size_t room = 2 * p->room;
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

static int add_new(sgt_pieces *p, size_t at, uint64_t hash, const uint8_t *s, size_t n,
                   uint64_t count, sgt_error *err)
{
    int rc = sgt_reserve(&p->text, &p->text_room, p->used + n, 1, "distinct pieces of text", err);
    if (rc < 0) return rc;
    memcpy(p->text + p->used, s, n);
    p->slots[at] = (sgt_piece){hash, count, p->used, n};
    p->used += n;
    return ++p->count * 2 > p->room ? grow(p, err) : SGT_OK;
}

static int add(sgt_pieces *p, uint64_t hash, const uint8_t *s, size_t n, uint64_t count,
               sgt_error *err)
{
    size_t mask = p->room - 1, at = hash & mask;
    p->total += count;
    for (; p->slots[at].count; at = (at + 1) & mask) {
        sgt_piece *slot = &p->slots[at];
        if (slot->hash == hash && slot->n == n && !memcmp(p->text + slot->at, s, n)) {
            slot->count += count;
            return SGT_OK;
        }
    }
    return add_new(p, at, hash, s, n, count, err);
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

#define EOT "<|endoftext|>"
#define IDS 65536u

typedef struct pair {
    uint32_t key; /* left << 16 | right; 0: free slot (ids begin at 1) */
    /* number of words that may hold the pair; they are in trainer.lists from words_at on */
    uint32_t words_n;
    int64_t count;
    uint64_t words_at;
} pair;

typedef struct ranked {
    int64_t count;
    uint32_t key;
} ranked;

/* Changes that the current merge makes to the pairs beside the merged pair. The arrays are indexed
 * by the other token of each such pair. */
typedef struct side {
    int64_t *change;  /* (IDS) */
    uint32_t *words;  /* (IDS): number of words to list */
    uint64_t *last;   /* (IDS): the last of these words + 1 */
    uint32_t *listed; /* (IDS): tokens with an entry in these arrays */
    size_t count;
} side;

typedef struct note {
    uint32_t word, other;
} note;

typedef struct trainer {
    uint16_t *ids;     /* tokens of the words; word w's from starts[w] on */
    uint64_t *starts;  /* (words) */
    uint32_t *lengths; /* (words): current number of tokens */
    uint64_t *counts;  /* (words) */
    size_t words;
    pair *pairs;
    size_t pair_room, pair_count;
    uint32_t *lists; /* lists of the words of each pair */
    size_t used, list_room;
    ranked *heap;
    size_t heap_count, heap_room;
    /* pairs (x, l) and (r, x), whose counts fall; the new pairs (x, made) and (made, x) */
    side lost_left, lost_right, left, right;
    note *left_notes, *right_notes;
    size_t left_count, left_room, right_count, right_room;
    uint32_t *token_n; /* (IDS): bytes of each token */
} trainer;

/* ---- pairs ---- */

static size_t find_pair(const trainer *t, uint32_t key)
{
    size_t mask = t->pair_room - 1, i = (size_t)((uint64_t)key * 0x9E3779B97F4A7C15u >> 32) & mask;
    while (t->pairs[i].key && t->pairs[i].key != key) i = (i + 1) & mask;
    return i;
}

static int add_pair(trainer *t, uint32_t key, pair **out, sgt_error *err)
{
    size_t at = find_pair(t, key);
    if (t->pairs[at].key || ++t->pair_count * 2 <= t->pair_room) {
        t->pairs[at].key = key;
        *out = &t->pairs[at];
        return SGT_OK;
    }
    trainer wider = {.pair_room = 2 * t->pair_room,
                     .pairs = calloc(2 * t->pair_room, sizeof(pair))};
    if (!wider.pairs) return sgt_fail_memory(err, "merges");
    for (size_t i = 0; i < t->pair_room; i++)
        if (t->pairs[i].key) wider.pairs[find_pair(&wider, t->pairs[i].key)] = t->pairs[i];
    free(t->pairs);
    t->pairs = wider.pairs;
    t->pair_room = wider.pair_room;
    *out = &t->pairs[find_pair(t, key)];
    (*out)->key = key;
    return SGT_OK;
}

/* Reserve room in the lists for n more words. */
static int reserve_list(trainer *t, size_t n, sgt_error *err)
{
    return sgt_reserve(&t->lists, &t->list_room, t->used + n, sizeof *t->lists, "merges", err);
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
    sgt_alphabet a;
    uint16_t id_of[256];
    size_t at = 0;
    sgt_alphabet_fill(&a);
    for (unsigned i = 0; i < 256; i++) id_of[a.order[i]] = (uint16_t)(i + 1);
    t->ids = malloc((p->used + 1) * sizeof *t->ids);
    t->starts = malloc((p->count + 1) * sizeof *t->starts);
    t->lengths = malloc((p->count + 1) * sizeof *t->lengths);
    t->counts = malloc((p->count + 1) * sizeof *t->counts);
    if (!t->ids || !t->starts || !t->lengths || !t->counts) return sgt_fail_memory(err, "merges");
    if (p->count >= UINT32_MAX)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "%zu distinct pieces of text: too many (use fewer inputs)", p->count);
    for (size_t i = 0; i < p->room; i++) {
        const sgt_piece *s = &p->slots[i];
        if (!s->count || s->n < 2) continue; /* a piece of one byte has no pair */
        t->starts[t->words] = at;
        t->lengths[t->words] = (uint32_t)s->n;
        t->counts[t->words++] = s->count;
        for (uint64_t j = 0; j < s->n; j++) t->ids[at++] = id_of[p->text[s->at + j]];
    }
    return SGT_OK;
}

/* Count all pairs of bytes, and list the words of each. Passes over the words twice: to count and
 * to list. */
static int count_pairs(trainer *t, sgt_error *err)
{
    int rc = SGT_OK;
    pair *p;
    for (size_t w = 0; w < t->words; w++)
        for (uint32_t i = 1; i < t->lengths[w] && !rc; i++) {
            const uint16_t *s = t->ids + t->starts[w] + i;
            if ((rc = add_pair(t, (uint32_t)s[-1] << 16 | s[0], &p, err)) < 0) break;
            p->count += (int64_t)t->counts[w];
            p->words_n++;
        }
    for (size_t i = 0; i < t->pair_room; i++) {
        if (!t->pairs[i].key) continue;
        t->pairs[i].words_at = t->used;
        t->used += t->pairs[i].words_n;
        t->pairs[i].words_n = 0;
        if (!rc) rc = push(t, (ranked){t->pairs[i].count, t->pairs[i].key}, err);
    }
    size_t total = t->used;
    t->used = 0;
    if (rc < 0 || (rc = reserve_list(t, total, err)) < 0) return rc;
    t->used = total;
    for (uint32_t w = 0; w < t->words; w++)
        for (uint32_t i = 1; i < t->lengths[w]; i++) {
            const uint16_t *s = t->ids + t->starts[w] + i;
            p = &t->pairs[find_pair(t, (uint32_t)s[-1] << 16 | s[0])];
            if (!p->words_n || t->lists[p->words_at + p->words_n - 1] != w)
                t->lists[p->words_at + p->words_n++] = w;
        }
    return SGT_OK;
}

/* ---- one merge ---- */

static void list_token(side *s, uint32_t other)
{
    if (s->words[other] || s->last[other]) return;
    s->last[other] = UINT64_MAX;
    s->listed[s->count++] = other;
}

static void change(side *s, uint32_t other, int64_t by)
{
    list_token(s, other);
    s->change[other] += by;
}

/* Record that word w now holds a new pair with the token `other`. */
static int record_word(side *s, note **notes, size_t *count, size_t *room, uint32_t other,
                       uint32_t w, sgt_error *err)
{
    if (s->last[other] == (uint64_t)w + 1) return SGT_OK;
    int rc = sgt_reserve(notes, room, *count + 1, sizeof **notes, "merges", err);
    if (rc < 0) return rc;
    s->last[other] = (uint64_t)w + 1;
    s->words[other]++;
    (*notes)[(*count)++] = (note){w, other};
    return SGT_OK;
}

static int gain_left(trainer *t, uint32_t other, uint32_t w, int64_t by, sgt_error *err)
{
    change(&t->left, other, by);
    return record_word(&t->left, &t->left_notes, &t->left_count, &t->left_room, other, w, err);
}

static int gain_right(trainer *t, uint32_t other, uint32_t w, int64_t by, sgt_error *err)
{
    change(&t->right, other, by);
    return record_word(&t->right, &t->right_notes, &t->right_count, &t->right_room, other, w, err);
}

/* Replace each adjacent l and r in word w by `made`, from left to right. Record how the counts of
 * the pairs on both sides of each replacement change. */
static int merge_word(trainer *t, uint32_t w, uint32_t l, uint32_t r, uint32_t made, sgt_error *err)
{
    uint16_t *s = t->ids + t->starts[w];
    uint32_t n = t->lengths[w], to = 0;
    int64_t count = (int64_t)t->counts[w];
    int rc = SGT_OK;
    for (uint32_t i = 0; i < n && !rc; i++) {
        if (s[i] != l || i + 1 == n || s[i + 1] != r) {
            s[to++] = s[i];
            continue;
        }
        if (to) {
            uint32_t x = s[to - 1];
            /* if x is `made`, the pair lost is (made, l), which the previous replacement in this
             * word gained */
            change(x == made ? &t->right : &t->lost_left, x == made ? l : x, -count);
            rc = gain_left(t, x, w, count, err);
        }
        if (i + 2 < n && !rc) {
            change(&t->lost_right, s[i + 2], -count);
            rc = gain_right(t, s[i + 2], w, count, err);
        }
        s[to++] = (uint16_t)made;
        i++;
    }
    t->lengths[w] = to;
    return rc;
}

/* Subtract the occurrences that the merge took from the existing pairs on one side. */
static void subtract_lost(trainer *t, side *s, uint32_t token, int token_is_right)
{
    for (size_t i = 0; i < s->count; i++) {
        uint32_t x = s->listed[i];
        pair *p = &t->pairs[find_pair(t, token_is_right ? x << 16 | token : token << 16 | x)];
        if (p->key) p->count += s->change[x];
        s->change[x] = 0;
        s->last[x] = 0;
    }
    s->count = 0;
}

/* Add the new pairs on one side, with the words that hold them. */
static int add_new_pairs(trainer *t, side *s, const note *notes, size_t note_count, uint32_t made,
                         int made_is_right, sgt_error *err)
{
    int rc = reserve_list(t, note_count, err);
    pair *p;
    for (size_t i = 0; i < s->count && !rc; i++) {
        uint32_t x = s->listed[i], key = made_is_right ? x << 16 | made : made << 16 | x;
        /* `last` was the last word + 1; from here on it is where the next word is listed */
        s->last[x] = t->used;
        t->used += s->words[x];
        if (s->change[x] <= 0 || (rc = add_pair(t, key, &p, err)) < 0) continue;
        p->count = s->change[x];
        p->words_at = s->last[x];
        p->words_n = s->words[x];
        rc = push(t, (ranked){p->count, key}, err);
    }
    for (size_t i = 0; i < note_count && !rc; i++)
        t->lists[s->last[notes[i].other]++] = notes[i].word;
    for (size_t i = 0; i < s->count; i++) {
        uint32_t x = s->listed[i];
        s->change[x] = 0;
        s->words[x] = 0;
        s->last[x] = 0;
    }
    s->count = 0;
    return rc;
}

static int merge_pair(trainer *t, uint32_t key, uint32_t made, sgt_error *err)
{
    const uint32_t l = key >> 16, r = key & 0xFFFF;
    size_t at = find_pair(t, key);
    const uint64_t words_at = t->pairs[at].words_at, words_n = t->pairs[at].words_n;
    int rc = SGT_OK;
    t->left_count = t->right_count = 0;
    for (uint64_t i = 0; i < words_n && !rc; i++)
        rc = merge_word(t, t->lists[words_at + i], l, r, made, err);
    subtract_lost(t, &t->lost_left, l, 1);
    subtract_lost(t, &t->lost_right, r, 0);
    /* The merged pair no longer occurs. If l equals r, the lines above may have changed its count
     * as that of a neighbour. */
    t->pairs[at].count = 0;
    if (!rc) rc = add_new_pairs(t, &t->left, t->left_notes, t->left_count, made, 1, err);
    if (!rc) rc = add_new_pairs(t, &t->right, t->right_notes, t->right_count, made, 0, err);
    return rc;
}

/* ---- the training loop ---- */

/* Write a token's bytes to `out` and return their number. If they are more than `max`, write
 * nothing and return 0. */
static size_t spell(const trainer *t, const sgt_merges *m, const sgt_alphabet *a, uint32_t id,
                    uint8_t *out, size_t max)
{
    if (t->token_n[id] > max) return 0;
    if (id < SGT_MERGES_FIRST) {
        *out = a->order[id - 1];
        return 1;
    }
    const uint16_t *half = m->pairs[id - SGT_MERGES_FIRST];
    size_t n = spell(t, m, a, half[0], out, max);
    return n + spell(t, m, a, half[1], out + n, max - n);
}

/* Return whether this merge would make a token with the text of the end of text, which no other
 * token may have. Only patterns other than GPT-2's leave that text in one piece. */
static int makes_eot(const trainer *t, const sgt_merges *m, uint32_t l, uint32_t r)
{
    const size_t want = sizeof EOT - 1;
    uint8_t text[sizeof EOT];
    sgt_alphabet a;
    if (t->token_n[l] + (size_t)t->token_n[r] != want) return 0;
    sgt_alphabet_fill(&a);
    size_t n = spell(t, m, &a, l, text, want);
    spell(t, m, &a, r, text + n, want - n);
    return !memcmp(text, EOT, want);
}

static int train(trainer *t, sgt_merges *m, uint32_t size, const sgt_stop *stop, sgt_error *err)
{
    int rc = SGT_OK;
    while (m->count + SGT_MERGES_FIRST < size && t->heap_count && !rc) {
        ranked top = pop(t);
        const int64_t count = t->pairs[find_pair(t, top.key)].count;
        const uint32_t l = top.key >> 16, r = top.key & 0xFFFF, made = m->count + SGT_MERGES_FIRST;
        if (count != top.count) {
            if (count > 0) rc = push(t, (ranked){count, top.key}, err);
            continue;
        }
        if (makes_eot(t, m, l, r)) continue;
        if (sgt_stopped(stop)) return sgt_fail(err, SGT_ESTOPPED, "stopped");
        rc = merge_pair(t, top.key, made, err);
        m->pairs[m->count][0] = (uint16_t)l;
        m->pairs[m->count++][1] = (uint16_t)r;
        t->token_n[made] = t->token_n[l] + t->token_n[r];
    }
    return rc;
}

static int reserve_side(side *s)
{
    s->change = calloc(IDS, sizeof *s->change);
    s->words = calloc(IDS, sizeof *s->words);
    s->last = calloc(IDS, sizeof *s->last);
    s->listed = calloc(IDS, sizeof *s->listed);
    return s->change && s->words && s->last && s->listed;
}

static void free_side(side *s)
{
    free(s->change);
    free(s->words);
    free(s->last);
    free(s->listed);
}

static void free_trainer(trainer *t)
{
    free(t->ids);
    free(t->starts);
    free(t->lengths);
    free(t->counts);
    free(t->pairs);
    free(t->lists);
    free(t->heap);
    free(t->left_notes);
    free(t->right_notes);
    free(t->token_n);
    free_side(&t->lost_left);
    free_side(&t->lost_right);
    free_side(&t->left);
    free_side(&t->right);
}

int sgt_merges_train(sgt_merges *m, const sgt_pieces *p, uint32_t size, const sgt_stop *stop,
                     sgt_error *err)
{
    trainer t = {.pair_room = (size_t)1 << 17};
    *m = (sgt_merges){.pairs = calloc(IDS, sizeof *m->pairs)};
    t.pairs = calloc(t.pair_room, sizeof *t.pairs);
    t.token_n = calloc(IDS, sizeof *t.token_n);
    int rc = m->pairs && t.pairs && t.token_n && reserve_side(&t.lost_left) &&
                     reserve_side(&t.lost_right) && reserve_side(&t.left) && reserve_side(&t.right)
                 ? read_words(&t, p, err)
                 : sgt_fail_memory(err, "merges");
    for (uint32_t id = 1; id < SGT_MERGES_FIRST && t.token_n; id++) t.token_n[id] = 1;
    if (!rc) rc = count_pairs(&t, err);
    if (!rc) rc = train(&t, m, size, stop, err);
    free_trainer(&t);
    if (rc < 0) {
        free(m->pairs);
        *m = (sgt_merges){0};
    }
    return rc;
}

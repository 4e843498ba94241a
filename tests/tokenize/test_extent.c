/* test_extent.c: cuts inside long pre-tokens. The tokens of both parts are those of the whole,
 * whatever follows the text that sgt_extent_cut has seen. */
#include <stdlib.h>
#include <string.h>

#include "tokenize/bpe/bpe.h"
#include "tests/tokenize/common.h"

/* Return a vocabulary of few letters, with merges in random order, so that tokens depend strongly
 * on the text that follows them. */
static sgt_vocab *chance_vocab(rng *r)
{
    char tokens[400][9] = {"a", "b", "c"}, text[8192];
    size_t count = 3, used = (size_t)snprintf(text, sizeof text, "#version: 0.2\n");
    for (int tries = 0; tries < 400 && count < 60; tries++) {
        const char *a = tokens[below(r, (uint32_t)count)], *b = tokens[below(r, (uint32_t)count)];
        char both[20];
        int known = snprintf(both, sizeof both, "%s%s", a, b) > 8;
        for (size_t i = 0; i < count && !known; i++) known = !strcmp(tokens[i], both);
        if (known) continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %s\n", a, b);
        memcpy(tokens[count++], both, strlen(both) + 1);
    }
    sgt_error err;
    sgt_vocab *v = vocab_of_merges(text, &err);
    cr_assert(v, "%s", err.text);
    return v;
}

/* Merge by the definition, for text of any length. */
static size_t merge(const sgt_vocab *v, const uint8_t *s, size_t n, uint16_t *ids)
{
    for (size_t i = 0; i < n; i++) ids[i] = v->byte_id[s[i]];
    for (;;) {
        uint32_t least = SGT_NO_TOKEN;
        size_t to = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            uint32_t merged = sgt_pair(&v->pairs, ids[i], ids[i + 1]);
            if (merged < least) least = merged;
        }
        if (least == SGT_NO_TOKEN) return n;
        /* apply this merge from left to right, in one pass */
        for (size_t i = 0; i < n; to++) {
            int joined = i + 1 < n && sgt_pair(&v->pairs, ids[i], ids[i + 1]) == least;
            ids[to] = joined ? (uint16_t)least : ids[i];
            i += joined ? 2 : 1;
        }
        n = to;
    }
}

Test(extent, vocabularies_of_chance)
{
    uint64_t seed = test_seed();
    rng r = {seed, 0};
    size_t found = 0;
    for (int i = 0; i < 300; i++) {
        scoped(sgt_vocab) *v = chance_vocab(&r);
        scoped(sgt_encoder) *e = new_encoder(v);
        uint8_t text[900];
        uint16_t want[900], got[900];
        uint32_t letters = 1 + below(&r, 3);
        for (size_t k = 0; k < sizeof text; k++) text[k] = (uint8_t)('a' + below(&r, letters));
        size_t whole = merge(v, text, sizeof text, want);
        cr_assert_eq(bpe_steps(e, text, sizeof text, got), whole, "SEED=%llu: %d",
                     (unsigned long long)seed, i);
        cr_assert_arr_eq(got, want, whole * sizeof *got, "SEED=%llu: %d", (unsigned long long)seed,
                         i);
        size_t view = 300 + below(&r, 300), cut = sgt_extent_cut(e, text, view);
        found += cut > 0;
        for (size_t n = view; cut && n < sizeof text; n += 1 + below(&r, 150)) {
            size_t count = merge(v, text, n, want), left = merge(v, text, cut, got);
            cr_assert_eq(left + merge(v, text + cut, n - cut, got + left), count, "SEED=%llu: %d",
                         (unsigned long long)seed, i);
            cr_assert_arr_eq(got, want, count * sizeof *got, "SEED=%llu: %d",
                             (unsigned long long)seed, i);
        }
    }
    cr_assert_geq(found, 150, "SEED=%llu", (unsigned long long)seed);
}

/* Each pair of neighbouring letters merges before the pair to its left. So the last two letters of
 * a row decide how all letters before them are merged, and a cut between letters may be wrong if
 * more letters follow. */
Test(extent, borders_that_far_text_moves)
{
    static const char row[] = "bcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char merges[8 * sizeof row] = "#version: 0.2\n", *to = merges + strlen(merges);
    for (size_t i = sizeof row - 2; i-- > 0;) to += sprintf(to, "%c %c\n", row[i], row[i + 1]);
    sgt_error err;
    scoped(sgt_vocab) *v = vocab_of_merges(merges, &err);
    cr_assert(v, "%s", err.text);
    scoped(sgt_encoder) *e = new_encoder(v);
    for (size_t before = 0; before < 160; before++)
        for (size_t letters = 40; letters < sizeof row; letters++) {
            uint8_t text[160 + sizeof row];
            uint16_t want[sizeof text], got[sizeof text];
            memset(text, 'a', before);
            memcpy(text + before, row, letters);
            const size_t n = before + letters, cut = sgt_extent_cut(e, text, n - 1);
            for (size_t seen = n - 1; cut && seen <= n; seen++) {
                const size_t count = merge(v, text, seen, want), left = merge(v, text, cut, got);
                cr_assert_eq(left + merge(v, text + cut, seen - cut, got + left), count,
                             "%zu, %zu letters: cut at %zu", before, letters, cut);
                cr_assert_arr_eq(got, want, count * sizeof *got);
            }
        }
}

/* extent.c: finds borders between the tokens of a long piece that stay borders for any text behind
 * it. */
#include "tokenize/bpe/bpe.h"

#include <stdlib.h>

#include "tokenize/text/split.h"

/* bytes at the end of the piece that are kept as look-ahead and encoded after the cut; a quarter of
 * the piece if that is less */
#define AHEAD ((size_t)16 << 10)
#define TRIES 24 /* most borders that are tried */

typedef struct extent {
    sgt_encoder *e;
    const sgt_vocab *v;
    const sgt_rule *rule;
    const uint8_t *s; /* start of the piece */
    size_t from;      /* bytes of text before it */
    size_t n;         /* bytes of the piece in the text at hand; the piece may go on after them */
    size_t longest;   /* bytes of the longest token */
    uint16_t *ids;    /* (n): room for the ids of the piece */
} extent;

static size_t longest_token(const sgt_vocab *v)
{
    size_t most = 1;
    for (uint32_t id = 0; id < v->made; id++)
        if (sgt_vocab_length(v, id) > most) most = sgt_vocab_length(v, id);
    return most;
}

/* Return a length, a few bytes below n, at which text[n] ends with a whole character, whatever
 * follows. */
static size_t in_sight(const uint8_t *text, size_t n)
{
    size_t m = n > 4 ? n - 4 : 0, low = m > 3 ? m - 3 : 0;
    while (m > low && (text[m] & 0xC0) == 0x80) m--;
    /* all four are continuation bytes: the last one has no lead byte, so it is a unit of its own */
    return (text[m] & 0xC0) == 0x80 && n > 4 ? n - 4 : m;
}

/* Find the longest piece of text[n]. Returns its length, and its start in *from. */
static size_t longest_piece(const sgt_rule *r, const uint8_t *text, size_t n, size_t *from)
{
    sgt_splitter sp = sgt_splitter_by(r, text, n);
    uint32_t ends[320];
    size_t most = 0;
    for (size_t start = 0, count; (count = sgt_split(&sp, ends, 320)) > 0; start = sp.at)
        for (size_t i = 0, at = start; i < count; i++) {
            size_t end = ends[i] == UINT32_MAX ? sp.at : start + ends[i];
            if (end - at > most) most = end - at, *from = at;
            at = end;
        }
    return most;
}

/* Return whether the tokens of the piece have a border at b, where token `last` ends, whatever text
 * follows s[0 ... t). */
static int stands(const extent *x, size_t b, uint32_t last, size_t t)
{
    uint32_t first = SGT_NO_TOKEN;
    /* ids + b leaves room for the tokens before b: they are no more than its bytes */
    uint16_t *ids = x->ids + b;
    for (size_t a = t - x->longest + 1; a <= t; a++) {
        if (!sgt_bpe_steps(x->e, x->s + b, a - b, ids)) return 0;
        if (ids[0] != first && !sgt_vocab_may_follow(x->v, last, ids[0])) return 0;
        first = ids[0];
    }
    return 1;
}

/* Search backwards from `until` for a border between two tokens that remains one whatever text
 * follows the piece, and at which the split rule allows a cut. Return its offset; 0 if none is
 * found. */
static size_t find_border(const extent *x, size_t until)
{
    size_t count = sgt_bpe_steps(x->e, x->s, until, x->ids), b = until;
    for (int tries = 0; count > 1 && tries < TRIES;) {
        b -= sgt_vocab_length(x->v, x->ids[--count]);
        if (until - b < 2 * x->longest || !sgt_rule_within(x->rule, x->s, x->n, b, x->from))
            continue;
        for (size_t ahead = 2 * x->longest; b + ahead <= x->n; ahead *= 8)
            if (stands(x, b, x->ids[count - 1], b + ahead)) return b;
        tries++;
    }
    return 0;
}

size_t sgt_extent_cut(sgt_encoder *e, const sgt_vocab *v, const uint8_t *text, size_t n)
{
    extent x = {.e = e, .v = v, .rule = &v->rule, .longest = longest_token(v)};
    size_t ahead;
    x.n = longest_piece(x.rule, text, in_sight(text, n), &x.from);
    x.s = text + x.from;
    /* a piece of white space may lose its last character to the text that follows it */
    if (x.n > 4) x.n = in_sight(x.s, x.n);
    ahead = AHEAD < x.n / 4 ? AHEAD : x.n / 4;
    if (x.longest > SGT_EXTENT_TOKEN || ahead < 2 * x.longest) return 0;
    /* if memory runs out, report that there is no cut: the caller then takes more text, or fails */
    if (!(x.ids = malloc(x.n * sizeof *x.ids))) return 0;
    size_t b = find_border(&x, x.n - ahead);
    free(x.ids);
    return b ? x.from + b : 0;
}

/* extent.c: places at which the tokens of a long piece have a border, whatever follows. */
#include "extent.h"

#include <stdlib.h>

#include "text/split.h"

/* bytes at the end that are looked at, and left to the next part; or a quarter */
#define AHEAD ((size_t)16 << 10)
#define TRIES 24 /* borders that are tried */

typedef struct extent {
    sgt_encoder *e;
    const sgt_vocab *v;
    const uint8_t *s; /* the piece */
    size_t n;         /* and how far it goes at least */
    size_t longest;   /* bytes of a token */
    uint16_t *ids;    /* (n) */
} extent;

static size_t longest_token(const sgt_vocab *v)
{
    size_t most = 1;
    for (uint32_t id = 0; id < v->eot; id++)
        if (sgt_vocab_length(v, id) > most) most = sgt_vocab_length(v, id);
    return most;
}

/* How many of text[n] bytes are characters that are wholly in sight, whatever follows. */
static size_t in_sight(const uint8_t *text, size_t n)
{
    size_t m = n > 4 ? n - 4 : 0, low = m > 3 ? m - 3 : 0;
    while (m > low && (text[m] & 0xC0) == 0x80) m--;
    /* nothing but continuation bytes: each stands alone */
    return (text[m] & 0xC0) == 0x80 && n > 4 ? n - 4 : m;
}

/* The longest piece of text[n]: its length, and where it starts. */
static size_t longest_piece(const uint8_t *text, size_t n, size_t *from)
{
    sgt_splitter sp = sgt_splitter_start(text, n);
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

/* Whether the tokens of the piece have a border at b, where `last` ends, whatever follows s[0 ...
 * t). */
static int stands(const extent *x, size_t b, uint32_t last, size_t t)
{
    uint32_t first = SGT_NO_TOKEN;
    uint16_t *ids = x->ids + b; /* those before b are no longer than its text */
    for (size_t a = t - x->longest + 1; a <= t; a++) {
        if (!sgt_bpe_runs(x->e, x->s + b, a - b, ids)) return 0;
        if (ids[0] != first && !sgt_vocab_may_follow(x->v, last, ids[0], SGT_NO_TOKEN)) return 0;
        first = ids[0];
    }
    return 1;
}

/* A border of the tokens up to `until`, near to it, that stands, and where text may be cut as
 * well. */
static size_t find_border(const extent *x, size_t until)
{
    size_t count = sgt_bpe_runs(x->e, x->s, until, x->ids), b = until;
    for (int tries = 0; count > 1 && tries < TRIES;) {
        b -= sgt_vocab_length(x->v, x->ids[--count]);
        if (until - b < 2 * x->longest || !sgt_split_within(x->s, x->n, b)) continue;
        for (size_t ahead = 2 * x->longest; b + ahead <= x->n; ahead *= 8)
            if (stands(x, b, x->ids[count - 1], b + ahead)) return b;
        tries++;
    }
    return 0;
}

size_t sgt_extent_cut(sgt_encoder *e, const sgt_vocab *v, const uint8_t *text, size_t n)
{
    extent x = {.e = e, .v = v, .longest = longest_token(v)};
    size_t from = 0, ahead;
    x.n = longest_piece(text, in_sight(text, n), &from);
    x.s = text + from;
    /* white space before other text gives its last character away */
    if (x.n > 4) x.n = in_sight(x.s, x.n);
    ahead = AHEAD < x.n / 4 ? AHEAD : x.n / 4;
    if (x.longest > SGT_EXTENT_TOKEN || ahead < 2 * x.longest) return 0;
    /* as good as none: the caller takes more text, or fails */
    if (!(x.ids = malloc(x.n * sizeof *x.ids))) return 0;
    size_t b = find_border(&x, x.n - ahead);
    free(x.ids);
    return b ? from + b : 0;
}

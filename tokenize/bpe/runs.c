/* runs.c: encodes long pieces by steps and by windows. */
#include "tokenize/bpe/words.h"

#include <assert.h>
#include <string.h>

#include "tokenize/bpe/bpe.h"

/* most bytes merged at once where two windows share no token: the rest of one and all of the
 * next */
#define REPAIR 40
#define TAIL 60 /* most bytes merged at once after the last window */
/* bytes encoded by steps after windows fail; doubled at each failure, so that repetitive text is
 * soon encoded by steps alone */
#define STEPS_FIRST 64
/* most bytes encoded by steps before windows are tried again; random text, where windows work, does
 * not reach this */
#define STEPS_MOST ((size_t)1 << 20)

/* ---- steps ---- */

/* The tokens so far: ids[0..count) cover s[0..at), and all adjacent ones fit. */
typedef struct laid {
    const uint8_t *s;
    size_t n, at, count;
    /* The first by_windows tokens come from windows: longer tokens were not tried in their places,
     * so a dead end must try them. */
    size_t by_windows;
    uint16_t *ids;
} laid;

/* Append tokens until `until` is passed, or to the end. */
static void step(sgt_runs *r, laid *l, size_t until)
{
    const sgt_vocab *v = r->v;
    size_t len = 0;
    sgt_vocab_need_trie(v);
    uint32_t token = sgt_vocab_longest(v, l->s + l->at, l->n - l->at, &len);
    while (l->at < l->n) {
        uint64_t after = r->place + l->at + len;
        if (r->marks[after % SGT_RUN_MARKS] != after &&
            (l->count == 0 || sgt_vocab_may_follow(v, l->ids[l->count - 1], token, SGT_NO_TOKEN))) {
            l->ids[l->count++] = (uint16_t)token;
            l->at += len;
            if (l->at >= until) return;
            if (l->at < l->n) token = sgt_vocab_longest(v, l->s + l->at, l->n - l->at, &len);
        } else if (len > 1) {
            token = sgt_vocab_longest(v, l->s + l->at, len - 1, &len);
        } else {
            /* Dead end: mark the place, so that it is not tried again. A mark that another
             * overwrites costs time, not exactness. */
            assert(l->count > 0);
            r->marks[(r->place + l->at) % SGT_RUN_MARKS] = r->place + l->at;
            token = l->ids[--l->count];
            len = sgt_vocab_length(v, token);
            l->at -= len;
            if (l->count >= l->by_windows) continue;
            l->by_windows = l->count;
            token = sgt_vocab_longest(v, l->s + l->at, l->n - l->at, &len);
        }
    }
}

size_t sgt_runs_steps(sgt_runs *r, const uint8_t *s, size_t n, uint16_t *ids)
{
    laid l = {s, n, 0, 0, 0, ids};
    if (n) step(r, &l, n);
    r->place += n + 1;
    return l.count;
}

/* ---- windows ---- */

/* A window: some bytes merged alone. */
typedef struct window {
    size_t from;     /* offset of the first byte */
    uint64_t starts; /* bit i: a token starts at byte i; one more bit for the end */
    const uint16_t *ids;
} window;

static inline uint64_t below(unsigned bit) { return ((uint64_t)1 << bit) - 1; }

/* Return the number of set bits. The compiler's builtin would call a function if compiled for any
 * x86-64. */
static inline unsigned ones(uint64_t x)
{
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    return (unsigned)(((x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Fu) * 0x0101010101010101u >> 56);
}

/* Append the tokens of `w` from l->at up to its byte `to`. */
static inline void append_window(laid *l, const window *w, unsigned to)
{
    unsigned at = (unsigned)(l->at - w->from);
    size_t first = ones(w->starts & below(at)), count = ones(w->starts & below(to)) - first;
    if (count <= 8 && l->n - l->count >= 8) memcpy(l->ids + l->count, w->ids + first, 16);
    else memcpy(l->ids + l->count, w->ids + first, count * sizeof *l->ids);
    l->count += count;
    l->at = w->from + to;
}

/* Move from window `w`, which holds the last token appended, to window `next`: append w's tokens up
 * to and including one that `next` holds too. Returns 0 if there is no such token. */
static inline int change(laid *l, const window *w, const window *next)
{
    unsigned on = (unsigned)(next->from - w->from);
    uint64_t a = w->starts >> on, b = next->starts;
    for (uint64_t both = a & b; both & (both - 1); both &= both - 1) {
        /* end: the next token start in w or `next`; if both have it, they share this token */
        uint64_t later = (a | b) & ~(both ^ (both - 1)), end = later & -later;
        if (!(a & b & end)) continue;
        unsigned to = (unsigned)__builtin_ctzll(end) + on;
        if (w->from + to < l->at) continue;
        append_window(l, w, to);
        return 1;
    }
    return 0;
}

/* Merge the bytes from the last token appended up to `end` into ids, which has room for 8 more than
 * `most`. Return 0 if they are more than `most` bytes. Also return 0 if the first merged token is
 * not the last one appended: then bytes further left must be merged too. */
static int repair(const sgt_runs *r, const laid *l, size_t end, size_t most, window *w,
                  uint16_t *ids)
{
    size_t last = l->count ? sgt_vocab_length(r->v, l->ids[l->count - 1]) : 0,
           n = end - (l->at - last), at = 0;
    if (n > most) return 0;
    size_t count = sgt_bpe_scan(r->v, l->s + l->at - last, n, ids);
    if (last && ids[0] != l->ids[l->count - 1]) return 0;
    *w = (window){l->at - last, 0, ids};
    for (size_t i = 0; i < count; at += sgt_vocab_length(r->v, ids[i++]))
        w->starts |= (uint64_t)1 << at;
    w->starts |= (uint64_t)1 << at;
    return 1;
}

/* Call repair. If it fails, remove the last token and try again, up to four times. */
static int repair_further(const sgt_runs *r, laid *l, size_t end, window *w, uint16_t *ids)
{
    for (int back = 0; back < 4; back++) {
        if (repair(r, l, end, REPAIR, w, ids)) return 1;
        if (!l->count) return 0;
        l->at -= sgt_vocab_length(r->v, l->ids[--l->count]);
    }
    return 0;
}

/* Encode by windows until one fails, or to the end of the piece. */
static void by_windows(const sgt_runs *r, laid *l)
{
    enum { GROUP = 16, LAST = 4 }; /* windows merged at a time */
    sgt_word_ids ids[2][GROUP + 1];
    uint16_t repaired[2][REPAIR + 8], tail[TAIL + 8];
    uint32_t starts[GROUP];
    window w;
    size_t group = 0, repairs = 0,
           last = l->count ? sgt_vocab_length(r->v, l->ids[l->count - 1]) : 0;
    size_t from = l->at - last + REPAIR - SGT_WINDOW_STEP;
    if (!repair(r, l, l->at - last + REPAIR, REPAIR, &w, repaired[repairs++ & 1])) return;
    for (size_t count = GROUP;; from += count * SGT_WINDOW_STEP) {
        if (from + count * SGT_WINDOW_STEP + SGT_WORD_BYTES + 1 > l->n) count = LAST;
        if (from + count * SGT_WINDOW_STEP + SGT_WORD_BYTES + 1 > l->n) break;
        sgt_word_ids *now = ids[group++ & 1];
        r->level->windows(r->v, l->s + from, count, now, starts);
        for (size_t i = 0; i < count; i++) {
            window next = {from + i * SGT_WINDOW_STEP, starts[i], now[i].ids};
            if (change(l, &w, &next)) w = next;
            else if (!repair_further(r, l, next.from + SGT_WORD_BYTES, &w, repaired[repairs++ & 1]))
                return;
        }
    }
    if (repair(r, l, l->n, TAIL, &w, tail)) append_window(l, &w, (unsigned)(l->n - w.from));
}

size_t sgt_runs_encode(sgt_runs *r, const uint8_t *s, size_t n, uint16_t *ids)
{
    laid l = {s, n, 0, 0, 0, ids};
    for (size_t extent = STEPS_FIRST; l.at < n;) {
        size_t from = l.at;
        if (n - l.at > 512) by_windows(r, &l);
        if (l.at == n) break;
        l.by_windows = l.count;
        if (l.at > from + 4096) extent = STEPS_FIRST;
        step(r, &l, l.at + extent);
        if (extent < STEPS_MOST) extent *= 2;
    }
    r->place += n + 1;
    return l.count;
}

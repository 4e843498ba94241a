/* bpe.c: the bytes of a piece become ids: of all adjacent pairs that some merge joins, the one of the lowest id is
 * joined, the leftmost first, until none is left.
 *
 * A piece takes the first of these ways that fits:
 *   words   up to 15 bytes, see words.h: nearly all of them
 *   longs   up to 126 bytes that were met before
 *   scan    up to 64 bytes: the definition itself, on the stack
 *   runs    longer ones, where the definition would be quadratic, see runs.h
 * and a piece for the last two is first cut wherever two bytes meet that no token holds side by side. */
#include "bpe.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cpu.h"
#include "runs.h"
#include "text/pattern.h"
#include "text/split.h"
#include "words.h"

#define LONGS 4096     /* words too long for the table of words.h that are kept: 1 MiB */
#define LONG_BYTES 126 /* of such a word, at most */
#define LONG_IDS 64
#define RUN_BYTES 512  /* from here on the fixed costs of runs.h are small */

typedef struct long_word {
    uint8_t n, count; /* bytes, 0: empty; ids */
    uint8_t text[LONG_BYTES];
    uint16_t ids[LONG_IDS];
} long_word;

struct sgt_encoder {
    const sgt_vocab *v;
    sgt_arena memory; /* what is pointed to, in huge pages, touched when used */
    long_word *longs; /* (LONGS) */
    sgt_runs runs;
    sgt_words words;
    sgt_pattern *rule; /* NULL: GPT-2's */
    sgt_error failure; /* of the rule */
};

static const sgt_words_level *words_level(void)
{
#if defined(__x86_64__)
    if (sgt_cpu() == SGT_CPU_AVX512) return &sgt_words_avx512;
    if (sgt_cpu() == SGT_CPU_AVX2) return &sgt_words_avx2;
#endif
    return &sgt_words_plain;
}

int sgt_encoder_new(sgt_encoder **out, const sgt_vocab *v, sgt_error *err)
{
    sgt_encoder *e = calloc(1, sizeof *e);
    if (!e) return sgt_fail(err, SGT_ENOMEM, "encoder: out of memory");
    e->v = v;
    size_t bytes = SGT_WORD_TABLE + 16 + LONGS * sizeof *e->longs + SGT_RUN_MARKS * sizeof(uint64_t) +
                   (size_t)3 * SGT_ARENA_ALIGN;
    int rc = v->file && v->file->rule ? sgt_pattern_new(&e->rule, v->file->rule, err) : SGT_OK;
    if (!rc) rc = sgt_arena_map(&e->memory, bytes, 0, err);
    if (rc < 0) {
        sgt_encoder_free(e);
        return rc;
    }
    e->words.v = v;
    e->words.encoder = e;
    e->words.level = words_level();
    e->words.table = sgt_arena_take(&e->memory, SGT_WORD_TABLE + 16, 1);
    e->longs = sgt_arena_take(&e->memory, LONGS, sizeof *e->longs);
    e->runs = (sgt_runs){.v = v, .level = e->words.level, .place = 1};
    e->runs.marks = sgt_arena_take(&e->memory, SGT_RUN_MARKS, sizeof *e->runs.marks);
    *out = e;
    return SGT_OK;
}

void sgt_encoder_free(sgt_encoder *e)
{
    if (!e) return;
    sgt_arena_unmap(&e->memory);
    sgt_pattern_free(e->rule);
    free(e);
}

/* ---- scan ---- */

size_t sgt_bpe_scan(const sgt_vocab *v, const uint8_t *s, size_t n, uint16_t *ids)
{
    uint16_t merged[SGT_BPE_SCAN_MAX]; /* what ids[i] and ids[i + 1] make; the last is never anything */
    for (size_t i = 0; i < n; i++) {
        ids[i] = v->byte_id[s[i]];
        merged[i] = i + 1 < n ? v->byte_pairs[s[i] | s[i + 1] << 8] : SGT_NO_PAIR;
    }
    for (;;) {
        size_t at = 0;
        for (size_t i = 1; i < n; i++)
            if (merged[i] < merged[at]) at = i;
        if (merged[at] == SGT_NO_PAIR) return n;
        ids[at] = merged[at];
        n--;
        memmove(ids + at + 1, ids + at + 2, (n - at - 1) * sizeof *ids);
        memmove(merged + at + 1, merged + at + 2, (n - at - 1) * sizeof *merged);
        merged[at] = at + 1 < n ? (uint16_t)sgt_pair(&v->pairs, ids[at], ids[at + 1]) : SGT_NO_PAIR;
        if (at > 0) merged[at - 1] = (uint16_t)sgt_pair(&v->pairs, ids[at - 1], ids[at]);
    }
}

size_t sgt_bpe_steps(sgt_encoder *e, const uint8_t *s, size_t n, uint16_t *ids)
{
    return sgt_runs_steps(&e->runs, s, n, ids);
}

size_t sgt_bpe_runs(sgt_encoder *e, const uint8_t *s, size_t n, uint16_t *ids)
{
    return sgt_runs_encode(&e->runs, s, n, ids);
}

/* ---- words too long for the table of words.h ---- */

static size_t encode_apart(sgt_encoder *e, const uint8_t *s, size_t n, uint16_t *ids)
{
    return n <= SGT_BPE_SCAN_MAX ? sgt_bpe_scan(e->v, s, n, ids) : sgt_runs_encode(&e->runs, s, n, ids);
}

/* In parts that no token spans. */
static size_t encode_parts(sgt_encoder *e, const uint8_t *s, size_t n, uint16_t *ids)
{
    size_t count = 0;
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && sgt_vocab_joins_at(e->v, s + to); to++) continue;
        count += encode_apart(e, s + from, to - from, ids + count);
    }
    return count;
}

static inline uint64_t load64(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* n >= 16 */
static inline size_t long_line(const uint8_t *s, size_t n)
{
    uint64_t h = load64(s + n - 8) ^ n;
    for (size_t i = 0; i + 8 < n; i += 8) h = (h ^ h >> 29 ^ load64(s + i)) * 0x9E3779B97F4A7C15u;
    return (size_t)(h >> 40) % LONGS;
}

size_t sgt_encode_long(sgt_encoder *e, const uint8_t *s, size_t n, uint16_t *ids)
{
    if (n > RUN_BYTES) return sgt_runs_encode(&e->runs, s, n, ids);
    if (n > LONG_BYTES) return encode_parts(e, s, n, ids);
    long_word *at = &e->longs[long_line(s, n)];
    if (at->n == n && !memcmp(at->text, s, n)) {
        memcpy(ids, at->ids, at->count * sizeof *ids);
        return at->count;
    }
    size_t count = encode_parts(e, s, n, ids);
    if (count > LONG_IDS) return count;
    at->n = (uint8_t)n;
    at->count = (uint8_t)count;
    memcpy(at->text, s, n);
    memcpy(at->ids, ids, count * sizeof *ids);
    return count;
}

/* ---- text ---- */

/* Words that start so near to the text's end that 16 bytes cannot be read there. */
static size_t encode_tail(sgt_encoder *e, const uint8_t *s, const uint32_t *ends, size_t count, uint16_t *ids)
{
    uint8_t text[32] = {0};
    uint16_t out[32];
    memcpy(text, s, ends[count - 1]);
    size_t n = e->words.level->encode(&e->words, text, ends, count, out);
    memcpy(ids, out, n * sizeof *ids);
    return n;
}

/* `left` bytes may be read from s on, and that many ids written. */
static size_t encode_words(sgt_encoder *e, const uint8_t *s, const uint32_t *ends, size_t count, size_t left,
                           uint16_t *ids)
{
    size_t safe = count;
    while (safe && (safe > 1 ? (size_t)ends[safe - 2] : 0) + 16 > left) safe--;
    size_t n = safe ? e->words.level->encode(&e->words, s, ends, safe, ids) : 0;
    if (safe == count) return n;
    uint32_t tail[16];
    size_t from = safe ? ends[safe - 1] : 0;
    for (size_t i = safe; i < count; i++) tail[i - safe] = ends[i] - (uint32_t)from;
    return n + encode_tail(e, s + from, tail, count - safe, ids + n);
}

size_t sgt_encode_piece(sgt_encoder *e, const uint8_t *s, size_t n, uint16_t *ids)
{
    uint32_t end = (uint32_t)n;
    if (!n) return 0;
    return n <= SGT_WORD_BYTES ? encode_words(e, s, &end, 1, n, ids) : sgt_encode_long(e, s, n, ids);
}

/* By GPT-2's rule, to ids in merge order. */
static size_t encode_gpt2(sgt_encoder *e, const void *text, size_t n, uint16_t *ids)
{
    const uint8_t *s = text;
    sgt_splitter sp = sgt_splitter_start(text, n);
    uint32_t ends[SGT_WORDS];
    size_t words, from = 0, count = 0;
    sp.cuts = &e->v->cuts;
    for (; (words = sgt_split(&sp, ends, SGT_WORDS)) > 0; from = sp.at) {
        if (ends[0] == UINT32_MAX) count += sgt_encode_long(e, s + from, sp.at - from, ids + count);
        else count += encode_words(e, s + from, ends, words, n - from, ids + count);
    }
    return count;
}

/* By the vocabulary's own rule, likewise. */
static size_t encode_by_rule(sgt_encoder *e, const void *text, size_t n, uint16_t *ids)
{
    const uint8_t *s = text;
    size_t ends[256], from = 0, count = 0;
    int pieces = sgt_pattern_start(e->rule, text, n, &e->failure);
    while (pieces >= 0 && (pieces = sgt_pattern_split(e->rule, ends, 256, &e->failure)) > 0)
        for (int i = 0; i < pieces; from = ends[i++])
            count += sgt_encode_piece(e, s + from, ends[i] - from, ids + count);
    return pieces < 0 ? SGT_ENCODE_FAILED : count;
}

size_t sgt_encode(sgt_encoder *e, const void *text, size_t n, uint16_t *ids)
{
    const sgt_vocab_file *f = e->v->file;
    size_t count = e->rule ? encode_by_rule(e, text, n, ids) : encode_gpt2(e, text, n, ids);
    if (f && f->ids && count != SGT_ENCODE_FAILED)
        for (size_t i = 0; i < count; i++) ids[i] = f->ids[ids[i]];
    return count;
}

const sgt_error *sgt_encoder_failure(const sgt_encoder *e) { return &e->failure; }

/* bpe.c: creates encoders and encodes texts. pieces.c, which is compiled once for each id width,
 * turns a piece (a pre-token) into ids. The definition of BPE is: start with one token per byte. Of
 * all pairs of adjacent tokens for which the vocabulary has a merge, merge the pair whose merged
 * token has the lowest id. If this pair occurs more than once, merge its leftmost occurrence.
 * Repeat until no pair has a merge.
 *
 * A piece is encoded by the first of these methods that accepts it:
 *   words   pieces of up to 15 bytes or, with 4-byte ids, up to 15 characters: nearly all pieces
 *           (words.h)
 *   longs   pieces of up to 256 bytes that are in the cache of long words (words.h)
 *   scan    pieces of up to 256 bytes: the definition applied step by step, on the stack
 *   steps   longer pieces, for which applying the definition step by step would take quadratic time
 *
 * Before the method "scan" encodes a piece, the piece is cut between any two adjacent bytes that no
 * token of the vocabulary contains next to each other. The last section of pieces.c finds offsets
 * at which a long piece can be cut between two tokens. */
#include "tokenize/bpe/bpe.h"

#include <stdlib.h>

#include "loader/base/cpu.h"
#include "tokenize/bpe/words.h"

static sgt_words_encode *encode_of_level(int wide)
{
#if defined(__x86_64__)
    if (sgt_cpu() == SGT_CPU_AVX512) return wide ? sgt_words_wide_avx512 : sgt_words_avx512;
    if (sgt_cpu() == SGT_CPU_AVX2) return wide ? sgt_words_wide_avx2 : sgt_words_avx2;
#endif
    return wide ? sgt_words_wide_plain : sgt_words_plain;
}

int sgt_encoder_new(sgt_encoder **out, const sgt_vocab *v, sgt_error *err)
{
    sgt_encoder *e = calloc(1, sizeof *e);
    if (!e) return sgt_fail_memory(err, "encoder");
    const size_t units = SGT_LONG_UNITS(v->width) + SGT_WORD_FOUND / 16 + 1,
                 sets = SGT_LONG_SETS(v->width),
                 bytes = SGT_WORD_TABLE + 16 + 16 * (units + sets) + SGT_MARKS * sizeof(uint64_t) +
                         (size_t)4 * SGT_ARENA_ALIGN;
    int rc =
        v->rule.by == SGT_RULE_PCRE2 ? sgt_pattern_new(&e->pattern, v->rule.text, err) : SGT_OK;
    if (!rc) rc = sgt_arena_map(&e->memory, bytes, 0, err);
    if (rc < 0) {
        sgt_encoder_free(e);
        return rc;
    }
    e->by = v->width == 4 ? &sgt_bpe_32 : &sgt_bpe_16;
    e->words.v = v;
    e->words.encode = encode_of_level(v->width == 4);
    e->words.table = sgt_arena_take(&e->memory, SGT_WORD_TABLE + 16, 1);
    e->words.place = 1;
    e->words.marks = sgt_arena_take(&e->memory, SGT_MARKS, sizeof *e->words.marks);
    e->words.long_sets = sgt_arena_take(&e->memory, sets, sizeof *e->words.long_sets);
    e->words.long_words = sgt_arena_take(&e->memory, units, sizeof *e->words.long_words);
    e->words.long_used = 1;
    *out = e;
    return SGT_OK;
}

void sgt_encoder_free(sgt_encoder *e)
{
    if (!e) return;
    sgt_arena_unmap(&e->memory);
    sgt_pattern_free(e->pattern);
    free(e);
}

size_t sgt_extent_cut(sgt_encoder *e, const uint8_t *text, size_t n)
{
    return e->by->cut(e, text, n);
}

int sgt_encode(sgt_encoder *e, const void *text, size_t n, void *ids, size_t ids_bytes,
               size_t *count, sgt_error *err)
{
    const sgt_text one = {text, n};
    return sgt_encode_texts(e, &one, 1, ids, ids_bytes, count, err);
}

int sgt_encode_texts(sgt_encoder *e, const sgt_text *texts, size_t count, void *ids,
                     size_t ids_bytes, size_t *ends, sgt_error *err)
{
    const size_t width = e->words.v->width, room = ids_bytes / width;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        /* A text never has more ids than bytes, so after this check, no id is written past the end
         * of the buffer. */
        if (texts[i].n > room - at)
            return sgt_fail(err, SGT_EUSAGE,
                            "ids: the buffer has room for %zu ids of %zu bytes, but a text of %zu "
                            "bytes may need an id for each byte (pass a larger buffer)",
                            room - at, width, texts[i].n);
        const size_t got = e->by->text(e, texts[i].bytes, texts[i].n, (char *)ids + at * width);
        if (got == SGT_PATTERN_FAILED) {
            if (err) *err = e->failure;
            return e->failure.code;
        }
        ends[i] = at += got;
    }
    return SGT_OK;
}

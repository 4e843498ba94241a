/* encode.c: sgt_encode gives the ids that the definition gives: split the text by the regular
 * expression, then apply merges to each piece one by one. Encoding the parts of a text that is cut
 * at safe cuts gives the same ids. The ids decode to the text's bytes. Long pieces made from the
 * text are cut too (bpe.h). */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "tokenize/bpe/bpe.h"
#include "tokenize/text/pattern.h"
#include "tokenize/text/split.h"
#include "tokenize/vocab/vocab.h"

static sgt_vocab *vocab;
static sgt_encoder *encoder;

/* Encode one piece by definition: apply the merge with the lowest rank wherever it fits, until no
 * merge fits. */
static size_t merge(const uint8_t *s, size_t n, uint16_t *ids)
{
    for (size_t i = 0; i < n; i++) ids[i] = vocab->byte_id[s[i]];
    for (;;) {
        uint32_t least = SGT_NO_TOKEN;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            uint32_t merged = sgt_pair(&vocab->pairs, ids[i], ids[i + 1]);
            if (merged < least) least = merged, at = i;
        }
        if (least == SGT_NO_TOKEN) return n;
        ids[at] = (uint16_t)least;
        memmove(ids + at + 1, ids + at + 2, (--n - at - 1) * sizeof *ids);
    }
}

static size_t by_definition(const uint8_t *text, size_t n, uint16_t *ids)
{
    static sgt_pattern *p;
    sgt_error err;
    size_t end, from = 0, count = 0;
    must(p || sgt_pattern_gpt2(&p, &err) == 0, "there is memory");
    must(sgt_pattern_start(p, text, n, &err) == 0, "the expression takes any text");
    for (; sgt_pattern_split(p, &end, 1, &err) > 0; from = end)
        count += merge(text + from, end - from, ids + count);
    must(from == n, "the expression comes to an end");
    return count;
}

/* Repeat the text to 3,000 bytes or more, and find a cut in them with sgt_extent_cut. Append
 * another half of the text, which sgt_extent_cut has not seen. Compare the ids of the two parts
 * with those of the whole. */
static void check_extent(const uint8_t *text, size_t n)
{
    size_t times = n ? 3000 / n + 1 : 0, seen = times * n, size = seen + n - n / 2;
    uint8_t *s = malloc(size + 1);
    uint16_t *want = malloc((size + 1) * sizeof *want), *got = malloc((size + 1) * sizeof *got);
    must(s && want && got, "there is memory");
    for (size_t i = 0; i < times; i++) memcpy(s + i * n, text, n);
    memcpy(s + seen, text + n / 2, size - seen);
    size_t cut = sgt_extent_cut(encoder, vocab, s, seen),
           wanted = sgt_encode(encoder, s, size, want);
    must(cut <= seen, "a cut is in sight");
    size_t left = sgt_encode(encoder, s, cut, got);
    must(left + sgt_encode(encoder, s + cut, size - cut, got + left) == wanted,
         "a cut leaves as many ids");
    must(!memcmp(got, want, wanted * sizeof *want),
         "a cut in a long piece leaves the ids as they are");
    free(s);
    free(want);
    free(got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sgt_error err;
    take_level();
    if (!vocab)
        must(sgt_vocab_gpt2(&vocab, &err) == 0 && sgt_encoder_new(&encoder, vocab, &err) == 0,
             "it begins");
    /* allocate exactly the bytes needed, so that the sanitizer finds reads and writes beyond
     * them */
    uint8_t *text = malloc(size ? size : 1);
    uint16_t *want = malloc((size + 1) * sizeof *want),
             *got = malloc(size ? size * sizeof *got : 1);
    must(text && want && got, "there is memory");
    if (size) memcpy(text, data, size);
    size_t wanted = by_definition(text, size, want);
    /* encode twice: the encoder's tables hold words of earlier texts first, then also those of this
     * text */
    for (int again = 0; again < 2; again++)
        must(sgt_encode(encoder, text, size, got) == wanted &&
                 !memcmp(got, want, wanted * sizeof *want),
             "the ids are those of the definition");
    size_t cut = sgt_split_cut(text, size, sgt_vocab_joins(vocab));
    must(cut <= size, "a cut is within the text");
    size_t left = sgt_encode(encoder, text, cut, got);
    size_t right = sgt_encode(encoder, text + cut, size - cut, got + left);
    must(left + right == wanted && !memcmp(got, want, wanted * sizeof *want),
         "a cut leaves the ids as they are");

    if (size) check_extent(text, size);

    char *back;
    size_t n;
    must(sgt_decode(vocab, got, wanted, &back, &n, &err) == 0, "ids can be decoded");
    must(n == size && !memcmp(back, text, n), "what was encoded decodes to itself");
    free(back);
    free(got);
    free(want);
    free(text);
    return 0;
}

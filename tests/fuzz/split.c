/* split.c: split.h gives the pieces of GPT-2's regular expression, and text may be cut where
 * sgt_split_cut says so. */
#include "tests/fuzz/pieces.h"

#include <string.h>

/* Store the ends of the pieces of text[from .. n), as offsets in `text`; return their number. */
static size_t split_ends(const uint8_t *text, size_t from, size_t n, size_t *ends)
{
    return ends_of(sgt_splitter_start(text + from, n - from), from, ends);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    take_level();
    /* allocate exactly the text's bytes, so that the sanitizer finds reads beyond them */
    uint8_t *text = malloc(size ? size : 1);
    size_t want, *ends = malloc((size + 1) * sizeof *ends);
    must(text && ends, "there is memory");
    if (size) memcpy(text, data, size);
    static sgt_pattern *p;
    must(p || sgt_pattern_gpt2(&p, NULL) == 0, "the expression compiles");
    size_t *pattern = pattern_ends(p, text, size, &want);
    must(split_ends(text, 0, size, ends) == want, "there are as many pieces");
    must(!memcmp(ends, pattern, want * sizeof *ends), "the pieces are the same");

    /* Without `joins`, a cut must be at the end of a piece. The text before and after it must have
     * the same pieces as the whole text. */
    size_t cut = sgt_split_cut(text, size, NULL);
    must(cut <= size, "a cut is within the text");
    if (cut) {
        size_t left = split_ends(text, 0, cut, ends);
        must(left <= want && !memcmp(ends, pattern, left * sizeof *ends),
             "pieces before a cut are those of the whole");
        size_t right = split_ends(text, cut, size, ends);
        must(left + right == want && !memcmp(ends, pattern + left, right * sizeof *ends),
             "and those after it");
    }
    free(pattern);
    free(ends);
    free(text);
    return 0;
}

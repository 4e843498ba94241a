/* scan.c: the definition of byte-pair encoding, quadratic in the number of bytes. */
#include <string.h>

#include "tokenize/bpe/bpe.h"

size_t sgt_bpe_scan(const sgt_vocab *v, const uint8_t *s, size_t n, uint16_t *ids)
{
    /* the id that ids[i] and ids[i + 1] merge to; the last entry is always SGT_NO_PAIR */
    uint16_t merged[SGT_BPE_SCAN_MAX];
    if (!n) return 0;
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

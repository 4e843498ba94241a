/* variants.h: faster ways through a CUDA step, each behind a switch (--variant) until a GPU has
 * decided about it. With any set of them the step is correct and held to the same bounds; each may
 * change its bits.
 *
 *     uint32_t set;
 *     if (sgt_variants_parse(&set, "default,gemm-tune", &err) < 0) ...;
 *     if (set & SGT_VARIANT_GEMM_TUNE) ...; */
#ifndef SGT_VARIANTS_H
#define SGT_VARIANTS_H

#include <stdint.h>

#include "base/error.h"

/* In the order of the table in variants.c, which names them. */
enum {
    SGT_VARIANT_LAYERNORM_ROWS = 1 << 0,
    SGT_VARIANT_GEMM_TUNE = 1 << 1,
    SGT_VARIANT_CROSS_ENTROPY_BULK = 1 << 2,
    SGT_VARIANT_RESIDUAL_IN_GEMM = 1 << 3,
    SGT_VARIANT_QKV_BIAS_IN_DW = 1 << 4,
    SGT_VARIANT_BIAS_BRANCHES = 1 << 5,
    SGT_VARIANT_ATTENTION_HOPPER = 1 << 6,
    SGT_VARIANT_GRADIENTS_WRITTEN = 1 << 7,
    SGT_VARIANTS = 8, /* how many there are */
    /* Those that are on by default: plain CUDA that does less, on any GPU. What relies on hardware
     * or on a library in a way that only a GPU can confirm stays off until one has. */
    SGT_VARIANTS_DEFAULT = SGT_VARIANT_LAYERNORM_ROWS
};

typedef struct sgt_variant {
    const char *name, *what; /* `what`: one line */
} sgt_variant;

extern const sgt_variant sgt_variants[SGT_VARIANTS]; /* bit i of a set is sgt_variants[i] */

/* The set that `words` is: names with commas between them; `all`, `none` and `default` too.
 * SGT_EUSAGE says which word is unknown, and lists those that are not. */
int sgt_variants_parse(uint32_t *set, const char *words, sgt_error *err);

/* The set's names with commas between them, in the table's order; "none". Writes at most
 * SGT_VARIANTS_TEXT bytes and returns `out`. */
#define SGT_VARIANTS_TEXT 256
char *sgt_variants_words(char out[SGT_VARIANTS_TEXT], uint32_t set);

#endif

/* variants.h: other methods for parts of a CUDA step. Those that made a step faster on a GPU are on
 * by default; --variant chooses. A step is correct with any set of them, within the same error
 * bounds, but each may change its bits.
 *
 *     uint32_t set;
 *     if (sgt_variants_parse(&set, "default,gemm-tune", &err) < 0) ...;
 *     if (set & SGT_VARIANT_GEMM_TUNE) ...; */
#ifndef SGT_VARIANTS_H
#define SGT_VARIANTS_H

#include <stdint.h>

#include "loader/base/error.h"

/* Bits of the variants, in the order of the table in variants.c, which has their names. */
enum {
    SGT_VARIANT_LAYERNORM_ROWS = 1 << 0,
    SGT_VARIANT_GEMM_TUNE = 1 << 1,
    SGT_VARIANT_CROSS_ENTROPY_BULK = 1 << 2,
    SGT_VARIANT_RESIDUAL_IN_GEMM = 1 << 3,
    SGT_VARIANT_QKV_BIAS_IN_DW = 1 << 4,
    SGT_VARIANT_BIAS_BRANCHES = 1 << 5,
    SGT_VARIANT_ATTENTION_HOPPER = 1 << 6,
    SGT_VARIANT_GRADIENTS_WRITTEN = 1 << 7,
    SGT_VARIANT_DQ_UNCLEARED = 1 << 8,
    SGT_VARIANTS = 9, /* number of variants */
    /* The variants that are on by default: those that made a step faster on an H100
     * (tests/gpu-results). */
    SGT_VARIANTS_DEFAULT = SGT_VARIANT_LAYERNORM_ROWS | SGT_VARIANT_BIAS_BRANCHES |
                           SGT_VARIANT_ATTENTION_HOPPER | SGT_VARIANT_GRADIENTS_WRITTEN |
                           SGT_VARIANT_DQ_UNCLEARED
};

typedef struct sgt_variant {
    const char *name, *what; /* name for --variant; what: one line of description */
} sgt_variant;

extern const sgt_variant sgt_variants[SGT_VARIANTS]; /* bit i of a set is sgt_variants[i] */

/* Parse names of variants separated by commas, or `all`, `none`, `default`. Returns SGT_EUSAGE for
 * an unknown word, with the list of known ones. */
int sgt_variants_parse(uint32_t *set, const char *words, sgt_error *err);

/* Write the names of a set's variants, separated by commas, in the table's order; or "none". Writes
 * at most SGT_VARIANTS_TEXT bytes and returns `out`. */
#define SGT_VARIANTS_TEXT 256
char *sgt_variants_words(char out[SGT_VARIANTS_TEXT], uint32_t set);

#endif

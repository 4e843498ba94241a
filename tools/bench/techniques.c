/* techniques.c: the names of the training techniques, and why a CPU lacks some. */
#include "tools/bench/ablation.h"

const technique_text techniques[TECHNIQUES] = {
    [TECHNIQUE_TEXT] = {"text", "samples encoded as needed", NULL},
    [TECHNIQUE_COLD] = {"cold", "mapped, not yet in memory", NULL},
    [TECHNIQUE_MMAP] = {"mmap", "mapped, token by token", NULL},
    [TECHNIQUE_PRELOAD] = {"preload", "shards in memory", NULL},
    [TECHNIQUE_SIMD] = {"simd", "rows by vector code", NULL},
    [TECHNIQUE_OVERLAP] = {"overlap", "rows made beside the step", NULL},
    [TECHNIQUE_ASYNC] = {"async", "metrics read a step late",
                         "a CPU's step is over when its metrics are there"},
    [TECHNIQUE_TF32] = {"tf32", "matrix products in TF32", "no CPU has TF32"},
    [TECHNIQUE_BF16] = {"bf16", "matrices in 16 bits", NULL},
    [TECHNIQUE_FUSED] = {"fused", "operations in one kernel", "the CPU's kernels are fused always"},
    [TECHNIQUE_GRAPHS] = {"graphs", "a step launched as a whole", "a CPU launches nothing"},
    [TECHNIQUE_FLASH] = {"flash", "no T x T scores stored",
                         "the CPU's attention never stores T x T scores"},
    [TECHNIQUE_PADDED] = {"padded", "vocabulary of 50,304 rows", "a CPU gains nothing by it"},
    [TECHNIQUE_TIED] = {"tied", "the head is the embedding", NULL},
    [TECHNIQUE_ACCUM] = {"accum", "the rows in micro-steps", NULL},
    [TECHNIQUE_RECOMPUTE] = {"recompute", "blocks computed twice", NULL},
};

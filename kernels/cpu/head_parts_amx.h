/* head_parts_amx.h: sizes and memory layout of the head in AMX tiles, for head_bf16_amx.c and
 * head_gradients_bf16_amx.c. */
#ifndef SGT_HEAD_PARTS_AMX_H
#define SGT_HEAD_PARTS_AMX_H

#include <omp.h>

#include "kernels/cpu/amx_pack.h"
#include "kernels/cpu/head_amx.h"

enum {
    COLUMNS = 512, /* most columns of x that a task takes */
    STEPS = 16,    /* steps of 32 rows that dw's sums take between loads and stores */
    STEPS_BYTES = STEPS * PAIR
};

/* Sizes, and the arrays in sgt_head.memory. A pair (amx_pack.h) has PAIR bytes. */
typedef struct head {
    size_t n, V, C;
    size_t rows, words, deep; /* n, V and C in units of SIDE, rounded up */
    size_t lanes;             /* n rounded up to SIDE */
    size_t part, parts;       /* columns of a part; number of parts */
    size_t line;              /* pairs from one row of e's pairs to the next; odd */
    const float *x32;
    const uint16_t *x, *w;
    const int32_t *targets;
    char *e;  /* (words, line) right pairs: SIDE columns as k, SIDE rows of x */
    char *xt; /* (rows, deep) right pairs: C as k, SIDE rows of x; not used after softmax */
    /* x times its rows' factors, (deep, rows) right pairs: k is the row; in xt's memory */
    char *fx;
    float *dxt; /* (rows, deep) blocks of SIDE columns of x by SIDE rows of x */
    float *subtracted, *largest, *sum, *factor; /* (parts, lanes) */
    float *reference, *at_target, *common;      /* (lanes); common: factor of parts not mixed */
    double *squares;                            /* (tasks of dw) sums of squares */
    int *mixed;    /* (parts) 1: some row has its own reference in this part */
    char *scratch; /* (threads, scratch_bytes) */
    size_t scratch_bytes, total;
} head;

SGT_INLINE size_t across_of(const head *r) { return (r->deep * SIDE + COLUMNS - 1) / COLUMNS; }

SGT_INLINE char *own_scratch(const head *r)
{
    return r->scratch + (size_t)omp_get_thread_num() * r->scratch_bytes;
}

SGT_INLINE char *pair_of_e(const head *r, size_t word, size_t row)
{
    return r->e + (word * r->line + row) * PAIR;
}

SGT_INLINE size_t columns_of(const head *r, size_t p) { return least(r->part, r->V - p * r->part); }

/* Write dx (n, C), computed from e and the factors. */
void AMX_NAME(sgt_head_amx_dx)(const head *r, float *dx, int threads);
/* Write dw (V, C), or add to it if `add`. Return the sum of its squares. */
double AMX_NAME(sgt_head_amx_dw)(const head *r, float *dw, int add, int threads);

#endif

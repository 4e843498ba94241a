/* parquet_runs.h: Parquet's two ways to write numbers in few bits. One thread at a time.
 *
 * Runs (the RLE and bit-packed hybrid): levels and the indices of a dictionary. Deltas
 * (DELTA_BINARY_PACKED): lengths, and integers of a column. Both are read in order, any number at a
 * time, so no length in a file decides how much memory is allocated. */
#ifndef SGT_PARQUET_RUNS_H
#define SGT_PARQUET_RUNS_H

#include <stddef.h>
#include <stdint.h>

typedef struct sgt_runs {
    const uint8_t *at, *end;
    unsigned width; /* bits per number, at most 32 */
    uint64_t left;  /* numbers left in this run */
    int packed;     /* the run is packed bits, from bit `bit` of `at`, to `after` */
    uint64_t bit;
    const uint8_t *after;
    uint32_t value; /* the number that a run of equal numbers repeats */
} sgt_runs;

/* Take the next n numbers. Return 0, or -1 if the bytes have ended. */
int sgt_runs_take(sgt_runs *r, uint32_t *out, size_t n);
/* Skip n numbers. Return like sgt_runs_take. */
int sgt_runs_skip(sgt_runs *r, uint64_t n);
/* Set *value to the number of the current run and *n to how often it still repeats. Return 0 if the
 * run is packed bits instead. */
int sgt_runs_repeats(sgt_runs *r, uint32_t *value, uint64_t *n);

typedef struct sgt_deltas {
    const uint8_t *at, *end;
    uint64_t left;         /* numbers not yet taken */
    uint64_t last;         /* the last number taken, or the first of all */
    int begun;             /* the first number has been taken */
    uint64_t block, minis; /* numbers per block, and miniblocks in it */
    uint64_t mini;         /* the miniblock within the block */
    uint64_t in_mini;      /* numbers left in it */
    uint64_t least;        /* smallest delta of the block */
    const uint8_t *widths; /* bits of the numbers of each miniblock */
    /* where the miniblock's bits begin; the next bit is counted from there */
    const uint8_t *bits;
    uint64_t bit;
} sgt_deltas;

/* Read the head at p. Return 0, or -1 if it is damaged. */
int sgt_deltas_open(sgt_deltas *d, const uint8_t *p, const uint8_t *end);
/* Take the next n numbers. Return 0, or -1 if there are fewer, or one is not a length. */
int sgt_deltas_take(sgt_deltas *d, uint32_t *out, size_t n);
/* Take the next number, of any kind. Its lower 32 bits are a number of 32 bits. Return 0, or -1 if
 * there is none. */
int sgt_deltas_next(sgt_deltas *d, uint64_t *out);
/* Return where the bytes of the deltas end; NULL: they are damaged. */
const uint8_t *sgt_deltas_end(const sgt_deltas *d);

#endif

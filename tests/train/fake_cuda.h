/* fake_cuda.h: a CUDA library whose device is the CPU backend: with metrics a step late, rows that
 * are read for two more calls, a loss scaler whose gradient overflows every fifth step, choices,
 * and a known peak. It checks that the loop obeys backend.h. */
#ifndef TESTS_TRAIN_FAKE_CUDA_H
#define TESTS_TRAIN_FAKE_CUDA_H

#include "train/cuda/cuda_library.h"

extern const sgt_cuda_library fake_cuda;

extern struct fake_seen {
    sgt_backend_options options; /* options of the last open */
    char choices[64];            /* choices that it was given; "" for NULL */
    unsigned late;               /* largest number of steps by which metrics were requested late */
    uint64_t asked_at_once;      /* how often metrics of the step just queued were requested */
    int pinned;                  /* buffers that are not freed yet */
    int allocations;
    int overwritten; /* how often rows changed while they might still be read */
    sgt_scaler put;  /* the scaler put last; scale 0: none */
} fake_seen;

extern double fake_peak; /* FAKE_PEAK unless a test changes it */
#define FAKE_PEAK 1e12
#define FAKE_DATASHEET 2e12
#define FAKE_MEMORY 123456789
#define FAKE_TOTAL 1000000000

#endif

/* fake_cuda.h: a CUDA library whose device is the CPU backend: with metrics a step late, rows that
 * are read for two more calls, a loss scaler whose gradient overflows every fifth step, choices,
 * and a known peak. It holds the loop to what backend.h says. */
#ifndef TESTS_TRAIN_FAKE_CUDA_H
#define TESTS_TRAIN_FAKE_CUDA_H

#include "train/cuda/cuda_library.h"

extern const sgt_cuda_library fake_cuda;

extern struct fake_seen {
    sgt_backend_options options; /* of the last open */
    char choices[64];            /* that it was given; "" for NULL */
    unsigned late;               /* the most steps that metrics were asked for late */
    uint64_t asked_at_once;      /* how often they were asked for the step just queued */
    int pinned;                  /* buffers not freed yet */
    int allocations;
    int overwritten; /* rows changed while they might still be read */
    sgt_scaler put;  /* the last one put; scale 0: none was */
} fake_seen;

extern double fake_peak; /* FAKE_PEAK unless a test changes it */
#define FAKE_PEAK 1e12
#define FAKE_DATASHEET 2e12
#define FAKE_MEMORY 123456789
#define FAKE_TOTAL 1000000000

#endif

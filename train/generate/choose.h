/* choose.h: which id comes next, of the numbers that a model gives to each: the likeliest, or one
 * drawn.
 *
 *     sgt_choice c = {.temperature = 0.8, .top_k = 200, .seed = 1};
 *     void *room = malloc(sgt_choose_room(vocab));
 *     int32_t id = sgt_choose(&c, logits, vocab, sgt_choose_draw(c.seed, sample, position), room);
 *
 * Everything here is pure; calls with rooms of their own may come from any number of threads. */
#ifndef SGT_CHOOSE_H
#define SGT_CHOOSE_H

#include <stddef.h>
#include <stdint.h>

typedef struct sgt_choice {
    /* 0: the largest logit's id, the first of equal ones, and nothing is drawn */
    double temperature;
    /* 0: all. Else only ids whose logit no k others exceed: as many as k, or more of equal ones */
    uint64_t top_k;
    double
        top_p; /* 0 or 1: all. Else, of those that top_k keeps, the fewest that have this share of the
                           probability, the likeliest first, of equal ones the first */
    uint64_t seed;
} sgt_choice;

size_t sgt_choose_room(size_t n); /* bytes for n logits, aligned as malloc does */

/* The ids that may be drawn, into *ids, and what each weighs, into *weights (probability times a
 * common factor): both in `room`. Returns how many, at least 1; 0 where a logit is NaN or
 * infinitely large, or none is finite. */
size_t sgt_choose_kept(const sgt_choice *c, const float *logits, size_t n, void *room,
                       const uint32_t **ids, const double **weights);

/* The id that u, 0 <= u < 1, draws: each as often as its probability among those kept. -1 where
 * none are. */
int32_t sgt_choose(const sgt_choice *c, const float *logits, size_t n, double u, void *room);

/* u for the position-th token (from 0) of a sample, of 2^53 values. */
double sgt_choose_draw(uint64_t seed, uint64_t sample, uint64_t position);

#endif

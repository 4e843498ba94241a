/* choose.h: chooses the next id from a model's logits: the likeliest one, or a random one.
 *
 *     sgt_choice c = {.temperature = 0.8, .top_k = 200, .seed = 1};
 *     void *room = malloc(sgt_choose_room(vocab));
 *     double u = sgt_choose_draw(c.seed, sample, position);
 *     int32_t id = sgt_choose(&c, logits, vocab, u, room);
 *
 * No function has side effects. Threads may call them at the same time, each with its own
 * `room`. */
#ifndef SGT_CHOOSE_H
#define SGT_CHOOSE_H

#include <stddef.h>
#include <stdint.h>

typedef struct sgt_choice {
    /* 0: always choose the id of the largest logit, the first of equal ones */
    double temperature;
    /* 0: keep all ids. Otherwise keep an id if at most top_k - 1 ids have a larger logit; these may
     * be more than top_k ids if logits are equal. */
    uint64_t top_k;
    /* 0 or 1: keep all ids that top_k keeps. Otherwise keep the fewest of them whose probabilities
     * add up to this share: the likeliest first, and of equally likely ones the lowest. */
    double top_p;
    uint64_t seed;
} sgt_choice;

/* Return the size in bytes of `room` for n logits. `room` must be aligned as malloc aligns it. */
size_t sgt_choose_room(size_t n);

/* Write the ids that may be chosen to *ids, and their weights (probability times a common factor)
 * to *weights; both arrays are in `room`. Return their number, which is at least 1; but return 0 if
 * a logit is NaN or positive infinity, or if none is finite. */
size_t sgt_choose_kept(const sgt_choice *c, const float *logits, size_t n, void *room,
                       const uint32_t **ids, const double **weights);

/* Return the id that u (0 <= u < 1) selects: for a random u, each kept id has its probability.
 * Return -1 if no id is kept. */
int32_t sgt_choose(const sgt_choice *c, const float *logits, size_t n, double u, void *room);

/* Return the random u for token `position` (from 0) of a sample: one of 2^53 values. */
double sgt_choose_draw(uint64_t seed, uint64_t sample, uint64_t position);

#endif

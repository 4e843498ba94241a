/* choose.c: chooses the next id. */
#include "train/generate/choose.h"

#include <math.h>

#include "loader/base/philox.h"

/* "samp": separates these random numbers from other uses of the seed */
#define DOMAIN 0x73616d7000000000ull

size_t sgt_choose_room(size_t n) { return n * (sizeof(double) + sizeof(uint32_t)); }

double sgt_choose_draw(uint64_t seed, uint64_t sample, uint64_t position)
{
    return (double)(sgt_philox_u64(seed, position, DOMAIN + sample) >> 11) * 0x1p-53;
}

/* Return the index of the largest logit, the first of equal ones; return n if that logit is not
 * finite, or if any logit is NaN. */
static size_t largest(const float *logits, size_t n)
{
    size_t best = 0;
    int odd = 0;
    for (size_t i = 0; i < n; i++) {
        odd |= isnan(logits[i]);
        if (logits[i] > logits[best]) best = i;
    }
    return n && !odd && isfinite(logits[best]) ? best : n;
}

/* ---- a heap with the id of the largest logit on top ---- */

static int before(const float *logits, uint32_t a, uint32_t b)
{
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
}

static void sink(const float *logits, uint32_t *heap, size_t n, size_t at)
{
    uint32_t id = heap[at];
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(logits, heap[child + 1], heap[child])) child++;
        if (before(logits, id, heap[child])) break;
        heap[at] = heap[child];
    }
    heap[at] = id;
}

/* Select the best of n ids, by top_k and by `wanted`, the sum of weights for top_p. Each is taken
 * off the heap's top and stored where the heap has shrunk, so the likeliest is last in ids[n].
 * Return how many were selected. */
static size_t keep_best(const sgt_choice *c, const float *logits, size_t n, uint32_t *ids,
                        double wanted)
{
    size_t kept = 0;
    double sum = 0, max = 0;
    for (size_t i = n / 2; i-- > 0;) sink(logits, ids, n, i);
    while (kept < n) {
        uint32_t id = ids[0];
        double logit = (double)logits[id];
        if (kept == 0) max = logit;
        if (c->top_k && kept >= c->top_k && logits[id] != logits[ids[n - kept]]) break;
        size_t left = n - ++kept;
        ids[0] = ids[left];
        ids[left] = id;
        if (left) sink(logits, ids, left, 0);
        sum += exp((logit - max) / c->temperature);
        if (wanted > 0 && sum >= wanted) break;
    }
    return kept;
}

static double total(const sgt_choice *c, const float *logits, const uint32_t *ids, size_t n,
                    double max)
{
    double sum = 0;
    for (size_t i = n; i-- > 0;) sum += exp(((double)logits[ids[i]] - max) / c->temperature);
    return sum;
}

size_t sgt_choose_kept(const sgt_choice *c, const float *logits, size_t n, void *room,
                       const uint32_t **ids, const double **weights)
{
    double *w = room;
    uint32_t *all = (uint32_t *)(void *)(w + n), *kept = all;
    size_t best = largest(logits, n), count = n;
    if (best == n) return 0;
    double max = (double)logits[best];
    for (size_t i = 0; i < n; i++) all[i] = (uint32_t)i;
    if (!(c->temperature > 0)) {
        all[0] = (uint32_t)best;
        count = 1;
    } else {
        sgt_choice k = *c;
        int by_k = c->top_k > 0 && c->top_k<n, by_p = c->top_p> 0 && c->top_p < 1;
        if (!by_k) k.top_k = 0;
        if (by_k) {
            count = keep_best(&k, logits, n, all, 0);
            kept = all + n - count;
        }
        if (by_p) { /* make a new heap of the ids that top_k has kept */
            size_t among = count;
            k.top_k = 0;
            count =
                keep_best(&k, logits, among, kept, c->top_p * total(c, logits, kept, among, max));
            kept += among - count;
        }
    }
    for (size_t i = 0; i < count; i++)
        w[i] = c->temperature > 0 ? exp(((double)logits[kept[i]] - max) / c->temperature) : 1;
    *ids = kept;
    *weights = w;
    return count;
}

int32_t sgt_choose(const sgt_choice *c, const float *logits, size_t n, double u, void *room)
{
    const uint32_t *ids;
    const double *w;
    size_t count = sgt_choose_kept(c, logits, n, room, &ids, &w), at = 0;
    double sum = 0, reached = 0;
    if (!count) return -1;
    for (size_t i = 0; i < count; i++) sum += w[i];
    for (size_t i = 0; i < count && reached <= u * sum; i++)
        if (w[i] > 0) reached += w[at = i];
    return (int32_t)ids[at];
}

/* test_choose.c: sampling of the next id. Which ids may be chosen, how often each is chosen, and
 * that the choice is reproducible. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/philox.h"
#include "train/generate/generate.h"

#define N 61

static float logits[N];
static void *room;

/* Draw logits from -4 to 4 that are multiples of 1/8, so that some are equal. */
static void draw_logits(void)
{
    for (uint32_t i = 0; i < N; i++) logits[i] = (float)(sgt_philox_u64(7, i, 0) % 65) / 8 - 4;
    room = malloc(sgt_choose_room(N));
}

static void free_room(void) { free(room); }

TestSuite(choose, .init = draw_logits, .fini = free_room);

/* Set weight[id] for the ids that c keeps, and 0 for the others; return how many are kept. */
static size_t kept(const sgt_choice *c, double weight[N])
{
    const uint32_t *ids;
    const double *w;
    size_t n = sgt_choose_kept(c, logits, N, room, &ids, &w);
    memset(weight, 0, N * sizeof *weight);
    for (size_t i = 0; i < n; i++) {
        cr_assert(ids[i] < N && weight[ids[i]] == 0, "id %u is kept twice, or is none", ids[i]);
        weight[ids[i]] = w[i];
    }
    return n;
}

static size_t above(size_t id)
{
    size_t n = 0;
    for (size_t i = 0; i < N; i++) n += logits[i] > logits[id];
    return n;
}

/* Return the total weight of the ids before `id`: those with larger logits, or equal logits and
 * smaller ids. */
static double mass_before(size_t id, const double weight[N])
{
    double sum = 0;
    for (size_t i = 0; i < N; i++)
        if (logits[i] > logits[id] || (logits[i] == logits[id] && i < id)) sum += weight[i];
    return sum;
}

Test(choose, weights_are_the_softmax_at_that_temperature)
{
    static const double temperatures[] = {0.25, 0.8, 1, 7};
    for (size_t k = 0; k < 4; k++) {
        double w[N], T = temperatures[k];
        sgt_choice c = {.temperature = T};
        cr_assert_eq(kept(&c, w), N);
        for (size_t i = 0; i < N; i++) {
            /* exp and the quotient: a few roundings each */
            double want = exp(((double)logits[i] - (double)logits[3]) / T);
            cr_expect(fabs(w[i] / w[3] / want - 1) < 64 * DBL_EPSILON, "T %g, id %zu: %g, not %g",
                      T, i, w[i] / w[3], want);
        }
    }
}

Test(choose, top_k_keeps_what_no_k_others_exceed)
{
    for (uint64_t k = 1; k <= N + 1; k++) {
        double w[N];
        sgt_choice c = {.temperature = 1, .top_k = k};
        size_t n = kept(&c, w);
        cr_expect(n >= (k < N ? k : N));
        for (size_t i = 0; i < N; i++)
            cr_expect_eq(w[i] > 0, above(i) < k, "top-k %u: id %zu with %zu above it", (unsigned)k,
                         i, above(i));
    }
}

/* Check that c keeps the smallest set of most probable ids whose share of the total weight reaches
 * top_p. `all` has the weights without top_p. */
static void expect_share(const sgt_choice *c, const double all[N])
{
    double w[N], total = 0, sum = 0;
    size_t n = kept(c, w);
    for (size_t i = 0; i < N; i++) total += all[i], sum += w[i] > 0 ? all[i] : 0;
    cr_expect(n >= 1 && sum >= c->top_p * total * (1 - 1e-12), "top-p %g: a share of %g", c->top_p,
              sum / total);
    for (size_t i = 0; i < N; i++) {
        if (all[i] == 0) cr_expect(w[i] == 0, "id %zu is not among the top-k", i);
        else
            cr_expect_eq(w[i] > 0, mass_before(i, all) < c->top_p * total * (1 - 1e-12),
                         "top-p %g: id %zu, %g before it", c->top_p, i,
                         mass_before(i, all) / total);
    }
}

Test(choose, top_p_keeps_the_fewest_that_have_the_share)
{
    static const double shares[] = {1e-9, 0.1, 0.5, 0.9, 0.999, 0.9999999};
    for (size_t a = 0; a < 6; a++)
        for (uint64_t k = 0; k <= 24; k += 8) {
            double all[N];
            sgt_choice c = {.temperature = 0.8, .top_k = k};
            kept(&c, all);
            c.top_p = shares[a];
            expect_share(&c, all);
        }
}

Test(choose, every_id_is_drawn_as_often_as_it_weighs)
{
    enum { DRAWS = 100000 };
    static const sgt_choice choices[] = {{.temperature = 1},
                                         {.temperature = 0.5, .top_k = 7},
                                         {.temperature = 2, .top_p = 0.6},
                                         {.temperature = 1, .top_k = 20, .top_p = 0.9}};
    for (size_t a = 0; a < 4; a++) {
        double w[N], total = 0;
        size_t count[N] = {0};
        kept(&choices[a], w);
        for (size_t i = 0; i < N; i++) total += w[i];
        for (int d = 0; d < DRAWS; d++)
            count[sgt_choose(&choices[a], logits, N, (d + 0.5) / DRAWS, room)]++;
        /* The random number takes DRAWS evenly spaced values, so an interval has length times DRAWS
         * of them, give or take one. */
        for (size_t i = 0; i < N; i++)
            cr_expect(fabs((double)count[i] - w[i] / total * DRAWS) <= 1,
                      "choice %zu, id %zu: %zu draws of %g", a, i, count[i], w[i] / total * DRAWS);
    }
    sgt_choice one = {.temperature = 1};
    cr_expect(sgt_choose(&one, logits, N, 0, room) >= 0 &&
              sgt_choose(&one, logits, N, 1 - 0x1p-53, room) < N);
}

Test(choose, nothing_is_drawn_at_temperature_0)
{
    sgt_choice c = {.temperature = 0, .top_k = 9, .top_p = 0.5};
    logits[20] = logits[41] = 9;
    for (int d = 0; d < 10; d++) cr_expect_eq(sgt_choose(&c, logits, N, d / 10.0, room), 20);
    /* near 0: both of the largest logits are kept, and no division fails */
    c = (sgt_choice){.temperature = 1e-300};
    cr_expect_eq(sgt_choose(&c, logits, N, 0.4, room), 20);
    cr_expect_eq(sgt_choose(&c, logits, N, 0.6, room), 41);
}

Test(choose, what_is_no_number_is_refused)
{
    static const float odd[] = {NAN, INFINITY};
    for (size_t a = 0; a < 2; a++)
        for (size_t at = 0; at < N; at += N - 1) {
            float before = logits[at];
            logits[at] = odd[a];
            for (int t = 0; t < 2; t++) {
                sgt_choice c = {.temperature = t, .top_k = 5};
                cr_expect_eq(sgt_choose(&c, logits, N, 0.5, room), -1);
            }
            logits[at] = before;
        }
    for (size_t i = 0; i < N; i++) logits[i] = -INFINITY;
    cr_expect_eq(sgt_choose(&(sgt_choice){.temperature = 1}, logits, N, 0.5, room), -1);
    logits[5] = -3; /* the other ids have logits of -INFINITY, which is allowed */
    cr_expect_eq(sgt_choose(&(sgt_choice){.temperature = 1}, logits, N, 0.999, room), 5);
    cr_expect_eq(sgt_choose(&(sgt_choice){.temperature = 1, .top_p = 0.99}, logits, N, 0, room), 5);
}

/* Of 4,096 uniform draws, each of 16 equal parts gets 256, with a standard deviation of sqrt(240) =
 * 15.5. Allow five of these. Draws of other seeds, samples and positions differ. */
Test(choose, draws_are_uniform_and_their_own)
{
    unsigned part[16] = {0};
    for (uint64_t seed = 0; seed < 4; seed++)
        for (uint64_t sample = 0; sample < 16; sample++)
            for (uint64_t at = 0; at < 64; at++) {
                double u = sgt_choose_draw(seed, sample, at);
                cr_assert(u >= 0 && u < 1);
                cr_expect(u != sgt_choose_draw(seed + 1, sample, at) &&
                          u != sgt_choose_draw(seed, sample + 1, at) &&
                          u != sgt_choose_draw(seed, sample, at + 1));
                part[(int)(u * 16)]++;
            }
    for (int i = 0; i < 16; i++)
        cr_expect(part[i] > 256 - 78 && part[i] < 256 + 78, "%u in part %d", part[i], i);
}

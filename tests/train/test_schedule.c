/* test_schedule.c: learning rates by step, clipping, AdamW's numbers. */
#include <criterion/criterion.h>
#include <math.h>

#include "train/backend.h"

static void at(const sgt_schedule *c, uint64_t s, double want)
{
    double lr = sgt_schedule_lr(c, s);
    cr_expect_float_eq(lr, want, 1e-12, "%s at step %llu: %.12g, not %.12g",
                       sgt_schedule_words[c->kind], (unsigned long long)s, lr, want);
}

Test(schedule, cosine)
{
    sgt_schedule c = {SGT_COSINE, 1e-3, 1e-4, 20, 200, 0, 0};
    at(&c, 0, 1e-3 / 20);
    at(&c, 9, 5e-4);
    at(&c, 19, 1e-3);
    at(&c, 20, 1e-3);
    at(&c, 110, 5.5e-4);
    at(&c, 155, 1e-4 + 9e-4 * 0.5 * (1 - sqrt(0.5)));
    at(&c, 200, 1e-4);
    at(&c, 300, 1e-4);
}

Test(schedule, linear_constant_wsd)
{
    sgt_schedule linear = {SGT_LINEAR, 1e-3, 0, 10, 110, 0, 0},
                 constant = {SGT_CONSTANT, 1e-3, 0, 10, 110, 0, 0};
    sgt_schedule wsd = {SGT_WSD, 1e-3, 1e-4, 10, 100, 0, 0};
    at(&linear, 0, 1e-4);
    at(&linear, 10, 1e-3);
    at(&linear, 60, 5e-4);
    at(&linear, 110, 0);
    at(&constant, 4, 5e-4);
    at(&constant, 109, 1e-3);
    at(&wsd, 10, 1e-3);
    at(&wsd, 80, 1e-3);
    at(&wsd, 90, 5.5e-4);
    at(&wsd, 100, 1e-4);
}

Test(schedule, warmup_may_be_none_or_longer_than_the_run)
{
    sgt_schedule none = {SGT_COSINE, 1e-3, 0, 0, 10, 0, 0},
                 longer = {SGT_COSINE, 1e-3, 0, 100, 10, 0, 0},
                 wsd = {SGT_WSD, 1e-3, 0, 100, 10, 0, 0};
    at(&none, 0, 1e-3);
    at(&none, 5, 5e-4);
    at(&longer, 9, 1e-4);
    at(&wsd, 9, 1e-4);
}

/* A schedule that begins at step 200: its warm-up starts at the rate before it, and all its steps
 * count from step 200. */
Test(schedule, a_later_one_counts_from_its_first_step)
{
    sgt_schedule c = {SGT_COSINE, 5e-4, 5e-5, 20, 400, 200, 1e-4}, falls = c, wsd = c;
    at(&c, 200, 1.2e-4);
    at(&c, 209, 3e-4);
    at(&c, 219, 5e-4);
    at(&c, 220, 5e-4);
    at(&c, 310, 2.75e-4);
    at(&c, 400, 5e-5);
    falls.kind = SGT_LINEAR;
    falls.from = 1e-3;
    at(&falls, 209, 7.5e-4);
    at(&falls, 310, 2.75e-4);
    wsd.kind = SGT_WSD;
    at(&wsd, 359, 5e-4);
    at(&wsd, 380, 2.75e-4);
    wsd.warmup = 0;
    at(&wsd, 200, 5e-4);
}

Test(optim, clipping_is_to_the_norm)
{
    sgt_optim o = {.grad_clip = 1}, off = {.grad_clip = 0};
    cr_expect_eq(sgt_optim_clip(&o, 0), 1);
    cr_expect_eq(sgt_optim_clip(&o, 0.5), 1);
    cr_expect_float_eq(sgt_optim_clip(&o, 4), 0.25, 1e-6);
    cr_expect_eq(sgt_optim_clip(&off, 1e9), 1);
}

Test(optim, adamw_corrects_its_bias_and_decays_matrices_alone)
{
    sgt_optim o = {.beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .weight_decay = 0.1f};
    sgt_adamw first = sgt_optim_adamw(&o, 0, 1e-3, 2, 1),
              second = sgt_optim_adamw(&o, 1, 1e-3, 1, 0);
    cr_expect_float_eq(first.c1, 0.1, 1e-7);
    cr_expect_float_eq(first.c2, 0.05, 1e-7);
    cr_expect_float_eq(second.c1, 0.19, 1e-7);
    cr_expect_float_eq(second.c2, 0.0975, 1e-7);
    cr_expect_eq(first.decay, 0.1f);
    cr_expect_eq(second.decay, 0);
    cr_expect_eq(first.grad_scale, 2);
}

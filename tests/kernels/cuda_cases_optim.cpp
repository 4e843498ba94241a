/* cuda_cases_optim.cpp: the end of a step on the device (gradient norm, overflow, updates, loss
 * scale), and dropout. */
#include <float.h>

#include "loader/base/philox.h"
#include "tests/kernels/bounds.h"
#include "tests/kernels/cuda_types.h"
#include "kernels/dropout.h"

static const size_t sizes[] = {0, 1, 3, 4, 5, 133, 1024, 1027, 140003};

static sgt_cuda_control *new_control(check *t)
{
    sgt_cuda_control *c = cuda_output<sgt_cuda_control>(t, 1);
    *c = sgt_cuda_control();
    c->loss_scale = 1024, c->micro_scale = 0.25f, c->dlogits_scale = 256;
    c->growth_interval = 2;
    c->targets = 40, c->loss = 80;
    c->step = 2;
    c->lr = 3e-2f;
    return c;
}

/* With two ranks, the sum of squares is computed in three parts, one of them by the other rank, whose
 * loss and number of targets are added too. Bound: squares of floats are exact in double, and adding
 * n of them has a relative error of n 2^-53, which the root halves. */
static void norm_at(check *t, size_t n, float clip, int ranks)
{
    const float *g = cuda_copy<float>(t, check_random(t, n, 3), n);
    sgt_cuda_control *c = new_control(t);
    double theirs = 17 * (ranks - 1), targets = 10 * (ranks - 1),
           average = 1 / (256.0 * (40 + targets)),
           norm = sqrt(t->ref->sum_squares(g, n) + theirs) * average;
    double scale = clip > 0 ? average * fmin(1, clip / (norm + 1e-6)) : average;
    char *scratch = cuda_output<char>(t, sgt_cuda_grad_norm_scratch());
    size_t part = ranks > 1 ? n / 8 * 4 : n;
    check_at(t, "n %zu, clip %g, %d ranks", n, (double)clip, ranks);
    sgt_cuda_grad_squares(0, c, g, part, scratch);
    if (ranks > 1) sgt_cuda_grad_squares(0, c, g + part, n - part, scratch);
    cuda_sync(t);
    c->squares += theirs, c->targets += targets;
    sgt_cuda_grad_finish(0, c, clip, 0.9f, 0.95f);
    cuda_sync(t);
    check_near(t, "norm", c->norm, norm, norm * (double)(n + 4 * (size_t)ranks) * 0x1p-53);
    check_near(t, "mean_scale", c->mean_scale, average, UNIT * average);
    check_near(t, "grad_scale", c->grad_scale, scale, 2 * UNIT * scale);
    check_near(t, "c1", c->c1, 1 - pow((double)0.9f, 3), 0x1p-50);
    check_near(t, "c2", c->c2, 1 - pow((double)0.95f, 3), 0x1p-50);
    check_near(t, "found_inf", c->found_inf, 0, 0);
    sgt_cuda_end_step(0, c);
    cuda_sync(t);
    check_near(t, "squares", c->squares, 0, 0);
}

CUDA_CASE(cuda_grad_norm)
{
    for (size_t n : sizes)
        for (float clip : {0.0f, 1e-5f, 1e-4f, 1e4f})
            norm_at(t, n, clip, clip > 0 && clip < 2e-5f ? 2 : 1);
}

CUDA_CASE(cuda_found_inf)
{
    /* FLT_MAX is finite, but its square overflows in float */
    for (float value : {INFINITY, -INFINITY, NAN, FLT_MAX})
        for (size_t at : {(size_t)0, (size_t)1026, (size_t)1024, (size_t)777}) {
            size_t n = 1027;
            float *g = cuda_copy<float>(t, check_random(t, n, 3), n);
            sgt_cuda_control *c = new_control(t);
            g[at] = value;
            check_at(t, "gradient %zu is %g", at, (double)value);
            sgt_cuda_grad_squares(0, c, g, n, cuda_output<char>(t, sgt_cuda_grad_norm_scratch()));
            sgt_cuda_grad_finish(0, c, 1, 0.9f, 0.95f);
            cuda_sync(t);
            check_near(t, "found_inf", c->found_inf, value != FLT_MAX, 0);
        }
}

template <class T>
static void adamw_at(check *t, size_t n, bool skip, bool spike = false, bool keep = false)
{
    sgt_cuda_control *c = new_control(t);
    size_t decayed = check_number(t, n + 1);
    sgt_adamw a = {0, 0.9f, 0.95f, 1e-8f, 0.1f, 0, 0, 0};
    float *g = cuda_copy<float>(t, check_random(t, n, 3), n), *want[3], *got[3], *old[3];
    const float *plain = check_copy(t, g, n);
    double *bound[3];
    T *copy = cuda_output<T>(t, n), *want_copy = cuda_output<T>(t, n);
    for (int i = 0; i < 3; i++) {
        old[i] = check_random(t, n, 1);
        for (size_t j = 0; i == 2 && j < n; j++)
            old[2][j] = check_number(t, 5) ? fabsf(old[2][j]) : 0;
        want[i] = check_copy(t, old[i], n), got[i] = cuda_copy<float>(t, old[i], n),
        bound[i] = check_doubles(t, n);
    }
    c->found_inf = skip && !spike, c->spike = spike;
    c->grad_scale = 0.37f, c->c1 = 1 - 0.9 * 0.9, c->c2 = 1 - 0.95 * 0.95;
    check_at(t, "n %zu, %zu decayed%s", n, decayed, spike ? ", a spike" : skip ? ", overflow" : "");
    sgt_cuda_adamw(0, Type<T>::id, copy, got[0], got[1], got[2], g, n, decayed, keep, &a, c);
    a.lr = c->lr, a.grad_scale = c->grad_scale, a.c1 = c->c1, a.c2 = c->c2;
    for (size_t part = 0; part < 2; part++) {
        size_t from = part ? decayed : 0, count = part ? n - decayed : decayed;
        if (part) a.decay = 0;
        const float *const old_part[3] = {old[0] + from, old[1] + from, old[2] + from};
        double *const bound_part[3] = {bound[0] + from, bound[1] + from, bound[2] + from};
        if (skip) continue;
        t->ref->adamw(want[0] + from, want[1] + from, want[2] + from, plain + from, count, &a,
                      nullptr);
        adamw_bounds(bound_part, old_part, plain + from, count, &a, 1);
    }
    cuda_sync(t);
    check_close(t, "p", got[0], want[0], bound[0], n);
    check_close(t, "m", got[1], want[1], bound[1], n);
    check_close(t, "v", got[2], want[2], bound[2], n);
    for (size_t i = 0; i < n && !skip; i++) want_copy[i] = dev::from_float<T>(got[0][i]);
    check_equal(t, "copy", cuda_floats(t, copy, n), cuda_floats(t, want_copy, n), n);
    for (size_t i = 0; i < n; i++)
        if (g[i] != (keep ? plain[i] : 0))
            check_fail(t, "gradient %zu is %g, kept %d", i, (double)g[i], keep);
}

template <class T> static void adamw(check *t)
{
    for (size_t n : sizes) adamw_at<T>(t, n < 2000 ? n : 2000, false);
    adamw_at<T>(t, 135, true);
    adamw_at<T>(t, 135, true, true);
    for (bool skip : {false, true}) adamw_at<T>(t, 135, skip, false, true);
}

CUDA_CASES_BY_TYPE(cuda_adamw, adamw)

/* Error bounds. m: 3 UNIT (|gradient| + |old m|). p: 8 UNIT times the rate times the sum of the
 * absolute values of the terms of its change, and 2 UNIT (|old p| + |new p|) for the last two
 * roundings. */
CUDA_CASE(cuda_sgd)
{
    for (int nesterov = 0; nesterov < 2; nesterov++)
        for (size_t n : {(size_t)1, (size_t)131, (size_t)1028}) {
            sgt_sgd o = {0, 0.9f, 0.1f, 1, nesterov};
            sgt_cuda_control *c = new_control(t);
            float *p = cuda_copy<float>(t, check_random(t, n, 1), n);
            float *m = cuda_copy<float>(t, check_random(t, n, 1), n);
            float *g = cuda_copy<float>(t, check_random(t, n, 3), n), *want = check_output(t, n);
            const float *old[3] = {check_copy(t, p, n), check_copy(t, m, n), check_copy(t, g, n)};
            double *bound = check_doubles(t, n);
            size_t decayed = n / 2;
            c->grad_scale = 0.37f;
            check_at(t, "n %zu, nesterov %d", n, nesterov);
            sgt_cuda_sgd_update(0, SGT_F32, NULL, p, m, g, n, decayed, nesterov, &o, c);
            cuda_sync(t);
            for (size_t i = 0; i < n; i++) {
                double grad = (double)old[2][i] * c->grad_scale,
                       velocity = (double)o.momentum * old[1][i] + grad;
                double change = nesterov ? grad + o.momentum * velocity : velocity;
                double terms = 2 * fabs(grad) + fabs(old[1][i]) + fabs(old[0][i]);
                if (i < decayed) change += (double)o.decay * old[0][i];
                want[i] = (float)(old[0][i] - c->lr * change);
                bound[i] = 8 * UNIT * c->lr * terms + 2 * UNIT * (fabs(old[0][i]) + fabs(want[i]));
                check_near(t, "m", m[i], velocity, 3 * UNIT * (fabs(grad) + fabs(old[1][i])));
            }
            for (size_t i = 0; i < n; i++)
                check_near(t, "gradient", g[i], nesterov ? old[2][i] : 0, 0);
            check_close(t, "p", p, want, bound, n);
        }
}

/* Spike detection. Steps have losses of about 3 and norms of about 1 until there are enough steps.
 * After that, a loss or norm far above these is a spike: the update is skipped and counted, and the
 * values are not stored. Values far below are stored. A step with an infinite gradient is skipped
 * too, and not stored. The device's stored values must equal those that outliers.h computes here
 * from the same numbers. */
CUDA_CASE(cuda_spikes)
{
    sgt_cuda_control *c = new_control(t);
    sgt_outliers want = sgt_outliers(), *o = cuda_copy<sgt_outliers>(t, &want, 1);
    c->skipped = 0, c->growth_interval = 0;
    for (int i = 0; i < 140; i++) {
        int far = i == 130 ? 1 : i == 133 ? 2 : 0, overflow = i == 135;
        double loss = 3 + 0.01 * (i % 7), norm = 1 + 0.02 * (i % 5);
        if (far == 1 || i == 50) loss = 4;
        if (far == 2) norm = 2;
        if (i == 137) loss = 1;
        c->loss = loss * c->targets, c->norm = norm, c->found_inf = overflow;
        check_at(t, "step %d", i);
        sgt_cuda_spikes(0, c, o, 5);
        cuda_sync(t);
        int spike = !overflow && sgt_outliers_take(&want, 5, c->loss / c->targets, norm);
        check_near(t, "spike, by the numbers", spike, far != 0, 0);
        check_near(t, "spike", c->spike, far != 0, 0);
        check_near(t, "taken", (double)o->taken, (double)want.taken, 0);
        check_near(t, "spikes", (double)c->spikes, (double)want.spikes, 0);
        double before = (double)c->step;
        sgt_cuda_end_step(0, c);
        cuda_sync(t);
        check_near(t, "step", (double)c->step, before + (far == 0 && !overflow), 0);
        check_near(t, "spike, over", c->spike, 0, 0);
        c->targets = 40;
    }
    check_at(t, "at the end");
    check_near(t, "skipped", (double)c->skipped, 3, 0);
    check_near(t, "numbers kept", memcmp(o, &want, sizeof want), 0, 0);
}

CUDA_CASE(cuda_end_step)
{
    sgt_cuda_control *c = new_control(t);
    check_at(t, "two good steps, then an overflow");
    sgt_cuda_end_step(0, c);
    cuda_sync(t);
    check_near(t, "loss_scale", c->loss_scale, 1024, 0);
    check_near(t, "step", (double)c->step, 3, 0);
    check_near(t, "last_loss", c->last_loss, 80, 0);
    check_near(t, "last_targets", c->last_targets, 40, 0);
    check_near(t, "loss", c->loss, 0, 0);
    sgt_cuda_end_step(0, c);
    cuda_sync(t);
    check_near(t, "loss_scale, grown", c->loss_scale, 2048, 0);
    check_near(t, "dlogits_scale, grown", c->dlogits_scale, 512, 0);
    c->found_inf = 1;
    sgt_cuda_end_step(0, c);
    cuda_sync(t);
    check_near(t, "loss_scale, halved", c->loss_scale, 1024, 0);
    check_near(t, "step, not counted", (double)c->step, 4, 0);
    check_near(t, "skipped", (double)c->skipped, 1, 0);
    check_near(t, "found_inf", c->found_inf, 0, 0);
}

/* Return whether dropout keeps element i, computed from Philox's draws one by one, as
 * kernels/dropout.h describes. */
static bool kept(const sgt_cuda_place &p, const sgt_cuda_dropout &d, size_t i)
{
    uint64_t row = p.row + i / d.row_elements * (p.ranks ? p.ranks : 1);
    uint64_t at = row * d.row_elements + i % d.row_elements;
    uint32_t bits = sgt_philox(p.seed, at / 4, p.step << 16 | d.layer << 4 | d.site).x[at % 4];
    return (double)(bits >> 8) >= (double)d.rate * 0x1p24;
}

/* Dropout in place and out of place, for the rows of one rank and of three ranks. The fraction that
 * is dropped is `rate`, within five standard deviations. */
template <class T> static void dropout(check *t)
{
    for (size_t n : {(size_t)16, (size_t)133, (size_t)4096})
        for (uint64_t ranks = 0; ranks < 4; ranks += 3) {
            sgt_cuda_place place = {77, 123456789012, 3, ranks};
            sgt_cuda_dropout drop = {cuda_copy<sgt_cuda_place>(t, &place, 1), n, 5, SGT_DROP_FCPROJ,
                                     0.3f};
            T *x = cuda_random<T>(t, 3 * n, 1), *out = cuda_output<T>(t, 3 * n);
            float *want = cuda_floats(t, x, 3 * n), keep = 1 / (1 - drop.rate);
            size_t dropped = 0;
            for (size_t i = 0; i < 3 * n; i++) {
                bool stays = kept(place, drop, i);
                dropped += !stays;
                want[i] = dev::to_float(dev::from_float<T>(stays ? want[i] * keep : want[i] * 0));
            }
            check_at(t, "n %zu, %d ranks", n, (int)ranks);
            check_near(t, "dropped", (double)dropped, 0.9 * (double)n, 5 * sqrt(0.63 * (double)n));
            sgt_cuda_dropout_apply(0, Type<T>::id, out, x, 3 * n, &drop);
            sgt_cuda_dropout_apply(0, Type<T>::id, x, x, 3 * n, &drop);
            cuda_sync(t);
            check_equal(t, "out", cuda_floats(t, out, 3 * n), want, 3 * n);
            check_equal(t, "in place", cuda_floats(t, x, 3 * n), want, 3 * n);
        }
}

CUDA_CASES_BY_TYPE(cuda_dropout, dropout)

/* Dropout fused into the residual sum, and into the sum of embeddings, uses the same factors. Rate
 * 1/2 multiplies by 2, which is exact in every type. */
template <class T> static void fused_dropout(check *t)
{
    for (size_t C : {(size_t)33, (size_t)64, (size_t)768, (size_t)1600}) {
        size_t n = 6;
        sgt_cuda_place place = {9, 4, 2, 3};
        sgt_cuda_dropout drop = {cuda_copy<sgt_cuda_place>(t, &place, 1), 2 * C, 1, SGT_DROP_PROJ,
                                 0.5f};
        T *x = cuda_random<T>(t, n * C, 1), *y = cuda_random<T>(t, n * C, 1);
        const float *w = cuda_random<float>(t, C, 1);
        T *sum = cuda_output<T>(t, n * C), *out = cuda_output<T>(t, n * C);
        float *stats = cuda_output<float>(t, 2 * n), *fx = cuda_floats(t, x, n * C),
              *fy = cuda_floats(t, y, n * C);
        const T *bias = cuda_random<T>(t, C, 1);
        const float *fbias = cuda_floats(t, bias, C);
        float *want = check_output(t, n * C);
        int32_t ids[] = {5, 1, 0, 3, 2, 4}, *device_ids = cuda_copy<int32_t>(t, ids, 6);
        check_at(t, "C %zu", C);
        for (size_t i = 0; i < n * C; i++)
            want[i] = dev::to_float(dev::from_float<T>(
                fx[i] + (fy[i] + fbias[i % C]) * (float)(2 * kept(place, drop, i))));
        sgt_cuda_residual_layernorm(0, Type<T>::id, sum, out, stats, stats + n, x, y, bias, w, w, n,
                                    C, 1e-5f, &drop);
        cuda_sync(t);
        check_equal(t, "sum", cuda_floats(t, sum, n * C), want, n * C);
        for (size_t i = 0; i < n * C; i++) {
            float both = fx[(size_t)ids[i / C] * C + i % C] + fy[i / C % 2 * C + i % C];
            want[i] = dev::to_float(dev::from_float<T>(both * (float)(2 * kept(place, drop, i))));
        }
        sgt_cuda_embed(0, Type<T>::id, out, device_ids, x, y, n, 2, C, &drop);
        cuda_sync(t);
        check_equal(t, "embeddings", cuda_floats(t, out, n * C), want, n * C);
    }
}

CUDA_CASES_BY_TYPE(cuda_fused_dropout, fused_dropout)

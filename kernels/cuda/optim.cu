// optim.cu: the end of a training step, computed on the device so that the host need not wait: the
// gradient norm and the overflow check in one pass, the optimizer's update of a flat buffer, and
// the loss scale.
#include "kernels/cuda/elements.cuh"

using namespace sgt;

enum { THREADS = 256, WARPS = THREADS / 32, NORM_BLOCKS = 512, NORM_LOADS = 4, TURNS = 8 };

// The kernel of sum_squares (elements.cuh). The grid is (parts, arrays), and each block adds up the
// squares of one part of one array. The square of a float cannot overflow a double, so the sum is
// finite unless an element is infinite or NaN.
__global__ void __launch_bounds__(THREADS)
    squares_kernel(double *partial, const float *g, size_t n, size_t apart)
{
    dev::after_previous();
    DEV_SHARED(double, shared, WARPS);
    size_t whole = n / 4, stride = (size_t)gridDim.x * THREADS,
           at = (size_t)blockIdx.x * THREADS + threadIdx.x;
    double total = 0;
    g += blockIdx.y * apart;
    // Start NORM_LOADS loads before using their results, so that the latencies of these loads
    // overlap. The squares are added in the same order as with one load at a time.
    for (size_t i = at; i < whole; i += NORM_LOADS * stride) {
        float x[NORM_LOADS][4] = {};
        DEV_UNROLL_FOR (int k = 0; k < NORM_LOADS; k++)
            if (i + k * stride < whole) load_floats(x[k], g + (i + k * stride) * 4);
        DEV_UNROLL_FOR (int k = 0; k < NORM_LOADS; k++)
            DEV_UNROLL_FOR (int j = 0; j < 4; j++) total += (double)x[k][j] * x[k][j];
    }
    if (whole * 4 + at < n) total += (double)g[whole * 4 + at] * g[whole * 4 + at];
    total = block_sum<WARPS>(total, shared);
    if (threadIdx.x == 0) partial[blockIdx.y * gridDim.x + blockIdx.x] = total;
}

void sgt::sum_squares(sgt_cuda_stream s, double *partial, const float *x, size_t n, size_t apart,
                      unsigned parts, size_t arrays)
{
    DEV_LAUNCH(squares_kernel, dim3(parts, (unsigned)arrays), dim3(THREADS), 0, s, partial, x, n,
               apart);
}

// Return, in every thread, the sum of the partial sums that the blocks of squares_kernel wrote. The
// partial sums are added in a fixed order. Only a kernel that runs as a single block may call this
// function.
DEV double all_squares(const double *partial, double *shared)
{
    double total = 0;
    for (int i = threadIdx.x; i < NORM_BLOCKS; i += THREADS) total += partial[i];
    return block_sum<WARPS>(total, shared);
}

struct Norm {
    float clip, beta1, beta2;
};

// In one thread, compute the fields of *c that the update needs. The clipping factor is that of
// torch.nn.utils.clip_grad_norm_.
DEV void finish_norm(sgt_cuda_control *c, const Norm &n)
{
    double average = c->targets > 0 ? 1 / ((double)c->dlogits_scale * c->targets) : 0;
    double norm = sqrt(c->squares) * average, t = (double)(c->step + 1);
    double clipped = n.clip > 0 ? n.clip / (norm + 1e-6) : 1;
    c->norm = norm;
    c->found_inf = !isfinite(c->squares);
    c->mean_scale = (float)average;
    c->grad_scale = (float)(clipped < 1 ? average * clipped : average);
    c->c1 = 1 - pow((double)n.beta1, t);
    c->c2 = 1 - pow((double)n.beta2, t);
}

__global__ void __launch_bounds__(THREADS)
    norm_add_kernel(sgt_cuda_control *c, const double *partial)
{
    dev::after_previous();
    DEV_SHARED(double, shared, WARPS);
    double total = all_squares(partial, shared);
    if (threadIdx.x == 0) c->squares += total;
}

__global__ void __launch_bounds__(32) norm_finish_kernel(sgt_cuda_control *c, Norm n)
{
    dev::after_previous();
    if (threadIdx.x == 0) finish_norm(c, n);
}

size_t sgt_cuda_grad_norm_scratch(void) { return NORM_BLOCKS * sizeof(double); }

void sgt_cuda_grad_squares(sgt_cuda_stream s, sgt_cuda_control *c, const float *g, size_t n,
                           void *scratch)
{
    sum_squares(s, (double *)scratch, g, n, 0, NORM_BLOCKS, 1);
    DEV_LAUNCH(norm_add_kernel, dim3(1), dim3(THREADS), 0, s, c, (const double *)scratch);
}

void sgt_cuda_grad_finish(sgt_cuda_stream s, sgt_cuda_control *c, float clip, float beta1,
                          float beta2)
{
    DEV_LAUNCH(norm_finish_kernel, dim3(1), dim3(32), 0, s, c, Norm{clip, beta1, beta2});
}

__global__ void __launch_bounds__(32) spikes_kernel(sgt_cuda_control *c, sgt_outliers *o, double z)
{
    dev::after_previous();
    if (threadIdx.x > 0 || c->found_inf || !(c->targets > 0) || !isfinite(c->loss)) return;
    c->spike = sgt_outliers_take(o, z, c->loss / c->targets, c->norm);
    c->spikes = o->spikes;
}

void sgt_cuda_spikes(sgt_cuda_stream s, sgt_cuda_control *c, sgt_outliers *o, double z)
{
    DEV_LAUNCH(spikes_kernel, dim3(1), dim3(32), 0, s, c, o, z);
}

// ---- updates: four elements at a time, the last n % 4 elements one at a time ----

template <class T> struct Update {
    T *copy;
    float *p, *m, *v, *g;
    size_t n, decayed;
    int keep; // 1: do not zero the gradients
    const sgt_cuda_control *control;
    sgt_adamw adamw;
    sgt_sgd sgd;
};

// Compute the formula documented at sgt_adamw (kernels.h), in float. Multiply by by_c1 = 1/c1 and
// by_c2 = 1/c2, because divisions would be slower.
struct Adamw {
    static constexpr bool SECOND = true;
    float lr, scale, by_c1, by_c2;

    template <class T>
    DEV explicit Adamw(const Update<T> &u)
        : lr(u.control->lr), scale(u.control->grad_scale), by_c1((float)(1 / u.control->c1)),
          by_c2((float)(1 / u.control->c2))
    {
    }

    template <class T>
    DEV void step(const Update<T> &u, float &p, float &m, float &v, float g, bool decay) const
    {
        const sgt_adamw &a = u.adamw;
        g *= scale;
        m += (1 - a.beta1) * (g - m);
        v += (1 - a.beta2) * (g * g - v);
        p -= lr * (m * by_c1 / (sqrtf(v * by_c2) + a.eps) + (decay ? a.decay * p : 0));
    }
};

struct Sgd {
    static constexpr bool SECOND = false;
    float lr, scale;

    template <class T>
    DEV explicit Sgd(const Update<T> &u) : lr(u.control->lr), scale(u.control->grad_scale)
    {
    }

    template <class T>
    DEV void step(const Update<T> &u, float &p, float &m, float &, float g, bool decay) const
    {
        g *= scale;
        m = u.sgd.momentum * m + g;
        p -= lr * ((u.sgd.nesterov ? g + u.sgd.momentum * m : m) + (decay ? u.sgd.decay * p : 0));
    }
};

// Four elements of the working copy. The alignment lets one instruction store all four elements: 16
// bytes of float, or 8 bytes of a 16-bit type.
template <class T> struct alignas(4 * sizeof(T)) CopiedFour {
    T x[4];
};

template <class T> DEV void store_copy(T *copy, const float (&p)[4])
{
    CopiedFour<T> four;
    DEV_UNROLL_FOR (int j = 0; j < 4; j++) four.x[j] = dev::from_float<T>(p[j]);
    *(CopiedFour<T> *)copy = four;
}

template <class T> DEV void store_copy(T *copy, const float (&p)[1])
{
    *copy = dev::from_float<T>(p[0]);
}

// Update V parameters from index i on, unless `skip` is set because of an overflow or a spike. Also
// zero their gradients, even if the update is skipped, unless u.keep is set. load_floats<true>
// starts all loads before the first value is needed, so that their latencies overlap. Without the
// overlap, waiting for the loads would take as long as everything else together.
template <class T, class Rule, int V>
DEV void update_at(const Update<T> &u, const Rule &rule, size_t i, bool skip)
{
    float p[V], m[V], v[V] = {}, g[V], zero[V] = {};
    load_floats<true>(p, u.p + i);
    load_floats<true>(m, u.m + i);
    if (Rule::SECOND) load_floats<true>(v, u.v + i);
    load_floats<true>(g, u.g + i);
    if (!u.keep) store_floats(u.g + i, zero);
    if (skip) return;
    DEV_UNROLL_FOR (int j = 0; j < V; j++) rule.step(u, p[j], m[j], v[j], g[j], i + j < u.decayed);
    store_floats(u.p + i, p);
    store_floats(u.m + i, m);
    if (Rule::SECOND) store_floats(u.v + i, v);
    if (u.copy) store_copy(u.copy + i, p);
}

// A thread processes up to TURNS groups of four parameters, and computes the factors in `rule` only
// once for all of these groups.
template <class T, class Rule> __global__ void __launch_bounds__(THREADS) update_kernel(Update<T> u)
{
    dev::after_previous();
    const Rule rule(u);
    const bool skip = u.control->found_inf | u.control->spike;
    size_t at = (size_t)blockIdx.x * TURNS * THREADS + threadIdx.x, whole = u.n / 4;
    for (int turn = 0; turn < TURNS; turn++, at += THREADS) {
        size_t rest = whole * 4 + (at - whole);
        if (at < whole) update_at<T, Rule, 4>(u, rule, at * 4, skip);
        else if (rest < u.n) update_at<T, Rule, 1>(u, rule, rest, skip);
    }
}

template <class Rule, class T> static void launch_update(sgt_cuda_stream s, const Update<T> &u)
{
    if (u.n == 0) return;
    DEV_LAUNCH((update_kernel<T, Rule>), dim3(blocks_for(u.n / 4 + u.n % 4, TURNS * THREADS)),
               dim3(THREADS), 0, s, u);
}

void sgt_cuda_adamw(sgt_cuda_stream s, sgt_cuda_type type, void *copy, float *p, float *m, float *v,
                    float *g, size_t n, size_t decayed, int keep, const sgt_adamw *a,
                    const sgt_cuda_control *c)
{
    by_type(type, [&](auto zero) {
        using T = decltype(zero);
        launch_update<Adamw>(s, Update<T>{(T *)copy, p, m, v, g, n, decayed, keep, c, *a, {}});
    });
}

void sgt_cuda_sgd_update(sgt_cuda_stream s, sgt_cuda_type type, void *copy, float *p, float *m,
                         float *g, size_t n, size_t decayed, int keep, const sgt_sgd *o,
                         const sgt_cuda_control *c)
{
    by_type(type, [&](auto zero) {
        using T = decltype(zero);
        launch_update<Sgd>(s, Update<T>{(T *)copy, p, m, NULL, g, n, decayed, keep, c, {}, *o});
    });
}

// ---- kernels in which one thread updates sgt_cuda_control and sgt_cuda_place ----

__global__ void __launch_bounds__(32)
    begin_micro_step_kernel(sgt_cuda_control *c, sgt_cuda_place *place, float micro_scale,
                            uint64_t seed, uint64_t step, uint64_t row)
{
    dev::after_previous();
    if (threadIdx.x > 0) return;
    c->micro_scale = micro_scale;
    c->dlogits_scale = micro_scale * c->loss_scale;
    place->seed = seed;
    place->step = step;
    place->row = row;
}

void sgt_cuda_begin_micro_step(sgt_cuda_stream s, sgt_cuda_control *c, sgt_cuda_place *place,
                               float micro_scale, uint64_t seed, uint64_t step, uint64_t row)
{
    DEV_LAUNCH(begin_micro_step_kernel, dim3(1), dim3(32), 0, s, c, place, micro_scale, seed, step,
               row);
}

__global__ void __launch_bounds__(32)
    begin_update_kernel(sgt_cuda_control *c, float lr, uint64_t step)
{
    dev::after_previous();
    if (threadIdx.x > 0) return;
    c->lr = lr;
    c->step = step - c->skipped;
}

void sgt_cuda_begin_update(sgt_cuda_stream s, sgt_cuda_control *c, float lr, uint64_t step)
{
    DEV_LAUNCH(begin_update_kernel, dim3(1), dim3(32), 0, s, c, lr, step);
}

// End a step. Halve the loss scale on overflow, and double it after growth_interval steps without
// overflow. The loss scale stays between 1 and 2^24.
__global__ void __launch_bounds__(32) end_step_kernel(sgt_cuda_control *c)
{
    dev::after_previous();
    if (threadIdx.x > 0) return;
    c->last_loss = c->loss;
    c->last_targets = c->targets;
    c->last_norm = c->norm;
    c->last_loss_scale = c->loss_scale;
    if (c->found_inf || c->spike) c->skipped++;
    else c->step++;
    if (c->found_inf) {
        c->good_steps = 0;
        if (c->growth_interval) c->loss_scale = fmaxf(c->loss_scale / 2, 1);
    } else {
        if (c->growth_interval && ++c->good_steps >= c->growth_interval) {
            c->good_steps = 0;
            c->loss_scale = fminf(c->loss_scale * 2, 0x1p24f);
        }
    }
    c->dlogits_scale = c->micro_scale * c->loss_scale;
    c->loss = c->targets = c->squares = 0;
    c->found_inf = c->spike = 0;
}

void sgt_cuda_end_step(sgt_cuda_stream s, sgt_cuda_control *c)
{
    DEV_LAUNCH(end_step_kernel, dim3(1), dim3(32), 0, s, c);
}

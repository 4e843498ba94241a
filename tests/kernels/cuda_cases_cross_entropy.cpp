/* cuda_cases_cross_entropy.cpp: the cross-entropy loss and its gradient on the device. Each column
 * of the gradient has its own error bound. One bound for a whole row would have to be as large as
 * the target's, and would hide errors in the other columns. */
#include "tests/kernels/bounds.h"
#include "tests/kernels/cuda_types.h"

static const size_t widths[] = {1, 7, 8, 9, 17, 133, 1024, 4103};

/* apart: the gradient goes to an array of its own, and the logits must stay as they are. */
template <class T>
static void rows_at(check *t, size_t n, size_t V, float scale, float spread, bool apart = false)
{
    size_t ld = V + check_number(t, 3) * 5;
    T *logits = cuda_random<T>(t, n * ld, spread),
      *dlogits = apart ? cuda_output<T>(t, n * ld) : logits;
    const float *given = apart ? cuda_floats(t, logits, n * ld) : nullptr;
    float *want = cuda_floats(t, logits, n * ld), *want_loss = check_output(t, n),
          *loss = cuda_output<float>(t, n);
    float *by = cuda_copy<float>(t, &scale, 1);
    int32_t *targets = check_ids(t, n, (int32_t)V), *device_targets = cuda_output<int32_t>(t, n);
    double *bound = check_doubles(t, n * ld), *loss_bound = check_doubles(t, n);
    if (n > 1) targets[1] = -1;
    if (n > 2) targets[2] = (int32_t)V - 1;
    for (size_t i = 0; i < n; i++) {
        device_targets[i] = targets[i];
        cross_entropy_bounds(bound + i * ld, loss_bound + i, want + i * ld, targets[i], V, scale,
                             1);
    }
    check_at(t, "n %zu, V %zu, ld %zu, scale %g, logits up to %g%s", n, V, ld, (double)scale,
             (double)spread, apart ? ", apart" : "");
    t->ref->cross_entropy(want, want_loss, targets, n, V, ld, scale);
    stored_as<T>(bound, want, n * ld);
    for (size_t i = 0; i < n; i++) /* padding and ignored rows: exactly 0 */
        for (size_t c = targets[i] < 0 ? 0 : V; scale != 0 && c < ld; c++) bound[i * ld + c] = 0;
    /* not written if scale is 0: bound 0 */
    for (size_t i = 0; i < n * ld && scale == 0; i++) bound[i] = 0;
    sgt_cuda_cross_entropy(0, Type<T>::id, dlogits, logits, loss, device_targets, n, V, ld,
                           scale == 0 ? NULL : by);
    cuda_sync(t);
    check_close(t, "loss", loss, want_loss, loss_bound, n);
    check_close(t, "dlogits", cuda_floats(t, dlogits, n * ld), want, bound, n * ld);
    if (apart) check_equal(t, "logits", cuda_floats(t, logits, n * ld), given, n * ld);
}

/* A NaN or an infinity among the logits must reach the loss. */
template <class T> static void poison(check *t, float value)
{
    size_t V = 133;
    for (size_t at = 0; at < V; at += 22) {
        T *logits = cuda_random<T>(t, V, 1);
        float *loss = cuda_output<float>(t, 1);
        int32_t target = 5, *targets = cuda_copy<int32_t>(t, &target, 1);
        logits[at] = dev::from_float<T>(value);
        check_at(t, "logit %zu of %zu is %g", at, V, (double)value);
        sgt_cuda_cross_entropy(0, Type<T>::id, NULL, logits, loss, targets, 1, V, V, NULL);
        cuda_sync(t);
        if (!isnan(*loss)) check_fail(t, "loss is %g, not NaN", (double)*loss);
    }
}

template <class T> static void classifier(check *t)
{
    for (size_t V : widths) {
        rows_at<T>(t, 4, V, 0.01f, 1);
        rows_at<T>(t, 4, V, 0.01f, 1, true);
        rows_at<T>(t, 1, V, 0, 5);
        rows_at<T>(t, 3, V, 1, 60); /* one probability near 1, most near 0 */
    }
    rows_at<T>(t, 0, 9, 1, 1);
    /* the row does not fit in shared memory as floats, but it does in 16 bits */
    rows_at<T>(t, 2, 50257, 1.0f / 4096, 3);
    rows_at<T>(t, 2, 50257, 1.0f / 4096, 3, true);
    poison<T>(t, NAN);
    poison<T>(t, INFINITY);
}

CUDA_CASES_BY_TYPE(cuda_cross_entropy, classifier)

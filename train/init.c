/* init.c: GPT-2's initial parameters. Each number is a pure function of (seed, tensor, element), so that neither the
 * number of threads nor the device changes any of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "base/philox.h"

#define SIGMA 0.02
#define BUFFER ((size_t)1 << 20)     /* floats drawn at a time */
#define TASK 4096                    /* floats of one task; a multiple of 4 */
#define DOMAIN 0x696e697400000000ull /* "init": keeps these draws apart from any other use of the seed */

/* Four normal numbers from one draw of four words: Box and Muller, "A note on the generation of random normal deviates"
 * (1958). */
static void normal4(float z[4], uint64_t seed, size_t tensor, uint64_t element, float sigma)
{
    sgt_philox4 r = sgt_philox(seed, element / 4, DOMAIN + tensor);
    for (int i = 0; i < 4; i += 2) {
        float u = ((float)r.x[i] + 1.0f) * 0x1p-32f, radius, angle = (float)r.x[i + 1] * (float)(2 * M_PI * 0x1p-32);
        if (u > 1) u = 1;
        radius = sigma * sqrtf(-2 * logf(u));
        z[i] = radius * cosf(angle);
        z[i + 1] = radius * sinf(angle);
    }
}

static void draw(float *out, size_t count, uint64_t seed, size_t tensor, size_t first, float sigma, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t at = 0; at < count; at += TASK) {
        size_t n = count - at < TASK ? count - at : TASK;
        for (size_t i = 0; i < n; i += 4) {
            float z[4];
            normal4(z, seed, tensor, first + at + i, sigma);
            memcpy(out + at + i, z, (n - i < 4 ? n - i : 4) * sizeof *z);
        }
    }
}

/* 0 where the tensor starts as zeros, 1 for a LayerNorm's weight, else how the numbers are spread. */
static float spread(const sgt_model *m, const sgt_tensor *t)
{
    const char *end = strrchr(t->name, '.');
    if (t->dims == 1) return strcmp(end, ".weight") == 0 ? 1 : 0;
    int to_residual = strstr(t->name, "c_proj") != NULL;
    return (float)(to_residual ? SIGMA / sqrt(2.0 * m->layers) : SIGMA);
}

int sgt_init_parameters(sgt_backend *b, const sgt_model *m, uint64_t seed, int threads, sgt_error *err)
{
    int rc = SGT_OK;
    float *buffer = malloc(BUFFER * sizeof *buffer);
    if (!buffer) return sgt_fail(err, SGT_ENOMEM, "initial parameters: out of memory");
    for (size_t i = 0; i < sgt_model_tensors(m) && rc == SGT_OK; i++) {
        sgt_tensor t;
        sgt_model_tensor(m, i, &t);
        float s = spread(m, &t);
        for (size_t at = 0; at < t.count && rc == SGT_OK; at += BUFFER) {
            size_t n = t.count - at < BUFFER ? t.count - at : BUFFER;
            if (t.dims > 1) draw(buffer, n, seed, i, at, s, threads);
            else
                for (size_t j = 0; j < n; j++) buffer[j] = s;
            rc = b->put(b, SGT_PARAMETERS, i, at, n, buffer, err);
        }
    }
    free(buffer);
    return rc;
}

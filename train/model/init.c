/* init.c: initializes the parameters as GPT-2 does. A parameter's value depends only on the seed,
 * the tensor and the parameter's index in the tensor. It does not depend on the number of threads,
 * the CPU or the device. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/backend.h"
#include "kernels/kernels.h"

#define SIGMA 0.02
#define BUFFER ((size_t)1 << 20) /* number of floats drawn at a time */
#define TASK 4096                /* floats per task */
/* "init" in ASCII, a part of the Philox counter. Each purpose of random numbers has a different
 * constant here, so that purposes with the same seed get different random numbers. */
#define DOMAIN 0x696e697400000000ull

static void draw(float *out, size_t count, const sgt_normals *from, int threads)
{
    const sgt_kernels *k = sgt_kernels_cpu();
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t at = 0; at < count; at += TASK) {
        sgt_normals d = *from;
        d.first += at;
        k->normals(out + at, count - at < TASK ? count - at : TASK, &d);
    }
}

/* Return the number that initializes a tensor. For a matrix, it is the standard deviation of the
 * random elements. For a vector, it is the value of all elements: 1 for LayerNorm weights, 0 for
 * biases. */
static float spread(const sgt_model *m, const sgt_tensor *t)
{
    const char *end = strrchr(t->name, '.');
    if (t->dims == 1) return strcmp(end, ".weight") == 0 ? 1 : 0;
    int to_residual = strstr(t->name, "c_proj") != NULL;
    return (float)(to_residual ? SIGMA / sqrt(2.0 * m->layers) : SIGMA);
}

int sgt_init_parameters(sgt_backend *b, const sgt_model *m, uint64_t seed, int threads,
                        sgt_error *err)
{
    int rc = SGT_OK;
    float *buffer = malloc(BUFFER * sizeof *buffer);
    if (!buffer) return sgt_fail_memory(err, "initial parameters");
    for (size_t i = 0; i < sgt_model_tensors(m) && rc == SGT_OK; i++) {
        sgt_tensor t;
        sgt_model_tensor(m, i, &t);
        float s = spread(m, &t);
        for (size_t at = 0; at < t.count && rc == SGT_OK; at += BUFFER) {
            size_t n = t.count - at < BUFFER ? t.count - at : BUFFER;
            if (t.dims > 1) draw(buffer, n, &(sgt_normals){seed, DOMAIN + i, at, s}, threads);
            else
                for (size_t j = 0; j < n; j++) buffer[j] = s;
            rc = b->put(b, SGT_PARAMETERS, i, at, n, buffer, err);
        }
    }
    free(buffer);
    return rc;
}

/* gemm_parts.h: declarations shared by gemm.c (plans), gemm_run.c (products), gemm_tune.c (timing),
 * gemm_verify.c (checks) and gemm_cache.c (files). */
#ifndef SGT_CUDA_GEMM_PARTS_H
#define SGT_CUDA_GEMM_PARTS_H

#include "kernels/cuda/cublaslt.h"
#include "kernels/cuda/gemm.h"

#define GEMM_ALIGNMENT 16 /* bytes that every matrix is aligned to */
/* bytes to overwrite before a timed run: more than most second-level caches hold */
#define GEMM_FLUSH ((size_t)64 << 20)
#define GEMM_CANDIDATES 16 /* most algorithms that are requested and timed */
#define GEMM_KEY 320       /* bytes of the text that describes a shape, including its terminator */

struct sgt_cuda_gemm {
    sgt_cuda_gemms *owner;
    sgt_cuda_gemm_shape shape;
    char key[GEMM_KEY]; /* the whole shape as text: equal shapes have equal keys */
    sgt_lt_desc desc;
    sgt_lt_layout a, b, d; /* layouts of our A, B, D; the library sees them transposed */
    sgt_lt_algo algo;
    float ms;
    sgt_cuda_gemm *next;
};

struct sgt_cuda_gemms {
    const sgt_cublaslt *lt;
    sgt_lt_handle handle;
    char library[48], device[128]; /* only letters, digits and " .()-_" */
    char *cache, *choices;
    int deterministic, timing, unverified;
    sgt_notice notice;
    size_t flush;
    void *workspace;
    sgt_cuda_gemm *first, **last;
};

/* gemm_type_bytes returns the size of a number. gemm_spans_of returns the extent of each operand of
 * a plan, in numbers from its first to its last. */
size_t gemm_type_bytes(sgt_cuda_type type);
typedef struct gemm_spans {
    size_t a, b, d;
} gemm_spans;
gemm_spans gemm_spans_of(const sgt_cuda_gemm_shape *s);

/* Return whether a shape's epilogue reads or writes `aux`. */
static inline int gemm_has_aux(const sgt_cuda_gemm_shape *s)
{
    return s->epilogue >= SGT_EPILOGUE_GELU;
}
/* Set the pointers to bias and aux in the descriptor, if its epilogue has them. They may differ in
 * each run; the heuristics consider only their alignment. */
sgt_lt_status gemm_set_pointers(const sgt_cuda_gemm *p, const void *bias, const void *aux);
/* Put one product on a stream, computed by the given algorithm. Return the library's status. */
sgt_lt_status gemm_put(const sgt_cuda_gemm *p, const sgt_lt_algo *algo, sgt_cuda_stream s, void *d,
                       const void *a, const void *b, void *bias, void *aux);

/* ---- gemm_tune.c ---- */

/* Time the candidates. Set *best to the index of the fastest one with correct results, and *ms to
 * its median time. Returns SGT_ENOMEM if there is no memory for operands, SGT_EUNSUPPORTED if no
 * candidate ran. */
int gemm_tune(int *best, float *ms, const sgt_cuda_gemm *p, const sgt_lt_result *candidates,
              int count, sgt_error *err);
/* Set *best to the index of the first candidate with correct results, without timing. Returns
 * SGT_ENOMEM if there is no memory for operands, SGT_EFORMAT or another error if no candidate's
 * results are correct. */
int gemm_first_correct(int *best, const sgt_cuda_gemm *p, const sgt_lt_result *candidates,
                       int count, sgt_error *err);

/* ---- gemm_verify.c ---- */

/* A product to check, with its operands in device memory. All of them are within `memory`, whose
 * byte x is pattern[x % period]. */
typedef struct gemm_trial {
    const sgt_cuda_gemm *p;
    sgt_cuda_stream stream;
    char *memory, *a, *b, *d, *bias, *aux;
    const char *pattern; /* copy of the pattern on the host */
    size_t period;       /* a power of 2 */
    char *seen;          /* pinned memory, 64 bytes, for results copied back */
} gemm_trial;

/* Compute the product with an algorithm, wait, and check some numbers of D. Returns SGT_EFORMAT if one
 * of them is wrong. */
int gemm_verify(const gemm_trial *t, const sgt_lt_algo *algo, sgt_error *err);

/* ---- gemm_cache.c: timings in a folder, and choices as JSON ---- */

/* Find a shape's algorithm and time in the folder's file, for this device and library version.
 * Return 1 if found. A file that is unreadable, damaged or owned by another user counts as
 * missing. */
int gemm_cache_find(sgt_lt_algo *algo, float *ms, const sgt_cuda_gemms *g, const char *key);
/* Add a shape to the folder's file, or replace it, and keep the other valid lines. The file is
 * replaced as a whole. */
int gemm_cache_put(const sgt_cuda_gemms *g, const char *key, const sgt_lt_algo *algo, float ms,
                   sgt_error *err);

/* Find a shape's algorithm in g->choices. Return 1 if it is there and the choices are from this
 * device and library version. */
int gemm_choice_find(sgt_lt_algo *algo, const sgt_cuda_gemms *g, const char *key);

#endif

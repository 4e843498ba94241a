/* gemm_parts.h: what gemm.c (plans), gemm_tune.c (timing) and gemm_cache.c (files) share. */
#ifndef SGT_CUDA_GEMM_PARTS_H
#define SGT_CUDA_GEMM_PARTS_H

#include "cublaslt.h"
#include "gemm.h"

#define GEMM_ALIGNMENT 16             /* bytes, of every matrix */
#define GEMM_FLUSH ((size_t)64 << 20) /* bytes: more than most second-level caches hold */
#define GEMM_CANDIDATES 16            /* algorithms asked for, and timed */
#define GEMM_WIDE_CANDIDATES 64       /* where there is time for them: at most */
#define GEMM_KEY 320                  /* bytes of a shape's name, with its end */

struct sgt_cuda_gemm {
    sgt_cuda_gemms *owner;
    sgt_cuda_gemm_shape shape;
    char key[GEMM_KEY]; /* the whole shape in words: equal keys, equal shapes */
    sgt_lt_desc desc;
    sgt_lt_layout a, b, d; /* of our A, B, D; as the library sees them, transposed */
    sgt_lt_algo algo;
    float ms;
    sgt_cuda_gemm *next;
};

struct sgt_cuda_gemms {
    const sgt_cublaslt *lt;
    sgt_lt_handle handle;
    char library[48], device[128]; /* of letters, digits and " .()-_" */
    char *cache, *choices;
    int deterministic, timing, wide, unverified;
    sgt_notice notice;
    size_t flush, workspace_bytes;
    void *workspace;
    sgt_cuda_gemm *first, **last;
};

/* What a number of a type takes, and where what a plan works on lies: numbers from the first to the
 * last. */
size_t gemm_type_bytes(sgt_cuda_type type);
typedef struct gemm_spans {
    size_t a, b, d;
} gemm_spans;
gemm_spans gemm_spans_of(const sgt_cuda_gemm_shape *s);

/* One product by one algorithm on a stream; the library's status. */
sgt_lt_status gemm_put(const sgt_cuda_gemm *p, const sgt_lt_algo *algo, sgt_cuda_stream s, void *d,
                       const void *a, const void *b, void *bias, void *aux);

/* ---- gemm_tune.c ---- */

/* Times the candidates; the index of the fastest whose results are right, and its median.
 * SGT_ENOMEM where there is no room for operands, SGT_EUNSUPPORTED where none ran. */
int gemm_tune(int *best, float *ms, const sgt_cuda_gemm *p, const sgt_lt_result *candidates,
              int count, sgt_error *err);

/* ---- gemm_verify.c ---- */

/* A product with its operands in device memory, all within `memory`, whose byte x is pattern[x %
 * period]. */
typedef struct gemm_trial {
    const sgt_cuda_gemm *p;
    sgt_cuda_stream stream;
    char *memory, *a, *b, *d, *bias, *aux;
    const char *pattern; /* on the host */
    size_t period;
    char *seen; /* pinned, 64 bytes: what comes back */
} gemm_trial;

/* Runs the product by an algorithm and looks at some numbers of D: SGT_EFORMAT where one is wrong.
 * Waits. */
int gemm_verify(const gemm_trial *t, const sgt_lt_algo *algo, sgt_error *err);

/* ---- gemm_cache.c: timings in a folder, and choices as JSON ---- */

/* 1 where the folder's file has this shape on this device with this version of the library. What
 * cannot be read, is damaged or belongs to somebody else counts as not there. */
int gemm_cache_find(sgt_lt_algo *algo, float *ms, const sgt_cuda_gemms *g, const char *key);
/* Adds or replaces a shape; other good lines stay. The file is replaced as a whole. */
int gemm_cache_put(const sgt_cuda_gemms *g, const char *key, const sgt_lt_algo *algo, float ms,
                   sgt_error *err);

/* 1 where g->choices has this shape, made on this device with this version of the library. */
int gemm_choice_find(sgt_lt_algo *algo, const sgt_cuda_gemms *g, const char *key);

#endif

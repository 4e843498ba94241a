/* onednn.h: oneDNN through dlopen, for single-threaded matrix products of float32 or bfloat16 into
 * float32. It hides the differences between versions 2 and 3. Programs start without the library;
 * the first plan loads it. */
#ifndef SGT_ONEDNN_H
#define SGT_ONEDNN_H

#include <stddef.h>

#include <oneapi/dnnl/dnnl.h>

#include "loader/base/error.h"

/* Every function used, listed once for the struct's members and for the symbol lookup. */
// clang-format off
#define SGT_DNNL_BOTH(X) \
    X(version) X(set_max_cpu_isa) X(get_effective_cpu_isa) X(engine_create) X(stream_create) \
    X(stream_destroy) X(primitive_attr_create) X(primitive_attr_destroy) \
    X(primitive_attr_set_scratchpad_mode) X(primitive_attr_set_post_ops) X(post_ops_create) \
    X(post_ops_destroy) X(post_ops_append_sum) X(primitive_desc_destroy) \
    X(primitive_desc_query_md) X(primitive_create) X(primitive_destroy) X(primitive_execute) \
    X(memory_desc_get_size) X(memory_create) X(memory_destroy) X(memory_set_data_handle)
// clang-format on
#if DNNL_VERSION_MAJOR >= 3
#define SGT_DNNL_OWN(X) \
    X(memory_desc_create_with_strides) X(memory_desc_destroy) X(matmul_primitive_desc_create)
#else
#define SGT_DNNL_OWN(X) X(memory_desc_init_by_strides) X(matmul_desc_init) X(primitive_desc_create)
#endif
#define SGT_DNNL_MEMBER(name) __typeof__(dnnl_##name) *name;

typedef struct sgt_dnnl {
    SGT_DNNL_BOTH(SGT_DNNL_MEMBER)
    SGT_DNNL_OWN(SGT_DNNL_MEMBER)
    dnnl_engine_t engine;
    char title[32]; /* "oneDNN 2.6.3" */
    /* 1 if the CPU multiplies bfloat16; otherwise the library would convert to float, which is
     * slow */
    int bf16;
} sgt_dnnl;

/* One product: c (m, n) = a (m, k) b (k, n), with strides in numbers; c's columns are
 * contiguous. */
typedef struct sgt_dnnl_matmul {
    size_t m, n, k;
    size_t a_row, a_col, b_row, b_col, c_row;
    int bias, accumulate, bf16; /* bf16: a and b are bfloat16 */
} sgt_dnnl_matmul;

typedef struct sgt_dnnl_primitive sgt_dnnl_primitive;

/* What one thread needs to run one primitive. It is made at plan time, so that a run allocates
 * nothing here. */
typedef struct sgt_dnnl_call {
    dnnl_memory_t a, b, bias, c, scratch;
    void *scratch_bytes;
} sgt_dnnl_call;

/* Get the library, which the first call loads. Returns SGT_EUNSUPPORTED if it is missing, SGT_EIO
 * if it is there but cannot be loaded. */
int sgt_dnnl_load(const sgt_dnnl **out, sgt_error *err);
const char *sgt_dnnl_title(void); /* NULL until loaded */

int sgt_dnnl_primitive_new(sgt_dnnl_primitive **out, const sgt_dnnl_matmul *shape, sgt_error *err);
void sgt_dnnl_primitive_free(sgt_dnnl_primitive *p); /* p may be NULL */

int sgt_dnnl_call_init(sgt_dnnl_call *call, const sgt_dnnl_primitive *p, sgt_error *err);
void sgt_dnnl_call_clear(sgt_dnnl_call *call); /* call may be zeroed */

/* Run the product. It stays on the calling thread if that is inside an OpenMP parallel region whose
 * number of threads was limited to one. */
void sgt_dnnl_run(const sgt_dnnl_primitive *p, sgt_dnnl_call *call, dnnl_stream_t stream,
                  const void *a, const void *b, const float *bias, float *c);

#endif

/* onednn.c: owns the library's handle, its engine and the differences between its versions. */
#include "kernels/cpu/onednn.h"

#include <assert.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/arena.h"
#include "loader/base/cpu.h"
#include "loader/base/library.h"

#define TEXT(x) TEXT_(x)
#define TEXT_(x) #x
/* We pass the structures of the headers that this file was compiled with, so only that major
 * version of the library works. */
#define LIBRARY "libdnnl.so." TEXT(DNNL_VERSION_MAJOR)

static sgt_dnnl table; /* constant once filled: there is one oneDNN per process */

static const char *status_text(dnnl_status_t status)
{
    switch (status) {
    case dnnl_success: return "success";
    case dnnl_out_of_memory: return "out of memory";
    case dnnl_invalid_arguments: return "invalid arguments";
    case dnnl_unimplemented: return "not offered for this shape";
    default: return "runtime error";
    }
}

static int check(dnnl_status_t status, const char *what, sgt_error *err)
{
    if (status == dnnl_success) return SGT_OK;
    return sgt_fail(err, status == dnnl_out_of_memory ? SGT_ENOMEM : SGT_EUNSUPPORTED,
                    "oneDNN: %s: %s", what, status_text(status));
}

static int ready(void *library, sgt_error *err)
{
    int rc;
    (void)library;
    /* --cpu limits the library too, which must be told before its first primitive. */
    if (sgt_cpu() < SGT_CPU_AVX512) {
        dnnl_cpu_isa_t isa = sgt_cpu() == SGT_CPU_AVX2 ? dnnl_cpu_isa_avx2 : dnnl_cpu_isa_sse41;
        if ((rc = check(table.set_max_cpu_isa(isa), "limiting the instruction set", err)) < 0)
            return rc;
    }
    if ((rc = check(table.engine_create(&table.engine, dnnl_cpu, 0), "CPU engine", err)) < 0)
        return rc;
    table.bf16 = (table.get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) ==
                 dnnl_cpu_isa_avx512_core_bf16;
    const dnnl_version_t *v = table.version();
    snprintf(table.title, sizeof table.title, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
    return SGT_OK;
}

static const char *const names[] = {LIBRARY, NULL};
static const sgt_symbol symbols[] = {
#define ROW(name) {"dnnl_" #name, &table.name},
    SGT_DNNL_BOTH(ROW) SGT_DNNL_OWN(ROW)
#undef ROW
        {NULL, NULL}};
static sgt_library onednn = {.what = "oneDNN",
                             .names = names,
                             .symbols = symbols,
                             .install = "install Debian's libdnnl-dev, or run `make deps`",
                             .version = "is it oneDNN?",
                             .ready = ready,
                             .lock = PTHREAD_MUTEX_INITIALIZER};

int sgt_dnnl_load(const sgt_dnnl **out, sgt_error *err)
{
    int rc = sgt_library_load(&onednn, err);
    if (rc == SGT_OK) *out = &table;
    if (rc == SGT_EUNSUPPORTED && onednn.broken) {
        rc = SGT_EIO;
        if (err) err->code = rc;
    }
    return rc;
}

const char *sgt_dnnl_title(void) { return sgt_library_loaded(&onednn) ? table.title : NULL; }

/* ---- memory descriptors: a structure in version 2, an owned handle in version 3 ---- */

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t desc;
typedef const_dnnl_memory_desc_t desc_view;
#define VIEW(d) (d)
static void desc_free(const sgt_dnnl *api, desc d)
{
    if (d) api->memory_desc_destroy(d);
}
#else
typedef dnnl_memory_desc_t desc;
typedef const dnnl_memory_desc_t *desc_view;
#define VIEW(d) (&(d))
static void desc_free(const sgt_dnnl *api, desc d)
{
    (void)api;
    (void)d;
}
#endif

static int desc_new(const sgt_dnnl *api, desc *d, int bf16, size_t rows, size_t cols,
                    size_t row_stride, size_t col_stride, sgt_error *err)
{
    dnnl_data_type_t type = bf16 ? dnnl_bf16 : dnnl_f32;
    dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)cols},
                strides = {(dnnl_dim_t)row_stride, (dnnl_dim_t)col_stride};
#if DNNL_VERSION_MAJOR >= 3
    dnnl_status_t status = api->memory_desc_create_with_strides(d, 2, dims, type, strides);
#else
    dnnl_status_t status = api->memory_desc_init_by_strides(d, 2, dims, type, strides);
#endif
    return check(status, "memory descriptor", err);
}

/* ---- primitives ---- */

struct sgt_dnnl_primitive {
    const sgt_dnnl *api;
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t primitive;
    desc a, b, bias, c;
    int has_bias;
};

static int attributes(const sgt_dnnl *api, dnnl_primitive_attr_t *attr, int accumulate,
                      sgt_error *err)
{
    int rc = check(api->primitive_attr_create(attr), "attributes", err);
    if (rc < 0) return rc;
    if ((rc = check(api->primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user),
                    "scratchpad", err)) < 0)
        goto fail;
    if (!accumulate) return SGT_OK;
    dnnl_post_ops_t ops;
    if ((rc = check(api->post_ops_create(&ops), "post-ops", err)) < 0) goto fail;
#if DNNL_VERSION_MAJOR >= 3
    rc = check(api->post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef), "accumulation", err);
#else
    rc = check(api->post_ops_append_sum(ops, 1.0f), "accumulation", err);
#endif
    if (rc == SGT_OK) rc = check(api->primitive_attr_set_post_ops(*attr, ops), "post-ops", err);
    api->post_ops_destroy(ops);
    if (rc == SGT_OK) return SGT_OK;
fail:
    api->primitive_attr_destroy(*attr);
    return rc;
}

static int describe(sgt_dnnl_primitive *p, dnnl_primitive_attr_t attr, sgt_error *err)
{
    desc_view bias = p->has_bias ? VIEW(p->bias) : NULL;
#if DNNL_VERSION_MAJOR >= 3
    dnnl_status_t status =
        p->api->matmul_primitive_desc_create(&p->pd, p->api->engine, p->a, p->b, bias, p->c, attr);
#else
    dnnl_matmul_desc_t matmul;
    dnnl_status_t status =
        p->api->matmul_desc_init(&matmul, VIEW(p->a), VIEW(p->b), bias, VIEW(p->c));
    if (status == dnnl_success)
        status = p->api->primitive_desc_create(&p->pd, &matmul, attr, p->api->engine, NULL);
#endif
    return check(status, "matrix product", err);
}

static int build(sgt_dnnl_primitive *p, const sgt_dnnl_matmul *s, sgt_error *err)
{
    int rc;
    dnnl_primitive_attr_t attr;
    if ((rc = desc_new(p->api, &p->a, s->bf16, s->m, s->k, s->a_row, s->a_col, err)) < 0) return rc;
    if ((rc = desc_new(p->api, &p->b, s->bf16, s->k, s->n, s->b_row, s->b_col, err)) < 0) return rc;
    if ((rc = desc_new(p->api, &p->c, 0, s->m, s->n, s->c_row, 1, err)) < 0) return rc;
    if (s->bias && (rc = desc_new(p->api, &p->bias, 0, 1, s->n, s->n, 1, err)) < 0) return rc;
    p->has_bias = s->bias;
    if ((rc = attributes(p->api, &attr, s->accumulate, err)) < 0) return rc;
    rc = describe(p, attr, err);
    if (rc == SGT_OK)
        rc = check(p->api->primitive_create(&p->primitive, p->pd), "matrix product", err);
    p->api->primitive_attr_destroy(attr);
    return rc;
}

int sgt_dnnl_primitive_new(sgt_dnnl_primitive **out, const sgt_dnnl_matmul *shape, sgt_error *err)
{
    const sgt_dnnl *api;
    int rc = sgt_dnnl_load(&api, err);
    if (rc < 0) return rc;
    sgt_dnnl_primitive *p = calloc(1, sizeof *p);
    if (!p) return sgt_fail_memory(err, "oneDNN");
    p->api = api;
    /* The library optimizes for as many threads as OpenMP would give it now, but each of our
     * threads runs its own tile. */
    int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    rc = build(p, shape, err);
    omp_set_num_threads(threads);
    if (rc < 0) {
        sgt_dnnl_primitive_free(p);
        return rc;
    }
    *out = p;
    return SGT_OK;
}

void sgt_dnnl_primitive_free(sgt_dnnl_primitive *p)
{
    if (!p) return;
    if (p->primitive) p->api->primitive_destroy(p->primitive);
    if (p->pd) p->api->primitive_desc_destroy(p->pd);
    desc_free(p->api, p->a);
    desc_free(p->api, p->b);
    desc_free(p->api, p->bias);
    desc_free(p->api, p->c);
    free(p);
}

/* ---- calls ---- */

static int new_memory(const sgt_dnnl *api, dnnl_memory_t *memory, desc_view d, void *data,
                      sgt_error *err)
{
    return check(api->memory_create(memory, d, api->engine, data), "memory", err);
}

int sgt_dnnl_call_init(sgt_dnnl_call *call, const sgt_dnnl_primitive *p, sgt_error *err)
{
    const sgt_dnnl *api = p->api;
    int rc;
    memset(call, 0, sizeof *call);
    desc_view scratch = api->primitive_desc_query_md(p->pd, dnnl_query_scratchpad_md, 0);
    size_t bytes = scratch ? api->memory_desc_get_size(scratch) : 0;
    if (bytes) {
        size_t whole = (bytes + SGT_ARENA_ALIGN - 1) & ~(size_t)(SGT_ARENA_ALIGN - 1);
        if (!(call->scratch_bytes = aligned_alloc(SGT_ARENA_ALIGN, whole)))
            return sgt_fail(err, SGT_ENOMEM, "oneDNN: out of memory (%zu bytes of scratch)", whole);
        if ((rc = new_memory(api, &call->scratch, scratch, call->scratch_bytes, err)) < 0)
            goto fail;
    }
    if ((rc = new_memory(api, &call->a, VIEW(p->a), DNNL_MEMORY_NONE, err)) < 0) goto fail;
    if ((rc = new_memory(api, &call->b, VIEW(p->b), DNNL_MEMORY_NONE, err)) < 0) goto fail;
    if ((rc = new_memory(api, &call->c, VIEW(p->c), DNNL_MEMORY_NONE, err)) < 0) goto fail;
    if (p->has_bias &&
        (rc = new_memory(api, &call->bias, VIEW(p->bias), DNNL_MEMORY_NONE, err)) < 0)
        goto fail;
    return SGT_OK;
fail:
    sgt_dnnl_call_clear(call);
    return rc;
}

void sgt_dnnl_call_clear(sgt_dnnl_call *call)
{
    dnnl_memory_t all[] = {call->a, call->b, call->bias, call->c, call->scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]) table.memory_destroy(all[i]);
    free(call->scratch_bytes);
    memset(call, 0, sizeof *call);
}

static void point(const sgt_dnnl *api, dnnl_memory_t memory, const void *data)
{
    /* The library takes no const pointers, but does not change its inputs. */
    dnnl_status_t status = api->memory_set_data_handle(memory, (void *)data);
    assert(status == dnnl_success);
    (void)status;
}

void sgt_dnnl_run(const sgt_dnnl_primitive *p, sgt_dnnl_call *call, dnnl_stream_t stream,
                  const void *a, const void *b, const float *bias, float *c)
{
    dnnl_exec_arg_t args[5] = {
        {DNNL_ARG_SRC, call->a}, {DNNL_ARG_WEIGHTS, call->b}, {DNNL_ARG_DST, call->c}};
    int n = 3;
    point(p->api, call->a, a);
    point(p->api, call->b, b);
    point(p->api, call->c, c);
    if (call->bias) {
        point(p->api, call->bias, bias);
        args[n++] = (dnnl_exec_arg_t){DNNL_ARG_BIAS, call->bias};
    }
    if (call->scratch) args[n++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, call->scratch};
    dnnl_status_t status = p->api->primitive_execute(p->primitive, stream, n, args);
    assert(status == dnnl_success); /* a primitive that could be created does run */
    (void)status;
}

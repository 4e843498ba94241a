/* cupti_api.h: the part of CUPTI that cupti.c uses, in our own declarations, as a table of
 * functions. Building then needs no CUDA header, and tests can supply their own table.
 *
 *     const sgt_cupti_api *api = sgt_cupti_load(&err); // NULL: err says what is missing
 *     if (api->enable(SGT_CUPTI_KERNEL)) ...;          // 0 is success, else see api->result_string
 *
 * CUPTI's records have more fields. Declared here are only those with the same offset in every
 * CUPTI from 12.8 on; the library's next_record finds where records end. tests/kernels/toolkit
 * compares all of it with the toolkit's header. */
#ifndef SGT_CUPTI_API_H
#define SGT_CUPTI_API_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef SGT_CUPTI_TYPES /* a test defines this, to compare our types with those of cupti.h */
typedef int sgt_cupti_result, sgt_cupti_kind, sgt_cupti_external, sgt_cupti_domain;
typedef uint32_t sgt_cupti_callback_id;
typedef struct sgt_cupti_record sgt_cupti_record;
typedef struct sgt_cupti_subscriber_opaque *sgt_cupti_subscriber;
typedef struct CUgraphNode_st *sgt_cupti_node;
typedef struct CUctx_st *sgt_cupti_context;
#endif

enum { /* CUptiResult */
       SGT_CUPTI_SUCCESS = 0,
       SGT_CUPTI_MAX_LIMIT_REACHED = 12, /* next_record: no record is left */
       SGT_CUPTI_INSUFFICIENT_PRIVILEGES = 35,
       SGT_CUPTI_MULTIPLE_SUBSCRIBERS = 39
};
enum { /* CUpti_ActivityKind */
       SGT_CUPTI_MEMCPY = 1,
       SGT_CUPTI_MEMSET = 2,
       SGT_CUPTI_DRIVER = 4,
       SGT_CUPTI_RUNTIME = 5,
       SGT_CUPTI_KERNEL =
           10, /* kind CONCURRENT_KERNEL: kernels stay concurrent while they are recorded */
       SGT_CUPTI_MARKER = 12,
       SGT_CUPTI_EXTERNAL_CORRELATION = 39
};
enum { SGT_CUPTI_CUSTOM0 = 3 };                                /* CUpti_ExternalCorrelationKind */
enum { SGT_CUPTI_FLUSH_FORCED = 1 };                           /* CUpti_ActivityFlag, of a flush */
enum { SGT_CUPTI_MARKER_START = 2, SGT_CUPTI_MARKER_END = 4 }; /* CUpti_ActivityFlag, of a marker */
enum { SGT_CUPTI_OBJECT_THREAD = 2 };                          /* CUpti_ActivityObjectKind */
enum { /* CUpti_CallbackDomain, and the callbacks of DOMAIN_RESOURCE that are used */
       SGT_CUPTI_DOMAIN_DRIVER = 1,
       SGT_CUPTI_DOMAIN_RUNTIME = 2,
       SGT_CUPTI_DOMAIN_RESOURCE = 3,
       SGT_CUPTI_NODE_CREATED = 13,
       SGT_CUPTI_NODE_CLONED = 20
};
/* directions of copies */
enum { SGT_CUPTI_HOST_TO_DEVICE = 1, SGT_CUPTI_DEVICE_TO_HOST = 2, SGT_CUPTI_DEVICE_TO_DEVICE = 8 };

/* ---- records: each begins with its kind ---- */

struct sgt_cupti_record {
    int32_t kind;
};

typedef struct sgt_cupti_kernel {
    int32_t kind;
    uint8_t cache[2];
    uint16_t registers; /* per thread */
    uint32_t carveout[2];
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared; /* bytes per block */
    uint32_t local[2];
    uint32_t correlation;
    int64_t grid_id;
    const char *name; /* mangled; the string is owned by CUPTI */
    void *reserved;
    uint64_t queued, submitted;
    uint8_t launch[4];
    uint32_t shared_executed;
    uint64_t node; /* node of a CUDA graph; 0: none */
} sgt_cupti_kernel;

typedef struct sgt_cupti_copy { /* also describes a memset, except for `copied` */
    int32_t kind;
    uint8_t copied; /* direction: SGT_CUPTI_HOST_TO_DEVICE, ... */
    uint8_t rest[3];
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation, runtime_correlation, pad;
    void *reserved;
    uint64_t node;
} sgt_cupti_copy;

typedef struct sgt_cupti_fill {
    int32_t kind;
    uint32_t value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
    uint16_t flags, memory;
    uint32_t pad;
    void *reserved;
    uint64_t node;
} sgt_cupti_fill;

typedef struct sgt_cupti_call { /* a host call of the runtime or the driver */
    int32_t kind;
    uint32_t callback; /* number of the function; callback_name gives its name */
    uint64_t start, end;
    uint32_t process, thread, correlation, result;
} sgt_cupti_call;

typedef struct sgt_cupti_marker {
    int32_t kind;
    int32_t flags;
    uint64_t time;
    uint32_t id;
    int32_t object_kind;
    uint32_t process, thread; /* valid if object_kind is THREAD */
    uint32_t object, pad;
    const char *name; /* NULL in the record of a range's end */
} sgt_cupti_marker;

/* ties a host call, made between push and pop, to the value pushed */
typedef struct sgt_cupti_correlation {
    int32_t kind;
    int32_t external_kind;
    uint64_t external; /* the value given to push */
    uint32_t correlation, reserved;
} sgt_cupti_correlation;

/* Data of a callback of DOMAIN_RESOURCE. If the callback is about a graph's node, `descriptor`
 * points to an sgt_cupti_graph_data. */
typedef struct sgt_cupti_resource {
    sgt_cupti_context context;
    void *handle, *descriptor;
} sgt_cupti_resource;
typedef struct sgt_cupti_graph_data {
    void *graph, *original_graph;
    sgt_cupti_node node, original_node;
} sgt_cupti_graph_data;

/* ---- functions ---- */

typedef void (*sgt_cupti_callback)(void *ctx, sgt_cupti_domain domain, sgt_cupti_callback_id which,
                                   const void *data);
typedef void (*sgt_cupti_request)(uint8_t **buffer, size_t *size, size_t *most_records);
typedef void (*sgt_cupti_complete)(sgt_cupti_context context, uint32_t stream, uint8_t *buffer,
                                   size_t size, size_t valid);

typedef struct sgt_cupti_api {
    sgt_cupti_result (*version)(uint32_t *version);
    sgt_cupti_result (*result_string)(sgt_cupti_result result, const char **text);
    sgt_cupti_result (*subscribe)(sgt_cupti_subscriber *s, sgt_cupti_callback f, void *ctx);
    sgt_cupti_result (*unsubscribe)(sgt_cupti_subscriber s);
    sgt_cupti_result (*enable_callback)(uint32_t on, sgt_cupti_subscriber s,
                                        sgt_cupti_domain domain, sgt_cupti_callback_id which);
    sgt_cupti_result (*callback_name)(sgt_cupti_domain domain, uint32_t which, const char **name);
    sgt_cupti_result (*node_id)(sgt_cupti_node node, uint64_t *id);
    /* set the clock of all times in records */
    sgt_cupti_result (*set_clock)(uint64_t (*now)(void));
    sgt_cupti_result (*set_buffers)(sgt_cupti_request request, sgt_cupti_complete complete);
    sgt_cupti_result (*enable)(sgt_cupti_kind kind);
    sgt_cupti_result (*disable)(sgt_cupti_kind kind);
    sgt_cupti_result (*flush)(uint32_t flag);
    /* get the record after *record, or the first if that is NULL */
    sgt_cupti_result (*next_record)(uint8_t *buffer, size_t valid, sgt_cupti_record **record);
    sgt_cupti_result (*dropped)(sgt_cupti_context context, uint32_t stream, size_t *records);
    sgt_cupti_result (*push)(sgt_cupti_external kind, uint64_t id);
    sgt_cupti_result (*pop)(sgt_cupti_external kind, uint64_t *last);
} sgt_cupti_api;

/* Return the table of the machine's library, which is loaded at the first call and stays loaded;
 * NULL with *err if it is missing. Any thread may call this. */
const sgt_cupti_api *sgt_cupti_load(sgt_error *err);

#ifdef __cplusplus
}
#endif

#endif

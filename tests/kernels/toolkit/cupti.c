/* cupti.c: compares kernels/cuda/cupti.h with the toolkit's own header. check-nvcc compiles this
 * file and never runs it. Assertions compare constants and offsets, and filling the table compares
 * signatures. */
#include <cupti.h>

#define SGT_CUPTI_TYPES
typedef CUptiResult sgt_cupti_result;
typedef CUpti_ActivityKind sgt_cupti_kind;
typedef CUpti_CallbackDomain sgt_cupti_domain;
typedef CUpti_CallbackId sgt_cupti_callback_id;
typedef CUpti_Activity sgt_cupti_record;
typedef CUpti_SubscriberHandle sgt_cupti_subscriber;
typedef CUgraphNode sgt_cupti_node;
typedef CUcontext sgt_cupti_context;
#include "kernels/cuda/cupti.h"

const sgt_cupti_api signatures;
const sgt_cupti_api signatures = {.version = cuptiGetVersion,
                                  .result_string = cuptiGetResultString,
                                  .subscribe = cuptiSubscribe,
                                  .unsubscribe = cuptiUnsubscribe,
                                  .enable_callback = cuptiEnableCallback,
                                  .node_id = cuptiGetGraphNodeId,
                                  .set_clock = cuptiActivityRegisterTimestampCallback,
                                  .set_buffers = cuptiActivityRegisterCallbacks,
                                  .enable = cuptiActivityEnable,
                                  .disable = cuptiActivityDisable,
                                  .flush = cuptiActivityFlushAll,
                                  .next_record = cuptiActivityGetNextRecord,
                                  .dropped = cuptiActivityGetNumDroppedRecords};

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(SGT_CUPTI_SUCCESS, CUPTI_SUCCESS);
SAME(SGT_CUPTI_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
SAME(SGT_CUPTI_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME(SGT_CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME(SGT_CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME(SGT_CUPTI_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(SGT_CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME(SGT_CUPTI_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_RESOURCE);
SAME(SGT_CUPTI_NODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
SAME(SGT_CUPTI_NODE_CLONED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
SAME(SGT_CUPTI_HOST_TO_DEVICE, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
SAME(SGT_CUPTI_DEVICE_TO_HOST, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
SAME(SGT_CUPTI_DEVICE_TO_DEVICE, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);

/* Check the fields that sgt reads in each record. It is enough to check the oldest version of each
 * struct in a header of CUDA 12.8 or newer, because later versions only append fields. */
#define PLACE(ours, theirs, o, t)                                             \
    _Static_assert(offsetof(ours, o) == offsetof(theirs, t), #theirs " " #t); \
    _Static_assert(sizeof((ours *)0)->o == sizeof((theirs *)0)->t, #theirs " size " #t)
#define KERNEL(o, t) PLACE(sgt_cupti_launch, CUpti_ActivityKernel9, o, t)
#define MOVE(o, t)                                      \
    PLACE(sgt_cupti_move, CUpti_ActivityMemcpy6, o, t); \
    PLACE(sgt_cupti_move, CUpti_ActivityMemset4, o, t)
KERNEL(kind, kind);
KERNEL(start, start);
KERNEL(end, end);
KERNEL(device, deviceId);
KERNEL(stream, streamId);
KERNEL(name, name);
KERNEL(node, graphNodeId);
PLACE(sgt_cupti_move, CUpti_ActivityMemcpy6, direction, copyKind);
MOVE(bytes, bytes);
MOVE(start, start);
MOVE(end, end);
MOVE(device, deviceId);
MOVE(stream, streamId);
MOVE(node, graphNodeId);
PLACE(sgt_cupti_resource, CUpti_ResourceData, descriptor, resourceDescriptor);
PLACE(sgt_cupti_graph_data, CUpti_GraphData, node, node);
PLACE(sgt_cupti_graph_data, CUpti_GraphData, original_node, originalNode);

/* cupti.c: compares kernels/cuda/cupti_api.h with the toolkit's own header. check-nvcc compiles it
 * and it is never run. Numbers and offsets are compared by assertions, signatures by filling the
 * table. */
#include <cupti.h>

#define SGT_CUPTI_TYPES
typedef CUptiResult sgt_cupti_result;
typedef CUpti_ActivityKind sgt_cupti_kind;
typedef CUpti_ExternalCorrelationKind sgt_cupti_external;
typedef CUpti_CallbackDomain sgt_cupti_domain;
typedef CUpti_CallbackId sgt_cupti_callback_id;
typedef CUpti_Activity sgt_cupti_record;
typedef CUpti_SubscriberHandle sgt_cupti_subscriber;
typedef CUgraphNode sgt_cupti_node;
typedef CUcontext sgt_cupti_context;
#include "kernels/cuda/cupti_api.h"

const sgt_cupti_api signatures;
const sgt_cupti_api signatures = {.version = cuptiGetVersion,
                                  .result_string = cuptiGetResultString,
                                  .subscribe = cuptiSubscribe,
                                  .unsubscribe = cuptiUnsubscribe,
                                  .enable_callback = cuptiEnableCallback,
                                  .callback_name = cuptiGetCallbackName,
                                  .node_id = cuptiGetGraphNodeId,
                                  .set_clock = cuptiActivityRegisterTimestampCallback,
                                  .set_buffers = cuptiActivityRegisterCallbacks,
                                  .enable = cuptiActivityEnable,
                                  .disable = cuptiActivityDisable,
                                  .flush = cuptiActivityFlushAll,
                                  .next_record = cuptiActivityGetNextRecord,
                                  .dropped = cuptiActivityGetNumDroppedRecords,
                                  .push = cuptiActivityPushExternalCorrelationId,
                                  .pop = cuptiActivityPopExternalCorrelationId};

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(SGT_CUPTI_SUCCESS, CUPTI_SUCCESS);
SAME(SGT_CUPTI_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME(SGT_CUPTI_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
SAME(SGT_CUPTI_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME(SGT_CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME(SGT_CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME(SGT_CUPTI_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
SAME(SGT_CUPTI_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME(SGT_CUPTI_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(SGT_CUPTI_MARKER, CUPTI_ACTIVITY_KIND_MARKER);
SAME(SGT_CUPTI_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
SAME(SGT_CUPTI_CUSTOM0, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0);
SAME(SGT_CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME(SGT_CUPTI_MARKER_START, CUPTI_ACTIVITY_FLAG_MARKER_START);
SAME(SGT_CUPTI_MARKER_END, CUPTI_ACTIVITY_FLAG_MARKER_END);
SAME(SGT_CUPTI_OBJECT_THREAD, CUPTI_ACTIVITY_OBJECT_THREAD);
SAME(SGT_CUPTI_DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
SAME(SGT_CUPTI_DOMAIN_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API);
SAME(SGT_CUPTI_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_RESOURCE);
SAME(SGT_CUPTI_NODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
SAME(SGT_CUPTI_NODE_CLONED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
SAME(SGT_CUPTI_HOST_TO_DEVICE, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
SAME(SGT_CUPTI_DEVICE_TO_HOST, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
SAME(SGT_CUPTI_DEVICE_TO_DEVICE, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);

/* Check the fields of each record that are read. The oldest of the structures in a header of CUDA
 * 12.8 or newer is enough, because later fields were appended. */
#define PLACE(ours, theirs, o, t)                                             \
    _Static_assert(offsetof(ours, o) == offsetof(theirs, t), #theirs " " #t); \
    _Static_assert(sizeof((ours *)0)->o == sizeof((theirs *)0)->t, #theirs " size " #t)
#define KERNEL(o, t) PLACE(sgt_cupti_kernel, CUpti_ActivityKernel9, o, t)
#define COPY(o, t) PLACE(sgt_cupti_copy, CUpti_ActivityMemcpy6, o, t)
#define FILL(o, t) PLACE(sgt_cupti_fill, CUpti_ActivityMemset4, o, t)
#define CALL(o, t) PLACE(sgt_cupti_call, CUpti_ActivityAPI, o, t)
#define MARKER(o, t) PLACE(sgt_cupti_marker, CUpti_ActivityMarker2, o, t)
#define CORRELATION(o, t) PLACE(sgt_cupti_correlation, CUpti_ActivityExternalCorrelation, o, t)
KERNEL(kind, kind);
KERNEL(registers, registersPerThread);
KERNEL(start, start);
KERNEL(end, end);
KERNEL(device, deviceId);
KERNEL(stream, streamId);
KERNEL(grid[0], gridX);
KERNEL(grid[1], gridY);
KERNEL(grid[2], gridZ);
KERNEL(block[0], blockX);
KERNEL(block[1], blockY);
KERNEL(block[2], blockZ);
KERNEL(static_shared, staticSharedMemory);
KERNEL(dynamic_shared, dynamicSharedMemory);
KERNEL(correlation, correlationId);
KERNEL(name, name);
KERNEL(node, graphNodeId);
COPY(copied, copyKind);
COPY(bytes, bytes);
COPY(start, start);
COPY(end, end);
COPY(device, deviceId);
COPY(stream, streamId);
COPY(correlation, correlationId);
COPY(node, graphNodeId);
FILL(bytes, bytes);
FILL(start, start);
FILL(end, end);
FILL(device, deviceId);
FILL(stream, streamId);
FILL(correlation, correlationId);
FILL(node, graphNodeId);
CALL(callback, cbid);
CALL(start, start);
CALL(end, end);
CALL(thread, threadId);
CALL(correlation, correlationId);
MARKER(flags, flags);
MARKER(time, timestamp);
MARKER(id, id);
MARKER(object_kind, objectKind);
MARKER(thread, objectId.pt.threadId);
MARKER(name, name);
CORRELATION(external_kind, externalKind);
CORRELATION(external, externalId);
CORRELATION(correlation, correlationId);
PLACE(sgt_cupti_resource, CUpti_ResourceData, descriptor, resourceDescriptor);
PLACE(sgt_cupti_graph_data, CUpti_GraphData, node, node);
PLACE(sgt_cupti_graph_data, CUpti_GraphData, original_node, originalNode);

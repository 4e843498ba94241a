/* streams.h: streams, events and graphs of the host run. A stream is a queue; nothing is done
 * before somebody waits, and then in an order that the schedule chooses among all that events
 * allow, so that a wait that is missing shows as wrong numbers: schedule 0 does only what is waited
 * for, 1 everything else first, others draw by lot. Not thread safe.
 *
 *     cudaStream_t s = host::stream_new();
 *     host::enqueue(s, [=] { memcpy(to, from, n); });
 *     host::record(e, s);
 *     host::finish(s);
 *
 * What CUDA refuses, or leaves undefined, is a failure (host::fail): waiting or asking while a
 * stream captures, work on stream NULL while streams have work (they do not wait for each other),
 * an event of a graph used outside it, a capture that ends with a stream not joined again, streams
 * that wait for each other. */
#ifndef SGT_HOST_STREAMS_H
#define SGT_HOST_STREAMS_H

#include "tests/kernels/host/host.h"

typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

namespace host
{

cudaStream_t stream_new();
void stream_free(cudaStream_t s); /* its work is done first */
void finish(cudaStream_t s);      /* until all that was put on s is done; NULL: on any stream */

cudaEvent_t event_new(bool timed);
void event_free(cudaEvent_t e);
void record(cudaEvent_t e, cudaStream_t s);
void wait(cudaStream_t s, cudaEvent_t e); /* for the last record before this call; none: at once */
/* as things stand; a little more is done after it looked */
bool came(cudaEvent_t e);
bool event_finish(cudaEvent_t e);    /* until it has come; true: it had not */
double event_seconds(cudaEvent_t e); /* when it came; negative: it has not */
/* seconds, what events take for the time; negative: the machine's clock */
extern double event_clock;

void capture(cudaStream_t s);
cudaGraphExec_t capture_end(cudaStream_t s);
void graph_run(cudaGraphExec_t g, cudaStream_t s);
void graph_free(cudaGraphExec_t g);
size_t graph_size(cudaGraphExec_t g); /* nodes */

/* ---- what a profiler is told, where one listens (cupti_api.cpp) ---- */
std::function<void()> watched(cudaStream_t s, bool captured, std::function<void()> work,
                              const char *name);
uint32_t watched_graph();         /* a graph is put on a stream: the number of that call */
void watched_node(uint32_t call); /* what is done next is a node of that one */

/* As SGT_HOST_FAULT has it (fault.cpp): whether a launch is refused, and what is done in the place
 * of work. */
bool refused(const char *name);
std::function<void()> faulty(std::function<void()> work, const char *name);

bool capturing();             /* any stream */
void schedule(unsigned seed); /* options.seed, and the lots of streams anew */
void abandon(); /* forgets all that is queued and captured, after a failure that was caught */

} /* namespace host */

#endif

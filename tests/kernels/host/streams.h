/* streams.h: streams, events and graphs of the host run. A stream is a queue. Its work runs only
 * when something waits for the work, in an order that the schedule chooses among all orders that
 * events allow. So a missing wait gives wrong numbers. With schedule 0, only the work that is
 * waited for runs. With schedule 1, all other work runs first. Other schedules choose at random.
 * Not thread safe.
 *
 *     cudaStream_t s = host::stream_new();
 *     host::enqueue(s, [=] { memcpy(to, from, n); });
 *     host::record(e, s);
 *     host::finish(s);
 *
 * Uses that CUDA refuses or leaves undefined are failures (host::fail):
 *   waiting or querying while a stream is captured
 *   work on stream NULL while other streams have work, because they do not wait for each other
 *   using an event of a graph outside the graph
 *   ending a capture while a stream has not been joined again
 *   streams that wait for each other */
#ifndef SGT_HOST_STREAMS_H
#define SGT_HOST_STREAMS_H

#include "tests/kernels/host/host.h"

typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

namespace host
{

cudaStream_t stream_new();
void stream_free(cudaStream_t s); /* runs its work first */
void finish(cudaStream_t s);      /* wait until all work on s is done; NULL: on all streams */

cudaEvent_t event_new(bool timed);
void event_free(cudaEvent_t e);
void record(cudaEvent_t e, cudaStream_t s);
/* Make s wait for the last record of e before this call. If there is none, s does not wait. */
void wait(cudaStream_t s, cudaEvent_t e);
bool event_finish(cudaEvent_t e);    /* wait until e has occurred; true: e had not */
double event_seconds(cudaEvent_t e); /* time at which e occurred; negative: it has not */
/* time in seconds that events record; negative: events use the machine's clock */
extern double event_clock;
/* seconds that events add to the machine's clock */
extern double event_late;

void capture(cudaStream_t s);
cudaGraphExec_t capture_end(cudaStream_t s);
void graph_run(cudaGraphExec_t g, cudaStream_t s);
void graph_free(cudaGraphExec_t g);

/* ---- reports to a profiler, if one is attached (profiler.cpp) ---- */
std::function<void()> watched(cudaStream_t s, bool captured, std::function<void()> work,
                              const char *name);

/* Faults that SGT_HOST_FAULT plants (fault.cpp). refused returns whether a launch is refused.
 * faulty returns the work that runs instead of the given work. */
bool refused(const char *name);
std::function<void()> faulty(std::function<void()> work, const char *name);

bool capturing();             /* whether any stream is captured */
void schedule(unsigned seed); /* set options.seed and restart the random choices of streams */

} /* namespace host */

#endif

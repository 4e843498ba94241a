/* events.h: the log's numbers for TensorBoard: RUN/tb/events.out.tfevents.TIME.HOST.PID, a file
 * each time a run is started or gone on with.
 *
 *     sgt_events *e;
 *     if (sgt_events_open(&e, "run/tb", step, &err) < 0) ...;
 *     sgt_events_add(e, &metrics, &err);                     // a point of each scalar
 *     sgt_events_close(e);
 *
 * A file is a row of records: u64 length, u32 masked CRC32C of those eight bytes, that many bytes
 * of an Event (TensorFlow's event.proto, in Protocol Buffers' encoding), u32 masked CRC32C of them;
 * all little-endian. The first says the format's version; the second is a SessionLog START at
 * `step`, at which TensorBoard forgets what files before this one hold of steps from there on. */
#ifndef SGT_EVENTS_H
#define SGT_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "metrics.h"

typedef struct sgt_events sgt_events;

/* A new file in `folder` (made if missing), whose name comes after all others there. At step 0
 * those go. */
int sgt_events_open(sgt_events **out, const char *folder, uint64_t step, sgt_error *err);
void sgt_events_close(sgt_events *e); /* NULL is fine */

/* Scalars of step m->step under their names in log.jsonl, in one write. Allocates nothing. */
int sgt_events_add(sgt_events *e, const sgt_metrics *m, sgt_error *err);

/* CRC-32C (Castagnoli), and as records have it: rotated and shifted, so that a sum over bytes that
 * hold sums stays sound. */
uint32_t sgt_crc32c(const void *p, size_t n);
uint32_t sgt_crc32c_masked(const void *p, size_t n);

#endif

/* events.h: writes the log's numbers for TensorBoard to RUN/tb/events.out.tfevents.TIME.HOST.PID, a
 * new file each time a run starts or resumes.
 *
 *     sgt_events *e;
 *     if (sgt_events_open(&e, "run/tb", step, &err) < 0) ...;
 *     sgt_events_add(e, &metrics, &err);                     // a point of each scalar
 *     sgt_events_close(e);
 *
 * A file is a sequence of records: u64 length, u32 masked CRC32C of those eight bytes, that many
 * bytes of an Event (TensorFlow's event.proto, in Protocol Buffers' encoding), u32 masked CRC32C of
 * them; all little-endian. The first record gives the version of the format. The second is a
 * SessionLog START at `step`: TensorBoard then ignores later steps in earlier files. */
#ifndef SGT_EVENTS_H
#define SGT_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "train/log/metrics.h"

typedef struct sgt_events sgt_events;

/* Create a file in `folder` (created if missing), whose name sorts after all others there. At step
 * 0, delete the other files. */
int sgt_events_open(sgt_events **out, const char *folder, uint64_t step, sgt_error *err);
void sgt_events_close(sgt_events *e); /* NULL is fine */

/* Append the scalars of step m->step in one write, with the same names as in log.jsonl. Allocates
 * no memory. */
int sgt_events_add(sgt_events *e, const sgt_metrics *m, sgt_error *err);

/* sgt_crc32c returns the CRC-32C (Castagnoli). sgt_crc32c_masked returns the form that records use:
 * rotated, plus a constant, so that a checksum of data that contains checksums stays useful. */
uint32_t sgt_crc32c(const void *p, size_t n);
uint32_t sgt_crc32c_masked(const void *p, size_t n);

#endif

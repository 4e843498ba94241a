/* crew.h: threads that pread, so that several reads are in flight where there is no io_uring. One thread puts reads and
 * takes them back, in the order in which they end. */
#ifndef SGT_CREW_H
#define SGT_CREW_H

#include <stddef.h>
#include <stdint.h>

typedef struct sgt_crew sgt_crew;

typedef struct sgt_crew_job {
    int fd;
    void *to;
    size_t bytes;
    uint64_t at;
    int result; /* bytes, or a negative errno */
    struct sgt_crew_job *next;
} sgt_crew_job;

/* NULL: out of memory. Threads that cannot be started are done without; where none can, `put` reads by itself. */
sgt_crew *sgt_crew_open(unsigned threads);
void sgt_crew_close(sgt_crew *c); /* when every job has been taken back; NULL is fine */

void sgt_crew_put(sgt_crew *c, sgt_crew_job *job); /* the caller's, until it is taken back */
sgt_crew_job *sgt_crew_take(sgt_crew *c, int wait); /* one that has ended; NULL: none has yet */

#endif

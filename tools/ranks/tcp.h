/* tcp.h: ranks connected by TCP, with rank 0 in the middle.
 *
 * Why not leave this to NCCL or MPI: ranks that torchrun started have no MPI, NCCL knows nothing of
 * CPU ranks, and neither reports in one line which rank died. Losses, checkpoints' names and NCCL's
 * own id travel this way too. */
#ifndef SGT_TOOLS_RANKS_TCP_H
#define SGT_TOOLS_RANKS_TCP_H

#include "base/ranks.h"

/* Where the ranks meet, and which of them this process is. */
typedef struct sgt_rendezvous {
    uint32_t rank, size, local; /* as in sgt_ranks */
    const char *host;           /* rank 0's */
    int port;                   /* on which rank 0 listens */
    int listener;               /* rank 0's listening socket; -1: open one at host and port */
    uint64_t token;             /* secret of this run, that every connection must know; or 0 */
} sgt_rendezvous;

/* Listen on a port that the system chooses, stored in *port. Returns the socket, or a negative
 * SGT_E*. */
int sgt_tcp_listen(int *port, sgt_error *err);

/* Connect all ranks; rank 0 takes over p->listener. See sgt_ranks_open and sgt_ranks_close. */
int sgt_tcp_join(sgt_ranks **out, sgt_rendezvous *p, const char *program, const sgt_stop *stop,
                 sgt_error *err);
void sgt_tcp_leave(sgt_ranks *r, int code);

#endif

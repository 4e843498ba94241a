/* tcp.h: ranks connected by TCP, all to rank 0.
 *
 * NCCL or MPI cannot replace this. Ranks that torchrun started have no MPI, and NCCL cannot connect
 * CPU ranks. Neither reports in one line which rank died. Losses, checkpoints' names and NCCL's own
 * id travel this way too. */
#ifndef SGT_TOOLS_RANKS_TCP_H
#define SGT_TOOLS_RANKS_TCP_H

#include "loader/base/ranks.h"

/* Where the ranks connect, and which of them this process is. */
typedef struct sgt_rendezvous {
    uint32_t rank, size, local; /* as in sgt_ranks */
    const char *host;           /* host of rank 0 */
    int port;                   /* port on which rank 0 listens */
    int listener;               /* rank 0's listening socket; -1: open one at host and port */
    uint64_t token;             /* secret of this run, which every connection must send; 0: none */
} sgt_rendezvous;

/* Listen on a port that the system chooses, and store it in *port. Return the socket, or a negative
 * SGT_E*. */
int sgt_tcp_listen(int *port, sgt_error *err);

/* Connect all ranks; rank 0 takes ownership of p->listener. See sgt_ranks_open and
 * sgt_ranks_close. */
int sgt_tcp_join(sgt_ranks **out, sgt_rendezvous *p, const char *program, const sgt_stop *stop,
                 sgt_error *err);
void sgt_tcp_leave(sgt_ranks *r, int code);

#endif

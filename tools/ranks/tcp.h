/* tcp.h: connects ranks by TCP, each with rank 0.
 *
 * NCCL or MPI cannot replace this. Ranks that torchrun started have no MPI, and NCCL cannot connect
 * CPU ranks. Neither reports in one line which rank died. These connections also transfer losses,
 * names of checkpoints, and the id that NCCL needs to start. */
#ifndef SGT_TOOLS_RANKS_TCP_H
#define SGT_TOOLS_RANKS_TCP_H

#include "loader/base/ranks.h"

/* Where the ranks meet, and which of them this process is. */
typedef struct sgt_rendezvous {
    /* this process's number, the number of ranks, and its number on this machine, as in
     * sgt_ranks */
    uint32_t rank, size, local;
    const char *host; /* host of rank 0 */
    int port;         /* port on which rank 0 listens */
    int listener;     /* rank 0's listening socket (sgt_tcp_listen); -1 on the other ranks */
    uint64_t token;   /* secret of this run, sent first over every connection; 0: none */
} sgt_rendezvous;

/* Open rank 0's socket, p->listener, which listens at p->host and p->port. If host is NULL, listen
 * at any address; if port is 0, the system chooses one and p->port is set. */
int sgt_tcp_listen(sgt_rendezvous *p, sgt_error *err);

/* sgt_tcp_join connects all ranks and takes ownership of p->listener; sgt_tcp_leave disconnects
 * them. Otherwise they are like sgt_ranks_open and sgt_ranks_close. */
int sgt_tcp_join(sgt_ranks **out, sgt_rendezvous *p, const char *program, const sgt_stop *stop,
                 sgt_error *err);
void sgt_tcp_leave(sgt_ranks *r, int code);

#endif

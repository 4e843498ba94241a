/* ranks_net.h: ranks joined by TCP, rank 0 in their middle: what ranks.c makes of a launcher's address. */
#ifndef SGT_CLI_RANKS_NET_H
#define SGT_CLI_RANKS_NET_H

#include "train/ranks.h"

typedef struct sgt_net_place {
    uint32_t rank, size, local;
    const char *host; /* rank 0's, and */
    int port;         /* where it listens */
    int listener;     /* rank 0's, where it listens already; -1: it is to */
    uint64_t token;   /* who does not know it is not of this run; 0 where the launcher gives none */
} sgt_net_place;

/* A socket that listens on a port of the system's choice, *port. */
int sgt_net_listen(int *port, sgt_error *err);

/* The rest as sgt_ranks_open and sgt_ranks_close. */
int sgt_net_join(sgt_ranks **out, const sgt_net_place *p, const char *program, const sgt_stop *stop, sgt_error *err);
void sgt_net_leave(sgt_ranks *r, int code);

#endif

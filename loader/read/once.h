/* once.h: what a reader has to say, each kind of it once, by one thread at a time. */
#ifndef SGT_ONCE_H
#define SGT_ONCE_H

#include <pthread.h>

#include "base/error.h"

typedef struct sgt_once {
    sgt_notice notice;
    pthread_mutex_t lock;
    unsigned said; /* a bit a kind */
} sgt_once;

void sgt_once_init(sgt_once *o, const sgt_notice *notice);
void sgt_once_free(sgt_once *o);
void sgt_once_say(sgt_once *o, unsigned kind, const char *fmt, ...) SGT_PRINTF(3, 4);

#endif

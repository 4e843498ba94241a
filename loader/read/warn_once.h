/* warn_once.h: give each kind of notice of a reader at most once, one thread at a time. */
#ifndef SGT_WARN_ONCE_H
#define SGT_WARN_ONCE_H

#include <pthread.h>

#include "loader/base/error.h"

typedef struct sgt_warn_once {
    sgt_notice notice;
    pthread_mutex_t lock;
    unsigned said; /* a bit per kind */
} sgt_warn_once;

void sgt_warn_once_init(sgt_warn_once *o, const sgt_notice *notice);
void sgt_warn_once_free(sgt_warn_once *o);
/* Give the notice unless one of this kind has been given. */
void sgt_warn_once_say(sgt_warn_once *o, unsigned kind, const char *fmt, ...) SGT_PRINTF(3, 4);

#endif

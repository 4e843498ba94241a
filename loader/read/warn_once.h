/* warn_once.h: give each kind of notice of a reader at most once, one thread at a time. */
#ifndef SGT_WARN_ONCE_H
#define SGT_WARN_ONCE_H

#include <pthread.h>

#include "loader/base/error.h"

typedef struct sgt_warn_once {
    sgt_notice notice;
    pthread_mutex_t lock;
    unsigned said; /* one bit per kind of notice that was given */
} sgt_warn_once;

void sgt_warn_once_init(sgt_warn_once *o, const sgt_notice *notice);
void sgt_warn_once_free(sgt_warn_once *o);
/* Give a notice, unless one of the same kind was given before. */
void sgt_warn_once_say(sgt_warn_once *o, unsigned kind, const char *fmt, ...) SGT_PRINTF(3, 4);

#endif

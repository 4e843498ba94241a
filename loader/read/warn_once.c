/* warn_once.c: one bit per kind of notice. The lock is held while a notice is given, so that
 * notices come one at a time. */
#include "loader/read/warn_once.h"

#include <stdarg.h>
#include <stdio.h>

void sgt_warn_once_init(sgt_warn_once *o, const sgt_notice *notice)
{
    *o = (sgt_warn_once){.notice = *notice};
    pthread_mutex_init(&o->lock, NULL);
}

void sgt_warn_once_free(sgt_warn_once *o) { pthread_mutex_destroy(&o->lock); }

void sgt_warn_once_say(sgt_warn_once *o, unsigned kind, const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    pthread_mutex_lock(&o->lock);
    if (!(o->said >> kind & 1)) {
        o->said |= 1u << kind;
        sgt_say(&o->notice, "%s", line);
    }
    pthread_mutex_unlock(&o->lock);
}

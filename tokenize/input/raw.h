/* raw.h: the bytes of an input as the system has them, before anything is unpacked: a file's,
 * standard input's, or what a filter prints. What source.h is made of. One thread at a time.
 *
 * A file must have the size it had when the inputs were listed, and neither its size nor its time
 * stamp may change until its last byte is read: what was read may never have been its content. Of a
 * file of 8 MiB or more, what was not in the page cache before is not left there. */
#ifndef SGT_RAW_H
#define SGT_RAW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"
#include "corpus.h"
#include "filter.h"

typedef struct sgt_raw {
    const sgt_corpus_file *file;
    const sgt_stop *stop, *cancel; /* either ends the wait for a stream */
    int fd;                        /* of the file, or of standard input */
    sgt_child child;               /* of a file's filter, whose output is read in its place */
    uint64_t at;                   /* bytes read */
    struct stat opened;
    int passing;      /* its pages are dropped behind */
    uint64_t dropped; /* up to here they are */
} sgt_raw;

/* r->file, stop and cancel are the caller's to set, and live until sgt_raw_close, which is due
 * after success alone. */
int sgt_raw_open(sgt_raw *r, sgt_error *err);
/* Goes on at byte `at`; not of streams and filters. */
int sgt_raw_seek(sgt_raw *r, uint64_t at, sgt_error *err);
/* Reads on into p[*n ... want), as much as there is. *end is set to 1 once the last byte is known
 * to be the last. */
int sgt_raw_read(sgt_raw *r, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err);
void sgt_raw_close(sgt_raw *r);

#endif

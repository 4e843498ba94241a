/* raw.h: read the bytes of an input as the system delivers them, before anything is unpacked: a
 * file, standard input, or the output of a filter. source.h is built on it. One thread at a time.
 *
 * A file must have the size and the time stamp it had when the inputs were listed. They must not
 * change until its last byte is read; otherwise the bytes read may never have been its content. For
 * a file of 8 MiB or more, pages that were not in the page cache before are not left there. */
#ifndef SGT_RAW_H
#define SGT_RAW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"
#include "tokenize/input/filter.h"

typedef struct sgt_raw {
    const sgt_corpus_file *file;
    const sgt_stop *stop, *cancel; /* requesting either ends the wait for a stream */
    int fd;                        /* descriptor of the file, or of standard input */
    sgt_child child;               /* the file's filter, whose output is read instead of the file */
    uint64_t at;                   /* bytes read */
    struct stat opened;
    int passing;      /* 1: drop pages from the page cache once they are read */
    uint64_t dropped; /* bytes whose pages were dropped */
} sgt_raw;

/* Open r->file. The caller sets r->file, stop and cancel, which must live until sgt_raw_close. Call
 * sgt_raw_close only after success. */
int sgt_raw_open(sgt_raw *r, sgt_error *err);
/* Continue at byte `at` of the file on disk. Not for standard input, nor the output of --filter
 * commands. */
int sgt_raw_seek(sgt_raw *r, uint64_t at, sgt_error *err);
/* Read into p[*n ... want) as much as is available, and advance *n. Set *end to 1 once no byte can
 * follow. */
int sgt_raw_read(sgt_raw *r, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err);
void sgt_raw_close(sgt_raw *r);

#endif

/* error.h: how every sgt library reports a failure, gives a notice, and is asked to stop.
 *
 *     sgt_error err;
 *     if (sgt_loader_open(&l, &o, &err) < 0) die("%s", err.text);
 *
 * Functions that can fail return 0 or one of the negative codes below and fill in the caller's
 * sgt_error (NULL is fine). The text names the file, the offset, what was found and what was
 * expected. Libraries never print and never exit: a remark that is not a failure goes to an
 * sgt_notice. After a failure the caller's output buffers are undefined. Programs may use these
 * functions for their own errors and notices. */
#ifndef SGT_BASE_ERROR_H
#define SGT_BASE_ERROR_H

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "sgt needs a little-endian machine: shards and checkpoints are used as they lie on disk"
#endif
#if defined(__SIZEOF_SIZE_T__) && __SIZEOF_SIZE_T__ < 8
#error "sgt needs a 64-bit machine: files and memory of more than 4 GiB are counted in size_t"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SGT_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define SGT_PRINTF(fmt, first)
#endif

enum {
    SGT_OK = 0,      /* no failure */
    SGT_ENOMEM = -1, /* out of memory */
    SGT_EIO = -2,    /* a system call failed; the message has errno's text */
    /* the content of a file is invalid: wrong format, an id beyond the vocabulary, or a change
     * while the file was in use */
    SGT_EFORMAT = -3,
    SGT_EUSAGE = -4,       /* an option, an argument or a combination of them is invalid */
    SGT_EUNSUPPORTED = -5, /* this machine or this build cannot do it */
    SGT_ESTOPPED = -6      /* stopped by an sgt_stop; work that was finished is kept */
};

typedef struct sgt_error {
    int code; /* SGT_E*, as the function returned it */
    /* one line without a newline, as sgt_printable writes it; a text that is too long is cut in its
     * middle */
    char text[1024];
} sgt_error;

/* Fill in *err, if it is not NULL, and return `code`: a function that fails returns
 * sgt_fail(err, SGT_EFORMAT, ...). */
int sgt_fail(sgt_error *err, int code, const char *fmt, ...) SGT_PRINTF(3, 4);

/* Fill in *err after a failed system call: the formatted text, then ": " and errno's text. Return
 * SGT_ENOMEM if errno is ENOMEM, else SGT_EIO. */
int sgt_fail_errno(sgt_error *err, const char *fmt, ...) SGT_PRINTF(2, 3);

/* Fill in *err with "WHAT: out of memory", or with "out of memory" if `what` is NULL. Return
 * SGT_ENOMEM. */
static inline int sgt_fail_memory(sgt_error *err, const char *what)
{
    sgt_fail(err, SGT_ENOMEM, "%s%sout of memory", what ? what : "", what ? ": " : "");
    return SGT_ENOMEM;
}

/* Copy `s` into out[size], shortened if it does not fit, with control characters, byte order marks
 * and ill-formed UTF-8 written as \xNN, so that a terminal can show it. Return out. */
char *sgt_printable(char *out, unsigned long size, const char *s);

/* A receiver of remarks that are not failures, such as "io_uring is forbidden: reading with
 * pread instead". */
typedef struct sgt_notice {
    /* called with one line; NULL: lines are dropped. Any thread of a handle may call it, but only
     * one thread at a time */
    void (*say)(void *ctx, const char *line);
    void *ctx; /* argument of say */
} sgt_notice;
/* Format a line and give it to n->say. */
void sgt_say(const sgt_notice *n, const char *fmt, ...) SGT_PRINTF(2, 3);

/* A request to stop. Long-running calls check it, bring their files into a consistent state, and
 * return SGT_ESTOPPED. It is read and written atomically, so signal handlers and other threads may
 * raise it. */
typedef struct sgt_stop {
    int requested; /* 0 or 1 */
} sgt_stop;
/* Return whether a stop was requested; 0 if s is NULL. */
static inline int sgt_stopped(const sgt_stop *s)
{
    return s && __atomic_load_n(&s->requested, __ATOMIC_RELAXED);
}
/* Request a stop. */
static inline void sgt_stop_request(sgt_stop *s)
{
    __atomic_store_n(&s->requested, 1, __ATOMIC_RELAXED);
}

#ifdef __cplusplus
}
#endif
#endif

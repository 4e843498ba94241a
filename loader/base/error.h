/* error.h: how every sgt library reports a failure, sends a notice, and is asked to stop.
 *
 *     sgt_error err;
 *     if (sgt_loader_open(&l, &o, &err) < 0) die("%s", err.text);
 *
 * Functions that can fail return 0 or one of the negative codes below, and fill in the caller's
 * sgt_error, unless the pointer to it is NULL. Its text names the file and the offset, and says
 * what was found and what was expected. Libraries never print and never exit. They pass messages
 * that are not failures to an sgt_notice. After a failure, the content of the caller's output
 * buffers is undefined. Programs may use these functions for their own errors and notices. */
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
    SGT_EIO = -2,    /* a system call failed; the message ends with errno's text */
    /* the content of a file is invalid: its format is wrong, it has an id beyond the vocabulary, or
     * it changed while it was in use */
    SGT_EFORMAT = -3,
    SGT_EUSAGE = -4, /* an option or argument is invalid, or several of them must not be combined */
    /* the requested operation is not supported by this machine or this build */
    SGT_EUNSUPPORTED = -5,
    /* stopped because the caller requested it (see sgt_stop); finished work has been saved */
    SGT_ESTOPPED = -6
};

typedef struct sgt_error {
    int code; /* the SGT_E* code that the function returned */
    /* the message: one line without a newline, safe to print (see sgt_printable). If a message does
     * not fit, its middle is left out */
    char text[1024];
} sgt_error;

/* Fill in *err, unless err is NULL, and return `code`. Because it returns `code`, a function that
 * fails can end with `return sgt_fail(err, SGT_EFORMAT, "...")`. */
int sgt_fail(sgt_error *err, int code, const char *fmt, ...) SGT_PRINTF(3, 4);

/* Fill in *err after a failed system call. The text is the formatted text, followed by ": " and the
 * description of errno. Return SGT_ENOMEM if errno is ENOMEM, otherwise SGT_EIO. */
int sgt_fail_errno(sgt_error *err, const char *fmt, ...) SGT_PRINTF(2, 3);

/* Fill in *err with the text "`what`: out of memory", or with "out of memory" if `what` is NULL.
 * Return SGT_ENOMEM. */
static inline int sgt_fail_memory(sgt_error *err, const char *what)
{
    sgt_fail(err, SGT_ENOMEM, "%s%sout of memory", what ? what : "", what ? ": " : "");
    return SGT_ENOMEM;
}

/* Copy the string `s` into the `size` bytes at `out` in a form that is safe to print in a terminal:
 * each byte of a control character, of a byte order mark or of ill-formed UTF-8 is written as \xNN.
 * If the result does not fit, its end is cut off. Return `out`. */
char *sgt_printable(char *out, unsigned long size, const char *s);

/* A receiver of messages that do not report a failure, such as "io_uring is forbidden: reading with
 * pread instead". */
typedef struct sgt_notice {
    /* function that receives one message, without a newline; NULL: messages are discarded. The
     * function may be called from any thread, but two threads never call it for the same handle
     * (such as a loader) at the same time */
    void (*say)(void *ctx, const char *line);
    void *ctx; /* argument of say */
} sgt_notice;
/* Format a message and pass it to n->say. Does nothing if n or n->say is NULL. */
void sgt_say(const sgt_notice *n, const char *fmt, ...) SGT_PRINTF(2, 3);

/* A request to stop. Functions that run for a long time check it repeatedly. Once it has been made,
 * they leave their files in a consistent state and return SGT_ESTOPPED. `requested` is read and
 * written atomically, so signal handlers and other threads may make the request. */
typedef struct sgt_stop {
    int requested; /* 0 or 1 */
} sgt_stop;
/* Return 1 if a stop was requested; 0 if none was requested or if s is NULL. */
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

/* error.h: how every sgt library reports a failure, says a notice, and is asked to stop.
 *
 *     sgt_error err;
 *     if (sgt_loader_open(&l, "out", &o, &err) < 0) { fprintf(stderr, "%s\n", err.text); return 1; }
 *
 * Functions that can fail return 0 or one of the negative codes below and fill in the caller's
 * sgt_error (NULL is fine). Libraries never print and never exit: what is worth saying but is no
 * failure goes to a sgt_notice. */
#ifndef SGT_BASE_ERROR_H
#define SGT_BASE_ERROR_H

/* Everything of sgt begins here, and so does what it asks of a machine. */
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
    SGT_OK = 0,
    SGT_ENOMEM = -1, /* out of memory */
    /* the system refused: open, read, write, rename, map, ... (the message has errno's text) */
    SGT_EIO = -2,
    SGT_EFORMAT = -3, /* a file's content is not what its format promises */
    /* the caller asked for something that makes no sense: wrong option, wrong combination */
    SGT_EUSAGE = -4,
    SGT_EUNSUPPORTED = -5, /* asked for something sensible that this machine or build cannot do */
    SGT_ESTOPPED = -6      /* stopped because sgt_stop said so; what was finished is kept */
};

/* One line of text, no newline at the end; control characters and bytes that are not UTF-8 appear
 * as \xNN. One that is too long lacks its middle. */
typedef struct sgt_error {
    int code;
    char text[1024];
} sgt_error;

/* Fills in *err (if not NULL) and returns `code`, so that a failing function can `return
 * sgt_fail(err, SGT_EFORMAT, ...)`. Message: thing, offset, got, wanted, what to do. */
int sgt_fail(sgt_error *err, int code, const char *fmt, ...) SGT_PRINTF(3, 4);

/* The same for a failed system call: appends ": " and errno's text. Returns SGT_ENOMEM for ENOMEM,
 * else SGT_EIO. */
int sgt_fail_errno(sgt_error *err, const char *fmt, ...) SGT_PRINTF(2, 3);

/* "WHAT: out of memory", or "out of memory" if `what` is NULL. Returns SGT_ENOMEM. */
static inline int sgt_fail_memory(sgt_error *err, const char *what)
{
    sgt_fail(err, SGT_ENOMEM, "%s%sout of memory", what ? what : "", what ? ": " : "");
    return SGT_ENOMEM;
}

/* Copies `s` into out[size], cut to fit, with control characters and ill-formed UTF-8 written as
 * \xNN: what may go to a terminal. Returns out. */
char *sgt_printable(char *out, unsigned long size, const char *s);

/* Where a library says one line that is not a failure ("io_uring is forbidden here: reading with
 * pread instead"). say may be NULL (silence). It may be called from any thread, one call at a time
 * per handle. */
typedef struct sgt_notice {
    void (*say)(void *ctx, const char *line);
    void *ctx;
} sgt_notice;
void sgt_say(const sgt_notice *n, const char *fmt, ...) SGT_PRINTF(2, 3);

/* A request to stop, raised by a signal handler and looked at by long-running calls, which then
 * finish what they must and return SGT_ESTOPPED. A plain int read and written atomically: safe in
 * handlers and between threads. */
typedef struct sgt_stop {
    int requested;
} sgt_stop;
static inline int sgt_stopped(const sgt_stop *s)
{
    return s && __atomic_load_n(&s->requested, __ATOMIC_RELAXED);
}
static inline void sgt_stop_request(sgt_stop *s)
{
    __atomic_store_n(&s->requested, 1, __ATOMIC_RELAXED);
}

#ifdef __cplusplus
}
#endif
#endif

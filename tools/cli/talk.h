/* talk.h: functions with which all programs talk to people: units, notices, signals. */
#ifndef SGT_CLI_TALK_H
#define SGT_CLI_TALK_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/clock.h" /* for sgt_format_duration */
#include "loader/base/error.h"

/* Format a number into buf and return buf: bytes in KiB, MiB, GiB; rates in powers of ten; times as
 * 1:02:03 or 00:42. */
char *sgt_format_bytes(char *buf, size_t n, uint64_t bytes); /* "12.3 MiB" */
/* "25.0 M" followed by unit, such as "25.0 Mtokens/s" */
char *sgt_format_rate(char *buf, size_t n, double per_s, const char *unit);
char *sgt_format_count(char *buf, size_t n, uint64_t count); /* "1,234,567" */
char *sgt_format_time(char *buf, size_t n, double seconds);
/* "1 token", "1,234 tokens", "0 tokens" */
const char *sgt_format_things(char *buf, size_t n, uint64_t count, const char *singular,
                              const char *plural);

/* Return whether standard error is a terminal whose cursor can be moved: not a file, not a pipe,
 * and not TERM=dumb. No program prints colours, so NO_COLOR has no effect. */
int sgt_can_redraw(void);

/* Return the folder for a device's timings, which are kept between runs: by the XDG base
 * directories, or NULL if there is none. The caller must free it. */
char *sgt_cache_folder(void);

/* A notice that prints "sgt-x: line" on stderr, unless `quiet` is set. The string `program` must
 * live as long as the notice. */
typedef struct sgt_talk {
    const char *program;
    int quiet;
} sgt_talk;
sgt_notice sgt_talk_notice(sgt_talk *t);

/* Let SIGINT and SIGTERM set the returned flag; a second signal ends the program at once with exit
 * code 130. SIGXFSZ is ignored. Call this before anything slow. */
sgt_stop *sgt_catch_signals(void);

#endif

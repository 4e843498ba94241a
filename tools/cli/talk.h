/* talk.h: what all programs share to talk to people: units, notices, signals. */
#ifndef SGT_CLI_TALK_H
#define SGT_CLI_TALK_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/clock.h" /* sgt_format_duration */
#include "loader/base/error.h"

/* Format into buf and return it. Bytes in KiB/MiB/GiB; rates in powers of ten; times as 1:02:03 or
 * 00:42. */
char *sgt_format_bytes(char *buf, size_t n, uint64_t bytes); /* "12.3 MiB" */
/* "25.0 M" followed by unit: "25.0 Mtokens/s" */
char *sgt_format_rate(char *buf, size_t n, double per_s, const char *unit);
char *sgt_format_count(char *buf, size_t n, uint64_t count); /* "1,234,567" */
char *sgt_format_time(char *buf, size_t n, double seconds);
/* "1 token", "1,234 tokens", "0 tokens" */
const char *sgt_format_things(char *buf, size_t n, uint64_t count, const char *singular,
                              const char *plural);

/* Return whether standard error is a terminal whose cursor can be moved: no file or pipe, and not
 * TERM=dumb. No program prints colours, so NO_COLOR changes nothing. */
int sgt_can_redraw(void);

/* Return the folder where a device's timings are kept between runs, by the XDG base directories;
 * NULL if there is none. The caller must free it. */
char *sgt_cache_folder(void);

/* A notice that prints "sgt-x: line" on stderr, unless quiet. The name must outlive it. */
typedef struct sgt_talk {
    const char *program;
    int quiet;
} sgt_talk;
sgt_notice sgt_talk_notice(sgt_talk *t);

/* Make SIGINT and SIGTERM raise the returned flag; a second one ends the program at once with exit
 * code 130. SIGXFSZ is ignored. Call it before anything slow. */
sgt_stop *sgt_catch_signals(void);

#endif

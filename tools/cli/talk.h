/* talk.h: what every program shares when it talks to people: units, notices, signals. */
#ifndef SGT_CLI_TALK_H
#define SGT_CLI_TALK_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h" /* sgt_format_duration */
#include "base/error.h"

/* Into buf, which is returned. Bytes in KiB/MiB/GiB; rates in powers of ten; times as 1:02:03 or
 * 00:42. */
char *sgt_format_bytes(char *buf, size_t n, uint64_t bytes); /* "12.3 MiB" */
/* "25.0 M" + unit: "25.0 Mtokens/s" */
char *sgt_format_rate(char *buf, size_t n, double per_s, const char *unit);
char *sgt_format_count(char *buf, size_t n, uint64_t count); /* "1,234,567" */
char *sgt_format_time(char *buf, size_t n, double seconds);
/* "1 token", "1,234 tokens", "0 tokens" */
const char *sgt_format_things(char *buf, size_t n, uint64_t count, const char *singular,
                              const char *plural);

/* Whether standard error is a terminal whose cursor can be moved: not a file or a pipe, nor
 * TERM=dumb. No program prints colours, so NO_COLOR changes nothing. */
int sgt_can_redraw(void);

/* Where a device's timings are kept from run to run, as the XDG base directories have it; NULL:
 * nowhere. malloc'd. */
char *sgt_cache_folder(void);

/* A notice that prints "sgt-x: line" on stderr (nothing when quiet). The name must outlive it. */
typedef struct sgt_talk {
    const char *program;
    int quiet;
} sgt_talk;
sgt_notice sgt_talk_notice(sgt_talk *t);

/* SIGINT and SIGTERM raise the returned flag; a second one ends the program at once with exit 130.
 * SIGXFSZ is ignored. Call before anything slow. */
sgt_stop *sgt_catch_signals(void);

#endif

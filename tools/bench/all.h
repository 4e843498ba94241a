/* all.h: sgt-bench all: every other part that needs no model, on data of its own, and a page of it. all.c has the parts
 * and runs them, each in a process of its own; all_data.c makes the data, all_page.c writes the page. */
#ifndef SGT_TOOLS_BENCH_ALL_H
#define SGT_TOOLS_BENCH_ALL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum { ALL_PARTS = 8, ALL_ARGS = 24 };

typedef struct all_part {
    const char *name, *title;
    double limit_s;             /* its share of the time */
    int wanted;
    const char *args[ALL_ARGS]; /* of sgt-bench, NULL at the end */
    char *said;                 /* its table, or its JSON document; NULL: it was left out, for: */
    char why[400];
    char *picture;              /* SVG; NULL: none */
    double seconds;
} all_part;

/* What is measured with: paths, or names in the folder `work`, which is ours and where the parts run. */
typedef struct all_data {
    char *work, *text, *set, *tokens; /* tokens: shards of the text */
    int own_text, own_set;
    uint64_t text_bytes, set_bytes;   /* of our own */
} all_data;

/* Text of words that are drawn as often as words are (Zipf's law), from GPT-2's vocabulary, in files of a MiB. */
int all_make_text(const char *folder, uint64_t bytes, const sgt_stop *stop, sgt_error *err);
/* Shards of random ids. */
int all_make_set(const char *folder, uint64_t bytes, const sgt_stop *stop, sgt_error *err);

typedef struct all_report {
    const all_part *parts;
    const all_data *data;
    double seconds; /* everything took */
} all_report;

/* The whole page. What cannot be written shows at ferror(page). */
void all_put_page(FILE *page, const all_report *r);
/* "sgt-bench loader out/", as one would type it, without what is only for the page. */
char *all_command(char *buf, size_t n, const all_part *p);

#endif

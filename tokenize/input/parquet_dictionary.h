/* parquet_dictionary.h: the dictionary of a column in a row group, which its pages share.
 *
 * Texts seldom repeat, so most dictionaries of texts serve one page: writers give a dictionary up
 * when it is full. The first page to open a dictionary unpacks it into its own unit, where strings
 * stay. Only when a second page opens it is it unpacked once more, where all can read it. */
#ifndef SGT_PARQUET_DICTIONARY_H
#define SGT_PARQUET_DICTIONARY_H

#include "tokenize/input/parquet_page.h"

/* Make a dictionary from a page at `offset` of the file. It takes over the caller's use of `old`,
 * an earlier one or NULL, also on an error, and uses its memory if no page uses it any more. The
 * caller fills in the page's packed bytes at *packed, before any other call. */
int sgt_parquet_dictionary_new(sgt_parquet_dictionary **out, sgt_parquet_dictionary *old,
                               const sgt_parquet_head *h, int codec, int type, uint64_t offset,
                               uint8_t **packed, sgt_error *err);
sgt_parquet_dictionary *sgt_parquet_dictionary_use(sgt_parquet_dictionary *d); /* NULL is allowed */
void sgt_parquet_dictionary_drop(sgt_parquet_dictionary *d);                   /* NULL is allowed */

/* Return about how many bytes the text of so many rows has; 0 if d is NULL. */
uint64_t sgt_parquet_dictionary_text(const sgt_parquet_dictionary *d, uint64_t rows);

/* The strings of an open dictionary, which live as long as the dictionary is used. */
typedef struct sgt_parquet_words {
    const sgt_parquet_string *strings; /* their positions, from `base` of the text on */
    uint64_t count;
    const uint8_t *text; /* NULL: the text of the unit that opened it */
    size_t base;
} sgt_parquet_words;

/* Unpack the dictionary, behind u's text if this is the first call. Return NULL, or what is wrong.
 * Any number of threads may call this, each with its own unit. */
const char *sgt_parquet_dictionary_open(sgt_parquet_words *w, sgt_parquet_dictionary *d,
                                        sgt_unit *u);

#endif

/* parquet_dictionary.c: dictionaries, their memory, and who unpacks them. */
#include "tokenize/input/parquet_dictionary.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "tokenize/input/parquet_codec.h"

#define KEPT ((size_t)16 << 20) /* most bytes of a dictionary whose memory is used again */

enum { PLAIN = 0, PLAIN_DICTIONARY = 2 };

/* Memory that one dictionary leaves to the next. */
typedef struct memory {
    void *at;
    size_t room;
} memory;

struct sgt_parquet_dictionary {
    atomic_int users;
    pthread_mutex_t lock; /* guards text, strings, found, shared and why */
    sgt_parquet_head head;
    uint64_t offset;
    int codec, type;
    memory packed, text; /* its page, as it is in the file and, for all that use it, unpacked */
    memory strings;      /* sgt_parquet_string, positions in the unpacked page */
    int found, shared;   /* `strings` are filled in; `text` is */
    const char *why;     /* why it cannot be unpacked */
};

static int reserve_memory(memory *m, size_t n)
{
    if (m->at && n <= m->room) return 1;
    free(m->at);
    m->room = n + n / 8; /* for the next dictionary, which may be a little larger */
    return (m->at = malloc(m->room + 1)) != NULL;
}

int sgt_parquet_dictionary_new(sgt_parquet_dictionary **out, sgt_parquet_dictionary *old,
                               const sgt_parquet_head *h, int codec, int type, uint64_t offset,
                               uint8_t **packed, sgt_error *err)
{
    sgt_parquet_dictionary *d = old;
    if (old && (atomic_load(&old->users) > 1 || old->packed.room > KEPT || old->text.room > KEPT ||
                old->strings.room > KEPT)) {
        sgt_parquet_dictionary_drop(old);
        d = NULL;
    }
    if (!d) {
        if (!(d = calloc(1, sizeof *d))) return sgt_fail_memory(err, "a dictionary");
        d->users = 1;
        pthread_mutex_init(&d->lock, NULL);
    }
    d->head = *h;
    d->offset = offset;
    d->codec = codec;
    d->type = type;
    d->found = d->shared = 0;
    d->why = NULL;
    if (!reserve_memory(&d->packed, h->packed)) {
        sgt_parquet_dictionary_drop(d);
        return sgt_fail_memory(err, "a dictionary");
    }
    *packed = d->packed.at;
    *out = d;
    return SGT_OK;
}

sgt_parquet_dictionary *sgt_parquet_dictionary_use(sgt_parquet_dictionary *d)
{
    if (d) atomic_fetch_add(&d->users, 1);
    return d;
}

void sgt_parquet_dictionary_drop(sgt_parquet_dictionary *d)
{
    if (!d || atomic_fetch_sub(&d->users, 1) > 1) return;
    pthread_mutex_destroy(&d->lock);
    free(d->packed.at);
    free(d->text.at);
    free(d->strings.at);
    free(d);
}

uint64_t sgt_parquet_dictionary_text(const sgt_parquet_dictionary *d, uint64_t rows)
{
    return d && d->head.rows ? (uint64_t)d->head.unpacked * rows / d->head.rows : 0;
}

static const char *check(const sgt_parquet_dictionary *d)
{
    const sgt_parquet_head *h = &d->head;
    const char *why = sgt_parquet_check_crc(h, d->packed.at);
    if (why) return why;
    if (h->encoding != PLAIN && h->encoding != PLAIN_DICTIONARY)
        return "a dictionary of another encoding than PLAIN";
    if (h->rows > h->unpacked / 4) return "its dictionary ends too early";
    if (!sgt_parquet_codec_may(d->codec, d->packed.at, h->packed, h->unpacked))
        return "its packed bytes are damaged";
    return NULL;
}

static const char no_memory[] = "out of memory for its dictionary";

/* Unpack the dictionary behind u's text, and find its strings. */
static const char *unpack_into(sgt_parquet_dictionary *d, sgt_unit *u)
{
    const sgt_parquet_head *h = &d->head;
    const char *why = check(d);
    size_t at = 0;
    if (why) return why;
    if (!reserve_memory(&d->strings, (size_t)h->rows * sizeof(sgt_parquet_string)) ||
        sgt_unit_reserve(u, u->used + h->unpacked, NULL) < 0)
        return no_memory;
    uint8_t *text = u->text + u->used;
    why = sgt_parquet_unpack(d->codec, d->packed.at, h->packed, text, h->unpacked);
    if (why) return why;
    u->used += h->unpacked;
    return sgt_parquet_take_plain(d->type, text, &at, h->unpacked, d->strings.at, (size_t)h->rows);
}

/* Unpack the dictionary, whose strings are found, for all that use it. */
static const char *unpack_shared(sgt_parquet_dictionary *d)
{
    const sgt_parquet_head *h = &d->head;
    if (!reserve_memory(&d->text, h->unpacked)) return no_memory;
    return sgt_parquet_unpack(d->codec, d->packed.at, h->packed, d->text.at, h->unpacked);
}

const char *sgt_parquet_dictionary_open(sgt_parquet_words *w, sgt_parquet_dictionary *d,
                                        sgt_unit *u)
{
    pthread_mutex_lock(&d->lock);
    const int own = !d->found;
    const size_t base = u->used;
    if (own) d->why = unpack_into(d, u);
    else if (!d->shared && !d->why) d->why = unpack_shared(d);
    d->found = 1;
    d->shared |= !own;
    const char *why = d->why;
    *w = (sgt_parquet_words){d->strings.at, d->head.rows, own ? NULL : d->text.at, own ? base : 0};
    pthread_mutex_unlock(&d->lock);
    return why;
}

/* unit_encode.c: turn the text of one unit of work into token ids. */
#include <stdlib.h>
#include <string.h>

#include "tokenize/input/json_parts.h"
#include "tokenize/input/unit.h"
#include "tokenize/vocab/vocab.h"

static int reserve_ids(sgt_unit *u, size_t more, sgt_error *err)
{
    size_t want = u->id_count + more;
    if (want <= u->id_room) return SGT_OK;
    uint16_t *ids = reallocarray(u->ids, want, sizeof *ids);
    if (!ids) return sgt_fail_memory(err, "token ids");
    u->ids = ids;
    u->id_room = want;
    return SGT_OK;
}

static int encode_text(sgt_unit *u, sgt_encoder *e, const sgt_vocab *v, const uint8_t *text,
                       size_t n, sgt_error *err)
{
    int rc = sgt_normalize_text(&u->normal, v->normalize, text, n, &text, &n, err);
    if (rc < 0 || (rc = reserve_ids(u, n, err)) < 0) return rc;
    size_t count = sgt_encode(e, text, n, u->ids + u->id_count);
    if (count == SGT_ENCODE_FAILED) {
        if (err) *err = *sgt_encoder_failure(e);
        return sgt_encoder_failure(e)->code;
    }
    u->id_count += count;
    return SGT_OK;
}

static int encode_part(sgt_unit *u, sgt_part *p, sgt_encoder *e, const sgt_vocab *v,
                       const sgt_tokenize_options *o, sgt_error *err)
{
    const uint8_t *text;
    size_t n;
    int rc = sgt_unit_text(u, p, o, &text, &n, err);
    if (rc < 0 || (rc = reserve_ids(u, n + 1, err)) < 0) return rc;
    p->first_id = u->id_count;
    if (p->first) u->ids[u->id_count++] = (uint16_t)sgt_vocab_eot(v);
    rc = encode_text(u, e, v, text, n, err);
    p->ids = u->id_count - p->first_id;
    return rc;
}

int sgt_unit_encode(sgt_unit *u, sgt_encoder *e, const sgt_vocab *v, const sgt_corpus *c,
                    const sgt_tokenize_options *o, sgt_error *err)
{
    u->id_count = u->invalid_count = 0;
    u->bad.why = NULL;
    const sgt_literal literal = {v->eot_text, o->special_eot};
    int rc = sgt_json_parts(u, c, o, &literal, err);
    if (!rc) rc = reserve_ids(u, u->used + u->count, err);
    for (size_t i = 0; i < u->count && !rc; i++) {
        sgt_error why;
        rc = encode_part(u, &u->parts[i], e, v, o, &why);
        if (rc < 0) return sgt_fail(err, rc, "%s: %s", c->files[u->parts[i].file].path, why.text);
    }
    return rc;
}

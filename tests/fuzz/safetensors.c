/* safetensors.c: a safetensors file is refused with a message of one line, or its tensors cover its
 * data without gaps and overlaps. Each tensor can be read from any place. */
#include "tests/fuzz/files.h"
#include "train/run/safetensors.h"

enum { PIECE = 64 };

/* Read the numbers of a tensor in pieces. If they are float32, they must be the file's bytes. */
static void read_tensor(const sgt_safetensors *s, const sgt_safetensor *t, const uint8_t *numbers)
{
    float got[PIECE];
    sgt_error err;
    for (uint64_t at = 0; at < t->count; at += PIECE) {
        size_t n = t->count - at < PIECE ? (size_t)(t->count - at) : PIECE;
        int rc = sgt_safetensors_read(s, t, at, n, got, &err);
        if (rc == SGT_EUNSUPPORTED) return;
        must(rc == 0, "a tensor's numbers can be read");
        must(strcmp(t->dtype, "F32") || !memcmp(got, numbers + t->begin + 4 * at, 4 * n),
             "they are the file's");
    }
    must(sgt_safetensors_read(s, t, t->count, 1, got, &err) < 0,
         "past its end there is nothing to read");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sgt_safetensors *s;
    sgt_error err;
    uint64_t at = 0;
    int rc = sgt_safetensors_open(&s, put_file("model.safetensors", data, size), &err);
    if (rc < 0) {
        must_say(rc, &err);
        return 0;
    }
    uint64_t header = 0;
    for (int i = 8; i-- > 0;) header = header << 8 | data[i];
    for (size_t i = 0; i < sgt_safetensors_count(s); i++) {
        const sgt_safetensor *t = sgt_safetensors_at(s, i);
        must(t->begin == at && t->end >= at, "each tensor begins where the one before ends");
        at = t->end;
        must(sgt_safetensors_find(s, t->name) == t, "a name is one tensor's");
        read_tensor(s, t, data + 8 + header);
    }
    must(8 + header + at == size, "the last one ends where the file does");
    sgt_safetensors_close(s);
    return 0;
}

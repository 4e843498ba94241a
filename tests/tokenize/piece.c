/* piece.c: makes units of work small, so that text is cut in many places. It wraps the function of
 * sgt that sets their size. */
#include <stddef.h>

_Thread_local size_t piece_bytes; /* pipeline.h */
size_t __real_sgt_text_feed_piece(void);
size_t __wrap_sgt_text_feed_piece(void);
size_t __wrap_sgt_text_feed_piece(void)
{
    return piece_bytes ? piece_bytes : __real_sgt_text_feed_piece();
}

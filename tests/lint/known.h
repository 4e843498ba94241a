/* known.h: tells checkers that see one file at a time that sgt_fail returns the code that it was
 * given. */
#include "loader/base/error.h"

#define sgt_fail(err, code, ...) (sgt_fail(err, code, __VA_ARGS__), (code))
#define sgt_fail_errno(err, ...) (sgt_fail_errno(err, __VA_ARGS__), SGT_EIO)
/* gcc follows the inline function; clang's analyzer no longer does at some depth of calls. */
#ifdef __clang__
#define sgt_fail_memory(err, what) (sgt_fail_memory(err, what), SGT_ENOMEM)
#endif

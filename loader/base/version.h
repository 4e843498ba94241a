/* version.h: the version of sgt. Before 1.0, the minor number rises if programs must be changed to
 * compile with the new public headers. Otherwise the patch number rises. */
#ifndef SGT_BASE_VERSION_H
#define SGT_BASE_VERSION_H

#define SGT_VERSION "0.2.0"

#endif

/* version.h: the version of sgt. Before version 1.0, a release increases the minor number if
 * programs must be changed to compile against its public headers. Otherwise it increases the patch
 * number. */
#ifndef SGT_BASE_VERSION_H
#define SGT_BASE_VERSION_H

#define SGT_VERSION "0.2.0"

#endif

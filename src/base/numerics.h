/* The version of everything that decides the bits of a result and is no part of the
 * recipe. A checkpoint of other numerics is not resumed. */
#ifndef STI_BASE_NUMERICS_H
#define STI_BASE_NUMERICS_H

#define STI_NUMERICS_VERSION "8"

#endif

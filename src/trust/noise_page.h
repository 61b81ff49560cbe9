/* Pictures and a page of what the noise laboratory found. */
#ifndef STI_TRUST_NOISE_PAGE_H
#define STI_TRUST_NOISE_PAGE_H

#include "stint/trust.h"

/* noise.svg: the arms beside each other; noise.html: that, and all figures. Both in
 * `folder`, atomically. title: what was run. */
stint_status sti_noise_page(const stint_noise_result *result, const char *title,
                            const char *folder);

#endif

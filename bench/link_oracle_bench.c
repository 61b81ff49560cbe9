/* The fit of links against an oracle: lines "bytes seconds" on stdin, fitted by
 * net/link_model; on stdout the segments, and, with ALPHA_S and BETA_S given, how far
 * they are off.
 *
 *   link_oracle_bench [ALPHA_S BETA_S] < samples     (bench/link_oracle_bench.sh) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/link_model.h"

enum { MOST = 1 << 16 };

int main(int argc, char **argv)
{
    static sti_link_sample samples[MOST];
    sti_link_model model = {0};
    int64_t n = 0;
    while (n < MOST && scanf("%lf %lf", &samples[n].bytes, &samples[n].seconds) == 2)
        n++;
    if (sti_link_fit(n, samples, &model) != STINT_OK) {
        (void)fprintf(stderr, "link_oracle_bench: %s\n", stint_last_error());
        return 1;
    }
    for (int k = 0; k < model.count; k++) {
        const sti_link_segment *s = &model.segment[k];
        printf("from %8.0f bytes: alpha %.4f us, beta %.6f ns a byte", s->from_bytes,
               1e6 * s->alpha_s, 1e9 * s->beta_s);
        if (argc == 3)
            printf("; off by %.4f %% and %.5f %%",
                   100 * fabs(s->alpha_s / atof(argv[1]) - 1),
                   100 * fabs(s->beta_s / atof(argv[2]) - 1));
        printf("\n");
    }
    return 0;
}

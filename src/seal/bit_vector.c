#include "seal/bit_vector.h"

#include <string.h>

void sti_bits_constant(uint64_t value, int n, sti_literal *out)
{
    for (int i = 0; i < n; i++)
        out[i] = value >> i & 1 ? STI_TRUE : STI_FALSE;
}

bool sti_bits_is_constant(const sti_literal *a, int n, uint64_t *value_out)
{
    uint64_t value = 0;
    for (int i = 0; i < n; i++) {
        if (!sti_is_constant(a[i]))
            return false;
        value |= (uint64_t)a[i] << i;
    }
    *value_out = value;
    return true;
}

sti_literal sti_bits_add(sti_netlist *netlist, int n, const sti_literal *a,
                         const sti_literal *b, sti_literal carry, sti_literal *out)
{
    for (int i = 0; i < n; i++) {
        const sti_literal x = a[i], y = b[i];
        out[i] = sti_netlist_xor(netlist, sti_netlist_xor(netlist, x, carry), y);
        carry = sti_netlist_majority(netlist, x, y, carry);
    }
    return carry;
}

static void invert(int n, const sti_literal *a, sti_literal *out)
{
    for (int i = 0; i < n; i++)
        out[i] = sti_not(a[i]);
}

void sti_bits_subtract(sti_netlist *netlist, int n, const sti_literal *a,
                       const sti_literal *b, sti_literal *out)
{
    sti_literal inverse[STI_BITS_MAX + 1];
    invert(n, b, inverse);
    sti_bits_add(netlist, n, a, inverse, STI_TRUE, out);
}

void sti_bits_negate(sti_netlist *netlist, int n, const sti_literal *a,
                     sti_literal *out)
{
    sti_literal zero[STI_BITS_MAX];
    sti_bits_constant(0, n, zero);
    sti_bits_subtract(netlist, n, zero, a, out);
}

/* By a constant: its digits -1, 0 and 1 with no two neighbours but 0 (Reitwiesner
 * 1960), so that a run of ones is one addition and one subtraction. */
static void multiply_constant(sti_netlist *netlist, int n, const sti_literal *a,
                              uint64_t by, sti_literal *out)
{
    sti_literal sum[STI_BITS_MAX];
    sti_bits_constant(0, n, sum);
    for (int i = 0; i < n && by; i++, by >>= 1) {
        if (!(by & 1))
            continue;
        if ((by & 3) == 3 && i + 1 < n) {
            sti_bits_subtract(netlist, n - i, sum + i, a, sum + i);
            by++;
            if (by == 0) /* the carry leaves 64 bits */
                break;
        } else {
            sti_bits_add(netlist, n - i, sum + i, a, STI_FALSE, sum + i);
        }
    }
    memcpy(out, sum, (size_t)n * sizeof *out);
}

void sti_bits_multiply(sti_netlist *netlist, int n, const sti_literal *a,
                       const sti_literal *b, sti_literal *out)
{
    sti_literal sum[STI_BITS_MAX], row[STI_BITS_MAX], copy[STI_BITS_MAX];
    uint64_t by;
    memcpy(copy, a, (size_t)n * sizeof *copy);
    if (sti_bits_is_constant(b, n, &by)) {
        multiply_constant(netlist, n, copy, by, out);
        return;
    }
    if (sti_bits_is_constant(a, n, &by)) {
        memcpy(copy, b, (size_t)n * sizeof *copy);
        multiply_constant(netlist, n, copy, by, out);
        return;
    }
    sti_bits_constant(0, n, sum);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n - i; k++)
            row[k] = sti_netlist_and(netlist, copy[k], b[i]);
        sti_bits_add(netlist, n - i, sum + i, row, STI_FALSE, sum + i);
    }
    memcpy(out, sum, (size_t)n * sizeof *out);
}

/* Long division: the remainder, with one more bit of a, less b where that fits. */
static void divide_unsigned(sti_netlist *netlist, int n, const sti_literal *a,
                            const sti_literal *b, sti_literal *quotient,
                            sti_literal *remainder)
{
    sti_literal rest[STI_BITS_MAX + 1], less[STI_BITS_MAX + 1];
    sti_literal inverse[STI_BITS_MAX + 1];
    invert(n, b, inverse);
    inverse[n] = STI_TRUE;
    sti_bits_constant(0, n, rest);
    for (int i = n - 1; i >= 0; i--) {
        memmove(rest + 1, rest, (size_t)n * sizeof *rest);
        rest[0] = a[i];
        const sti_literal fits =
            sti_bits_add(netlist, n + 1, rest, inverse, STI_TRUE, less);
        quotient[i] = fits;
        sti_bits_mux(netlist, n, fits, less, rest, rest);
    }
    memcpy(remainder, rest, (size_t)n * sizeof *remainder);
}

/* a, or -a where `negative`. */
static void negate_if(sti_netlist *netlist, int n, sti_literal negative,
                      const sti_literal *a, sti_literal *out)
{
    sti_literal turned[STI_BITS_MAX], zero[STI_BITS_MAX];
    for (int i = 0; i < n; i++)
        turned[i] = sti_netlist_xor(netlist, a[i], negative);
    sti_bits_constant(0, n, zero);
    sti_bits_add(netlist, n, turned, zero, negative, out);
}

void sti_bits_divide(sti_netlist *netlist, int n, bool is_signed, const sti_literal *a,
                     const sti_literal *b, sti_literal *quotient_out,
                     sti_literal *remainder_out)
{
    sti_literal x[STI_BITS_MAX], y[STI_BITS_MAX];
    const sti_literal a_sign = is_signed ? a[n - 1] : STI_FALSE;
    const sti_literal b_sign = is_signed ? b[n - 1] : STI_FALSE;
    negate_if(netlist, n, a_sign, a, x);
    negate_if(netlist, n, b_sign, b, y);
    divide_unsigned(netlist, n, x, y, quotient_out, remainder_out);
    negate_if(netlist, n, sti_netlist_xor(netlist, a_sign, b_sign), quotient_out,
              quotient_out);
    negate_if(netlist, n, a_sign, remainder_out, remainder_out);
}

/* No carry out of a + ~b + 1: only the carries are made. */
sti_literal sti_bits_less(sti_netlist *netlist, int n, bool is_signed,
                          const sti_literal *a, const sti_literal *b)
{
    sti_literal carry = STI_TRUE;
    for (int i = 0; i < n; i++) {
        const sti_literal turn = is_signed && i == n - 1;
        carry = sti_netlist_majority(netlist, a[i] ^ turn, sti_not(b[i]) ^ turn, carry);
    }
    return sti_not(carry);
}

/* AND of all, as a tree. */
static sti_literal all_of(sti_netlist *netlist, int n, sti_literal *term)
{
    for (; n > 1; n = (n + 1) / 2)
        for (int i = 0; i < n / 2; i++) {
            term[i] = sti_netlist_and(netlist, term[2 * i], term[2 * i + 1]);
            if (i == n / 2 - 1 && n % 2)
                term[n / 2] = term[n - 1];
        }
    return term[0];
}

sti_literal sti_bits_equal(sti_netlist *netlist, int n, const sti_literal *a,
                           const sti_literal *b)
{
    sti_literal term[STI_BITS_MAX];
    for (int i = 0; i < n; i++)
        term[i] = sti_not(sti_netlist_xor(netlist, a[i], b[i]));
    return all_of(netlist, n, term);
}

sti_literal sti_bits_any(sti_netlist *netlist, int n, const sti_literal *a)
{
    sti_literal term[STI_BITS_MAX];
    invert(n, a, term);
    return sti_not(all_of(netlist, n, term));
}

void sti_bits_shift(sti_netlist *netlist, int n, bool left, bool is_signed,
                    const sti_literal *a, const sti_literal *by, int by_bits,
                    sti_literal *out)
{
    sti_literal now[STI_BITS_MAX], moved[STI_BITS_MAX];
    const sti_literal fill = !left && is_signed ? a[n - 1] : STI_FALSE;
    memcpy(now, a, (size_t)n * sizeof *now);
    for (int k = 0; k < by_bits && 1 << k < n; k++) {
        const int step = 1 << k;
        for (int i = 0; i < n; i++) {
            const int from = left ? i - step : i + step;
            moved[i] = from >= 0 && from < n ? now[from] : left ? STI_FALSE : fill;
        }
        sti_bits_mux(netlist, n, by[k], moved, now, now);
    }
    memcpy(out, now, (size_t)n * sizeof *out);
}

void sti_bits_mux(sti_netlist *netlist, int n, sti_literal choose, const sti_literal *a,
                  const sti_literal *b, sti_literal *out)
{
    for (int i = 0; i < n; i++)
        out[i] = sti_netlist_mux(netlist, choose, a[i], b[i]);
}

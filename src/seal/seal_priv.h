/* What the public calls of the room share. Private to it. */
#ifndef STI_SEAL_PRIV_H
#define STI_SEAL_PRIV_H

#include "seal/circuit.h"
#include "seal/formats.h"
#include "seal/keys.h"
#include "seal/values.h"
#include "stint/seal.h"

/* Map what was read or compiled, write it to desc->out and describe it. program: the
 * C text for the page `report`; report NULL: no page. */
stint_status sti_seal_finish(const sti_imported *made, const stint_seal_make_desc *desc,
                             const char *program, const char *report,
                             stint_seal_facts *facts_out);
stint_status sti_seal_facts_of(const sti_circuit *circuit, stint_seal_facts *facts_out);
/* Values of all inputs of a circuit, checked to be complete; the caller calls fini,
 * also after a failure. */
stint_status sti_seal_inputs(const sti_circuit *circuit,
                             const stint_seal_values *values, sti_values *values_out);
/* stint_seal_check() without the files. */
stint_status sti_seal_check_keys(const sti_secret_key *key, const sti_eval_key *eval,
                                 int64_t gates, stint_seal_noise *noise_out);
/* Values as JSON text that the caller frees by stint_seal_text_free. */
stint_status sti_seal_values_text(const sti_values *values, char **json_out);

#endif

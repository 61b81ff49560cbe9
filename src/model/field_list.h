/* The networks for fields, one line each (no guard: included where STI_FIELD is
 * defined): name, whether it is the SIREN, what it is. */
STI_FIELD("siren", true, "SIREN (2020): sines, 4 hidden layers of 256")
STI_FIELD("field", false, "dense layers with any activation, features and a skip")

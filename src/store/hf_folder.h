/* A folder in Hugging Face's layout: config.json, model.safetensors (or its shards and
 * their index), perhaps a tokeniser. Weights are read in runs under the names of our
 * graphs; F32, F16 and BF16 alike. */
#ifndef STI_STORE_HF_FOLDER_H
#define STI_STORE_HF_FOLDER_H

#include "model/decoder.h"
#include "store/hf_config.h"

typedef struct sti_hf_folder sti_hf_folder;

/* STINT_E_INPUT, _UNSUPPORTED, _IO: what is missing or wrong, and in which file. Says
 * nothing about single tensors: reading does. */
stint_status sti_hf_folder_open(const char *path, sti_hf_folder **folder_out);
void sti_hf_folder_close(sti_hf_folder *folder); /* NULL is fine */
const sti_hf_config *sti_hf_folder_config(const sti_hf_folder *folder);
sti_weight_source sti_hf_folder_source(sti_hf_folder *folder);
/* Is there a config.json, which makes a folder one of these? */
bool sti_hf_folder_is(const char *path);

/* The tensor in their files that a parameter of our graph (or a part of it) is: its
 * name. part: 0; for llama's "c_attn" 0, 1, 2 are queries, keys and values. False: no
 * such tensor. */
bool sti_hf_name(const char *family, const char *name, int part, char *out,
                 size_t out_bytes);

#endif

/* Everything public, one area a header.
 *
 * codec.h     arrays of floats packed within an error bound
 * compare_text.h  two models of text: other next tokens, where they fell
 * data.h      images: what is in a folder, checks, rendered letters, downloads
 * env.h       environments for reinforcement learning, many stepped together
 * field.h     trained fields, asked for values and derivatives
 * finetune.h  a trained model trained on, all of it or a part
 * generate.h  text from a trained transformer
 * graph.h     graphs of operators: values, shapes, scopes
 * infer.h     use of a trained model: a split evaluated, an image classified
 * memory_text.h   passages of a text that networks memorise
 * model.h     network families that build themselves into a graph
 * net.h       processes that train together
 * op.h        the operators
 * play.h      agents that learn to play
 * recipe.h    recipes, read from a file or set key by key
 * run.h       a model of images run on buffers
 * seal.h      programs that run on encrypted data
 * serve.h     models behind HTTP, each request in time or refused
 * session.h   training and use of a graph of one's own, fed from memory
 * shrink.h    a trained model made small or fast
 * solve.h     sparse systems of equations
 * status.h    status codes, the last error, the log, the version
 * stop.h      stopping a call that takes long
 * store.h     models in files, Hugging Face's layout
 * text.h      tokenisers
 * topk.h      the k best of n values
 * train.h     plans and training
 * trust.h     same bits, same answers, luck, memorisation
 * uncertainty.h  how sure answers are, by several networks
 * version.h   numbers of the version that the headers are of
 *
 * Each compiles alone, as C11 and later and as C++17. Link with `pkg-config --libs
 * stint` or CMake's find_package(Stint). status.h has the conventions that all of them
 * follow. */
#ifndef STINT_STINT_H
#define STINT_STINT_H

#include "stint/codec.h"
#include "stint/compare_text.h"
#include "stint/data.h"
#include "stint/embed.h"
#include "stint/env.h"
#include "stint/field.h"
#include "stint/finetune.h"
#include "stint/generate.h"
#include "stint/graph.h"
#include "stint/infer.h"
#include "stint/memory_text.h"
#include "stint/model.h"
#include "stint/net.h"
#include "stint/op.h"
#include "stint/play.h"
#include "stint/recipe.h"
#include "stint/run.h"
#include "stint/seal.h"
#include "stint/serve.h"
#include "stint/session.h"
#include "stint/shrink.h"
#include "stint/solve.h"
#include "stint/status.h"
#include "stint/stop.h"
#include "stint/store.h"
#include "stint/text.h"
#include "stint/topk.h"
#include "stint/train.h"
#include "stint/trust.h"
#include "stint/uncertainty.h"
#include "stint/version.h"

#endif

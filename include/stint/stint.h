/* Everything public, one area a header. */
#ifndef STINT_STINT_H
#define STINT_STINT_H

#include "stint/codec.h"
#include "stint/data.h"
#include "stint/generate.h"
#include "stint/graph.h"
#include "stint/infer.h"
#include "stint/model.h"
#include "stint/net.h"
#include "stint/op.h"
#include "stint/recipe.h"
#include "stint/status.h"
#include "stint/stop.h"
#include "stint/store.h"
#include "stint/text.h"
#include "stint/topk.h"
#include "stint/train.h"
#include "stint/trust.h"
#include "stint/version.h"

#endif

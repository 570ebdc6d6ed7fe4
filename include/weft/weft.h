// All of Weft.
#pragma once

#include "weft/array.h"
#include "weft/attend.h"
#include "weft/convolution.h"
#include "weft/dim.h"
#include "weft/dtype.h"
#include "weft/error.h"
#include "weft/explain.h"
#include "weft/graph.h"
#include "weft/mesh.h"
#include "weft/nn.h"
#include "weft/ops.h"
#include "weft/optim.h"
#include "weft/run.h"
#include "weft/session.h"
#include "weft/tensor.h"
#include "weft/tensor_file.h"

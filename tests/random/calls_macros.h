// How the tables of calls are written. Each call is written once: the macro keeps it as code, to build the graph, and as
// text, from which the emitter makes C++ by putting the arguments in the place of `a.kind(n)`.
#pragma once

#include "calls.h"
#include "rng.h"

// clang-format off
#define WEFT_CALL(name, ...) \
  {name, {#__VA_ARGS__, []([[maybe_unused]] Graph& g, [[maybe_unused]] const Args& a) -> Tensor { return __VA_ARGS__; }}}
// clang-format on
#define WEFT_UNARY(name) WEFT_CALL(#name, name(a.x(0)))
#define WEFT_BINARY(name) WEFT_CALL(#name, name(a.x(0), a.x(1)))

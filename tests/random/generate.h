// From a seed to a recipe: its kind, inputs and variables, a dozen moves, outputs and a loss; then meshes and layouts for it.
#pragma once

#include "generator.h"

namespace weft::random_graphs {

// Evenly mixed: seed after seed.
//   general  all moves on tame numbers
//   carried  loops that hand one carried value on as another
//   second   derivatives of derivatives, through loops and regions too
//   whole    integers of every dtype that wrap, and bools
//   regions  recompute, reversible, custom_gradient, microbatch and loops that return outside tensors
//   extreme  infinities, zeros of both signs, subnormals, large logits
//   names    dims, inputs and variables called as the inside of the engine calls things
const std::vector<std::string>& kinds();
const std::string& kind_of(std::uint64_t seed);

// Graphs of each kind take turns in f64, f32 and bf16.
Recipe generate(std::uint64_t seed);

// Inputs, variables and so many moves of all sorts on tame numbers.
Generator grown(std::uint64_t seed, int moves);

std::string random_mesh(Rng& rng);
// Each axis on one of the dims, now and then on two or on none; products of axes in any order.
std::string random_layout(Rng& rng, const std::vector<std::string>& dims, const Mesh& mesh);
// Half of the time none; otherwise `*` on some of the axes in any order.
std::string random_store(Rng& rng, const Mesh& mesh);

}  // namespace weft::random_graphs

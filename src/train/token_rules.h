// The host's part of the rules of decoding: what the rows so far mean for the next token.
#pragma once

#include <span>
#include <vector>

#include "train/candidates.h"
#include "train/search.h"
#include "weft/session.h"

namespace weft::decode {

// A row of the batch. Without a search: a slot without a row, or a row that chooses no token in this step.
struct RowSoFar {
  const std::vector<std::int32_t>* prompt = nullptr;
  const Search* search = nullptr;
};

// Adds the inputs of `offered` for a step: an entry of `rows` for each row of the batch.
void add_rule_feeds(const CandidateTensors& offered, const Options& options, std::span<const RowSoFar> rows,
                    Feeds& feeds);

// The tokens after which `ids` would end with `size` tokens that it has already, in order of their places.
std::vector<std::int32_t> repeating(std::span<const std::int32_t> ids, std::size_t size);

}  // namespace weft::decode

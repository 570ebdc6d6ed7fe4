#include "train/decode_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "weft/error.h"

namespace weft::decode {

namespace {

void check_option(const char* option, double value, double low, double high, Site site) {
  if (value >= low && value <= high) return;
  std::ostringstream number, range;
  number << value;
  range << low;
  if (std::isfinite(high)) range << " to " << high;
  throw UserError({.what = "the option " + std::string(option) + " of decoding cannot be " + number.str(),
                   .where = site,
                   .fix = "give a number from " + range.str() + (std::isfinite(high) ? "" : " on")});
}

void check_ids(const Ids& ids, const char* what, std::size_t row, std::int64_t room, std::int64_t vocab, Site site) {
  const std::string who = std::string(what) + " " + std::to_string(row);
  if (static_cast<std::int64_t>(ids.size()) > room)
    throw UserError(
        {.what = who + " has " + std::to_string(ids.size()) + " tokens; there is room for " + std::to_string(room),
         .where = site,
         .fix = "shorten it, or make the decoder for longer ones"});
  for (std::int32_t id : ids)
    if (id < 0 || id >= vocab)
      throw UserError(
          {.what = who + " holds the token " + std::to_string(id) + ", and the vocabulary has " + std::to_string(vocab),
           .where = site,
           .fix = "write the text with the vocabulary that the model was trained with"});
}

}  // namespace

void check(const models::TransformerOptions& model, const Sizes& sizes, const Options& o, Site site) {
  const double endless = std::numeric_limits<double>::infinity();
  models::check(model);
  check_option("batch", static_cast<double>(sizes.batch), 1, endless, site);
  check_option("max_length", static_cast<double>(o.max_length), 1, endless, site);
  check_option("prompt_length", static_cast<double>(sizes.prompt), 0, static_cast<double>(o.max_length), site);
  check_option("temperature", o.temperature, 0, std::numeric_limits<double>::max(), site);
  check_option("top_k", static_cast<double>(o.top_k), 0, endless, site);
  check_option("top_p", o.top_p, std::numeric_limits<double>::min(), 1, site);
  check_option("beams", static_cast<double>(o.beams), 1, endless, site);
  check_option("alpha", o.alpha, 0, std::numeric_limits<double>::max(), site);
  check_option("n_best", static_cast<double>(o.n_best), 1, static_cast<double>(o.beams), site);
  if (o.beams > 1 && o.temperature > 0)
    throw UserError({.what = "decoding is asked for " + std::to_string(o.beams) + " beams and for sampling",
                     .where = site,
                     .fix = "search with temperature 0, or sample with one beam"});
  if ((model.kind == models::Kind::kEncoderDecoder) != (sizes.inputs > 0))
    throw UserError({.what = "the decoder is made for inputs of length " + std::to_string(sizes.inputs),
                     .where = site,
                     .fix = sizes.inputs > 0 ? "give 0: only an encoder-decoder has inputs"
                                             : "an encoder-decoder needs room for its inputs: give their most length"});
}

void check_rows(const models::TransformerOptions& model, const Sizes& sizes, const Options& o,
                const std::vector<Ids>& prompts, const std::vector<Ids>& inputs, Site site) {
  const std::size_t wanted = sizes.inputs > 0 ? prompts.size() : 0;
  if (inputs.size() != wanted)
    throw UserError({.what = "decoding is given " + std::to_string(prompts.size()) + " prompts and " +
                             std::to_string(inputs.size()) + " inputs",
                     .where = site,
                     .fix = sizes.inputs > 0 ? "give a row of inputs for every prompt"
                                             : "leave the inputs out: only an encoder-decoder has them"});
  const std::int64_t room = model.prefix ? std::min(sizes.prompt, o.max_length - 1) : o.max_length - 1;
  const std::int64_t vocab = models::padded_vocab(model);
  for (std::size_t row = 0; row < prompts.size(); ++row) check_ids(prompts[row], "prompt", row, room, vocab, site);
  for (std::size_t row = 0; row < inputs.size(); ++row) check_ids(inputs[row], "input", row, sizes.inputs, vocab, site);
}

}  // namespace weft::decode

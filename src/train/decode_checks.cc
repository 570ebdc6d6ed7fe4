#include "train/decode_checks.h"
#include "train/decode_weights.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "weft/error.h"

namespace weft::decode {

namespace {

void refuse_option(ErrorCode code, bool wrong, const char* option, double value, const std::string& fix, Site site) {
  if (!wrong) return;
  std::ostringstream number;
  number << value;
  throw UserError({.code = code,
                   .what = "the option " + std::string(option) + " of decoding cannot be " + number.str(),
                   .where = site,
                   .fix = fix});
}

void at_least(ErrorCode code, const char* option, std::int64_t value, std::int64_t least, Site site) {
  refuse_option(code, value < least, option, static_cast<double>(value),
                "give a whole number from " + std::to_string(least) + " on", site);
}

void not_negative(ErrorCode code, const char* option, double value, Site site) {
  refuse_option(code, !(value >= 0 && std::isfinite(value)), option, value, "give a finite number from 0 on", site);
}

// Beams with their 2 k candidates need more for each stop token: a handful is meant, not a vocabulary.
void check_stop_tokens(const Ids& ids, std::int64_t vocab, Site site) {
  constexpr std::size_t kMost = 64;
  if (ids.size() > kMost)
    throw UserError({.code = "decode.too-many-stop-tokens",
                     .what = "decoding is given " + std::to_string(ids.size()) + " stop tokens",
                     .where = site,
                     .fix = "give at most " + std::to_string(kMost) + ", or end rows by Decoder::stop_when"});
  for (const std::int32_t id : ids)
    if (id < 0 || id >= vocab)
      throw UserError({.code = "decode.stop-token-out-of-range",
                       .what = "the stop token " + std::to_string(id) + " is not in the vocabulary of " +
                               std::to_string(vocab) + " tokens",
                       .where = site,
                       .fix = "give ids from 0 to " + std::to_string(vocab - 1)});
}

void check_rules(const Options& o, std::int64_t vocab, Site site) {
  check_stop_tokens(o.stop_tokens, vocab, site);
  at_least("decode.bad-min-tokens", "min_tokens", o.min_tokens, 0, site);
  const std::int64_t most = o.max_tokens > 0 ? std::min(o.max_tokens, o.max_length) : o.max_length;
  const char* of = most == o.max_tokens ? "max_tokens" : "max_length";
  refuse_option("decode.min-tokens-without-room", o.min_tokens > most, "min_tokens", static_cast<double>(o.min_tokens),
                "give a whole number from 0 to " + std::string(of) + ", which is " + std::to_string(most), site);
  refuse_option("decode.bad-repetition-penalty", !(o.repetition_penalty > 0 && std::isfinite(o.repetition_penalty)),
                "repetition_penalty", o.repetition_penalty,
                "give a finite number above 0, such as 1.2; 1 changes nothing", site);
  at_least("decode.bad-ahead", "ahead", o.ahead, 0, site);
  at_least("decode.bad-no-repeat-ngram", "no_repeat_ngram", o.no_repeat_ngram, 0, site);
}

void check_ids(const Ids& ids, const char* what, std::size_t row, std::int64_t room, std::int64_t vocab, Site site) {
  const std::string who = std::string(what) + " " + std::to_string(row);
  if (static_cast<std::int64_t>(ids.size()) > room)
    throw UserError(
        {.code = "decode.row-too-long",
         .what = who + " has " + std::to_string(ids.size()) + " tokens; there is room for " + std::to_string(room),
         .where = site,
         .fix = "shorten it, or make the decoder for longer prompts"});
  for (std::int32_t id : ids)
    if (id < 0 || id >= vocab)
      throw UserError(
          {.code = "decode.token-out-of-range",
           .what = who + " holds the token " + std::to_string(id) + ", and the vocabulary has " + std::to_string(vocab),
           .where = site,
           .fix = "write the text with the vocabulary that the model was trained with"});
}

}  // namespace

models::DecodeSizes decode_sizes(const Sizes& sizes, const Options& options, const models::KernelPanels& panels) {
  return {.batch = sizes.batch,
          .beams = options.beams,
          .length = options.max_length,
          .prompt_length = sizes.prompt,
          .inputs_length = sizes.inputs,
          .weights = weights_of(options, panels),
          .panels = panels};
}

void check(const models::TransformerOptions& model, const Sizes& sizes, const Options& o, Site site) {
  models::check(model);
  at_least("decode.bad-batch", "batch", sizes.batch, 1, site);
  at_least("decode.bad-max-length", "max_length", o.max_length, 1, site);
  at_least("decode.bad-max-tokens", "max_tokens", o.max_tokens, 0, site);
  for (const std::int64_t most : o.row_tokens) at_least("decode.bad-row-tokens", "row_tokens", most, 0, site);
  refuse_option("decode.bad-prompt-length", sizes.prompt < 0 || sizes.prompt > o.max_length, "prompt_length",
                static_cast<double>(sizes.prompt),
                "give a whole number from 0 to max_length, which is " + std::to_string(o.max_length), site);
  not_negative("decode.bad-temperature", "temperature", o.temperature, site);
  at_least("decode.bad-top-k", "top_k", o.top_k, 0, site);
  refuse_option("decode.bad-top-p", !(o.top_p > 0 && o.top_p <= 1), "top_p", o.top_p, "give a number above 0, up to 1",
                site);
  at_least("decode.bad-beams", "beams", o.beams, 1, site);
  not_negative("decode.bad-alpha", "alpha", o.alpha, site);
  at_least("decode.bad-n-best", "n_best", o.n_best, 1, site);
  const std::string n = std::to_string(o.n_best), beams = std::to_string(o.beams);
  refuse_option("decode.more-texts-than-beams", o.n_best > o.beams, "n_best", static_cast<double>(o.n_best),
                o.temperature > 0 ? "give 1: sampling makes one text for each prompt"
                                  : "search with as many beams: " + n + " (--beams " + n + "); there are " + beams,
                site);
  check_rules(o, models::padded_vocab(model), site);
  if (o.beams > 1 && o.temperature > 0)
    throw UserError({.code = "decode.beams-and-sampling",
                     .what = "decoding is asked for " + std::to_string(o.beams) + " beams and for sampling",
                     .where = site,
                     .fix = "search with temperature 0 (--temperature 0), or sample with one beam (--beams 1)"});
  if ((model.kind == models::Kind::kEncoderDecoder) != (sizes.inputs > 0))
    throw UserError({.code = "decode.inputs-length-mismatch",
                     .what = "the decoder is made for inputs of length " + std::to_string(sizes.inputs),
                     .where = site,
                     .fix = sizes.inputs > 0 ? "give 0: only an encoder-decoder has inputs"
                                             : "an encoder-decoder needs room for its inputs: give their most length"});
}

void check_rows(const models::TransformerOptions& model, const Sizes& sizes, const Options& o,
                const std::vector<Ids>& prompts, const std::vector<Ids>& inputs, Site site) {
  const std::size_t wanted = sizes.inputs > 0 ? prompts.size() : 0;
  if (inputs.size() != wanted)
    throw UserError({.code = "decode.row-count-mismatch",
                     .what = "decoding is given " + std::to_string(prompts.size()) + " prompts and " +
                             std::to_string(inputs.size()) + " inputs",
                     .where = site,
                     .fix = sizes.inputs > 0 ? "give a row of inputs for every prompt"
                                             : "leave the inputs out: only an encoder-decoder has them"});
  if (!o.row_tokens.empty() && o.row_tokens.size() != prompts.size())
    throw UserError({.code = "decode.row-tokens-mismatch",
                     .what = "decoding is given " + std::to_string(prompts.size()) + " rows and row_tokens of " +
                             std::to_string(o.row_tokens.size()),
                     .where = site,
                     .fix = "give row_tokens a number for every row, or leave it empty"});
  const std::int64_t room = model.prefix ? std::min(sizes.prompt, o.max_length - 1) : o.max_length - 1;
  const std::int64_t vocab = models::padded_vocab(model);
  for (std::size_t row = 0; row < prompts.size(); ++row) check_ids(prompts[row], "prompt", row, room, vocab, site);
  for (std::size_t row = 0; row < inputs.size(); ++row) check_ids(inputs[row], "input", row, sizes.inputs, vocab, site);
}

}  // namespace weft::decode

#include "train/decode_batch.h"

#include <algorithm>

#include "train/error_setting.h"
#include "weft/detail/doctor.h"
#include "weft/detail/progress.h"
#include "weft/detail/session_access.h"
#include "weft/detail/words.h"
#include "weft/task.h"

namespace weft::train {

namespace {

// Rows of a step, beams counted: more make steps longer, but hardly more tokens a second.
constexpr std::int64_t kRowsOfAStep = 128;

std::int64_t rounded_up(std::int64_t least, std::int64_t unit) { return (least + unit - 1) / unit * unit; }

// What a processor of this process may have. A card's memory is not known here.
std::int64_t limit_of(const Session& session, const Config& config) {
  if (!config.decode.memory.empty()) return bytes_of(config.decode.memory).value_or(0);
  if (config.mesh.device == device::cuda().name) return 0;
  return machine_memory().available / static_cast<std::int64_t>(detail::processors(session).size());
}

// `fitting`: the rows that fit; 0: none.
[[noreturn]] void refuse(const Config& config, const DecodeBatch& asked, std::int64_t fitting) {
  const bool told = !config.decode.memory.empty();
  throw UserError({.code = "decode.batch-over-memory",
                   .what = "a batch of " + std::to_string(asked.rows) + " with " +
                           std::to_string(config.decode.max_length) + " positions needs " +
                           bytes_text(asked.memory.sum()) + " on each processor, and it may have " +
                           bytes_text(asked.limit),
                   .where = place_of(config, told ? "decode.memory" : "decode.batch"),
                   .fix = (fitting > 0 ? "give --batch " + std::to_string(fitting) + ", or " : std::string("give ")) +
                          "a smaller --length, or more memory with --set decode.memory=SIZE"});
}

}  // namespace

DecodeBatch decode_batch(const Session& session, const Config& config, std::int64_t prompts, std::int64_t shortest,
                         std::int64_t longest) {
  const std::int64_t unit = session.mesh().size();
  const std::int64_t most = rounded_up(std::max<std::int64_t>(1, prompts), unit);
  const std::int64_t pays = rounded_up(std::max<std::int64_t>(1, kRowsOfAStep / config.decode.beams), unit);
  const auto planned = [&](std::int64_t rows) {
    return DecodeBatch{rows, config.model->decoder_memory(config, rows, shortest, longest), limit_of(session, config)};
  };
  const auto fits = [&](const DecodeBatch& batch) {
    return !detail::any(session, batch.limit > 0 && batch.memory.sum() > batch.limit);
  };
  const DecodeBatch asked = planned(std::min(most, config.decode.batch > 0 ? config.decode.batch : pays));
  if (fits(asked)) return asked;
  DecodeBatch fewer = asked;
  while (fewer.rows > unit) {
    fewer = planned(std::max(unit, fewer.rows * 3 / 4 / unit * unit));
    if (!fits(fewer)) continue;
    if (config.decode.batch > 0) refuse(config, asked, fewer.rows);
    return fewer;
  }
  refuse(config, config.decode.batch > 0 ? asked : fewer, 0);
}

}  // namespace weft::train

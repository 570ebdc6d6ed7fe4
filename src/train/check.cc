// The checks that a config passes before it is run.
#include <algorithm>
#include <cmath>

#include "train/parts.h"
#include "train/error_setting.h"
#include "weft/error.h"
#include "weft/detail/words.h"

namespace weft::train {

namespace {

void refuse(ErrorCode code, const Config& config, bool wrong, const std::string& setting, const std::string& what,
            const std::string& fix) {
  if (wrong) throw UserError({.code = code, .what = what, .where = place_of(config, setting), .fix = fix});
}

void check_batch(const Config& c) {
  const auto n = [](std::int64_t number) { return std::to_string(number); };
  refuse("config.sequences-and-tokens", c, c.batch.sequences > 0 && c.batch.tokens > 0, "batch.tokens",
         "batch.sequences is " + n(c.batch.sequences) + " and batch.tokens is " + n(c.batch.tokens),
         "set one of them to 0: tokens = sequences * length");
  refuse("config.bad-length", c, c.batch.length < 1, "batch.length", "rows of a batch cannot have 0 targets",
         "set batch.length");
  refuse("config.uneven-tokens", c, c.batch.tokens % c.batch.length != 0, "batch.tokens",
         n(c.batch.tokens) + " tokens make no whole rows of length " + n(c.batch.length),
         "set batch.tokens to a multiple of batch.length");
  refuse("config.uneven-microbatches", c, c.batch.microbatches < 1 || c.sequences() % c.batch.microbatches != 0,
         "batch.microbatches",
         n(c.sequences()) + " rows cannot be divided into " + n(c.batch.microbatches) + " microbatches",
         "set batch.microbatches to a divisor of the rows");
}

}  // namespace

bool packs(const Config& config) {
  const std::string& format = config.data.format;
  const bool tsv = !config.data.train.empty() && config.data.train[0].ends_with(".tsv");
  return source(config, config.data.train, true).pack &&
         (format == "documents" || format == "lines" || format == "tsv" || format == "pairs" ||
          (format.empty() && tsv));
}

Config completed(const Config& config) {
  Config whole = config;
  whole.model.task().complete(config);
  return whole;
}

void check_choices(const Config& c) {
  const std::vector<std::string> devices = device::names();
  std::string known;
  for (const std::string& name : devices) known += (known.empty() ? "\"" : ", \"") + name + "\"";
  refuse("config.unknown-device", c, std::find(devices.begin(), devices.end(), c.mesh.device) == devices.end(),
         "mesh.device", "there is no device '" + c.mesh.device + "'", "set mesh.device to one of: " + known);
  refuse("config.unknown-wire", c,
         !c.mesh.wire.empty() && c.mesh.wire != "threads" && c.mesh.wire != "mpi" && c.mesh.wire != "nccl", "mesh.wire",
         "there is no wire '" + c.mesh.wire + "'",
         "set mesh.wire to \"threads\", \"mpi\" or \"nccl\", or leave it out");
  refuse("config.bad-memory", c, !c.mesh.memory.empty() && !bytes_of(c.mesh.memory), "mesh.memory",
         "'" + c.mesh.memory + "' is no number of bytes", "write sizes like 512MiB or 2GiB");
}

void check(const Config& config) {
  check_batch(config);
  refuse("config.no-training-data", config, config.data.train.empty(), "data.train", "there is nothing to train on",
         "set data.train to the files: data.train = [\"corpus/train.txt\"]");
  refuse("config.pairs-need-two-files", config, config.data.format == "pairs" && config.data.train.size() != 2,
         "data.train", "pairs are two files, but data.train has " + std::to_string(config.data.train.size()),
         "give the file of the inputs, then that of the targets");
  refuse("config.bad-checkpoint-minutes", config, !(config.run.checkpoint_minutes >= 0), "run.checkpoint_minutes",
         "checkpoints cannot be less than 0 minutes apart", "set run.checkpoint_minutes to minutes, or to 0 for none");
  refuse("config.bad-deadline", config, !(config.run.deadline > 0), "run.deadline",
         "processors cannot wait " + number_text(config.run.deadline) + " s for each other",
         "set run.deadline to seconds above 0, as 600");
  refuse("config.bad-rate", config, config.rate && !(*config.rate > 0 && std::isfinite(*config.rate)), "optimizer.rate",
         "a learning rate cannot be " + number_text(config.rate.value_or(0)), "give a finite number above 0, as 1e-3");
  check_choices(config);
  mesh_of(config);
  layout_of(config);
  store_of(config);
  schedule_of(config);
  const Config whole = completed(config);
  placed(config, {.section = "model", .otherwise = "model.kind"}, [&] { whole.model->check(whole); });
}

}  // namespace weft::train

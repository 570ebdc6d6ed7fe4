// Small runs as a user would start them, by the command.
#pragma once

#include <map>
#include <sstream>

#include "small_run.h"
#include "support/command.h"

namespace weft::train {

// Step -> loss as metrics.jsonl has it; what was made twice must be the same.
inline std::map<std::int64_t, std::string> losses_in(const std::string& folder) {
  std::map<std::int64_t, std::string> losses;
  std::ifstream file(folder + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const std::size_t step = line.find("\"step\":"), loss = line.find("\"loss\":");
    if (step == std::string::npos || loss == std::string::npos || line.back() != '}') continue;
    const std::string number = line.substr(loss + 7, line.find_first_of(",}", loss) - loss - 7);
    const auto [at, is_new] = losses.emplace(std::stoll(line.substr(step + 7)), number);
    EXPECT_EQ(at->second, number) << "step " << at->first << " was made again with another loss";
  }
  return losses;
}

inline std::string train_command(const SmallRun& run, const std::string& out, const std::string& more = "") {
  std::ostringstream command;
  command << WEFT_COMMAND << " train " << run.config_path() << " --out " << run.folder << "/" << out << " " << more
          << " 2>&1";
  return command.str();
}

}  // namespace weft::train

#include "comm/launch.h"

#include <charconv>
#include <cstdlib>

#include "base/str.h"
#include "weft/error.h"

namespace weft::comm {

namespace {

std::string_view variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string_view() : std::string_view(text);
}

int number(const char* name, int least, int otherwise) {
  const std::string_view text = variable(name);
  if (text.empty()) return otherwise;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least)
    throw UserError({.code = "launch.bad-variable",
                     .what = str("the launcher's variable ", name, " is '", text, "'"),
                     .where = "the environment of this process",
                     .fix = str("start through mpirun or srun, or unset ", name, " to run without ranks")});
  return value;
}

// The variables of one launcher; found by the one that says how many processes there are.
struct Dialect {
  const char *by, *size, *rank, *local_rank, *hosts;
};
constexpr Dialect kDialects[] = {
    {kByHand, "WEFT_NCCL_SIZE", "WEFT_NCCL_RANK", "", ""},
    {"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", ""},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_NODELIST"},
    {"PMI", "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID", ""},
};

// The names "head" + number for one part of a bracket, "01-03" or "7"; digits keep their width.
void add_range(const std::string& head, std::string_view part, std::vector<std::string>& names) {
  const std::size_t dash = part.find('-');
  const std::string first(part.substr(0, dash)), last(dash == part.npos ? first : std::string(part.substr(dash + 1)));
  const long begin = std::strtol(first.c_str(), nullptr, 10), end = std::strtol(last.c_str(), nullptr, 10);
  for (long i = begin; i <= end; ++i) {
    std::string digits = str(i);
    if (digits.size() < first.size()) digits.insert(0, first.size() - digits.size(), '0');
    names.push_back(head + digits);
  }
}

}  // namespace

std::vector<std::string> expand_hosts(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::size_t stop = text.find_first_of(",[");
    const std::string head(text.substr(0, stop));
    if (stop == text.npos || text[stop] == ',') {
      if (!head.empty()) names.push_back(head);
      text.remove_prefix(stop == text.npos ? text.size() : stop + 1);
      continue;
    }
    const std::size_t close = text.find(']', stop);
    for (const std::string& part : split_words(text.substr(stop + 1, close - stop - 1), ","))
      add_range(head, part, names);
    text.remove_prefix(close == text.npos ? text.size() : close + 1);
  }
  return names;
}

std::optional<Launch> launched() {
  for (const Dialect& dialect : kDialects) {
    if (variable(dialect.size).empty() || variable(dialect.rank).empty()) continue;
    Launch launch{.by = dialect.by,
                  .rank = number(dialect.rank, 0, 0),
                  .size = number(dialect.size, 1, 1),
                  .local_rank = number(dialect.local_rank, 0, 0),
                  .hosts = *dialect.hosts == 0 ? std::vector<std::string>() : expand_hosts(variable(dialect.hosts))};
    if (launch.rank >= launch.size)
      throw UserError({.code = "launch.bad-rank",
                       .what = str("the launcher calls this process rank ", launch.rank, " of ", launch.size),
                       .where = str("the variables ", dialect.rank, " and ", dialect.size),
                       .fix = "start through mpirun or srun, or unset both to run without ranks"});
    return launch;
  }
  return std::nullopt;
}

}  // namespace weft::comm

#include "train/prompt_reader.h"

#include <algorithm>
#include <limits>

#include "train/layout_parts.h"

namespace weft::decode {

namespace {

constexpr std::int64_t kPassPrice = 32;  // what a pass costs besides its tokens, in tokens: weights are read once

std::int64_t rounded_up(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }

// The least of 1, 2, 3, 4, 6, 8, 12, 16, 24, … that is at least x: at most a third is padding.
std::int64_t step_up(std::int64_t x) {
  for (std::int64_t power = 1;; power *= 2) {
    if (x <= power) return power;
    if (power > 1 && x <= power / 2 * 3) return power / 2 * 3;
  }
}

// A length as passes have it: 0, 8, 16, 24, 32, 48, …
std::int64_t padded_length(std::int64_t length, std::int64_t unit, std::int64_t most) {
  constexpr std::int64_t kLeast = 8;
  if (length == 0) return 0;
  return std::min(most, rounded_up(kLeast * step_up((length + kLeast - 1) / kLeast), unit));
}

// The layout for a graph that lacks some of its dims: a prefix has no batch.
Layout with_optional_rules(const Layout& layout) {
  std::string text;
  for (const LayoutRule& rule : layout.rules()) {
    text += (text.empty() ? "" : " ") + rule.dim + ":";
    for (std::size_t i = 0; i < rule.axes.size(); ++i) text += (i == 0 ? "" : "+") + rule.axes[i];
    text += rule.axes.empty() ? "-?" : "?";
  }
  return Layout::parse(text);
}

std::int64_t size_of(std::span<const std::int32_t> ids) { return static_cast<std::int64_t>(ids.size()); }

}  // namespace

PassSizes padded_sizes(const PassSizes& least, const PassLimits& limits) {
  const std::int64_t parts = step_up((least.rows + limits.rows_unit - 1) / limits.rows_unit);
  return {std::min(limits.rows, parts * limits.rows_unit),
          padded_length(least.prompt, limits.prompt_unit, limits.prompt),
          padded_length(least.inputs, limits.inputs_unit, limits.inputs)};
}

std::vector<std::size_t> rows_of_passes(const std::vector<std::array<std::int64_t, 2>>& lengths,
                                        const PassLimits& limits) {
  const std::size_t rows = lengths.size();
  std::vector<std::int64_t> price(rows + 1, std::numeric_limits<std::int64_t>::max());
  std::vector<std::size_t> last(rows + 1, 0);  // the rows of the last of the passes over the first rows
  price[0] = 0;
  for (std::size_t end = 1; end <= rows; ++end) {
    PassSizes least;
    for (std::size_t first = end; first-- > 0;) {
      least = {least.rows + 1, std::max(least.prompt, lengths[first][0]), std::max(least.inputs, lengths[first][1])};
      const PassSizes padded = padded_sizes(least, limits);
      if (least.rows > limits.rows_unit && (least.rows > limits.rows || padded.tokens() > limits.tokens)) break;
      const std::int64_t whole = price[first] + padded.tokens() + kPassPrice;
      if (whole >= price[end]) continue;
      price[end] = whole;
      last[end] = end - first;
    }
  }
  std::vector<std::size_t> passes;
  for (std::size_t end = rows; end > 0; end -= last[end]) passes.push_back(last[end]);
  std::ranges::reverse(passes);
  return passes;
}

PassLimits limits_of(const models::DecodeSizes& sizes, const Layout& layout, const Mesh& mesh) {
  return {.rows = sizes.batch,
          .prompt = sizes.prompt_length,
          .inputs = sizes.inputs_length,
          .rows_unit = parts_of(layout, mesh, "batch"),
          .prompt_unit = parts_of(layout, mesh, "length"),
          .inputs_unit = parts_of(layout, mesh, "inputs_length")};
}

std::vector<PassSizes> largest_passes(const PassLimits& limits) {
  PassSizes longest = padded_sizes({1, limits.prompt, limits.inputs}, limits),
            widest = padded_sizes({limits.rows, 1, 1}, limits);
  if (longest.tokens() == 0) return {};
  const auto fits = [&](const PassSizes& pass) { return pass.tokens() <= limits.tokens; };
  for (std::int64_t rows = 1; rows <= limits.rows; ++rows)
    if (const PassSizes pass = padded_sizes({rows, limits.prompt, limits.inputs}, limits); fits(pass)) longest = pass;
  for (std::int64_t length = 1; length <= std::max(limits.prompt, limits.inputs); ++length) {
    const PassSizes pass =
        padded_sizes({limits.rows, std::min(length, limits.prompt), std::min(length, limits.inputs)}, limits);
    if (fits(pass)) widest = pass;
  }
  if (widest == longest || !fits(widest)) return {longest};
  return {longest, widest};
}

models::DecodeSizes sizes_of_pass(models::DecodeSizes sizes, const PassSizes& pass) {
  sizes.prompts = pass.rows;
  sizes.prompt_length = pass.prompt;
  sizes.inputs_read = pass.inputs;
  return sizes;
}

PromptReader::PromptReader(const Session& session, const models::TransformerOptions& model, const Layout& layout,
                           const models::DecodeSizes& sizes, Site site)
    : session_(session),
      model_(model),
      layout_(layout),
      sizes_(sizes),
      prompt_length_(sizes.prompt_length),
      limits_(limits_of(sizes, layout, session.mesh())),
      site_(site) {
  // The session then has all variables, whose values may be set before the first row is read, and its memory no longer
  // grows.
  for (const PassSizes& pass : largest_passes(limits_)) pass_of(pass);
}

GraphCopies PromptReader::copies() const {
  if (passes_.empty()) return {};
  const models::PrefillGraph& any = passes_.begin()->second.graph;
  return {any.graph, any.copies};
}

PromptReader::Pass& PromptReader::pass_of(const PassSizes& sizes) {
  const auto found = passes_.find(sizes);
  if (found != passes_.end()) return found->second;
  models::PrefillGraph graph = models::prefill_graph(model_, sizes_of_pass(sizes_, sizes), site_);
  Executable run = session_.compile(graph.graph, layout_, {.update = graph.updates});
  return passes_.emplace(sizes, Pass{std::move(graph), std::move(run)}).first->second;
}

// At least one position after the prefix is read: the prefix is copied with it.
void PromptReader::set_prefix(std::span<const std::int32_t> ids) {
  passes_.clear();
  sizes_.prefix_length = size_of(ids);
  const std::int64_t room = sizes_.length - sizes_.prefix_length;
  sizes_.prompt_length = ids.empty() ? prompt_length_ : std::min(room, std::max<std::int64_t>(1, prompt_length_));
  limits_ = limits_of(sizes_, layout_, session_.mesh());
  if (!ids.empty()) {
    const models::PrefixGraph graph = models::prefix_graph(model_, sizes_, site_);
    Executable run = session_.compile(graph.graph, with_optional_rules(layout_), {.update = graph.updates});
    run.run({{graph.targets, Array(graph.targets.shape(), std::vector<std::int32_t>(ids.begin(), ids.end()))}});
  }
  for (const PassSizes& pass : largest_passes(limits_)) pass_of(pass);
}

// A row of padding goes to no slot. What is read beyond the end of a prompt is written over by steps before a step reads
// it.
void PromptReader::read_pass(std::span<const ReadRow> rows) {
  PassSizes least{.rows = static_cast<std::int64_t>(rows.size())};
  for (const ReadRow& row : rows) {
    least.prompt = std::max(least.prompt, size_of(row.prompt));
    least.inputs = std::max(least.inputs, size_of(row.inputs));
  }
  if (sizes_.inputs_length > 0) least.inputs = std::max<std::int64_t>(1, least.inputs);
  if (model_.prefix || sizes_.prefix_length > 0) least.prompt = std::max<std::int64_t>(1, least.prompt);
  const PassSizes sizes = padded_sizes(least, limits_);
  if (sizes.prompt == 0 && sizes.inputs == 0) return;
  Pass& pass = pass_of(sizes);
  std::vector<std::int32_t> slots(static_cast<std::size_t>(sizes.rows), -1);
  for (std::size_t r = 0; r < rows.size(); ++r) slots[r] = static_cast<std::int32_t>(rows[r].slot);
  Feeds feeds{{pass.graph.slots, Array(pass.graph.slots.shape(), slots)}};
  const auto feed = [&](const Tensor& to, std::int64_t length, auto ids_of) {
    if (!to) return;
    std::vector<std::int32_t> ids(static_cast<std::size_t>(sizes.rows * length), 0);
    for (std::size_t r = 0; r < rows.size(); ++r)
      std::ranges::copy(ids_of(rows[r]), ids.begin() + static_cast<std::ptrdiff_t>(r) * length);
    feeds.emplace_back(to, Array(to.shape(), ids));
  };
  feed(pass.graph.inputs, sizes.inputs, [](const ReadRow& row) { return row.inputs; });
  feed(pass.graph.targets, sizes.prompt, [](const ReadRow& row) { return row.prompt; });
  pass.run.run(feeds);
}

void PromptReader::read(std::vector<ReadRow> rows) {
  std::ranges::stable_sort(rows, {}, [](const ReadRow& row) { return row.prompt.size() + row.inputs.size(); });
  std::vector<std::array<std::int64_t, 2>> lengths;
  for (const ReadRow& row : rows) lengths.push_back({size_of(row.prompt), size_of(row.inputs)});
  std::span<const ReadRow> left = rows;
  for (const std::size_t count : rows_of_passes(lengths, limits_)) {
    read_pass(left.first(count));
    left = left.subspan(count);
  }
}

}  // namespace weft::decode

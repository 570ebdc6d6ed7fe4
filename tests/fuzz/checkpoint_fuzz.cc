// A checkpoint's index: refused with a UserError, or whole, and then it goes to text and back.
#include <optional>

#include "fuzz/target.h"
#include "train/checkpoint_index.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::accepts([&] { checkpoint::parse_index("index.json", text); });
  for (const bool is_whole : {true, false}) {
    std::optional<checkpoint::Index> index;
    if (!fuzz::accepts([&] { index = checkpoint::parse_unchecked("index.json", text, is_whole); })) continue;
    const std::string written = checkpoint::to_text(*index);
    std::optional<checkpoint::Index> again;
    fuzz::demand(fuzz::accepts([&] { again = checkpoint::parse_index("index.json", written, is_whole); }),
                 "what to_text writes is refused");
    fuzz::demand(checkpoint::to_text(*again) == written, "an index's text parses to another index");
    if (!is_whole) continue;
    for (const auto& [name, variable] : index->variables) {
      std::int64_t elements = 0;
      for (const checkpoint::Piece& piece : variable.pieces) {
        std::int64_t box = 1;
        for (const std::int64_t each : piece.sizes) box *= each;
        elements += box;
      }
      fuzz::demand(elements == variable.variable.shape.elements(), "pieces do not make the whole");
    }
  }
  return 0;
}

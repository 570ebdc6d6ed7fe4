// The first line is a mesh, the rest a layout: each is refused or understood, and so is the one on the other.
#include <optional>

#include "fuzz/target.h"
#include "layout/resolve.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const std::string_view text = fuzz::text_of(data, size);
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::optional<Mesh> mesh;
  std::optional<Layout> layout;
  fuzz::accepts([&] { mesh = Mesh::parse(text.substr(0, end)); });
  fuzz::accepts([&] { layout = Layout::parse(text.substr(std::min(end + 1, text.size()))); });
  if (mesh) {
    fuzz::demand(Mesh::parse(mesh->text()) == *mesh, "a mesh's text parses to another mesh");
    const ProcessorId last(mesh->size() - 1);
    fuzz::demand(mesh->processor(mesh->coordinates(last)) == last, "coordinates do not lead back");
  }
  if (!mesh || !layout) return 0;
  const Shape shape{{"batch", 64}, {"heads", 12}, {"d_model", 1 << 20}};
  fuzz::accepts([&] {
    const DimAxes axes = resolve(*layout, *mesh, shape.names());
    check_one_dim_per_axis(axes, shape, *mesh, [] { return Subject{"an op"}; });
    const Sharding sharding = sharding_of(axes, shape, *mesh, [] { return Subject{"a tensor"}; });
    const Shape local = local_shape(shape, sharding, *mesh);
    fuzz::demand(global_shape(local, sharding, *mesh) == shape, "shards do not make the whole");
  });
  return 0;
}

// A build without oneDNN: the reference engine serves products and convolutions of the CPU engine.
#include "runtime/cpu/convolution.h"
#include "runtime/cpu/product.h"
#include "weft/error.h"

namespace weft::cpu {

bool has_product(DType, DType) { return false; }
void prepare_thread() {}

struct Product::Bound {};
Product::Product(const ProductShape&) { throw InternalError("a product without oneDNN"); }
Product::Product(Product&&) noexcept = default;
Product& Product::operator=(Product&&) noexcept = default;
Product::~Product() = default;
std::size_t Product::scratch_bytes() const { return 0; }
void Product::run(const void*, const void*, void*, void*) {}

struct Convolution::Bound {};
std::optional<Convolution> Convolution::make(const ConvolutionShape&) { return std::nullopt; }
Convolution::Convolution(Convolution&&) noexcept = default;
Convolution& Convolution::operator=(Convolution&&) noexcept = default;
Convolution::~Convolution() = default;
std::size_t Convolution::scratch_bytes() const { return 0; }
void Convolution::run(void*, void*, void*, std::byte*) {}

}  // namespace weft::cpu

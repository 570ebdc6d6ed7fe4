// sort: the first of each line, in order, found where their indices will lie.
#include <algorithm>
#include <compare>
#include <iterator>
#include <numeric>

#include "runtime/reference/kernels.h"
#include "runtime/reference/lines.h"

namespace weft::reference {

namespace {

class SortKernel {
 public:
  explicit SortKernel(const KernelArgs& args)
      : x_(args.inputs[0]),
        given_(args.inputs.back()),
        has_given_(args.inputs.size() > 1),
        ascending_(args.instr.as<Sort>()->ascending),
        values_(args.outputs[0]),
        indices_(args.outputs[1]),
        lines_({x_, given_, values_, indices_}, args.instr.as<Sort>()->dim) {
    const std::size_t k = values_.shape.position(args.instr.as<Sort>()->k);
    count_ = values_.shape[k].size;
    value_step_ = values_.strides[k];
    index_step_ = indices_.strides[k];
    begin_ = x_.begin[x_.shape.position(args.instr.as<Sort>()->dim)];
  }

  void run() {
    visit_dtype(x_.dtype, [&]<class T>() {
      lines_.each([&](const std::int64_t* offsets) {
        const T* source = static_cast<const T*>(x_.data) + offsets[0];
        T* best = static_cast<T*>(values_.data) + offsets[2];
        const Line where{static_cast<std::int32_t*>(indices_.data) + offsets[3], index_step_};
        if (index_step_ == 1) order(source, where.data);
        else order(source, LineIterator{where, 0});
        for (std::int64_t j = 0; j < count_; ++j) {
          const std::int64_t e = where[j];
          best[j * value_step_] = source[e * lines_.step(0)];
          where[j] = index_of(e, offsets[1]);
        }
      });
    });
  }

 private:
  // A line of the result's indices: places are put in order there, so that no other memory is needed.
  struct Line {
    std::int32_t* data = nullptr;
    std::int64_t step = 1;
    std::int32_t& operator[](std::int64_t i) const { return data[i * step]; }
  };
  class LineIterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = std::int32_t;
    using difference_type = std::int64_t;
    using pointer = std::int32_t*;
    using reference = std::int32_t&;

    LineIterator() = default;
    LineIterator(const Line& line, std::int64_t at) : line_(line), at_(at) {}
    reference operator*() const { return line_[at_]; }
    reference operator[](std::int64_t i) const { return line_[at_ + i]; }
    LineIterator& operator+=(std::int64_t n) { return at_ += n, *this; }
    LineIterator& operator-=(std::int64_t n) { return at_ -= n, *this; }
    LineIterator& operator++() { return *this += 1; }
    LineIterator& operator--() { return *this -= 1; }
    LineIterator operator++(int) { return {line_, at_++}; }
    LineIterator operator--(int) { return {line_, at_--}; }
    friend LineIterator operator+(LineIterator a, std::int64_t n) { return a += n; }
    friend LineIterator operator+(std::int64_t n, LineIterator a) { return a += n; }
    friend LineIterator operator-(LineIterator a, std::int64_t n) { return a -= n; }
    friend std::int64_t operator-(const LineIterator& a, const LineIterator& b) { return a.at_ - b.at_; }
    friend bool operator==(const LineIterator& a, const LineIterator& b) { return a.at_ == b.at_; }
    friend auto operator<=>(const LineIterator& a, const LineIterator& b) { return a.at_ <=> b.at_; }

   private:
    Line line_;
    std::int64_t at_ = 0;
  };

  // The first places of a line in order, from `first` on. Ties go to the lower place, so that the order is total and any
  // sort is stable. NaN counts as the largest: it is never lost.
  template <class T, class Iterator>
  void order(const T* source, Iterator first) const {
    const std::int64_t step = lines_.step(0);
    const auto is_before = [&](std::int64_t p, std::int64_t q) {
      const auto a = wide(source[p * step]), b = wide(source[q * step]);
      const bool a_nan = a != a, b_nan = b != b;
      if (a_nan != b_nan) return a_nan != ascending_;
      return a_nan || a == b ? p < q : (a > b) != ascending_;
    };
    std::iota(first, first + count_, 0);
    if (count_ == lines_.length()) return std::sort(first, first + count_, is_before);
    std::make_heap(first, first + count_, is_before);  // the last of the best is at its top
    auto last = wide(source[*first * step]);
    for (auto place = static_cast<std::int32_t>(count_); place < lines_.length(); ++place) {
      const auto here = wide(source[place * step]);
      if (ascending_ ? here >= last : here <= last) continue;  // most often; a NaN is neither
      if (!is_before(place, *first)) continue;
      std::pop_heap(first, first + count_, is_before);
      first[count_ - 1] = place;
      std::push_heap(first, first + count_, is_before);
      last = wide(source[*first * step]);
    }
    std::sort_heap(first, first + count_, is_before);
  }

  std::int32_t index_of(std::int64_t e, std::int64_t given) const {
    if (!has_given_) return static_cast<std::int32_t>(begin_ + e);
    return static_cast<const std::int32_t*>(given_.data)[given + e * lines_.step(1)];
  }

  TensorView x_, given_;
  bool has_given_, ascending_;
  TensorView values_, indices_;
  Lines lines_;
  std::int64_t count_ = 0, value_step_ = 0, index_step_ = 0, begin_ = 0;
};

Kernel sort(const KernelArgs& args) {
  return [kernel = SortKernel(args)](const StepState&) mutable { kernel.run(); };
}

const AddKernel kSortKernel(kernels(), Sort::kName, sort);

}  // namespace

}  // namespace weft::reference

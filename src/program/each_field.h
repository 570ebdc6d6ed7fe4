// Reads the fields of an operation, which is of any kind.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "program/operation.h"

namespace weft {

// Calls read(name, field) for each field.
template <class Read>
void each_field(const Operation& operation, const Read& read) {
  std::visit(
      [&](const auto& of) {
        // The fields are pointers, for the parser to write through; here they are only read.
        std::apply([&](const auto&... fields) { (read(fields.first, std::as_const(*fields.second)), ...); },
                   const_cast<std::decay_t<decltype(of)>&>(of).fields());
      },
      operation);
}

}  // namespace weft

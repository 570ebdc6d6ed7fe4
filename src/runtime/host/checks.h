// The checks of a checked run: finds values that are NaN or infinite, and ids out of range.
#pragma once

#include <string>

#include "runtime/host/kernel.h"

namespace weft {

// "nan at [batch=3 vocab=17]", in the indices of the whole tensor, for the first element of a float view that is not
// finite; "" if there is none.
std::string not_finite(const TensorView& view);

// Whether the instruction comes from gather(). Other ops gather by indices of their own, which may miss on purpose.
bool looks_up_ids(const Instr& instr);

// "the id 300 at [batch=3], but dim vocab=259 has 0 to 258" for the first id that `dim` of the whole table does not
// have; "" if there is none. Negative ids are in range where each line of the table has an id of its own: labels, of
// which some may be missing.
std::string id_out_of_range(const TensorView& table, const TensorView& ids, const std::string& dim);

}  // namespace weft

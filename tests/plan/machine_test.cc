#include "weft/machine.h"

#include "plan/cost.h"
#include "program/text.h"
#include "support/expect_error.h"

namespace weft {
TEST(Machines, AllShippedDescriptionsAreRead) {
  for (const std::string& name : Machine::shipped()) EXPECT_GT(Machine::load(name).peak(), 0) << name;
}
}  // namespace weft
